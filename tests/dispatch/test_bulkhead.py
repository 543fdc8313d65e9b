from __future__ import annotations

from typing import Any

import anyio
import pytest
from tests.dispatch.fakes import OK, make_call

from pegboard.core.calls import CallResult, ToolCall
from pegboard.dispatch.bulkhead import Bound, BulkheadPolicy, bulkhead
from pegboard.errors import Busy, ConfigError, UpstreamError

pytestmark = pytest.mark.anyio


class Slow:
    """A source whose calls all wait until the test lets them go."""

    def __init__(self) -> None:
        self.running: list[str] = []
        self.most = 0
        self.go = anyio.Event()

    async def __call__(self, call: ToolCall) -> CallResult:
        self.running.append(call.tool.name)
        self.most = max(self.most, len(self.running))
        try:
            await self.go.wait()
        finally:
            self.running.remove(call.tool.name)
        return OK


def bounded(slow: Slow, **bound: Any) -> Any:
    return bulkhead(BulkheadPolicy(default=Bound(**bound)))(slow)


async def test_no_more_calls_run_at_once_than_the_bound_and_all_get_their_turn() -> None:
    slow = Slow()
    handler = bounded(slow, running=3, waiting=100)
    done: list[CallResult] = []

    async def one() -> None:
        done.append(await handler(make_call()))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(one)
            await anyio.wait_all_tasks_blocked()
            assert len(slow.running) == 3
            slow.go.set()
    assert len(done) == 20
    assert slow.most == 3


async def test_when_the_line_is_full_the_answer_is_a_clear_busy_at_once() -> None:
    slow = Slow()
    handler = bounded(slow, running=1, waiting=2, retry_after=3.0)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(handler, make_call())
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(Busy) as caught:
                await handler(make_call())
            assert caught.value.details == {"server": "github", "retry_after": 3.0}
            assert "1 calls are running and 2 more are waiting" in caught.value.message
            slow.go.set()


async def test_nobody_waits_longer_than_their_patience() -> None:
    slow = Slow()
    handler = bounded(slow, running=1, waiting=5, patience=0.01)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(handler, make_call())
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(Busy, match=r"none finished within 0.01 s"):
                await handler(make_call())
            slow.go.set()


async def test_one_busy_upstream_does_not_hold_up_another() -> None:
    slow = Slow()
    handler = bounded(slow, running=1, waiting=0)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(handler, make_call("a", server="github"))
            tasks.start_soon(handler, make_call("b", server="jira"))
            tasks.start_soon(handler, make_call("c", server=None))
            tasks.start_soon(handler, make_call("d", server=None))
            await anyio.wait_all_tasks_blocked()
            assert sorted(slow.running) == ["a", "b", "c", "d"]
            slow.go.set()


async def test_a_place_comes_free_after_failure_and_after_cancellation() -> None:
    async def fails(call: ToolCall) -> CallResult:
        raise UpstreamError("x")

    failing = bulkhead(BulkheadPolicy(default=Bound(running=1, waiting=0)))(fails)
    for _ in range(3):
        with pytest.raises(UpstreamError):
            await failing(make_call())

    slow = Slow()
    hanging = bounded(slow, running=1, waiting=1)
    for _ in range(3):
        with anyio.move_on_after(0.01) as scope:
            await hanging(make_call())
        assert scope.cancelled_caught
    assert slow.running == []


async def test_a_cancelled_wait_leaves_the_line() -> None:
    slow = Slow()
    handler = bounded(slow, running=1, waiting=1)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(handler, make_call())
            await anyio.wait_all_tasks_blocked()
            for _ in range(3):
                with anyio.move_on_after(0.01) as scope:
                    await handler(make_call())
                assert scope.cancelled_caught
            slow.go.set()


def test_an_upstream_may_have_its_own_bound() -> None:
    own = Bound(running=2)
    policy = BulkheadPolicy(default=Bound(running=9), upstreams={"github": own})
    assert policy.bound("github") is own
    assert policy.bound("jira").running == 9


@pytest.mark.parametrize("wrong", [{"running": 0}, {"waiting": -1}, {"patience": 0}])
def test_a_bound_that_lets_nothing_through_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="at least one call"):
        Bound(**wrong)
