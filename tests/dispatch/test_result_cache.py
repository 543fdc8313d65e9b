"""One run for many like reads; never for writes, never for errors, never across callers."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest
from tests.dispatch.fakes import Clock, Recorder, Source, make_call, run

from pegboard.core.calls import Caller, CallResult, ToolCall
from pegboard.core.events import CallFinished
from pegboard.dispatch.call_events import ObserveOptions, observe
from pegboard.dispatch.result_cache import CachePolicy, ResultCache, cache_layer, cache_layer_for
from pegboard.errors import UpstreamError
from pegboard.ports import Handler

pytestmark = pytest.mark.anyio

KEPT = CachePolicy(ttl={"search": 60.0})


def read(**about: Any) -> ToolCall:
    return make_call(**{"risk": "read", "risk_source": "annotated", **about})


def cached(inner: Handler, policy: CachePolicy = KEPT) -> tuple[Handler, ResultCache, Clock]:
    clock = Clock()
    cache = ResultCache(policy, clock)
    return cache_layer_for(cache)(inner), cache, clock


class Gate:
    """A handler whose calls wait until a test opens it."""

    def __init__(self) -> None:
        self.runs = 0
        self.opened = anyio.Event()
        self.cancelled = 0
        self.fails: Exception | None = None

    async def __call__(self, call: ToolCall) -> CallResult:
        self.runs += 1
        try:
            await self.opened.wait()
        except BaseException:
            self.cancelled += 1
            raise
        if self.fails is not None:
            raise self.fails
        return CallResult.text(f"run {self.runs}")


async def settled() -> None:
    """Let every task run until it waits."""
    for _ in range(10):
        await anyio.lowlevel.checkpoint()


async def test_a_cached_result_is_used_until_it_expires():
    source = Source()
    handler, cache, clock = cached(source)
    for _ in range(3):
        await handler(read(arguments={"q": 1}))
    assert len(source.calls) == 1
    assert (cache.hits, cache.misses, len(cache)) == (2, 1, 1)
    clock.now += 60
    await handler(read(arguments={"q": 1}))
    assert len(source.calls) == 2


async def test_the_order_of_arguments_does_not_matter_and_their_values_do():
    source = Source()
    handler, _, _ = cached(source)
    await handler(read(arguments={"a": 1, "b": {"x": 1, "y": 2}}))
    await handler(read(arguments={"b": {"y": 2, "x": 1}, "a": 1}))
    assert len(source.calls) == 1
    for other in ({"a": "1"}, {"a": 2**60}, {"a": str(2**60)}, {"a": None}, {}):
        await handler(read(arguments=other))
    assert len(source.calls) == 6


async def test_another_caller_server_or_definition_is_another_call():
    source = Source()
    handler, _, _ = cached(source)
    await handler(read())
    await handler(read(caller=Caller(principal="bob")))
    await handler(read(caller=Caller(session="s1")))
    await handler(read(server="gitlab"))
    await handler(read(description="Now it does something else."))
    assert len(source.calls) == 5


@pytest.mark.parametrize(
    "call", [make_call(risk="write"), make_call(risk="destructive"), read(name="other")]
)
async def test_writes_and_tools_without_a_ttl_are_never_cached(call: ToolCall):
    source = Source()
    handler, cache, _ = cached(source)
    await handler(call)
    await handler(call)
    assert len(source.calls) == 2
    assert len(cache) == 0


async def test_errors_and_unfinished_results_are_never_cached():
    source = Source()
    source.queue += [
        UpstreamError("down"),
        CallResult.text("no", is_error=True),
        CallResult({"resultType": "input_required"}),
    ]
    handler, cache, _ = cached(source)
    with pytest.raises(UpstreamError):
        await handler(read())
    assert (await handler(read())).is_error
    assert not (await handler(read())).is_complete
    assert len(cache) == 0
    assert (await handler(read())).output == "done"


async def test_a_call_that_continues_an_earlier_one_is_run():
    source = Source()
    handler, _, _ = cached(source)
    await handler(read())
    await handler(read(params={"inputResponses": {}}))
    await handler(read(params={"_meta": {"progressToken": 1}}))
    assert len(source.calls) == 2


async def test_a_write_on_the_same_server_invalidates_its_cached_results():
    source = Source()
    handler, cache, _ = cached(source)
    await handler(read())
    await handler(read(server="gitlab"))
    await handler(make_call("create", risk="write"))
    assert len(cache) == 1
    await handler(read())
    assert len(source.calls) == 4


async def test_a_read_that_a_write_overtook_is_not_cached():
    gate = Gate()
    handler, cache, _ = cached(gate)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, handler, read())
        await settled()
        tasks.start_soon(run, handler, make_call("create", risk="write"))
        await settled()
        gate.opened.set()
    assert len(cache) == 0


async def test_the_least_recently_used_goes_first():
    source = Source()
    handler, cache, _ = cached(source, CachePolicy(ttl={"search": 60.0}, entries=2))
    for q in (1, 2, 1, 3, 1, 2):
        await handler(read(arguments={"q": q}))
    assert [call.arguments["q"] for call in source.calls] == [1, 2, 3, 2]
    assert len(cache) == 2


async def test_the_cached_bytes_are_bounded():
    source = Source()
    source.queue += [CallResult.text("x" * 400) for _ in range(4)] + [CallResult.text("x" * 2_000)]
    handler, cache, _ = cached(source, CachePolicy(ttl={"search": 60.0}, bytes=1_000))
    for q in range(5):
        await handler(read(arguments={"q": q}))
    assert len(cache) == 2


async def test_what_a_caller_adds_to_a_result_is_not_cached():
    handler, _, _ = cached(Source())
    (await handler(read())).wire["resultType"] = "complete"
    assert "resultType" not in (await handler(read())).wire


async def test_like_calls_under_way_share_one_run_without_any_opting_in():
    gate = Gate()
    handler = cache_layer(clock=Clock())(gate)
    answers: list[str] = []

    async def ask() -> None:
        answers.append((await handler(read(arguments={"q": 1}))).output)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(ask)
            await settled()
            gate.opened.set()
    assert answers == ["run 1"] * 5
    await ask()
    assert gate.runs == 2, "nothing was kept"


@pytest.mark.parametrize(
    "call", [make_call(risk="write"), read(risk_source="inferred")], ids=["write", "inferred read"]
)
async def test_what_may_change_something_is_never_shared(call: ToolCall):
    """A name such as `get_next_job` says that it reads; nobody else does."""
    gate = Gate()
    handler = cache_layer(clock=Clock())(gate)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, handler, call)
        tasks.start_soon(run, handler, call)
        await settled()
        gate.opened.set()
    assert gate.runs == 2


@pytest.mark.parametrize("victim", [0, 1])
async def test_one_who_stops_waiting_does_not_stop_the_others(victim: int):
    gate = Gate()
    handler = cache_layer(clock=Clock())(gate)
    scopes = [anyio.CancelScope() for _ in range(3)]
    answers: list[int] = []

    async def ask(who: int) -> None:
        with scopes[who]:
            await handler(read())
            answers.append(who)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for who in range(3):
                tasks.start_soon(ask, who)
                await settled()
            scopes[victim].cancel()
            await settled()
            gate.opened.set()
    assert sorted(answers) == [who for who in range(3) if who != victim]
    assert gate.runs == (2 if victim == 0 else 1), "only the one who runs it is replaced"


async def test_those_who_wait_share_the_failure_of_the_run():
    gate = Gate()
    gate.fails = UpstreamError("down")
    handler = cache_layer(clock=Clock())(gate)
    failures: list[str] = []

    async def ask() -> None:
        try:
            await handler(read())
        except UpstreamError as error:
            failures.append(error.message)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(ask)
            await settled()
            gate.opened.set()
    assert failures == ["down"] * 3
    assert gate.runs == 1


async def test_an_observer_hears_what_came_from_the_cache():
    recorder = Recorder()
    handler, _, _ = cached(Source())
    watched = observe(ObserveOptions(observer=recorder))(handler)
    await watched(read())
    await watched(read())
    assert [event.cached for event in recorder.of(CallFinished)] == [False, True]
