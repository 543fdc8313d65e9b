"""OpenTelemetry spans: one per call, in the client's own trace.

Needs `opentelemetry-api` alone; without an SDK set up by the application every span is a no-op.

A span is current while its call runs, so that what the call does in turn (a request to an upstream,
an HTTP call of a tool) becomes its child. That works because the observing layer tells of start and
end in the task of the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pegboard.core.events import CallFinished, CallStarted, Event

if TYPE_CHECKING:
    from contextvars import Token

    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer


class _Open(NamedTuple):
    span: Span
    token: Token[Context]


class Spans:
    """An observer that keeps a span open for each call under way."""

    def __init__(self, tracer: Tracer | None = None) -> None:
        from opentelemetry import trace

        self._given = tracer is not None
        self._tracer = tracer or trace.get_tracer("pegboard")
        self._open: dict[str, _Open] = {}

    def record(self, event: Event) -> None:
        """Open or close a span."""
        match event:
            case CallStarted():
                self._start(event)
            case CallFinished():
                self._finish(event)
            case _:
                pass

    def _start(self, event: CallStarted) -> None:
        if not self._given and not event.trace and not is_set_up():
            return
        from opentelemetry import context, trace

        parent = _clients_trace(event)
        span = self._tracer.start_span(
            f"execute_tool {event.tool}",
            context=parent,
            kind=trace.SpanKind.INTERNAL,
            attributes=_known(
                {
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": event.tool,
                    "pegboard.call.id": event.id,
                    "pegboard.upstream": event.upstream,
                    "pegboard.principal": event.principal,
                    "pegboard.client": event.client,
                    "pegboard.face": event.face,
                    "pegboard.via": event.via,
                }
            ),
        )
        token = context.attach(trace.set_span_in_context(span, parent))
        self._open[event.id] = _Open(span, token)

    def _finish(self, event: CallFinished) -> None:
        opened = self._open.pop(event.id, None)
        if opened is None:
            return
        from opentelemetry import context, trace

        context.detach(opened.token)
        opened.span.set_attributes(
            _known(
                {
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
            )
        )
        if event.outcome != "ok":
            opened.span.set_status(trace.StatusCode.ERROR, event.error or event.outcome)
        opened.span.end()


def is_set_up() -> bool:
    """Whether the application has set up an SDK, so that spans go anywhere."""
    from opentelemetry import trace

    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def _clients_trace(event: CallStarted) -> Context | None:
    """The context to start in; `None` for the current one.

    The SDK's own server span usually continues the client's trace already: then ours goes below it.
    """
    from opentelemetry import propagate, trace

    if not event.trace:
        return None
    try:
        extracted = propagate.extract(event.trace)
    except (TypeError, ValueError):  # a header that some propagator chokes on is the client's fault
        return None
    client = trace.get_current_span(extracted).get_span_context()
    current = trace.get_current_span().get_span_context()
    if not client.is_valid or client.trace_id == current.trace_id:
        return None
    return extracted


def _known(attributes: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in attributes.items() if v is not None}
