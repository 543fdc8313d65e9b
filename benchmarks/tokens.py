"""What does a catalogue cost in tokens: listed, until a tool can be called, in a whole session?"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.contestants import Contestant, Ledger, Task, everyone, listing_of
from benchmarks.data import Catalogue, catalogue
from benchmarks.plots import bars
from benchmarks.runner import Missing, Profile, say
from benchmarks.tables import table
from benchmarks.walks import tasks_of, walk
from pegboard import count_tokens
from pegboard.tokens import DEFAULT_TOKENIZER

TURNS = 10
TOOLS_USED = (1, 3, 10)
CACHED = 0.1
"""What a token costs that the provider has cached, against one that it has not."""


def measure(profile: Profile) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in profile.catalogues:
            say(f"  {name}")
            try:
                found[name] = of_catalogue(catalogue(name, Path(folder)), Path(folder), profile)
            except Missing as exc:
                found[name] = {"missing": str(exc)}
    return {
        "tokenizer": DEFAULT_TOKENIZER,
        "turns": TURNS,
        "cached_price": CACHED,
        "catalogues": found,
    }


def of_catalogue(tools: Catalogue, folder: Path, profile: Profile) -> dict[str, Any]:
    tasks = tasks_of(tools, max(10, profile.tasks // 2))
    figures: dict[str, Any] = {}
    for contestant in everyone():
        try:
            figures[contestant.name] = of_contestant(contestant, tools, folder, tasks)
        except Missing as exc:
            figures[contestant.name] = {"missing": str(exc)}
    size = {"tools": len(tools.tools), "servers": len(tools.servers), "tasks": len(tasks)}
    return {**size, "contestants": figures}


def of_contestant(
    contestant: Contestant, tools: Catalogue, folder: Path, tasks: Sequence[Task]
) -> dict[str, Any]:
    with contestant.start(tools, folder) as process:
        text = listing_of(process)
        listing = count_tokens(text)
        walks = [walk(contestant, Ledger(process, tools, text), task) for task in tasks]
        sessions = {
            str(k): session(contestant, Ledger(process, tools, text), tasks, k) for k in TOOLS_USED
        }
    searches = [s.received for w in walks for s in w.steps if s.kind in ("search", "list")]
    return {
        "list": listing,
        "first_definition": listing + round(statistics.median(w.until_callable for w in walks)),
        "largest_answer": max(searches, default=0),
        "sessions": sessions,
    }


def session(
    contestant: Contestant, ledger: Ledger, tasks: Sequence[Task], tools_used: int
) -> dict[str, int]:
    """Input tokens of ten turns, of which the first so many use one tool each.

    Every request carries all that was said before. With the prompt cache, what an earlier request
    carried costs a tenth; all contestants here keep their list, and so the cache.
    """
    context = count_tokens(ledger.listing)
    plain = cached = 0.0
    known = 0
    for turn in range(TURNS):
        task = tasks[turn % len(tasks)]
        context += count_tokens(task.query)
        before = len(ledger.steps)
        if turn < tools_used:
            walk(contestant, ledger, task)
        for step in [*ledger.steps[before:], None]:
            plain += context
            cached += (context - known) + known * CACHED
            known = context
            context += step.sent + step.received if step else 0
    return {"plain": round(plain), "cached": round(cached)}


def section(figures: dict[str, Any]) -> str:
    parts = [
        f"Tokens are `{figures['tokenizer']}`, counted over what a model reads: name, description"
        " and parameters of each listed tool as compact JSON, the text of each answer, and what it"
        " has to write to ask. *Definition* is the list and everything read and written until the"
        f" right tool can be called (median). A session has {figures['turns']} turns, of which k"
        " use a tool each; every request carries the whole conversation; with the prompt cache a"
        f" token that an earlier request carried counts {figures['cached_price']}. FastMCP shows 5"
        " matches and Pegboard up to 10, as they do by default. A reader is assumed who picks the"
        " right server or category at first sight, which favours those that have no search.",
    ]
    for name, one in figures["catalogues"].items():
        parts.append(_catalogue(name, one))
    return "\n\n".join(parts)


def _catalogue(name: str, one: dict[str, Any]) -> str:
    if one.get("missing"):
        return f"**{name}**: {one['missing']}."
    head = ["contestant", "list", "definition", "largest answer",
            *[f"session k={k}" for k in TOOLS_USED],
            *[f"cached k={k}" for k in TOOLS_USED]]  # fmt: skip
    rows = [
        [who, f["list"], f["first_definition"], f["largest_answer"],
         *[f["sessions"][str(k)]["plain"] for k in TOOLS_USED],
         *[f["sessions"][str(k)]["cached"] for k in TOOLS_USED]]
        if "list" in f else [who, f"not run: {f['missing']}"] + [None] * 8
        for who, f in one["contestants"].items()
    ]  # fmt: skip
    servers = f"{one['servers']} server{'s' if one['servers'] > 1 else ''}"
    return f"**{name}**: {one['tools']:,} tools, {servers}\n\n{table(head, rows)}"


def plots(figures: dict[str, Any]) -> dict[str, str]:
    def groups(key: str) -> dict[str, dict[str, float]]:
        return {
            f"{name}, {one['tools']:,} tools": {
                who: f[key] for who, f in one["contestants"].items() if key in f
            }
            for name, one in figures["catalogues"].items()
            if "contestants" in one
        }

    title = "Tokens until the right tool can be called"
    return {"tokens": bars(title, groups("first_definition"), unit="o200k tokens", log=True)}
