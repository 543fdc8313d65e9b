"""A program that waits for consent, on two replicas and a real Redis."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.programs.conftest import Tracker, tracker_board
from tests.real_redis import RedisServer

from pegboard import Pegboard
from pegboard.store.redis import RedisStore

pytestmark = pytest.mark.anyio
DELETE = "rows = await list_issues()\n(await delete_issue(issue=rows[0]['key']))['deleted']"


def replica(tracker: Tracker, address: str) -> Pegboard:
    board = tracker_board(tracker)
    store = RedisStore.from_url(f"redis://{address}", prefix="runs:")
    board.parts = replace(board.parts, store=store)
    return board


async def test_another_replica_goes_on_with_a_suspended_run(redis_server: RedisServer) -> None:
    tracker = Tracker()
    waiting = await replica(tracker, redis_server.address).run_code(DELETE, write=True)
    assert tracker.done == []
    result = await replica(tracker, redis_server.address).resume_run(waiting.structured["run"])
    assert result.structured == {"result": "WEB-1"}
    assert tracker.done == [("delete_issue", "WEB-1")]


async def test_without_redis_nothing_is_destroyed_and_the_answer_says_why(
    own_redis: RedisServer,
) -> None:
    tracker = Tracker()
    board = replica(tracker, own_redis.address)
    own_redis.stop()
    result = await board.run_code(DELETE, write=True)
    assert result.is_error
    assert "It needs consent and cannot wait" in result.content[0]["text"]
    assert tracker.done == []
    # A program that needs no consent runs all the same.
    assert (await board.run_code("len(await list_issues())")).structured == {"result": 5}
