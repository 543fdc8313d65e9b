"""Our search in a process of its own: `rank CATALOGUE QUERIES`, or `scale CATALOGUE COUNT`."""

from __future__ import annotations

import json
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path

from pegboard import Pegboard
from pegboard.adapters.catalog_file import read_catalog

QUERIES = (
    "find a file by its name",
    "send a message to the team",
    "who is free today",
    "archive an old invoice",
    "translate a page into French",
    "weather in the mountains tomorrow",
)


def rank(path: str, queries: str) -> None:
    board = Pegboard.from_catalog(path)
    prepare(board)
    for query in json.loads(Path(queries).read_text(encoding="utf-8")):
        found = board.search(query, 10)
        print(json.dumps([f"{m.tool.server or ''}/{m.tool.name}" for m in found]))


def prepare(board: Pegboard) -> None:
    """Make the vectors now, where this version has any."""
    make = getattr(board, "prepare", None)
    if make is not None:
        make()


def scale(path: str, count: int) -> None:
    base = list(read_catalog(path))
    board, before = Pegboard("scale"), time.perf_counter()
    for number in range(count):
        tool = base[number % len(base)]
        board.add(replace(tool, name=f"{tool.name}_{number // len(base)}"))
    board.search("create an issue")
    ready = time.perf_counter() - before
    times: list[float] = []
    for query in QUERIES:
        began = time.perf_counter()
        board.search(query)
        times.append(time.perf_counter() - began)
    resident = Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]
    figures = {"ready_s": ready, "search_ms": statistics.median(times) * 1e3}
    print(json.dumps({**figures, "memory_mb": int(resident) / 1024}))


if __name__ == "__main__":
    if sys.argv[1] == "rank":
        rank(*sys.argv[2:])
    else:
        scale(sys.argv[2], int(sys.argv[3]))
