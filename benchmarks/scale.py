"""How much time and memory does search need with 50 to 100,000 tools, also at first and for changes?

    python -m benchmarks.scale answers|changes|first ...     one part, in a process of its own

Tools are those of real servers, repeated under other names. Every tool has an exact vector; those of
500 tools are made, and the others get the same again, since only their number matters here. Each
measurement is a process on one core.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contestants import FASTMCP, peer
from benchmarks.data import load_catalog
from benchmarks.plots import lines
from benchmarks.runner import ROOT, Missing, Profile, WrongAnswer, interleave, median, say
from benchmarks.tables import missing, table
from benchmarks.wire import memory_mb
from pegboard.adapters.catalog_file import CatalogFile
from pegboard.core.search import SearchIndex
from pegboard.core.search.relevance import QuantizedVectors
from pegboard.core.search.searchable_fields import build_passage, read_searchable_fields
from pegboard.core.tools import Catalog, Tool
from pegboard.embed.disk_storage import IndexFiles
from pegboard.embed.live_index import LiveIndex
from pegboard.embed.vectorizer import LocalVectorizer

MADE = 500
WHOLE_PEER = 5_000
"""FastMCP's own tool is asked up to so many tools: adding them one by one takes it minutes."""
QUERIES = (
    "find a file by its name",
    "send a message to the team",
    "who is free today",
    "archive an old invoice",
    "translate a page into French",
    "weather in the mountains tomorrow",
    "remind me to call the dentist",
    "which of my pull requests wait for a review",
    "turn this text into speech",
    "price of a train from Berlin to Prague",
    "delete the oldest backups",
    "draw a chart of last month's sales",
)


def measure(profile: Profile) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = str(_base(folder).path)
        queries = folder / "queries.json"
        queries.write_text(json.dumps(QUERIES), encoding="utf-8")
        sizes = {}
        for count in profile.scale:
            say(f"  {count:,} tools")
            sizes[str(count)] = _of_size(path, count, queries, profile)
        say("  changes and first answers")
        changed = interleave({"pegboard": lambda: own("changes", path)}, min(2, profile.rounds))
        own("first", path, name)
        kept = interleave({"pegboard": lambda: own("first", path, name)}, profile.rounds)
    return {"sizes": sizes, "changes": changed["pegboard"], "first": kept["pegboard"]}


def _base(folder: Path) -> Any:
    try:
        return load_catalog("toucan_5190", folder)
    except Missing:
        return load_catalog("tracker", folder)


def _of_size(path: str, count: int, queries: Path, profile: Profile) -> dict[str, Any]:
    theirs = [str(FASTMCP), "scale", path, str(count), str(queries)]
    contestants: dict[str, Callable[[], dict[str, float]]] = {
        "pegboard": partial(own, "answers", path, str(count)),
        "FastMCP BM25, ranking alone": lambda: run([peer("python"), *theirs, "ranking"]),
    }
    if count <= WHOLE_PEER:
        whole = [*theirs, "whole"]
        contestants["FastMCP BM25, search_tools"] = lambda: run([peer("python"), *whole])
    return interleave(contestants, min(2, profile.rounds) if count <= 5_000 else 1)


def own(what: str, *arguments: str) -> dict[str, float]:
    return run([sys.executable, "-m", "benchmarks.scale", what, *arguments])


