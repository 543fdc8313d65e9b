"""Two and more real gateways on one real Redis: what they share, and what survives."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.real_redis import RedisServer
from tests.replicas.world import Replica, World, handle_in, message

WAIT = 20.0


@pytest.fixture(scope="module")
def world(redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("world"), f"redis://127.0.0.1:{redis_server.port}/7")
    yield made
    made.stop()


@pytest.fixture(scope="module")
def pair(world: World) -> tuple[Replica, Replica]:
    """Two gateways that no test may end."""
    return world.start(), world.start()


def eventually(holds: Callable[[], bool]) -> None:
    """Ask until it holds; the question itself takes the time."""
    deadline = time.monotonic() + WAIT
    while not holds():
        assert time.monotonic() < deadline


def test_results_of_a_killed_replica_are_read_from_another_and_calls_go_on(
    world: World, pair: tuple[Replica, Replica]
) -> None:
    one, other = world.start(), pair[1]
    handle = handle_in(one.text("work_report", rows=900))
    other.text("work_wait", seconds=0)
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(other.text, "work_wait", seconds=1) for _ in range(4)]
        one.process.send_signal(signal.SIGKILL)
        one.process.wait()
        assert [w.result() for w in waiting] == ["waited"] * 4
    page = other.text("read_result", handle=handle, offset=800, limit=1)
    assert "record number 800" in page


def test_a_breaker_that_one_replica_opened_is_open_in_the_other(
    pair: tuple[Replica, Replica],
) -> None:
    one, other = pair
    for _ in range(3):
        one.call("work_broken")
    refused = other.call("work_broken")
    assert refused["isError"] is True
    assert refused["structuredContent"]["error"]["kind"] == "circuit_open"


def test_a_session_of_another_replica_is_refused_with_the_reason(
    pair: tuple[Replica, Replica],
) -> None:
    one, other = pair
    session = one.open_session()
    body = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}
    assert message(one.legacy(body, session))["result"]["tools"]
    refused = other.legacy(body, session)
    assert refused.status_code == 404
    assert "held by another replica" in refused.json()["error"]["message"]
    unknown = other.legacy(body, "0" * 32)
    assert unknown.status_code == 404
    assert "another replica" not in unknown.text


def test_a_rollout_reaches_every_replica_and_stops_at_once(
    world: World, pair: tuple[Replica, Replica]
) -> None:
    replicas = pair

    def modes() -> set[int]:
        return {len(r.ask("tools/list")["result"]["tools"]) for r in replicas}

    before = modes()
    begun = world.command("rollout", "start", "hierarchy", "--percent", "100")
    assert begun.returncode == 0, begun.stderr
    eventually(lambda: modes() == {4})
    assert world.command("rollout", "stop").returncode == 0
    eventually(lambda: modes() == before)


def test_both_arms_of_a_rollout_are_compared_over_all_replicas(
    world: World, pair: tuple[Replica, Replica]
) -> None:
    replicas = pair
    world.command("rollout", "start", "index", "--percent", "0")
    for replica in replicas:
        replica.ask("tools/list")

    control: dict[str, Any] = {}

    def sessions() -> bool:
        for replica in replicas:
            replica.ask("tools/list")
            replica.text("work_wait", seconds=0)
        shown = json.loads(world.command("rollout", "show", "--json").stdout)
        nonlocal control
        control = shown["arms"]["control"]
        return control["sessions"] >= 2 and control["calls"] >= 2

    eventually(sessions)
    assert control["errors"] == 0


def test_a_changed_list_reaches_the_listeners_of_every_replica(
    world: World, pair: tuple[Replica, Replica]
) -> None:
    one, other = world.start(), pair[1]
    (world.folder / "more").touch()
    with httpx2.stream(
        "POST",
        f"{other.url}/mcp",
        json={
            "jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen",
            "params": {
                "notifications": {"toolsListChanged": True},
                "_meta": {
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {},
                },
            },
        },
        headers={
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "subscriptions/listen",
        },
        timeout=WAIT,
    ) as stream:  # fmt: skip
        lines = stream.iter_lines()
        next(line for line in lines if "acknowledged" in line)
        one.text("work_wait", seconds=0)  # starts the server, whose list is looked at then
        assert next(line for line in lines if "tools/list_changed" in line)
    assert "late" in other.text("work_later")


def test_redis_away_means_local_state_and_redis_back_means_shared_again(
    own_redis: RedisServer, tmp_path: Path
) -> None:
    world = World(tmp_path, f"redis://127.0.0.1:{own_redis.port}/0")
    try:
        one, other = world.start(), world.start()
        own_redis.stop()
        handle = handle_in(one.text("work_report", rows=900))
        assert "record number 800" in one.text("read_result", handle=handle, offset=800, limit=1)
        own_redis.start()

        def shared() -> bool:
            fresh = handle_in(one.text("work_report", rows=900))
            return "record number 5" in other.text("read_result", handle=fresh, limit=9)

        eventually(shared)
    finally:
        world.stop()


def test_workers_share_an_address_and_one_that_dies_is_replaced(world: World) -> None:
    front = world.start(options=["--workers", "2"])
    handle = handle_in(front.text("work_report", rows=900))
    for _ in range(8):
        assert "record number 3" in front.text("read_result", handle=handle, offset=3, limit=1)
    children = Path(f"/proc/{front.process.pid}/task/{front.process.pid}/children")
    workers = [int(pid) for pid in children.read_text().split()]
    victim = next(w for w in workers if b"spawn_main" in Path(f"/proc/{w}/cmdline").read_bytes())
    os.kill(victim, signal.SIGKILL)
    eventually(lambda: "another is started" in front.log.read_text())
    for _ in range(8):
        assert "record number 3" in front.text("read_result", handle=handle, offset=3, limit=1)


def test_workers_without_a_shared_store_are_refused(tmp_path: Path) -> None:
    world = World(tmp_path, "memory://")
    refused = world.command("serve", "--http", "127.0.0.1:0", "--workers", "2")
    assert refused.returncode == 3
    assert "--store" in refused.stderr


def test_workers_do_not_take_a_port_that_somebody_has(world: World) -> None:
    front = world.start(options=["--workers", "2"])
    port = front.url.rpartition(":")[2]
    refused = world.command("serve", "--http", f"127.0.0.1:{port}", "--workers", "2")
    assert refused.returncode == 3
    assert "Cannot listen" in refused.stderr
