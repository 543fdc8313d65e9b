"""OpenTelemetry: a span for each call, metrics, and the SDK set up from `OTEL_` variables.

Spans and metrics need `opentelemetry-api` alone; without an SDK, set up by the application or by
`configure_otel`, every span and instrument is a no-op.

A span is current while its call runs, so that whatever the call does in turn (a request to an
upstream, an HTTP request of a tool) becomes its child. This works because the observing layer
reports start and end in the task of the call.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pegboard.core.events import (
    AnswerSent,
    BreakerChanged,
    CallFinished,
    CallRejected,
    CallRetried,
    CallStarted,
    DescribeAnswered,
    Event,
    ListAnswered,
    RunFinished,
    RunStarted,
    SearchAnswered,
    StoreStateChanged,
    UpstreamStateChanged,
)
from pegboard.core.mode_rollout import ArmName, ArmStatistics, Rollout
from pegboard.errors import ConfigError

if TYPE_CHECKING:
    from contextvars import Token

    from opentelemetry.context import Context
    from opentelemetry.metrics import Meter
    from opentelemetry.trace import Span, Tracer


class _OpenSpan(NamedTuple):
    span: Span
    token: Token[Context]


class CallSpans:
    """An observer that holds a span open for each call in progress."""

    def __init__(self, tracer: Tracer | None = None) -> None:
        from opentelemetry import trace

        self._given = tracer is not None
        # A proxy until the application sets up its SDK, which it may do after this.
        self._tracer = tracer or trace.get_tracer("pegboard")
        self._open: dict[str, _OpenSpan] = {}

    def record(self, event: Event) -> None:
        """Open or close a span."""
        match event:
            case CallStarted() if self._is_wanted(event):
                attributes = {
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": event.tool,
                    "pegboard.call.id": event.id,
                    "pegboard.run.id": event.parent,
                    "pegboard.upstream": event.upstream,
                    "pegboard.principal": event.principal,
                    "pegboard.client": event.client,
                    "pegboard.mode": event.mode,
                    "pegboard.via": event.via,
                }
                self._open_span(f"execute_tool {event.tool}", event, attributes)
            case CallFinished() if event.id in self._open:
                attributes = {
                    "pegboard.outcome": event.outcome,
                    "error.type": event.error,
                    "pegboard.attempts": event.attempts,
                    "pegboard.cached": event.cached,
                    "pegboard.spilled": event.spilled,
                    "pegboard.tokens.in": event.tokens_in,
                    "pegboard.tokens.out_before": event.tokens_out_before,
                    "pegboard.tokens.out": event.tokens_out,
                    "pegboard.tokens.estimated": event.tokens_estimated or None,
                }
                self._close_span(event, attributes)
            case RunStarted() if self._is_wanted(event):
                # The span of a program is current while it runs, so its calls become children.
                attributes = {
                    "pegboard.run.id": event.id,
                    "pegboard.run.digest": event.digest,
                    "pegboard.principal": event.principal,
                    "pegboard.client": event.client,
                    "pegboard.mode": event.mode,
                    "pegboard.via": event.via,
                }
                self._open_span("run_code", event, attributes)
            case RunFinished():
                attributes = {
                    "pegboard.outcome": event.outcome,
                    "error.type": event.error,
                    "pegboard.run.ran": event.ran,
                    "pegboard.run.calls": event.calls,
                    "pegboard.run.writes": event.writes,
                    "pegboard.tokens.inside": event.tokens_inside,
                }
                self._close_span(event, attributes)
            case _:
                pass

    def _is_wanted(self, event: CallStarted | RunStarted) -> bool:
        # Without an SDK nothing is exported; a client's trace is continued anyway.
        return self._given or bool(event.trace) or has_tracer_provider()

    def _open_span(
        self, name: str, event: CallStarted | RunStarted, attributes: dict[str, Any]
    ) -> None:
        from opentelemetry import context, trace

        parent = _client_context(event)
        span = self._tracer.start_span(
            name,
            context=parent,
            kind=trace.SpanKind.INTERNAL,
            attributes=_without_none(attributes),
        )
        # Current until it is closed, in the same task: a token cannot be reset in another.
        token = context.attach(trace.set_span_in_context(span, parent))
        self._open[event.id] = _OpenSpan(span, token)

    def _close_span(self, event: CallFinished | RunFinished, attributes: dict[str, Any]) -> None:
        opened = self._open.pop(event.id, None)
        if opened is None:
            return
        from opentelemetry import context, trace

        # Before anything that could fail: an attached span would become the parent of later calls.
        context.detach(opened.token)
        opened.span.set_attributes(_without_none(attributes))
        if event.outcome != "ok":
            opened.span.set_status(trace.StatusCode.ERROR, event.error or event.outcome)
        opened.span.end()


def has_tracer_provider() -> bool:
    """Whether the application has set up an SDK; without one, spans are never exported."""
    from opentelemetry import trace

    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def _client_context(event: CallStarted | RunStarted) -> Context | None:
    """The context to start a span in; `None` for the current one.

    The MCP SDK's own server span usually continues the client's trace: then ours is its child.
    """
    from opentelemetry import propagate, trace

    if not event.trace:
        return None
    try:
        extracted = propagate.extract(event.trace)
    except (TypeError, ValueError):  # the client sent a header that some propagator cannot parse
        return None
    client = trace.get_current_span(extracted).get_span_context()
    current = trace.get_current_span().get_span_context()
    if not client.is_valid or client.trace_id == current.trace_id:
        return None
    return extracted


def _without_none(attributes: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in attributes.items() if v is not None}


class OtelMetrics:
    """An observer that records events on OpenTelemetry's instruments."""

    def __init__(self, meter: Meter | None = None) -> None:
        meter = meter or _get_meter()
        self._calls = meter.create_counter("pegboard.calls", "{call}", "Calls that ended.")
        self._seconds = meter.create_histogram(
            "pegboard.call.duration", "s", "How long calls took."
        )
        self._running = meter.create_up_down_counter(
            "pegboard.calls.running", "{call}", "Calls in progress."
        )
        self._retries = meter.create_counter("pegboard.retries", "{call}", "Calls made again.")
        self._tokens = meter.create_counter(
            "pegboard.tokens", "{token}", "Tokens sent to models, and tokens saved."
        )
        self._queries = meter.create_histogram(
            "pegboard.question.duration", "s", "How long lists, searches and descriptions took."
        )
        self._open = meter.create_gauge("pegboard.breaker.open", "1", "Whether a breaker is open.")
        self._up = meter.create_gauge("pegboard.upstream.up", "1", "Whether a server is ready.")
        self._store = meter.create_gauge(
            "pegboard.store.shared", "1", "Whether the shared store answers."
        )

    def record(self, event: Event) -> None:
        """Record one event."""
        match event:
            case CallStarted():
                self._running.add(1)
            case CallFinished():
                where = {
                    "pegboard.mode": event.mode or "",
                    "pegboard.upstream": event.upstream or "",
                }
                ending = {"outcome": event.outcome, "error.type": event.error or ""}
                # Tools and principals are not labels: each combination would be a time series of
                # its own.
                self._running.add(-1)
                self._calls.add(1, {**where, **ending})
                self._seconds.record(event.duration, where)
                if event.tokens_out is not None and event.tokens_out_before is not None:
                    saved = max(0, event.tokens_out_before - event.tokens_out)
                    self._tokens.add(saved, {"pegboard.mode": event.mode or "", "kind": "saved"})
            case CallRejected():
                attributes = {"outcome": "refused", "error.type": event.error}
                self._calls.add(1, {"pegboard.mode": event.mode or "", **attributes})
            case CallRetried():
                self._retries.add(1, {"pegboard.upstream": event.upstream or ""})
            case AnswerSent():
                self._tokens.add(event.tokens, {"pegboard.mode": event.mode, "kind": event.what})
            case ListAnswered() | SearchAnswered() | DescribeAnswered():
                kind = event.kind.partition(".")[0]
                self._queries.record(event.duration, {"pegboard.mode": event.mode, "kind": kind})
            case BreakerChanged():
                which = {"scope": event.scope, "name": event.name}
                self._open.set(int(event.state != "closed"), which)
            case UpstreamStateChanged():
                self._up.set(int(event.state == "ready"), {"pegboard.upstream": event.upstream})
            case StoreStateChanged():
                self._store.set(int(event.available))
            case _:
                pass


