"""A program that waits for consent, on two replicas and a real Redis."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from tests.programs.conftest import Tracker, tracker_board
from tests.real_redis import RedisServer

from pegboard import Pegboard
from pegboard.store.redis import RedisStore

pytestmark = pytest.mark.anyio
DELETE = "rows = await list_issues()\n(await delete_issue(issue=rows[0]['key']))['deleted']"


@asynccontextmanager
async def replica(tracker: Tracker, server: RedisServer) -> AsyncGenerator[Pegboard]:
    board = tracker_board(tracker)
    store = RedisStore.from_url(f"redis://{server.address}", prefix="runs:")
    board.parts = replace(board.parts, store=store)
    try:
        yield board
    finally:
        await store.aclose()


async def test_another_replica_goes_on_with_a_suspended_run(redis_server: RedisServer) -> None:
    tracker = Tracker()
    async with replica(tracker, redis_server) as first:
        waiting = await first.run_code(DELETE, write=True)
    assert tracker.done == []
    async with replica(tracker, redis_server) as second:
        result = await second.resume_run(waiting.structured["run"])
    assert result.structured == {"result": "WEB-1"}
    assert tracker.done == [("delete_issue", "WEB-1")]


async def test_without_redis_nothing_is_destroyed_and_the_answer_says_why(
    own_redis: RedisServer,
) -> None:
    tracker = Tracker()
    async with replica(tracker, own_redis) as board:
        own_redis.stop()
        result = await board.run_code(DELETE, write=True)
        # A program that needs no consent runs all the same.
        assert (await board.run_code("len(await list_issues())")).structured == {"result": 5}
    assert result.is_error
    assert "It needs consent and cannot wait" in result.content[0]["text"]
    assert tracker.done == []
