"""Does the memory of a gateway grow over many calls?"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.contestants import (
    echoed,
    pegboard_command,
    pegboard_env,
    wait_until_known,
    written,
)
from benchmarks.data import Catalog, beside
from benchmarks.plots import lines
from benchmarks.runner import Profile, WrongAnswer, say
from benchmarks.wire import Process, memory_mb, settle, text_of

AT_ONCE = 8
PARTS = 10


def measure(profile: Profile) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        return through(beside(profile.sizes[-1], Path(name)), Path(name), profile.soak)


def through(tools: Catalog, folder: Path, calls: int) -> dict[str, Any]:
    """Memory of a gateway after each tenth of so many calls, eight at a time, all checked."""
    where = written(folder, "soak.json", tools.configuration())
    command = pegboard_command("--config", where, "--mode", "proxy")
    memory: list[float] = []
    with Process(command, pegboard_env(folder)) as process:
        wait_until_known(process, len(tools.tools))
        settle(process.pid)
        began = time.perf_counter()
        for part in range(PARTS):
            _many(process, calls // PARTS, part)
            memory.append(round(memory_mb(process.pid), 1))
            say(f"  {calls // PARTS * (part + 1):,} calls: {memory[-1]} MB")
        seconds = time.perf_counter() - began
    return {
        "tools": len(tools.tools),
        "calls": calls,
        "seconds": round(seconds, 1),
        "memory_mb": memory,
    }


def _many(process: Process, calls: int, part: int) -> None:
    for start in range(0, calls, AT_ONCE):
        asked = [{"project": f"p{part}.{start + n}"} for n in range(AT_ONCE)]
        inner = [{"name": "server0_create_issue_0", "arguments": one} for one in asked]
        numbers = [
            process.post("tools/call", {"name": "call_destructive_tool", "arguments": one})
            for one in inner
        ]
        for result, one in zip(process.answers(numbers), asked, strict=True):
            if (echoed(text_of(result)) or {}).get("arguments") != one:
                raise WrongAnswer(f"a call with {one} was answered {result}")


def growth(figures: Mapping[str, Any]) -> float:
    """The memory at the end, of that after the first tenth."""
    return figures["memory_mb"][-1] / figures["memory_mb"][0]


def section(figures: dict[str, Any]) -> str:
    first, last = figures["memory_mb"][0], figures["memory_mb"][-1]
    return (
        f"{figures['calls']:,} calls through one gateway with {figures['tools']:,} tools on stdio,"
        f" {AT_ONCE} in parallel, each with different arguments and a checked response; another benchmark ran on the other core."
        f" {figures['seconds']:.0f} s; memory {first} MB after a tenth of the calls and {last} MB at the"
        " end."
    )


def plots(figures: dict[str, Any]) -> dict[str, str]:
    step = figures["calls"] // PARTS
    points = [(step * (n + 1.0), mb) for n, mb in enumerate(figures["memory_mb"])]
    return {"soak": lines("Memory of the gateway", {"pegboard": points}, across="calls", unit="MB")}
