from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from tests.dispatch.fakes import Clock, Recorder, Source, make_call, run

from pegboard.core.calls import CallResult, ToolCall
from pegboard.core.circuit_breaker import BreakerPolicy
from pegboard.core.events import BreakerChanged
from pegboard.core.json import Json
from pegboard.core.tools import Tool
from pegboard.dispatch.breaker import breaker
from pegboard.errors import (
    Busy,
    CircuitOpen,
    InvalidArguments,
    StoreError,
    UpstreamError,
    UpstreamTimeout,
    UpstreamUnavailable,
)
from pegboard.ports import Change, Handler
from pegboard.store.memory import MemoryStore

pytestmark = pytest.mark.anyio

DOWN = UpstreamTimeout("too late")
AWAY = UpstreamUnavailable("gone")


class Board:
    """A breaker layer around a source, with everything that a test may want to turn or look at."""

    def __init__(self, **options: Any) -> None:
        self.clock = Clock()
        self.source = Source()
        self.recorder = Recorder()
        self.store = MemoryStore(clock=self.clock)
        options = {"store": self.store} | options
        self.layer = breaker(clock=self.clock, observer=self.recorder, **options)
        self.handler: Handler = self.layer(self.source)

    async def call(self, name: str = "search", **about: Any) -> CallResult:
        return await self.handler(make_call(name, **about))

    async def fail(self, times: int, name: str = "search", error: Exception = DOWN) -> None:
        for _ in range(times):
            self.source.queue = [error]
            with pytest.raises(type(error)):
                await self.call(name)


async def test_five_failures_open_the_breaker_and_the_sixth_call_does_not_reach_the_tool() -> None:
    board = Board()
    await board.fail(5)
    with pytest.raises(CircuitOpen):
        await board.call()
    assert len(board.source.calls) == 5


async def test_a_success_before_the_fifth_failure_starts_the_count_again() -> None:
    board = Board()
    await board.fail(4)
    await board.call()
    await board.fail(4)
    assert await board.call()


async def test_the_refusal_says_which_tool_since_when_and_when_to_try_again() -> None:
    board = Board()
    await board.fail(5)
    board.clock.now += 20
    with pytest.raises(CircuitOpen) as caught:
        await board.call()
    assert caught.value.details == {
        "tool": "search",
        "server": "github",
        "since": "1970-01-12T13:46:40+00:00",
        "retry_after": 40.0,
    }
    assert "search" in caught.value.message
    assert "Try again in 40 s" in caught.value.message
    assert "timeout" in caught.value.message


async def test_the_refusal_names_related_tools_that_still_work() -> None:
    issues = make_call("list_issues").tool
    broken = make_call("list_pulls").tool
    other = make_call("find_tickets", server="jira").tool

    def related(call: ToolCall) -> Iterable[Tool]:
        return [call.tool, broken, issues, other]

    board = Board(alternatives=related)
    await board.fail(5, "list_pulls")
    await board.call("list_issues")
    await board.fail(5, "search")
    with pytest.raises(CircuitOpen) as caught:
        await board.call("search")
    assert caught.value.details["related"] == ["list_issues", "find_tickets"]
    assert "list_issues, find_tickets" in caught.value.message


async def test_after_the_cooldown_one_probe_goes_through_and_closes_the_breaker() -> None:
    board = Board()
    await board.fail(5)
    board.clock.now += 60
    assert await board.call()
    assert await board.call()
    assert await board.store.get("breaker:tool:github.search") is None


async def test_a_failed_probe_opens_the_breaker_again() -> None:
    board = Board()
    await board.fail(5)
    board.clock.now += 60
    await board.fail(1)
    with pytest.raises(CircuitOpen) as caught:
        await board.call()
    assert caught.value.details["retry_after"] == 60.0
    assert caught.value.details["since"] == "1970-01-12T13:46:40+00:00", "down since the first time"


