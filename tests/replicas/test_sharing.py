"""What one replica learns or a person decides: how soon all know it, and what a crash leaves."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

import anyio
import pytest
from tests.real_redis import RedisServer
from tests.replicas.world import Replica, World, message

from pegboard.core.mode_rollout import Rollout
from pegboard.core.tool_lock import LockDecision
from pegboard.gateway.lock_storage import SharedLockStorage, apply_decision
from pegboard.gateway.operator_decisions import ToolSwitches
from pegboard.observe import rollouts
from pegboard.ports import Store
from pegboard.store.redis import RedisStore

pytestmark = pytest.mark.anyio

SOON = 0.1
TRIES = 5
TRUST = '[trust]\nlock = "store"\n'


@pytest.fixture(scope="module")
def world(redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    redis_server.command("-n", "6", "FLUSHDB")  # another test may have left its records
    url = f"redis://127.0.0.1:{redis_server.port}/6"
    made = World(tmp_path_factory.mktemp("sharing"), url, TRUST, mode="auto")
    yield made
    made.stop()


@pytest.fixture(scope="module")
def pair(world: World) -> tuple[Replica, Replica]:
    """Two gateways that no test may end."""
    return world.start(), world.start()


@asynccontextmanager
async def store_of(world: World) -> AsyncGenerator[Store]:
    store = RedisStore.from_url(world.store)
    try:
        yield store
    finally:
        await store.aclose()


async def seconds_until(holds: Callable[[], bool], limit: float = 10.0) -> float:
    """How long it takes until it holds; the question itself takes most of the time."""
    began = time.perf_counter()
    while not holds():
        assert time.perf_counter() - began < limit
    return time.perf_counter() - began


async def quickest(
    change: Callable[[bool], Awaitable[object]],
    shows: Callable[[Replica, bool], bool],
    replicas: tuple[Replica, ...],
) -> float:
    """The best of several tries of the slower replica: what it takes where nothing else runs."""
    found: list[float] = []
    for number in range(TRIES):
        wanted = bool(number % 2)
        await change(wanted)
        began = time.perf_counter()
        for replica in replicas:
            await seconds_until(lambda r=replica, w=wanted: shows(r, w))
        found.append(time.perf_counter() - began)
    return min(found)


async def test_what_operators_decide_shows_in_both_replicas_within_100_ms(
    world: World, pair: tuple[Replica, Replica]
) -> None:
    async with store_of(world) as store:
        locks, switches = SharedLockStorage(store), ToolSwitches(store)
        seen = (await locks.all())["work"].tools["wait"].approved
        approved = seen.digest if seen else None

        def lock(usable: bool) -> Awaitable[object]:
            if usable:
                return apply_decision(
                    locks, LockDecision("approve", "work", "wait", "ann", 1.0, approved)
                )
            return apply_decision(locks, LockDecision("revoke", "work", "wait", "ann", 1.0))

        def roll_out(everybody: bool) -> Awaitable[object]:
            return rollouts.start(store, Rollout(mode="hierarchy", percent=100 * everybody))

        def is_rolled_out(replica: Replica, everybody: bool) -> bool:
            return ("tools_dispatch" in str(replica.ask("tools/list"))) == everybody

        taken = {
            "lock": await quickest(lock, lambda r, on: ("work_wait" in r.listed()) == on, pair),
            "switch": await quickest(
                lambda on: switches.switch("work.broken", enabled=on),
                lambda r, on: ("work_broken" in r.listed()) == on,
                pair,
            ),
            "rollout": await quickest(roll_out, is_rolled_out, pair),
        }
        await lock(usable=True)
        await switches.switch("work.broken", enabled=True)
        await rollouts.stop(store)
    for replica in pair:
        await seconds_until(lambda r=replica: {"work_wait", "work_broken"} <= r.listed())
    assert max(taken.values()) < SOON, taken


async def test_a_breaker_and_the_tools_of_a_session_are_shared_by_the_time_of_the_answer(
    world: World, pair: tuple[Replica, Replica]
) -> None:
    one, other = pair
    for _ in range(3):
        one.call("work_broken")
    taken: list[float] = []
    for _ in range(TRIES):
        began = time.perf_counter()
        refused = other.call("work_broken")
        taken.append(time.perf_counter() - began)
        assert refused["structuredContent"]["error"]["kind"] == "circuit_open"
    assert min(taken) < SOON
    session = one.open_session()
    search = {"name": "search_tools", "arguments": {"query": "list many records of a report"}}
    body = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": search}
    found = one.client.post(f"{one.url}/mcp/dynamic", json=body, headers=_legacy(session))
    assert "work_report" in str(message(found))
    async with store_of(world) as store:
        assert "work.report" in str(await store.get(f"session/{session}"))


def _legacy(session: str) -> dict[str, str]:
    return {
        "Accept": "application/json, text/event-stream",
        "Mcp-Session-Id": session,
        "MCP-Protocol-Version": "2025-11-25",
    }


async def test_a_crash_after_a_decision_loses_neither_the_decision_nor_anybodys_call(
    world: World, pair: tuple[Replica, Replica]
) -> None:
    other = pair[1]
    async with store_of(world) as store:
        for name in ("wait", "report"):
            await apply_decision(
                SharedLockStorage(store), LockDecision("revoke", "work", name, "ann", 1.0)
            )
    await seconds_until(lambda: not {"work_wait", "work_report"} & other.listed())
    crashing = world.start()
    answers: list[str] = []
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:

            async def calls() -> None:
                for _ in range(20):
                    text = await anyio.to_thread.run_sync(lambda: other.text("work_quick"))
                    answers.append(text)

            tasks.start_soon(calls)
            digest = await _shown_digest(crashing, "wait")
            crashing.decide("trust", "approve", server="work", tool="wait", digest=digest)
            crashing.decide("rollout", "start", mode="hierarchy", percent="100", by="principal")
            crashing.decide("tool", "switch", id="work_broken", enabled="")
            crashing.kill()
    assert answers == ["quick"] * 20

    def knows(replica: Replica) -> bool:
        has_mode = "tools_dispatch" in str(replica.ask("tools/list"))
        listed = replica.listed()
        return has_mode and "work_wait" in listed and not {"work_report", "work_broken"} & listed

    await seconds_until(lambda: knows(other))
    assert knows(world.start()), "and so does one that is started later"


async def _shown_digest(replica: Replica, tool: str) -> str:
    shown = replica.client.get(f"{replica.url}/ui/trust").text.split(f"work.{tool}")[1]
    return shown.split('name="digest" value="')[1].split('"')[0]
