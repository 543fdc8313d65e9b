"""What a configuration has told about the gateway's work: metrics, the audit log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pegboard.config.settings import Settings
from pegboard.errors import ConfigError
from pegboard.ports import Layer, Observer


@dataclass(frozen=True, slots=True, kw_only=True)
class Observing:
    """Who is told of events, what records calls, and what `/metrics` answers, if anything."""

    observers: tuple[Observer, ...] = ()
    layers: tuple[Layer, ...] = ()
    metrics: Callable[[], bytes] | None = None


def observing_of(settings: Settings, beside: Path) -> Observing:
    """What a configuration asks for; `beside` is where relative paths start.

    Raises:
        ConfigError: The audit log cannot be written, or a package is missing.
    """
    observers: list[Observer] = []
    layers: list[Layer] = []
    metrics: Callable[[], bytes] | None = None
    if settings.observe.metrics != "off":
        try:
            from pegboard.observe.prometheus import Prometheus
        except ImportError as exc:
            raise ConfigError(
                "Metrics need the Prometheus client: pip install 'pegboard[metrics]'."
            ) from exc
        prometheus = Prometheus()
        observers.append(prometheus)
        metrics = prometheus.exposition
    if settings.observe.audit:
        layers.append(_audit(settings, beside / Path(settings.observe.audit).expanduser()))
    return Observing(observers=tuple(observers), layers=tuple(layers), metrics=metrics)


def _audit(settings: Settings, path: Path) -> Layer:
    from pegboard.observe.audit import AuditLog, audit

    observe = settings.observe
    try:
        log = AuditLog(path, most_bytes=observe.audit_bytes, keep=observe.audit_files)
    except OSError as exc:
        raise ConfigError(f"The audit log {path} cannot be written: {exc}") from exc
    return audit(log)
