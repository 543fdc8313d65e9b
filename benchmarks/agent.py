"""Does a task end in the right call, made by a simulated agent that recognizes the right tool?"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from benchmarks.data import Catalog
from benchmarks.plots import bars
from benchmarks.runner import Profile
from benchmarks.tables import missing, table
from benchmarks.walks import Played, by_everyone, over, tasks_of

LOCAL = ("tracker",)


def measure(profile: Profile) -> dict[str, Any]:
    names = (*LOCAL, *profile.played)
    return {"sets": over(names, lambda tools, folder: of_set(tools, folder, profile.tasks))}


def of_set(tools: Catalog, folder: Path, count: int) -> dict[str, Any]:
    tasks = tasks_of(tools, count)
    figures = by_everyone(tools, folder, tasks, summary)
    return {"tools": len(tools.tools), "tasks": len(tasks), "contestants": figures}


def summary(played: Played) -> dict[str, Any]:
    walks = played.walks
    firsts = [w.first_right for w in walks if w.first_right is not None]
    return {
        "success": round(100 * statistics.mean(w.right for w in walks), 1),
        "first_right": round(100 * sum(firsts) / len(walks), 1) if firsts else None,
        "round_trips": round(statistics.mean(len(w.steps) for w in walks), 2),
        "tokens": played.listing
        + played.instructions
        + round(statistics.median(w.tokens for w in walks)),
    }


def section(figures: dict[str, Any]) -> str:
    parts = [
        "Each task is a query from a data set with its right tools. The simulated agent searches with the unchanged query (or"
        " walks through the listing), takes the right tool if it is shown, describes it if a required parameter was not shown,"
        " and calls it with arguments generated from its schema. *Success*: the server confirms that the right tool was called"
        " with exactly these arguments, and they match its schema. *First right*: the first tool in a ranking was a right one."
        " *Tokens*: the list and one task.\n\n"
        "This shows whether the right tool is presented, at what cost, and that the call works. It does not show whether a model"
        " recognizes the tool, searches again in other words if it does not, or chooses good arguments. Contestants that list"
        " everything, or every tool of a server that the agent is told, always succeed here; with a real model they do not.",
    ]
    head = ["contestant", "success, %", "first right, %", "round trips", "tokens"]
    for name, one in figures["sets"].items():
        if one.get("missing"):
            parts.append(f"**{name}**: {one['missing']}.")
            continue
        rows = [
            [who, f["success"], f["first_right"], f["round_trips"], f["tokens"]]
            for who, f in one["contestants"].items()
            if "success" in f
        ]
        title = f"**{name}**: {one['tools']:,} tools, {one['tasks']} tasks"
        parts.append(f"{title}\n\n{table(head, rows)}{missing(one['contestants'])}")
    return "\n\n".join(parts)


def plots(figures: dict[str, Any]) -> dict[str, str]:
    groups = {
        name: {w: f["success"] for w, f in one["contestants"].items() if f.get("first_right")}
        for name, one in figures["sets"].items()
        if "contestants" in one
    }
    return {"agent": bars("The right tool was shown and called", groups, unit="percent of tasks")}
