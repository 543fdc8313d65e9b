from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest
from tests.dispatch.fakes import OK, Clock, Recorder, Source, make_call, run

from pegboard.core.calls import Caller, CallResult, ToolCall
from pegboard.core.events import CallFinished, CallStarted, Event
from pegboard.core.token_budget import Estimate
from pegboard.dispatch.call_events import ObserveOptions, call_notes, observe
from pegboard.errors import (
    Busy,
    InvalidArguments,
    ToolError,
    UpstreamTimeout,
    UpstreamUnavailable,
)
from pegboard.ports import Handler

pytestmark = pytest.mark.anyio


async def watched(handler: Handler, call: ToolCall | None = None, **options: Any) -> CallFinished:
    """How a call through the layer was told of when it had ended."""
    recorder = Recorder()
    layer = observe(ObserveOptions(observer=recorder, **options))
    try:
        await layer(handler)(call or make_call())
    except Exception:
        assert recorder.of(CallFinished), "a failed call is told of before its error goes on"
    (finished,) = recorder.of(CallFinished)
    return finished


async def test_the_start_and_the_end_of_a_call_are_recorded_under_one_id() -> None:
    recorder, source = Recorder(), Source()
    caller = Caller(principal="ann", client="claude-code", mode="proxy")
    call = make_call(caller=caller, via="call_tool")
    await observe(ObserveOptions(observer=recorder, new_id=lambda: "c1"))(source)(call)
    started, finished = recorder.events
    assert isinstance(started, CallStarted)
    assert isinstance(finished, CallFinished)
    for event in (started, finished):
        assert (event.id, event.tool, event.upstream) == ("c1", "github.search", "github")
        assert (event.principal, event.client, event.mode) == ("ann", "claude-code", "proxy")
        assert event.via == "call_tool"
    assert source.calls[0].id == "c1", "inner layers see the id"


async def test_a_call_that_has_an_id_keeps_it() -> None:
    call = make_call()
    mine = ToolCall(call.tool, {}, id="mine")
    assert (await watched(Source(), mine)).id == "mine"


async def test_ids_are_fresh_for_every_call() -> None:
    ids = {(await watched(Source())).id for _ in range(50)}
    assert len(ids) == 50


async def test_the_duration_is_that_of_the_inner_handler() -> None:
    clock = Clock()

    async def slow(call: ToolCall) -> CallResult:
        clock.now += 1.5
        return OK

    finished = await watched(slow, clock=lambda: 7.0, timer=clock)
    assert (finished.at, finished.duration) == (7.0, 1.5)


@pytest.mark.parametrize(
    ("answer", "outcome", "error"),
    [
        (OK, "ok", None),
        (CallResult.text("no", is_error=True), "tool_error", "tool_error"),
        (
            CallResult.text("no", structured={"error": {"kind": "busy"}}, is_error=True),
            "tool_error",
            "busy",
        ),
        (ToolError("no"), "tool_error", "tool_error"),
        (InvalidArguments("x"), "refused", "invalid_arguments"),
        (Busy("x"), "refused", "busy"),
        (UpstreamTimeout("x"), "failed", "timeout"),
        (UpstreamUnavailable("x"), "failed", "unavailable"),
        (ZeroDivisionError("x"), "failed", "ZeroDivisionError"),
    ],
    ids=repr,
)
async def test_every_outcome_is_recorded_by_name(
    answer: CallResult | Exception, outcome: str, error: str | None
) -> None:
    source = Source()
    source.queue = [answer]
    finished = await watched(source)
    assert (finished.outcome, finished.error) == (outcome, error)


async def test_a_cancelled_call_is_recorded_too() -> None:
    async def hangs(call: ToolCall) -> CallResult:
        await anyio.sleep_forever()
        raise AssertionError

    recorder = Recorder()
    with anyio.move_on_after(0.01) as scope:
        await observe(ObserveOptions(observer=recorder))(hangs)(make_call())
    assert scope.cancelled_caught
    assert [e.outcome for e in recorder.of(CallFinished)] == ["cancelled"]


class Broken:
    """An observer that always fails."""

    def record(self, event: Event) -> None:
        raise RuntimeError("cannot write the log")


