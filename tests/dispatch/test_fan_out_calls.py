from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dispatch.fakes import make_call

from pegboard.core.calls import CallResult, Outcome, ToolCall
from pegboard.dispatch.fan_out import MAX_CALLS, call_many
from pegboard.errors import InvalidArguments, ToolNotFound, UpstreamUnavailable

pytestmark = pytest.mark.anyio


async def echo(call: ToolCall) -> CallResult:
    return CallResult.text(call.tool.name)


def calls(*names: str) -> list[ToolCall]:
    return [make_call(name) for name in names]


async def test_outcomes_come_in_the_order_of_the_calls_whatever_finishes_first() -> None:
    finished: list[str] = []
    gates = {name: anyio.Event() for name in "abcd"}

    async def backwards(call: ToolCall) -> CallResult:
        await gates[call.tool.name].wait()
        finished.append(call.tool.name)
        following = chr(ord(call.tool.name) - 1)
        if following in gates:
            gates[following].set()
        return CallResult.text(call.tool.name)

    gates["d"].set()
    with anyio.fail_after(5):
        outcomes = await call_many(backwards, calls("a", "b", "c", "d"))
    assert finished == ["d", "c", "b", "a"]
    assert [o.name for o in outcomes] == ["a", "b", "c", "d"]
    assert all(o.ok and o.result and o.result.output == o.name for o in outcomes)


async def test_each_call_has_its_own_error_and_the_others_their_results(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def mixed(call: ToolCall) -> CallResult:
        match call.tool.name:
            case "unknown":
                raise ToolNotFound("unknown", ["known"])
            case "away":
                raise UpstreamUnavailable("gone", retry_after=3)
            case "crash":
                raise ZeroDivisionError("secret detail")
            case "error":
                return CallResult.text("no such issue", is_error=True)
            case _:
                return CallResult.text("fine")

    with caplog.at_level(logging.CRITICAL, logger="pegboard.dispatch.fan_out"):
        outcomes = await call_many(mixed, calls("ok", "unknown", "away", "crash", "error", "ok"))
    assert [o.ok for o in outcomes] == [True, False, False, False, False, True]
    errors = [o.error or {} for o in outcomes]
    assert errors[1]["kind"] == "unknown_tool"
    assert errors[1]["nearest"] == ["known"]
    assert errors[2] == {"kind": "unavailable", "message": "gone", "retry_after": 3}
    assert errors[3]["message"] == "It failed unexpectedly (ZeroDivisionError)."
    assert errors[4] == {"kind": "tool_error", "message": "no such issue"}
    assert outcomes[4].result is not None, "what the tool said is kept whole"


async def test_an_error_result_in_our_own_shape_keeps_it() -> None:
    said = {"kind": "invalid_arguments", "message": "title is missing", "field": "title"}

    async def refuses(call: ToolCall) -> CallResult:
        return CallResult.text("title is missing", structured={"error": said}, is_error=True)

    (outcome,) = await call_many(refuses, calls("a"))
    assert outcome.error == said


async def test_no_more_calls_run_at_once_than_allowed() -> None:
    running = most = 0

    async def counted(call: ToolCall) -> CallResult:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.wait_all_tasks_blocked()
        running -= 1
        return CallResult.text("x")

    await call_many(counted, calls(*"abcdefghij"), max_concurrency=3)
    assert most == 3


async def test_calls_wait_for_nothing_but_the_bound_so_all_take_about_as_long_as_the_slowest() -> (
    None
):
    together = 0
    everybody = anyio.Event()

    async def meets(call: ToolCall) -> CallResult:
        nonlocal together
        together += 1
        if together == 16:
            everybody.set()
        await everybody.wait()
        return CallResult.text("x")

    with anyio.fail_after(5):
        outcomes = await call_many(meets, calls(*"abcdefghijklmnop"), max_concurrency=16)
    assert all(o.ok for o in outcomes)


async def test_at_the_deadline_finished_calls_keep_their_outcome_and_the_rest_time_out() -> None:
    async def one_hangs(call: ToolCall) -> CallResult:
        if call.tool.name == "hangs":
            await anyio.sleep_forever()
        return CallResult.text("done")

    with anyio.fail_after(5):
        outcomes = await call_many(
            one_hangs, calls("quick", "hangs", "behind"), max_concurrency=2, deadline=0.05
        )
        late = await call_many(
            one_hangs, calls("hangs", "behind"), max_concurrency=1, deadline=0.05
        )
    assert [o.ok for o in outcomes] == [True, False, True]
    assert (outcomes[1].error or {})["kind"] == "timeout"
    assert "did not finish within the 0.05 s" in (outcomes[1].error or {})["message"]
    assert outcomes[1].duration_ms >= 40
    assert "was not started" in (late[1].error or {})["message"]
    assert late[1].duration_ms == 0


async def test_cancelling_the_request_cancels_every_call() -> None:
    cancelled: list[str] = []

    async def hangs(call: ToolCall) -> CallResult:
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.append(call.tool.name)
        raise AssertionError

    with anyio.move_on_after(0.02) as scope:
        await call_many(hangs, calls("a", "b", "c"))
    assert scope.cancelled_caught
    assert sorted(cancelled) == ["a", "b", "c"]


async def test_a_thousand_calls_are_carried_out() -> None:
    with anyio.fail_after(10):
        outcomes = await call_many(echo, [make_call(f"t{n}") for n in range(MAX_CALLS)])
    assert [o.name for o in outcomes] == [f"t{n}" for n in range(1000)]


async def test_more_than_the_bound_is_refused_before_anything_runs() -> None:
    ran: list[ToolCall] = []

    async def records(call: ToolCall) -> CallResult:
        ran.append(call)
        return await echo(call)

    with pytest.raises(InvalidArguments, match="1,001 calls at once are too many: at most 1,000"):
        await call_many(records, [make_call()] * (MAX_CALLS + 1))
    assert ran == []


@pytest.mark.parametrize("wrong", [{"max_concurrency": 0}, {"deadline": 0.0}])
async def test_a_bound_that_lets_nothing_run_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArguments, match="must be at least 1"):
        await call_many(echo, calls("a"), **wrong)


async def test_no_calls_have_no_outcomes() -> None:
    assert await call_many(echo, []) == []


@given(st.lists(st.booleans(), max_size=30), st.integers(1, 10))
def test_whatever_fails_every_call_has_exactly_one_outcome(fates: list[bool], bound: int) -> None:
    async def fated(call: ToolCall) -> CallResult:
        if call.tool.name.startswith("bad"):
            raise UpstreamUnavailable("x")
        return CallResult.text("x")

    async def run() -> list[Outcome]:
        asked = [make_call(f"{'good' if ok else 'bad'}{n}") for n, ok in enumerate(fates)]
        outcomes = await call_many(fated, asked, max_concurrency=bound)
        assert [o.name for o in outcomes] == [c.tool.name for c in asked]
        return outcomes

    assert [o.ok for o in anyio.run(run)] == fates
