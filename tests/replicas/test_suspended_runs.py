"""Programs that wait for consent, or stopped half-way, when the gateway is killed meanwhile.

Real gateway processes, ended as a crash would end them. Without a shared store the runs are in
files of the user; with Redis, any replica goes on with them. What the server did is in its journal.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.programs.conftest import Tracker, tracker_board
from tests.real_redis import RedisServer
from tests.replicas.world import Replica, World

from pegboard import Pegboard
from pegboard.store.redis import RedisStore

RUN = "io.github.pegboard/run"
SERVER = """
from pathlib import Path
import anyio
from mcp.server import MCPServer
from mcp_types import ToolAnnotations

journal = Path(__file__).with_name("journal")
server = MCPServer("work")

def done(what: str) -> None:
    with journal.open("a") as file:
        file.write(what + "\\n")

@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def list_books() -> list[int]:
    return [1, 2, 3]

@server.tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=False))
def add_note(text: str) -> str:
    done(f"note {text}")
    return text

@server.tool(annotations=ToolAnnotations(destructive_hint=True))
def delete_book(number: int) -> str:
    done(f"delete {number}")
    return f"deleted {number}"

@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def wait() -> None:
    done("wait")
    try:
        await anyio.sleep(60)
    except anyio.get_cancelled_exc_class():
        done("cancelled")
        raise

