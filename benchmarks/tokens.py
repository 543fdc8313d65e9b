"""How many tokens does a catalog cost: for the list, until a tool can be called, in a session?"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from benchmarks.contestants import PREPARED, Pegboard, listing_of
from benchmarks.data import Catalog
from benchmarks.plots import bars
from benchmarks.runner import Profile
from benchmarks.tables import table
from benchmarks.walks import CACHED, TOOLS_USED, TURNS, Played, by_everyone, over, tasks_of
from pegboard import count_tokens
from pegboard.tokens import DEFAULT_TOKENIZER

LISTED_ONLY = ("stub", "dynamic")
"""Modes of which the list is counted and no walk made: what follows depends on the client."""


def measure(profile: Profile) -> dict[str, Any]:
    return {
        "tokenizer": DEFAULT_TOKENIZER,
        "turns": TURNS,
        "cached_price": CACHED,
        "catalogs": over(
            profile.catalogs, lambda tools, folder: of_catalog(tools, folder, profile.tasks)
        ),
    }


def of_catalog(tools: Catalog, folder: Path, count: int) -> dict[str, Any]:
    tasks = tasks_of(tools, count)
    figures = by_everyone(tools, folder, tasks, of_contestant)
    for mode in LISTED_ONLY:
        with Pegboard(mode).start(tools, folder) as process:
            figures[f"pegboard {mode}"] = {"list": count_tokens(listing_of(process))}
    size = {"tools": len(tools.tools), "servers": len(tools.servers), "tasks": len(tasks)}
    return {**size, "contestants": figures}


def of_contestant(played: Played) -> dict[str, Any]:
    searches = [s.received for w in played.walks for s in w.steps if s.kind in ("search", "list")]
    solved = [walk.until_callable for walk in played.walks if walk.right]
    before = played.listing + played.instructions
    return {
        "list": played.listing,
        "instructions": played.instructions,
        "solved": round(100 * len(solved) / len(played.walks), 1),
        "first_definition": before + round(statistics.median(solved)) if solved else None,
        "largest_answer": max(searches, default=0),
        "sessions": played.sessions,
    }


def section(figures: dict[str, Any]) -> str:
    parts = [
        f"Tokens are counted with `{figures['tokenizer']}`, over everything that a model reads or writes: name, description and"
        " parameters of each listed tool as compact JSON, the text of each response, and the requests that it has to write."
        " *Instructions* are what a server says about itself when a client connects. *Definition* is the list, the instructions and"
        " everything else that is read and written until the right tool can be called: the median"
        " over the solved tasks, whose share is in the column before it. A task that is not solved ends early, which makes a"
        f" session look cheap. A session has {figures['turns']} turns, k of which use a tool. Every request contains the whole"
        f" conversation; with the prompt cache, a repeated token counts {figures['cached_price']}. FastMCP shows 5 matches, and"
        " Pegboard up to 3 with their signatures and further ones by name, which are the defaults: for one of those, its name is"
        f" searched for again. Above {PREPARED:,} tools, Pegboard is still computing its vectors. The"
        " model is assumed to choose the right server or category immediately, which favors contestants without a search.",
    ]
    for name, one in figures["catalogs"].items():
        parts.append(_catalog(name, one))
    return "\n\n".join(parts)


def _catalog(name: str, one: dict[str, Any]) -> str:
    if one.get("missing"):
        return f"**{name}**: {one['missing']}."
    head = ["contestant", "list", "instructions", "solved, %", "definition", "largest answer",
            *[f"session k={k}" for k in TOOLS_USED],
            *[f"cached k={k}" for k in TOOLS_USED]]  # fmt: skip
    rows = [[who, *_row(f)] for who, f in one["contestants"].items()]
    servers = f"{one['servers']} server{'s' if one['servers'] > 1 else ''}"
    return f"**{name}**: {one['tools']:,} tools, {servers}\n\n{table(head, rows)}"


def _row(f: dict[str, Any]) -> list[Any]:
    if "missing" in f:
        return [f"not run: {f['missing']}", *[None] * 10]
    sessions = f.get("sessions", {})
    return [
        f["list"],
        f.get("instructions"),
        f.get("solved"),
        f.get("first_definition"),
        f.get("largest_answer"),
        *(sessions.get(str(k), {}).get(price) for price in ("plain", "cached") for k in TOOLS_USED),
    ]


def plots(figures: dict[str, Any]) -> dict[str, str]:
    def groups(key: str) -> dict[str, dict[str, float]]:
        return {
            f"{name}, {one['tools']:,} tools": {
                who: f[key] for who, f in one["contestants"].items() if f.get(key)
            }
            for name, one in figures["catalogs"].items()
            if "contestants" in one
        }

    title = "Tokens until the right tool can be called"
    return {"tokens": bars(title, groups("first_definition"), unit="o200k tokens", log=True)}
