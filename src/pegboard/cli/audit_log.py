"""Writes decisions made on the command line to the audit log of the gateway they concern."""

from __future__ import annotations

import getpass
import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pegboard.core.events import OperatorActed
from pegboard.core.json import Json
from pegboard.errors import PegboardError
from pegboard.ports import record_event

if TYPE_CHECKING:
    from pegboard.gateway.config_source import ConfigSource


@dataclass
class DecisionOutcome:
    """The tools for which a decision was carried out, or refused."""

    done: list[str] = field(default_factory=list[str])
    refused: list[str] = field(default_factory=list[str])


@contextmanager
def audit_decision(
    source: ConfigSource | None, action: str, **details: Json
) -> Generator[DecisionOutcome]:
    """Write a decision to the audit log, with the user who makes it; the block sets the outcome.

    Without a configuration there is no audit log, and nothing is written.

    Raises:
        ConfigError: The audit log cannot be written. The decision is not carried out.
    """
    from pegboard.gateway.from_settings import build_audit

    decision = DecisionOutcome()
    if source is None:
        yield decision
        return
    # Opened first: a decision that could not be written to the audit log is not carried out.
    audit = build_audit(source.read().settings, source.path.parent)
    outcome, error = "failed", None
    try:
        yield decision
        outcome = "refused" if decision.refused and not decision.done else "ok"
    except PegboardError as exc:
        error = exc.kind
        raise
    finally:
        # A decision that failed, or was interrupted, is in the audit log too.
        event = OperatorActed(
            at=time.time(),
            action=action,
            outcome=outcome,
            source="cli",
            principal=os_user(),
            targets=tuple(decision.done),
            details={**details, "refused": decision.refused} if decision.refused else details,
            error=error,
        )
        for observer in audit.observers:
            record_event(observer, event)


def os_user() -> str:
    """The user of this process, from the system: environment variables can be forged."""
    if sys.platform == "win32":
        return getpass.getuser()
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # in a container, a user id may have no name
        return f"uid {os.getuid()}"