async def test_an_observer_that_raises_never_fails_the_call(
    caplog: pytest.LogCaptureFixture,
) -> None:
    handler = observe(ObserveOptions(observer=Broken()))(Source())
    with caplog.at_level(logging.ERROR):
        assert await handler(make_call()) is OK
    assert "Broken failed on call.started" in caplog.text
    assert "Broken failed on call.finished" in caplog.text


async def test_layers_inside_leave_what_only_they_know() -> None:
    async def inner(call: ToolCall) -> CallResult:
        sheet = call_notes()
        sheet.cached, sheet.spilled, sheet.projected = True, True, True
        sheet.tokens_out_before, sheet.tokens_out = 2500, 120
        return OK

    finished = await watched(inner)
    assert (finished.cached, finished.spilled, finished.projected) == (True, True, True)
    assert (finished.tokens_out_before, finished.tokens_out) == (2500, 120)


async def test_calls_side_by_side_have_notes_of_their_own() -> None:
    async def inner(call: ToolCall) -> CallResult:
        call_notes().attempts = int(call.tool.name)
        await anyio.wait_all_tasks_blocked()
        assert call_notes().attempts == int(call.tool.name)
        return OK

    recorder = Recorder()
    handler = observe(ObserveOptions(observer=recorder))(inner)
    async with anyio.create_task_group() as tasks:
        for n in range(1, 5):
            tasks.start_soon(run, handler, make_call(str(n)))
    assert {(e.tool, e.attempts) for e in recorder.of(CallFinished)} == {
        (f"github.{n}", n) for n in range(1, 5)
    }


def test_notes_outside_of_a_call_are_a_blank_sheet() -> None:
    call_notes().cached = True
    assert not call_notes().cached


def words(text: str) -> int:
    return len(text.split())


async def test_tokens_are_counted_on_what_the_model_writes_and_reads() -> None:
    source = Source()
    source.queue = [CallResult.text("four words of text", structured={"x": 1})]
    finished = await watched(source, make_call(arguments={"q": "a b"}), count=words)
    assert (finished.tokens_in, finished.tokens_out, finished.tokens_out_before) == (2, 4, 4)


async def test_structured_content_without_text_is_counted_as_compact_json() -> None:
    source = Source()
    source.queue = [CallResult({"content": [], "structuredContent": {"a": [1, 2]}})]
    finished = await watched(source, count=len)
    assert finished.tokens_out == len('{"a":[1,2]}')


async def test_what_a_layer_has_counted_is_not_counted_again() -> None:
    async def inner(call: ToolCall) -> CallResult:
        call_notes().tokens_out_before, call_notes().tokens_out = 900, 30
        return OK

    finished = await watched(inner, count=words)
    assert (finished.tokens_in, finished.tokens_out_before, finished.tokens_out) == (1, 900, 30)


def estimated(text: str) -> int:
    return Estimate(5)


async def test_estimated_tokens_are_marked() -> None:
    assert not (await watched(Source(), count=words)).tokens_estimated
    assert (await watched(Source(), count=estimated)).tokens_estimated


async def test_a_text_that_cannot_be_counted_does_not_fail_the_call() -> None:
    def fails(text: str) -> int:
        raise ValueError("no tokenizer")

    recorder = Recorder()
    handler = observe(ObserveOptions(observer=recorder, count=fails))(Source())
    assert await handler(make_call()) is OK
    assert recorder.of(CallFinished)[0].tokens_in is None


async def test_argument_values_are_recorded_only_if_configured() -> None:
    call = make_call(arguments={"password": "hunter2"})
    assert (await watched(Source(), call)).arguments is None
    kept = await watched(Source(), call, keep_arguments=True)
    assert kept.arguments == {"password": "hunter2"}


@pytest.mark.parametrize(
    ("meta", "trace"),
    [
        ({"traceparent": "00-a-b-01", "tracestate": "x=1", "other": 1}, 2),
        ({"traceparent": 7}, 0),
        ({}, 0),
        ("nonsense", 0),
    ],
)
async def test_the_trace_context_of_the_client_is_recorded_with_the_start(
    meta: Any, trace: int
) -> None:
    recorder = Recorder()
    await observe(ObserveOptions(observer=recorder))(Source())(make_call(params={"_meta": meta}))
    (started,) = recorder.of(CallStarted)
    assert len(started.trace) == trace