def run(command: list[str]) -> dict[str, float]:
    """What a program prints as JSON, on one core."""
    core = max(os.sched_getaffinity(0))
    paths = {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    ended = subprocess.run(
        command,
        env={**os.environ, **(paths if command[0] == sys.executable else {})},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )
    if ended.returncode:
        raise WrongAnswer(f"{command} failed: {ended.stderr[-500:]}")
    return json.loads(ended.stdout.splitlines()[-1])


# What runs in a process of its own.


def tools(path: str, count: int) -> list[Tool]:
    base = CatalogFile.read(Path(path)).tools[:5_000]
    return [
        base[n]
        if n < len(base)
        else replace(
            base[n % len(base)], name=f"{base[n % len(base)].name}_{n // len(base)}", id=""
        )
        for n in range(count)
    ]


def milliseconds(work: Callable[[str], Any], queries: Sequence[str]) -> float:
    times: list[float] = []
    for query in queries:
        began = time.perf_counter()
        work(query)
        times.append((time.perf_counter() - began) * 1e3)
    return statistics.median(times)


def answers(path: str, count: str) -> dict[str, float]:
    """Times and memory of one size, with exact vectors of every tool."""
    catalog = Catalog(tools(path, int(count)))
    with tempfile.TemporaryDirectory() as folder:
        vectorizer = LocalVectorizer(Path(folder))
        began = time.perf_counter()
        index = SearchIndex.build(catalog, vectorizer)
        index.search("create an issue")
        ready = time.perf_counter() - began
        _keep_vectors(vectorizer, index)
        index = index.refreshed()
        if index.tools_without_vector() or not index.search("create an issue"):
            raise WrongAnswer("the index is not complete, or finds nothing")
        whole = milliseconds(index.search, QUERIES)
        return {
            "ready_s": ready,
            "search_ms": whole,
            "again_ms": milliseconds(index.search, QUERIES),
            # Another limit, so that only the query's vector is remembered and not the answer.
            "ranking_ms": milliseconds(lambda q: index.search(q, 9), QUERIES),
            "memory_mb": memory_mb(os.getpid()),
        }


def _keep_vectors(vectorizer: LocalVectorizer, index: SearchIndex) -> None:
    lacking = index.tools_without_vector()
    some = vectorizer.compute(
        [build_passage(read_searchable_fields(tool)) for _, tool in lacking[:MADE]]
    )
    which = np.arange(len(lacking)) % len(some.rows)
    vectorizer.save(
        [key for key, _ in lacking], QuantizedVectors(some.rows[which], some.scales[which])
    )


def changes(path: str) -> dict[str, float]:
    """Building, adding, and answering while vectors are made."""
    many = tools(path, 5_010)
    began = time.perf_counter()
    index = SearchIndex.build(Catalog(many[:5_000]), LocalVectorizer())
    index.search("create an issue")
    build = time.perf_counter() - began
    began = time.perf_counter()
    index.updated(Catalog(many)).search("create an issue")
    added = time.perf_counter() - began
    return {"build_5000_s": build, "add_10_ms": added * 1e3, **_behind(many[:MADE])}


def _behind(some: Sequence[Tool]) -> dict[str, float]:
    """Vectors of 500 tools in the background, and answers meanwhile."""
    live_index, catalog = LiveIndex(LocalVectorizer()), Catalog(some)

    def search(query: str) -> object:
        return live_index.index(catalog).search(query)

    search("create an issue")
    calm = milliseconds(search, QUERIES)
    began = time.perf_counter()
    live_index.start()
    busy = milliseconds(search, [f"{query} please" for query in QUERIES])
    while live_index.index(catalog).tools_without_vector():
        threading.Event().wait(0.02)
    took = time.perf_counter() - began
    live_index.close()
    return {"vectors_500_s": took, "calm_ms": calm, "busy_ms": busy}


def first(path: str, folder: str) -> dict[str, float]:
    """Take a kept index of 500 tools and answer once, from a process that just began."""
    catalog = Catalog(tools(path, 500))
    began = time.perf_counter()
    live_index = LiveIndex(LocalVectorizer(Path(folder) / "v"), IndexFiles(Path(folder) / "i"))
    live_index.index(catalog, "500").search("find a file by its name")
    return {"first_search_ms": (time.perf_counter() - began) * 1e3}


# What is shown.


def section(figures: dict[str, Any]) -> str:
    head = ["tools", "contestant", "first answer after, s", "search, ms", "its ranking, ms",
            "the same again, ms", "memory, MB"]  # fmt: skip
    keys = ("ready_s", "search_ms", "ranking_ms", "again_ms", "memory_mb")
    rows = [
        [f"{int(count):,}", who, *(f.get(key) for key in keys)]
        for count, one in figures["sizes"].items()
        for who, f in one.items()
        if "ready_s" in f
    ]
    gone = missing(next(iter(figures["sizes"].values()), {}))
    changed, kept = figures["changes"], figures["first"]
    more = table(
        ["ours", "found"],
        [
            ["searchable from nothing, 5,000 tools, s", changed["build_5000_s"]],
            ["10 tools more, ms", changed["add_10_ms"]],
            ["all vectors of 500 tools, in the background, s", changed["vectors_500_s"]],
            ["a search before that, ms", changed["calm_ms"]],
            ["a search meanwhile, ms", changed["busy_ms"]],
            ["first search of a new process, kept index of 500 tools, ms",
             kept["first_search_ms"]],
        ],
    )  # fmt: skip
    return (
        "Tools of real servers, repeated under different names. Each contestant runs in its own process on one core; figures are"
        " the median of twelve new queries. *Search* is the whole search, *its ranking* excludes embedding the query. FastMCP's"
        " ranking alone is its best case, without a server around it. Its own search tool is measured up to"
        f" {WHOLE_PEER:,} tools, because adding more takes minutes.\n\n"
        f"{table(head, rows, words=2)}{gone}\n\n{more}"
    )


def plots(figures: dict[str, Any]) -> dict[str, str]:
    names = dict.fromkeys(who for one in figures["sizes"].values() for who in one)

    def series(key: str) -> dict[str, list[tuple[float, float]]]:
        return {
            who: [
                (int(count), median(one[who][key]))
                for count, one in figures["sizes"].items()
                if key in one.get(who, {})
            ]
            for who in names
        }

    return {
        "search_time": lines("One search", series("search_ms"), across="tools", unit="ms"),
        "search_memory": lines("Memory", series("memory_mb"), across="tools", unit="MB"),
    }


if __name__ == "__main__":
    parts: dict[str, Callable[..., dict[str, float]]] = {
        "answers": answers,
        "changes": changes,
        "first": first,
    }
    print(json.dumps(parts[sys.argv[1]](*sys.argv[2:])))
