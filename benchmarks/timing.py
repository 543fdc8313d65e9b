"""CPU of short acts in this process: several rounds, contestants in turn, the median counts."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

Act: TypeAlias = Callable[[], Awaitable[object]]

ROUNDS = 7


def microseconds(act: Callable[[], object], times: int = 300, rounds: int = ROUNDS) -> float:
    """What one act costs, in microseconds of CPU."""
    act()
    found: list[float] = []
    for _ in range(rounds):
        gc.collect()
        began = time.process_time()
        for _ in range(times):
            act()
        found.append((time.process_time() - began) / times * 1e6)
    return round(statistics.median(found), 2)


def milliseconds(act: Callable[[], object], times: int = 30) -> float:
    return round(microseconds(act, times) / 1e3, 3)


async def in_turn(
    acts: Mapping[str, Act], times: int = 300, rounds: int = ROUNDS
) -> dict[str, float]:
    """The same for acts that are awaited, each once per round."""
    found: dict[str, list[float]] = {name: [] for name in acts}
    for act in acts.values():
        await _cpu(act, max(1, times // 6))
    for _ in range(rounds):
        for name, act in acts.items():
            found[name].append(await _cpu(act, times))
    return {name: round(statistics.median(values), 2) for name, values in found.items()}


async def _cpu(act: Act, times: int) -> float:
    gc.collect()
    began = time.process_time()
    for _ in range(times):
        await act()
    return (time.process_time() - began) / times * 1e6
