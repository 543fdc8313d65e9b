"""What a configuration has told about the gateway's work: metrics, traces, the audit log."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard.config.settings import Settings
from pegboard.errors import ConfigError
from pegboard.observe.rollouts import Told
from pegboard.ports import Layer, Observer
from pegboard.server.operations import make_prometheus

if TYPE_CHECKING:
    from pegboard.config.governance import ObserveSettings
    from pegboard.observe.audit import AuditLog


@dataclass(frozen=True, slots=True, kw_only=True)
class Observing:
    """Who is told of events, what records calls, and what `/metrics` answers, if anything."""

    observers: tuple[Observer, ...] = ()
    layers: tuple[Layer, ...] = ()
    metrics: Callable[[], bytes] | None = None
    arms: tuple[Told, ...] = ()
    """Told how the arms of a rollout do."""
    wants_tokens: bool = False
    """Whether somebody reads what answers cost; else they are counted for rollouts alone."""


def observing_of(settings: Settings, beside: Path) -> Observing:
    """What a configuration asks for; `beside` is where relative paths start.

    Raises:
        ConfigError: The audit log cannot be written, or a package is missing.
    """
    from pegboard.observe.otel_metrics import ArmMeters

    observe, audit = settings.observe, audit_of(settings, beside)
    observers: list[Observer] = list(audit.observers)
    arms: list[Told] = [ArmMeters()]
    metrics: Callable[[], bytes] | None = None
    if observe.opentelemetry:
        from pegboard.observe.otel_setup import set_up

        set_up(os.environ)
    if observe.metrics != "off":
        prometheus = make_prometheus()
        observers.append(prometheus)
        arms.append(prometheus.arms)
        metrics = prometheus.exposition
    return Observing(
        observers=tuple(observers),
        layers=audit.layers,
        metrics=metrics,
        arms=tuple(arms),
        wants_tokens=metrics is not None or observe.opentelemetry,
    )


def audit_of(settings: Settings, beside: Path) -> Observing:
    """The audit log alone, where the configuration asks for one.

    Raises:
        ConfigError: It cannot be written.
    """
    observe = settings.observe
    if not observe.audit:
        return Observing()
    from pegboard.observe.audit import AuditEvents, audit

    log = _audit_log(observe, beside / Path(observe.audit).expanduser())
    return Observing(observers=(AuditEvents(log),), layers=(audit(log),))


def _audit_log(observe: ObserveSettings, path: Path) -> AuditLog:
    from pegboard.observe.audit import AuditLog

    try:
        return AuditLog(path, most_bytes=observe.audit_bytes, keep=observe.audit_files)
    except OSError as exc:
        raise ConfigError(f"The audit log {path} cannot be written: {exc}") from exc