async def test_while_a_probe_runs_other_calls_are_refused_also_on_another_replica() -> None:
    board = Board()
    await board.fail(5)
    board.clock.now += 60
    entered, leave = anyio.Event(), anyio.Event()

    async def slow(call: ToolCall) -> CallResult:
        entered.set()
        await leave.wait()
        return CallResult.text("done")

    replica = breaker(store=board.store, clock=board.clock)(slow)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, replica, make_call())
            await entered.wait()
            with pytest.raises(CircuitOpen) as caught:
                await board.call()
            assert 0 < caught.value.details["retry_after"] <= 1
            leave.set()
    assert await board.call()


async def test_a_cancelled_probe_makes_room_for_the_next() -> None:
    board = Board()
    await board.fail(5)
    board.clock.now += 60

    async def hangs(call: ToolCall) -> CallResult:
        await anyio.sleep_forever()
        raise AssertionError

    probe = breaker(store=board.store, clock=board.clock)(hangs)
    with anyio.move_on_after(0.01) as scope:
        await probe(make_call())
    assert scope.cancelled_caught
    assert await board.call(), "the next call may probe at once"


async def test_a_probe_lost_with_its_replica_does_not_wedge_the_breaker() -> None:
    policy = BreakerPolicy(probe=90)
    board = Board(policy=policy)
    await board.fail(5)
    board.clock.now += 60

    def take(value: Json) -> Json:
        return {**value, "probe_until": board.clock.now + policy.probe}

    await board.store.update("breaker:tool:github.search", take, ttl=1000)
    with pytest.raises(CircuitOpen):
        await board.call()
    board.clock.now += 90
    assert await board.call()


@pytest.mark.parametrize(
    "answer",
    [
        InvalidArguments("wrong"),
        Busy("later"),
        UpstreamError("bad params", code=-32602),
        CallResult.text("No issue 7", is_error=True),
        KeyError("a bug of ours"),
    ],
    ids=repr,
)
async def test_what_says_nothing_about_the_backend_never_opens_the_breaker(
    answer: CallResult | Exception,
) -> None:
    board = Board()
    board.source.answers["github.search"] = answer
    for _ in range(20):
        if isinstance(answer, Exception):
            with pytest.raises(type(answer)):
                await board.call()
        else:
            await board.call()
    assert len(board.source.calls) == 20


async def test_five_error_results_that_say_unavailable_open_the_breaker() -> None:
    board = Board()
    board.source.answers["github.search"] = CallResult.text(
        "Error: connect ECONNREFUSED 10.0.0.7:5432", is_error=True
    )
    for _ in range(5):
        assert (await board.call()).is_error
    with pytest.raises(CircuitOpen):
        await board.call()


async def test_one_bad_tool_does_not_shut_out_its_neighbours() -> None:
    board = Board()
    await board.fail(5, "search")
    for _ in range(10):
        with pytest.raises(CircuitOpen):
            await board.call("search")
    assert await board.call("list_issues")


async def test_an_upstream_that_cannot_be_reached_is_refused_for_all_its_tools() -> None:
    board = Board()
    await board.fail(5, "search", AWAY)
    with pytest.raises(CircuitOpen, match="The server github is failing"):
        await board.call("list_issues")
    assert await board.call("find", server="jira")


async def test_an_upstream_on_which_one_tool_after_the_other_fails_is_recognised() -> None:
    board = Board()
    for name in ("a", "b", "c", "d", "e"):
        await board.fail(1, name)
    with pytest.raises(CircuitOpen, match="The server github"):
        await board.call("f")


async def test_a_neighbour_that_answers_speaks_for_the_upstream() -> None:
    board = Board()
    for name in ("a", "b", "c", "d"):
        await board.fail(1, name)
    await board.call("healthy")
    await board.fail(1, "e")
    assert await board.call("f")


async def test_a_probe_of_an_upstream_that_fails_keeps_it_shut() -> None:
    board = Board()
    await board.fail(5, "search", AWAY)
    board.clock.now += 60
    await board.fail(1, "list_issues", DOWN)
    with pytest.raises(CircuitOpen):
        await board.call("list_pulls")


