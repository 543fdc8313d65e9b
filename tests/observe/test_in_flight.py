from __future__ import annotations

import anyio
import pytest
from tests.observe.samples import finished, started

from pegboard.observe.statistics import InFlight

pytestmark = pytest.mark.anyio


async def test_calls_are_in_flight_from_start_to_end() -> None:
    calls = InFlight()
    calls.record(started("a"))
    calls.record(started("b"))
    assert [c.id for c in calls.calls] == ["a", "b"]
    calls.record(finished("a"))
    assert len(calls) == 1


async def test_with_nothing_under_way_it_is_drained_at_once() -> None:
    with anyio.fail_after(1):
        assert await InFlight().drained(timeout=60)


async def test_a_shutdown_waits_for_the_last_call() -> None:
    calls = InFlight()
    calls.record(started("a"))
    calls.record(started("b"))
    drained: list[bool] = []

    async def wait() -> None:
        drained.append(await calls.drained(timeout=60))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            calls.record(finished("a"))
            await anyio.wait_all_tasks_blocked()
            assert drained == []
            calls.record(finished("b"))
    assert drained == [True]


async def test_a_shutdown_waits_no_longer_than_it_was_told() -> None:
    calls = InFlight()
    calls.record(started("hangs"))
    with anyio.fail_after(5):
        assert not await calls.drained(timeout=0.01)


async def test_an_end_without_a_start_does_no_harm() -> None:
    calls = InFlight()
    calls.record(finished("unknown"))
    assert len(calls) == 0
