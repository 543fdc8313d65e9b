from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import anyio
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.dispatch.fakes import OK, make_call, run
from tests.observe.samples import finished

from pegboard import Pegboard
from pegboard.core.calls import CallResult, ToolCall
from pegboard.dispatch.call_events import ObserveOptions, observe
from pegboard.errors import UpstreamTimeout
from pegboard.observe.otel import CallSpans
from pegboard.ports import Handler

pytestmark = pytest.mark.anyio

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
META = {"_meta": {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "vendor=1"}}


class Traced:
    """A pipeline that is traced, and the spans that came of it."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = provider.get_tracer("test")
        self.layer = observe(ObserveOptions(observer=CallSpans(self.tracer)))

    def around(self, handler: Handler) -> Handler:
        return self.layer(handler)

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())


async def ok(call: ToolCall) -> CallResult:
    return OK


def ids(span: ReadableSpan) -> tuple[str, str | None]:
    assert span.context is not None
    parent = format(span.parent.span_id, "016x") if span.parent else None
    return format(span.context.trace_id, "032x"), parent


async def test_a_call_continues_the_clients_trace() -> None:
    traced = Traced()
    await traced.around(ok)(make_call(params=META))
    (span,) = traced.spans
    assert span.name == "execute_tool github.search"
    assert ids(span) == (TRACE, PARENT)


async def test_below_a_server_span_of_the_same_trace_a_call_is_its_child() -> None:
    traced = Traced()
    parent = trace.set_span_in_context(
        trace.NonRecordingSpan(
            trace.SpanContext(int(TRACE, 16), int(PARENT, 16), True, trace.TraceFlags(1))
        )
    )
    with traced.tracer.start_as_current_span("server", context=parent) as server:
        await traced.around(ok)(make_call(params=META))
    assert ids(traced.spans[0]) == (TRACE, format(server.get_span_context().span_id, "016x"))


async def test_what_a_call_does_in_turn_becomes_a_child_of_its_span() -> None:
    traced = Traced()

    async def asks_upstream(call: ToolCall) -> CallResult:
        with traced.tracer.start_as_current_span("request"):
            return OK

    await traced.around(asks_upstream)(make_call(params=META))
    request, call = traced.spans
    assert call.context is not None
    assert ids(request) == (TRACE, format(call.context.span_id, "016x"))
    assert not trace.get_current_span().get_span_context().is_valid, "nothing is left current"


async def test_calls_side_by_side_do_not_become_each_others_parents() -> None:
    traced = Traced()

    async def waits(call: ToolCall) -> CallResult:
        await anyio.wait_all_tasks_blocked()
        return OK

    async with anyio.create_task_group() as tasks:
        for n in range(3):
            tasks.start_soon(run, traced.around(waits), make_call(f"t{n}", params=META))
    assert [ids(s) for s in traced.spans] == [(TRACE, PARENT)] * 3


async def test_a_span_says_what_became_of_the_call() -> None:
    traced = Traced()

    async def fails(call: ToolCall) -> CallResult:
        raise UpstreamTimeout("late")

    with pytest.raises(UpstreamTimeout):
        await traced.around(fails)(make_call(via="call_tool"))
    (span,) = traced.spans
    attributes: dict[str, Any] = dict(span.attributes or {})
    assert attributes["gen_ai.tool.name"] == "github.search"
    assert attributes["pegboard.outcome"] == "failed"
    assert attributes["error.type"] == "timeout"
    assert attributes["pegboard.via"] == "call_tool"
    assert span.status.status_code is trace.StatusCode.ERROR


@pytest.mark.parametrize("traceparent", ["", "nonsense", "00-0-0-00", "x" * 5000])
async def test_a_trace_context_that_cannot_be_read_begins_a_trace_of_its_own(
    traceparent: str,
) -> None:
    traced = Traced()
    await traced.around(ok)(make_call(params={"_meta": {"traceparent": traceparent}}))
    assert ids(traced.spans[0])[1] is None


async def test_without_an_sdk_spans_cost_nothing_and_fail_nothing() -> None:
    handler = observe(ObserveOptions(observer=CallSpans()))(ok)
    assert await handler(make_call(params=META)) is OK


def test_an_end_without_a_start_is_ignored() -> None:
    traced = Traced()
    CallSpans(traced.tracer).record(finished())
    assert traced.spans == []


def test_importing_the_module_does_not_import_opentelemetry() -> None:
    code = "import sys, pegboard.observe.otel; sys.exit('opentelemetry' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_a_program_has_a_span_with_its_calls_below_it() -> None:
    traced = Traced()
    board = Pegboard("traced")
    board.tool(name="ping", annotations={"readOnlyHint": True})(lambda: 1)
    board.parts = replace(board.parts, observers=(CallSpans(traced.tracer),))
    assert not (await board.run_code("await gather(ping(), ping())")).is_error
    *calls, program = traced.spans
    assert program.name == "run_code"
    assert program.attributes is not None
    assert program.attributes["pegboard.run.calls"] == 2
    assert program.context is not None
    assert [call.name for call in calls] == ["execute_tool ping"] * 2
    above = (ids(program)[0], format(program.context.span_id, "016x"))
    assert [ids(call) for call in calls] == [above] * 2