async def test_a_refusal_by_the_upstream_gives_the_probe_of_the_tool_back() -> None:
    board = Board()
    await board.fail(5, "search", DOWN)
    board.clock.now += 30
    await board.fail(4, "list_issues", AWAY)  # the first failure of `search` counts too
    board.clock.now += 30
    with pytest.raises(CircuitOpen, match="The server github"):
        await board.call("search")
    kept = await board.store.get("breaker:tool:github.search")
    assert "probe_until" not in kept


async def test_a_tool_without_upstream_has_a_breaker_of_its_own_only() -> None:
    board = Board()
    for _ in range(5):
        board.source.queue = [AWAY]
        with pytest.raises(UpstreamUnavailable):
            await board.call("local", server=None)
    with pytest.raises(CircuitOpen):
        await board.call("local", server=None)
    assert await board.call("other", server=None)


async def test_the_observer_hears_of_opening_probing_and_closing() -> None:
    board = Board()
    await board.fail(5)
    board.clock.now += 60
    await board.call()
    changes = [(e.scope, e.name, e.state) for e in board.recorder.of(BreakerChanged)]
    assert changes == [
        ("tool", "github.search", "open"),
        ("tool", "github.search", "half_open"),
        ("tool", "github.search", "closed"),
    ]


class CountingStore(MemoryStore):
    """A memory store that counts how often it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.writes = 0

    async def get(self, key: str) -> Json:
        self.reads += 1
        return await super().get(key)

    async def update(self, key: str, change: Change, *, ttl: float | None = None) -> Json:
        self.writes += 1
        return await super().update(key, change, ttl=ttl)


async def test_calls_of_a_healthy_tool_write_nothing() -> None:
    store = CountingStore()
    board = Board(store=store)
    for _ in range(10):
        await board.call()
    assert (store.reads, store.writes) == (20, 0)


async def test_with_recheck_a_healthy_breaker_is_not_read_again_for_that_long() -> None:
    store = CountingStore()
    board = Board(store=store, recheck=0.05)
    for _ in range(10):
        await board.call()
    assert store.reads == 2
    board.clock.now += 0.06
    await board.call()
    assert store.reads == 4


async def test_with_recheck_failures_of_this_replica_are_seen_at_once() -> None:
    board = Board(recheck=3600)
    await board.call()
    await board.fail(5)
    with pytest.raises(CircuitOpen):
        await board.call()


class AbsentStore(MemoryStore):
    """A store that cannot be reached."""

    async def get(self, key: str) -> Json:
        raise StoreError("away")

    async def update(self, key: str, change: Change, *, ttl: float | None = None) -> Json:
        raise StoreError("away")


async def test_while_the_store_is_unavailable_calls_go_through() -> None:
    board = Board(store=AbsentStore())
    assert await board.call()
    await board.fail(7)
    assert await board.call()


class ReadOnlyStore(MemoryStore):
    """A store that goes away between a call's start and its end."""

    async def update(self, key: str, change: Change, *, ttl: float | None = None) -> Json:
        raise StoreError("away")


async def test_a_store_that_goes_away_while_a_call_runs_does_not_change_how_the_call_ends() -> None:
    board = Board(store=ReadOnlyStore())
    await board.fail(7)
    assert await board.call()


async def test_no_more_than_a_handful_of_alternatives_is_named() -> None:
    many = [make_call(f"t{n}", server="jira").tool for n in range(50)]

    def related(call: ToolCall) -> Iterable[Tool]:
        return many

    board = Board(alternatives=related)
    await board.fail(5)
    with pytest.raises(CircuitOpen) as caught:
        await board.call()
    assert caught.value.details["related"] == ["t0", "t1", "t2", "t3", "t4"]


async def test_calls_that_fail_side_by_side_all_count() -> None:
    board = Board()
    arrived = 0

    async def together(call: ToolCall) -> CallResult:
        nonlocal arrived
        arrived += 1
        while arrived < 5:
            await anyio.lowlevel.checkpoint()
        raise DOWN

    guarded = board.layer(together)

    async def one() -> None:
        with pytest.raises(UpstreamTimeout):
            await guarded(make_call())

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(one)
    with pytest.raises(CircuitOpen):
        await board.call()