class OtelRolloutMetrics:
    """The arms of a rollout on OpenTelemetry's instruments."""

    def __init__(self, meter: Meter | None = None) -> None:
        meter = meter or _get_meter()
        self._calls = meter.create_counter("pegboard.rollout.calls", "{call}", "Calls of an arm.")
        self._errors = meter.create_counter("pegboard.rollout.errors", "{call}", "Failed ones.")
        self._seconds = meter.create_histogram(
            "pegboard.rollout.call.duration", "s", "How long they took."
        )
        self._sessions = meter.create_counter(
            "pegboard.rollout.sessions", "{session}", "Times that clients requested the list."
        )
        self._searches = meter.create_counter("pegboard.rollout.searches", "{search}", "Searches.")
        self._tokens = meter.create_counter(
            "pegboard.rollout.tokens", "{token}", "Tokens sent to models."
        )

    def __call__(self, rollout: Rollout, arm: ArmName, figures: ArmStatistics) -> None:
        """Record the figures of one arm."""
        which = {"pegboard.mode": rollout.mode, "arm": arm}
        self._calls.add(figures.calls, which)
        self._errors.add(figures.errors, which)
        self._sessions.add(figures.lists, which)
        self._searches.add(figures.searches, which)
        self._tokens.add(figures.tokens, which)
        if figures.calls:
            self._seconds.record(figures.seconds, which)


