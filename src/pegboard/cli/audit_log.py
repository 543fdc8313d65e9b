"""What people decide on the command line, for the audit log of the gateway that it is about."""

from __future__ import annotations

import getpass
import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pegboard.core.events import OperatorActed
from pegboard.core.json import Json
from pegboard.errors import PegboardError
from pegboard.ports import record_event


@dataclass
class DecisionOutcome:
    """What a decision was about: the tools for which it was carried out, or refused."""

    done: list[str] = field(default_factory=list[str])
    refused: list[str] = field(default_factory=list[str])


@contextmanager
def audit_decision(config: Path | None, action: str, **details: Json) -> Generator[DecisionOutcome]:
    """Record a decision with the user who takes it; the block notes what it was about.

    Without a configuration there is no audit log, and nothing is recorded.

    Raises:
        ConfigError: The audit log of this configuration cannot be written: nothing was decided.
    """
    from pegboard.gateway.config_source import ConfigSource
    from pegboard.gateway.from_settings import build_audit

    record = DecisionOutcome()
    if config is None:
        yield record
        return
    audit = build_audit(ConfigSource.of(config).read().settings, config.parent)
    outcome, error = "failed", None
    try:
        yield record
        outcome = "refused" if record.refused and not record.done else "ok"
    except PegboardError as exc:
        error = exc.kind
        raise
    finally:
        event = OperatorActed(
            at=time.time(),
            action=action,
            outcome=outcome,
            source="cli",
            principal=os_user(),
            targets=tuple(record.done),
            details={**details, "refused": record.refused} if record.refused else details,
            error=error,
        )
        for observer in audit.observers:
            record_event(observer, event)


def os_user() -> str:
    """The user that this process runs as, by the operating system and not by the environment."""
    if sys.platform == "win32":
        return getpass.getuser()
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # in a container, a user may have no name
        return f"uid {os.getuid()}"
