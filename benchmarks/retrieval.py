"""Does search find the right tool, and what does it cost with 50 to 100,000 tools?"""

from __future__ import annotations

import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.contestants import FASTMCP, peer
from benchmarks.data import Catalogue, catalogue
from benchmarks.plots import bars, lines
from benchmarks.runner import ROOT, Missing, Profile, WrongAnswer, interleave, median, say
from benchmarks.tables import table

OURS = Path(__file__).with_name("rank_ours.py")
PUBLISHED = {"mcpproxy_golden": {"mcpproxy-go (published, not run)": [42, 68, 79, None]}}
"""Its own evaluation on its own set, recall@1/5/10; we did not run it."""


def measure(profile: Profile) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sets = {one: _of_set(one, folder, profile) for one in profile.sets}
        return {"sets": sets, "scale": _scale(folder, profile)}


def _of_set(name: str, folder: Path, profile: Profile) -> dict[str, Any]:
    say(f"  {name}")
    try:
        tools = catalogue(name, folder)
    except Missing as exc:
        return {"missing": str(exc)}
    step = max(1, len(tools.queries) // profile.queries)
    asked = tools.queries[::step][: profile.queries]
    path = folder / "queries.json"
    path.write_text(json.dumps([query["query"] for query in asked]), encoding="utf-8")
    figures: dict[str, Any] = {}
    for who, rank in _rankers(tools, path).items():
        try:
            figures[who] = quality(tools, asked, rank())
        except Missing as exc:
            figures[who] = {"missing": str(exc)}
    return {"tools": len(tools.tools), "queries": len(asked), "rankers": figures}


def _rankers(tools: Catalogue, queries: Path) -> Mapping[str, Any]:
    fast = [str(FASTMCP), "rank", str(tools.path), str(queries)]
    return {
        "pegboard": lambda: run([sys.executable, str(OURS), *fast[1:]]),
        "fastmcp bm25": lambda: run([peer("python"), *fast, "bm25"]),
        "fastmcp regex": lambda: run([peer("python"), *fast, "regex"]),
        "plain bm25": lambda: plain_bm25(tools, json.loads(queries.read_text(encoding="utf-8"))),
    }


def run(command: list[str]) -> list[Any]:
    """The JSON lines that a program prints."""
    paths = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
    env = {**os.environ, "PYTHONPATH": paths} if command[0] == sys.executable else None
    ended = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise WrongAnswer(f"{command} failed: {ended.stderr[-500:]}")
    return [json.loads(line) for line in ended.stdout.splitlines()]


def quality(
    tools: Catalogue, asked: Sequence[Mapping[str, Any]], ranked: Sequence[Sequence[str]]
) -> dict[str, float]:
    """Recall at 1, 5 and 10, and nDCG at 10, in percent, the mean over queries."""
    if len(ranked) != len(asked):
        raise WrongAnswer(f"{len(ranked)} rankings for {len(asked)} queries")
    ids = {f"{tool['server']}/{tool['name']}": tool["id"] for tool in tools.tools}
    found = [[ids.get(name) for name in ranking] for ranking in ranked]
    pairs = [(set(q["relevant"]), ranking) for q, ranking in zip(asked, found, strict=True)]
    return {
        **{f"recall@{k}": percent([recall(r, f, k) for r, f in pairs]) for k in (1, 5, 10)},
        "hit@1": percent([float(bool(r & set(f[:1]))) for r, f in pairs]),
        "ndcg@10": percent([ndcg(r, f) for r, f in pairs]),
    }


def percent(values: Sequence[float]) -> float:
    return round(100 * statistics.mean(values), 1)


def recall(relevant: set[str], found: Sequence[str | None], k: int) -> float:
    """The part of the right tools that is among the first k."""
    return len(relevant & set(found[:k])) / len(relevant)


def ndcg(relevant: set[str], found: Sequence[str | None], k: int = 10) -> float:
    gain = sum(1 / math.log2(i + 2) for i, id in enumerate(found[:k]) if id in relevant)
    best = sum(1 / math.log2(i + 2) for i in range(min(k, len(relevant))))
    return gain / best


def plain_bm25(tools: Catalogue, queries: Sequence[str]) -> list[list[str]]:
    """BM25 as in a textbook over name, description and parameter names: the least one can do."""
    texts = [
        Counter(words(f"{t['name']} {t.get('description') or ''} {' '.join(parameters(t))}"))
        for t in tools.tools
    ]
    names = [f"{tool['server']}/{tool['name']}" for tool in tools.tools]
    average = statistics.mean(sum(text.values()) for text in texts)
    holding = Counter(word for text in texts for word in text)
    total = len(texts)

    def score(text: Counter[str], query: Sequence[str]) -> float:
        length = 1.5 * (0.25 + 0.75 * sum(text.values()) / average)
        return sum(
            math.log(1 + (total - holding[w] + 0.5) / (holding[w] + 0.5))
            * text[w] * 2.5 / (text[w] + length)
            for w in query if w in text
        )  # fmt: skip

    ranked: list[list[str]] = []
    for query in queries:
        asked = words(query)
        scores = [(score(text, asked), -i) for i, text in enumerate(texts)]
        best = sorted((s for s in scores if s[0] > 0), reverse=True)[:10]
        ranked.append([names[-i] for _, i in best])
    return ranked


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def parameters(tool: Mapping[str, Any]) -> list[str]:
    return list((tool.get("inputSchema") or {}).get("properties") or {})


def _scale(folder: Path, profile: Profile) -> dict[str, Any]:
    say("  scale")
    try:
        base = catalogue("toucan_5190", folder)
    except Missing:
        base = catalogue("tracker", folder)
    path, found = str(base.path), {}
    for count in profile.scale:
        ours = [sys.executable, str(OURS), "scale", path, str(count)]
        rounds = profile.rounds if count <= 5_000 else 1
        contestants = {"pegboard": lambda c=ours: run(c)[0]}
        theirs = [str(FASTMCP), "scale", path, str(count)]
        contestants["fastmcp bm25"] = lambda c=theirs: run([peer("python"), *c])[0]
        found[str(count)] = interleave(contestants, rounds)
    return found


def section(figures: dict[str, Any]) -> str:
    head = ["set", "ranker", "recall@1", "recall@5", "recall@10", "nDCG@10"]
    rows: list[list[Any]] = []
    for name, one in figures["sets"].items():
        if one.get("missing"):
            rows.append([name, one["missing"], None, None, None, None])
            continue
        title = f"{name} ({one['tools']:,} tools, {one['queries']} queries)"
        for who, f in one["rankers"].items():
            keys = ("recall@1", "recall@5", "recall@10", "ndcg@10")
            rows.append([title, who, *(f.get(key) for key in keys)])
        rows += [[title, who, *f] for who, f in PUBLISHED.get(name, {}).items()]
    return (
        "In percent, the mean over queries, evenly taken from each set; recall is the part of the"
        " right tools among the first k. Every set is a development set, and the last four may be"
        " trained on. A regex is made of a query's words of more than three letters.\n\n"
        f"{table(head, rows)}\n\n{_scale_table(figures['scale'])}"
    )


def _scale_table(scale: dict[str, Any]) -> str:
    head = ["tools", "ranker", "first answer after, s", "search, ms", "memory, MB"]
    rows = [
        [f"{int(count):,}", who, f["ready_s"], f["search_ms"], f["memory_mb"]]
        for count, one in scale.items()
        for who, f in one.items()
        if "ready_s" in f
    ]
    return (
        "Tools of real servers, repeated under other names, in a process of their own; the median"
        " of the searches after the first. FastMCP is asked in memory, without a connection.\n\n"
        + table(head, rows)
    )


def plots(figures: dict[str, Any]) -> dict[str, str]:
    groups = {
        name: {who: f["recall@5"] for who, f in one["rankers"].items() if "recall@5" in f}
        for name, one in figures["sets"].items()
        if "rankers" in one
    }
    series = {
        who: [
            (int(count), median(one[who]["search_ms"]))
            for count, one in figures["scale"].items()
            if "search_ms" in one.get(who, {})
        ]
        for who in ("pegboard", "fastmcp bm25")
    }
    return {
        "retrieval": bars("The right tool among the first five", groups, unit="recall@5, percent"),
        "search_time": lines("One search", series, across="tools", unit="milliseconds"),
    }