def _get_meter() -> Meter:
    from opentelemetry import metrics

    return metrics.get_meter("pegboard")


_INSTALL = "pip install 'pegboard[otel]'"
_SERVICE_NAME = "OTEL_SERVICE_NAME"


def configure_otel(environ: Mapping[str, str]) -> None:
    """Export spans and metrics as the `OTEL_` variables say; by `otlp` where they say nothing.

    Raises:
        ConfigError: The SDK or an exporter is not installed.
    """
    from opentelemetry import metrics, trace

    try:
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as exc:
        raise ConfigError(f"OpenTelemetry needs its SDK: {_INSTALL}.") from exc
    # The environment's name wins by itself; `create` would let this argument override it.
    named = {} if environ.get(_SERVICE_NAME) else {"service.name": "pegboard"}
    resource = Resource.create(named)
    # Providers that the application has set up already, as `opentelemetry-instrument` does, stay.
    span_exporters = _load_exporters("traces", environ)
    if span_exporters and not isinstance(trace.get_tracer_provider(), TracerProvider):
        provider = TracerProvider(resource=resource)
        for exporter in span_exporters:
            provider.add_span_processor(BatchSpanProcessor(exporter()))
        trace.set_tracer_provider(provider)
    metric_exporters = _load_exporters("metrics", environ)
    if metric_exporters and not isinstance(metrics.get_meter_provider(), MeterProvider):
        # An exporter that is pulled from, such as Prometheus', is a reader itself.
        readers = [
            exporter() if issubclass(exporter, MetricReader)
            else PeriodicExportingMetricReader(exporter())
            for exporter in metric_exporters
        ]  # fmt: skip
        metrics.set_meter_provider(MeterProvider(readers, resource=resource))


def _load_exporters(signal: Literal["traces", "metrics"], environ: Mapping[str, str]) -> list[Any]:
    """The classes of the exporters that the environment names."""
    configured = environ.get(f"OTEL_{signal.upper()}_EXPORTER") or "otlp"
    exporters: list[Any] = []
    for name in (name.strip() for name in configured.split(",")):
        if not name or name == "none":
            continue
        if name == "otlp":
            protocol = environ.get("OTEL_EXPORTER_OTLP_PROTOCOL") or "http/protobuf"
            name = f"otlp_proto_{protocol.partition('/')[0]}"
        found = entry_points(group=f"opentelemetry_{signal}_exporter", name=name)
        if not found:
            raise ConfigError(
                f"There is no OpenTelemetry exporter {name!r} for {signal}: {_INSTALL}."
            )
        exporters.append(next(iter(found)).load())
    return exporters
