"""Functions in a worker process: their results, their errors, and the deadline."""

from __future__ import annotations

import time
from typing import Any

import anyio
import pytest

from pegboard import offload as module
from pegboard.core.results.selection import select
from pegboard.errors import InvalidField
from pegboard.offload import DeadlineExceeded, offload

pytestmark = pytest.mark.anyio


async def test_results_and_our_errors_come_back() -> None:
    assert await offload(select, [{"a": 1}, {"a": "\ud800"}], "[*].a") == [1, "\ud800"]
    with pytest.raises(InvalidField, match="There is no function nope"):
        await offload(select, [], "nope(@)")


async def test_what_takes_too_long_is_stopped_and_the_next_one_is_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await offload(select, [], "[0]")
    monkeypatch.setattr(module, "DEADLINE", 0.2)
    before = set(module._all)  # pyright: ignore[reportPrivateUsage]
    began = time.monotonic()
    with pytest.raises(DeadlineExceeded):
        await offload(sum, range(10**12))
    assert time.monotonic() - began < 5
    assert module._all < before  # pyright: ignore[reportPrivateUsage]
    monkeypatch.undo()
    assert await offload(select, [3], "[0]") == 3


async def test_a_cancelled_caller_leaves_no_work_behind() -> None:
    await offload(select, [], "[0]")
    with anyio.move_on_after(0.2):
        await offload(sum, range(10**12))
    assert not module._all - set(module._idle)  # pyright: ignore[reportPrivateUsage]


async def test_a_worker_that_has_exited_is_replaced() -> None:
    await offload(select, [], "[0]")
    for worker in module._idle:  # pyright: ignore[reportPrivateUsage]
        worker._process.kill()  # pyright: ignore[reportPrivateUsage]
    assert await offload(select, [5], "[0]") == 5


async def test_a_circular_value_is_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(DeadlineExceeded, match="circular"):
        await offload(select, circle, "[0]")
