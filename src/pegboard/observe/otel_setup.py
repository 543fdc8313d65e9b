"""OpenTelemetry's SDK as the usual `OTEL_` variables ask for it.

`opentelemetry-instrument pegboard serve` does the same and more; this is for those who would rather
write one line of configuration. Who has set up providers already keeps them.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any, Literal

from pegboard.errors import ConfigError

_INSTALL = "pip install 'pegboard[otel]'"
_SERVICE = "OTEL_SERVICE_NAME"


def set_up(environ: Mapping[str, str]) -> None:
    """Send spans and metrics where `OTEL_TRACES_EXPORTER` and its kin say; `otlp` where they don't.

    Raises:
        ConfigError: The SDK or an exporter is not installed.
    """
    try:
        from opentelemetry.sdk.resources import Resource
    except ImportError as exc:
        raise ConfigError(f"OpenTelemetry needs its SDK: {_INSTALL}.") from exc
    named = {} if environ.get(_SERVICE) else {"service.name": "pegboard"}
    resource = Resource.create(named)
    _trace(_exporters("traces", environ), resource)
    _measure(_exporters("metrics", environ), resource)


def _trace(exporters: list[Any], resource: Any) -> None:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    if not exporters or isinstance(trace.get_tracer_provider(), TracerProvider):
        return
    provider = TracerProvider(resource=resource)
    for exporter in exporters:
        provider.add_span_processor(BatchSpanProcessor(exporter()))
    trace.set_tracer_provider(provider)


def _measure(exporters: list[Any], resource: Any) -> None:
    from opentelemetry import metrics
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader

    if not exporters or isinstance(metrics.get_meter_provider(), MeterProvider):
        return
    readers = [
        exporter() if issubclass(exporter, MetricReader)
        else PeriodicExportingMetricReader(exporter())
        for exporter in exporters
    ]  # fmt: skip
    metrics.set_meter_provider(MeterProvider(readers, resource=resource))


def _exporters(signal: Literal["traces", "metrics"], environ: Mapping[str, str]) -> list[Any]:
    """The classes of the exporters that the environment names."""
    asked = environ.get(f"OTEL_{signal.upper()}_EXPORTER") or "otlp"
    names = [name.strip() for name in asked.split(",")]
    return [_exporter(signal, name, environ) for name in names if name and name != "none"]


def _exporter(signal: str, name: str, environ: Mapping[str, str]) -> Any:
    if name == "otlp":
        protocol = environ.get("OTEL_EXPORTER_OTLP_PROTOCOL") or "http/protobuf"
        name = f"otlp_proto_{protocol.partition('/')[0]}"
    found = entry_points(group=f"opentelemetry_{signal}_exporter", name=name)
    if not found:
        raise ConfigError(f"There is no OpenTelemetry exporter {name!r} for {signal}: {_INSTALL}.")
    return next(iter(found)).load()