server.run()
"""
DELETE = """
await work_add_note(text="first")
gone = [await work_delete_book(number=n) for n in await work_list_books() if n != 2]
await work_add_note(text="last")
gone
"""


class Library(World):
    """Gateways in front of one server that notes what it did."""

    @property
    def journal(self) -> list[str]:
        path = self.folder / "journal"
        return path.read_text().splitlines() if path.exists() else []

    def forget(self) -> None:
        (self.folder / "journal").unlink(missing_ok=True)


@pytest.fixture(scope="module", params=["files", "redis"])
def library(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Library]:
    store = "memory:"
    if request.param == "redis":
        store = f"redis://{request.getfixturevalue('redis_server').address}/9"
    made = Library(tmp_path_factory.mktemp("library"), store, mode="code", server=SERVER)
    yield made
    made.stop()


def suspend(replica: Replica) -> str:
    """Start the program; the handle of its run, which waits for consent."""
    waiting = replica.call("run_write_code", code=DELETE)
    assert not waiting.get("isError"), waiting
    text = waiting["content"][0]["text"]
    assert "- work_delete_book(number=1)\n- work_delete_book(number=3)" in text
    return waiting["_meta"][RUN]["run"]


def resume(replica: Replica, run: str) -> dict[str, Any]:
    return replica.call("run_destructive_code", run=run)


@dataclass(frozen=True)
class Crash:
    """What a killed gateway left, and the gateway that was started after it."""

    waiting: str
    stopped: str
    survivor: Replica


@pytest.fixture(scope="module")
def crash(library: Library) -> Crash:
    first = library.start()
    waiting = suspend(first)
    failed = first.call("run_write_code", code="await work_add_note(text='half')\n1 / 0")
    stopped = failed["content"][0]["text"].partition('after="')[2].partition('"')[0]
    first.kill()
    return Crash(waiting, stopped, library.start())


def test_a_run_survives_the_death_of_its_gateway_and_nothing_is_done_twice(
    library: Library, crash: Crash
) -> None:
    assert library.journal == ["note first", "note half"]
    result = resume(crash.survivor, crash.waiting)
    assert result["content"][0]["text"] == '["deleted 1","deleted 3"]', result
    assert library.journal[2:] == ["delete 1", "delete 3", "note last"]
    again = resume(crash.survivor, crash.waiting)
    assert again["isError"]
    assert "already continued" in again["content"][0]["text"]


def test_what_a_killed_gateway_has_written_is_not_written_again(
    library: Library, crash: Crash
) -> None:
    library.forget()
    fixed = "await work_add_note(text='half')\nawait work_add_note(text='whole')"
    crash.survivor.call("run_write_code", code=fixed, after=crash.stopped)
    assert library.journal == ["note whole"]


def test_of_two_gateways_that_resume_a_run_at_the_same_time_one_does(
    library: Library, crash: Crash
) -> None:
    pair = crash.survivor, library.start()
    for replica in pair:
        replica.call("run_code", code="await work_list_books()")  # a worker is ready in each
    for _ in range(5):
        library.forget()
        run = suspend(pair[0])
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(resume, pair * 2, [run] * 4))
        assert sum(not answer.get("isError") for answer in answers) == 1
        assert library.journal == ["note first", "delete 1", "delete 3", "note last"]


# Runs in files are in the folder of one gateway, and one that lists its servers anew has another.
@pytest.mark.parametrize("library", ["redis"], indirect=True, scope="module")
def test_consent_does_not_survive_a_changed_tool(library: Library, crash: Crash) -> None:
    library.forget()
    run = suspend(crash.survivor)
    changed = SERVER.replace("number: int) -> str", "number: int, and_all: bool = True) -> str")
    (library.folder / "server.py").write_text(changed)
    refused = resume(library.start(home="fresh"), run)  # which lists the server anew
    assert "Its tools have changed since it was suspended" in refused["content"][0]["text"]
    assert library.journal == ["note first"]


DELETE_ISSUE = "rows = await list_issues()\n(await delete_issue(issue=rows[0]['key']))['deleted']"


@asynccontextmanager
async def replica(tracker: Tracker, server: RedisServer) -> AsyncGenerator[Pegboard]:
    board = tracker_board(tracker)
    store = RedisStore.from_url(f"redis://{server.address}", prefix="runs:")
    board.parts = replace(board.parts, store=store)
    try:
        yield board
    finally:
        await store.aclose()


@pytest.mark.anyio
async def test_another_replica_goes_on_with_a_suspended_run(redis_server: RedisServer) -> None:
    tracker = Tracker()
    async with replica(tracker, redis_server) as first:
        waiting = await first.run_code(DELETE_ISSUE, write=True)
    assert tracker.done == []
    async with replica(tracker, redis_server) as second:
        result = await second.resume_run(waiting.structured["run"])
    assert result.structured == {"result": "WEB-1"}
    assert tracker.done == [("delete_issue", "WEB-1")]


@pytest.mark.anyio
async def test_without_redis_nothing_is_destroyed_and_the_answer_says_why(
    own_redis: RedisServer,
) -> None:
    tracker = Tracker()
    async with replica(tracker, own_redis) as board:
        own_redis.stop()
        result = await board.run_code(DELETE_ISSUE, write=True)
        # A program that needs no consent runs all the same.
        assert (await board.run_code("len(await list_issues())")).structured == {"result": 5}
    assert result.is_error
    assert "It needs consent, but cannot be saved" in result.content[0]["text"]
    assert tracker.done == []


def test_a_run_that_waits_outlives_an_outage_of_redis(
    own_redis: RedisServer, tmp_path: Path
) -> None:
    def restart() -> None:
        own_redis.start()
        while "cannot be reached" in resume(gateway, "w-0")["content"][0]["text"]:
            time.sleep(0.05)  # the gateway checks once a second

    address = f"redis://{own_redis.address}/0"
    library = Library(tmp_path, address, mode="code", server=SERVER)
    gateway = library.start()
    try:
        before = suspend(gateway)
        own_redis.command("save")
        own_redis.stop()
        refused = resume(gateway, before)["content"][0]["text"]
        assert "try again with the same handle" in refused
        during = suspend(gateway)
        restart()
        for run in (before, during):
            assert resume(gateway, run)["content"][0]["text"] == '["deleted 1","deleted 3"]'
            assert resume(gateway, run)["isError"]
    finally:
        library.stop()
    assert library.journal == ["note first"] * 2 + ["delete 1", "delete 3", "note last"] * 2
