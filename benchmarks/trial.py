"""What does a real agent read and write, and what would its recorded searches cost today?

A trial is a model that does office tasks with nothing but the tools of one server, while everything
that it sends and reads is logged. The logs are not part of the repository: `PEGBOARD_TRIAL` names a
folder with `log_NAME.jsonl` for each trial, and `trials.json` with what is known about them:

    {"NAME": {"through": "Pegboard proxy", "agent": "who acted as the agent", "day": "2026-11-16"}}

Each line of a log is a list (`op`, `tokens`) or a call (`op`, `name`, `arguments`, `sent`, `received`,
`error`). Searches are replayed over the set `agents`, whose catalog is the one of the trials.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from benchmarks.contestants import shown_lines
from benchmarks.data import Catalog, data, load_catalog, records
from benchmarks.runner import Missing, Profile, read
from benchmarks.tables import table
from pegboard import Pegboard, count_tokens
from pegboard.core.calls import Caller
from pegboard.modes.mode import View
from pegboard.modes.search_tools import needs_to_text, parse_queries, run_search

SET = "agents"
CURRENT = "Pegboard proxy, 0.2.0"
"""The label of this version's trials of the `proxy` mode."""
AMONG = 5


def measure(profile: Profile) -> dict[str, Any]:
    trials = earlier() | {name: of_log(rows) | about for name, (about, rows) in recorded().items()}
    try:
        return {"trials": trials, "replay": replay()}
    except Missing as exc:
        return {"trials": trials, "replay": {"missing": str(exc)}}


def earlier() -> dict[str, Any]:
    """The trials in the results so far: a trial counts even if its log is no longer available."""
    return (read("trial") or {}).get("trials", {})


def recorded() -> dict[str, tuple[dict[str, Any], list[dict[str, Any]]]]:
    """The trials in the folder that `PEGBOARD_TRIAL` names, each with what is known about it."""
    given = os.environ.get("PEGBOARD_TRIAL")
    if not given:
        return {}
    folder = Path(given)
    known = folder / "trials.json"
    about = json.loads(known.read_text(encoding="utf-8")) if known.exists() else {}
    logs = {path.stem.removeprefix("log_"): path for path in sorted(folder.glob("log_*.jsonl"))}
    return {name: (about.get(name, {}), records(path)) for name, path in logs.items()}


def of_log(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What one agent's work cost; every turn sends all that was sent and read before."""
    calls = [row for row in rows if row["op"] == "call"]
    context = listed = next(row["tokens"] for row in rows if row["op"] == "list")
    carried = 0
    for row in calls:
        carried += context + row["sent"]
        context += row["sent"] + row["received"]
    searches = [row for row in calls if row["name"] == "search_tools"]
    return {
        "calls": len(calls),
        "errors": sum(row["error"] for row in calls),
        "searches": len(searches),
        "list": listed,
        "search": sum(row["received"] for row in searches),
        "context": context,
        "input": carried,
    }


def replay() -> dict[str, Any]:
    """The recorded searches, answered by this version, and how well it answers the set of them."""
    with tempfile.TemporaryDirectory() as name:
        catalog = load_catalog(SET, Path(name))
        board = Pegboard.from_catalog(catalog.path)
        board.prepare()
        view = anyio.run(partial(board.view, Caller(mode="proxy")))
        found = {who: again(view, rows) for who, (_, rows) in recorded().items()}
        logs = {who: tokens for who, tokens in found.items() if tokens["searches"]}
        return {"tools": len(catalog.tools), "logs": logs, "quality": quality(view, catalog)}


def again(view: View, rows: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Tokens of the answers to one agent's searches: then, and now to the same needs."""
    searches = [row for row in rows if row.get("name") == "search_tools" and not row["error"]]
    needs = [parse_queries(row["arguments"]) for row in searches]
    # `limit` and `detail` are left out: no model is told of them any more.
    now = sum(count_tokens(search(view, queries)) for queries in needs)
    then = sum(row["received"] for row in searches)
    return {"searches": len(searches), "then": then, "now": now}


def search(view: View, queries: Sequence[str]) -> str:
    needs = anyio.run(run_search, view, {"queries": list(queries)})
    return needs_to_text(view, needs, None)


def quality(view: View, catalog: Catalog) -> dict[str, Any]:
    """Whether the right tools are among the first five, are shown at all, and with a signature."""
    recalls: list[float] = []
    shown: list[float] = []
    signed: list[float] = []
    tokens: list[int] = []
    for query in catalog.queries:
        right = set(query["relevant"])
        five = view.search(query["query"], limit=AMONG)
        recalls.append(share(right, [catalog.id_of(view.catalog.address(m.tool)) for m in five]))
        text = search(view, [query["query"]])
        lines = {catalog.id_of(name): line for name, line in shown_lines(text).items()}
        shown.append(share(right, list(lines)))
        signed.append(share(right, [id for id, line in lines.items() if line]))
        tokens.append(count_tokens(text))
    absent = [query["query"] for query in records(data(f"sets/{SET}/unanswerable.jsonl"))]
    return {
        "queries": len(recalls),
        "recall@5": percent(recalls),
        "shown": percent(shown),
        "with a signature": percent(signed),
        "tokens of an answer": round(statistics.mean(tokens), 1),
        "unanswerable": len(absent),
        "said so": percent([search(view, [query]).startswith("No tool") for query in absent]),
    }


def share(right: set[str], found: Sequence[str | None]) -> float:
    return len(right.intersection(found)) / len(right)


def percent(parts: Sequence[float]) -> float:
    return round(100 * statistics.mean(parts), 1)


def section(figures: dict[str, Any]) -> str:
    parts = [
        "A model does twelve office tasks over more than 600 tools, with only the tools of one server, and everything that it sends and reads"
        " is counted. *Context* is what its context contains after the last answer: the list, and all requests and answers. *Input* adds up what"
        " is sent over all turns, without a prompt cache. The instructions of servers are not counted. All trials listed reached the same"
        " outcomes.",
        _trials(figures["trials"]),
    ]
    again = figures["replay"]
    if again.get("missing"):
        return "\n\n".join(
            [*parts, f"The recorded searches were not replayed: {again['missing']}."]
        )
    rows = [[who, f["searches"], f["then"], f["now"]] for who, f in again["logs"].items()]
    if rows:
        head = [
            "searches of the trial",
            "number",
            "tokens of the answers then",
            "from this version",
        ]
        parts += ["The same searches, answered by this version in `proxy` mode:", table(head, rows)]
    good = again["quality"]
    parts.append(
        f"All {good['queries']} different searches of the trials, with right answers chosen by hand: recall@5 of the ranking is"
        f" {good['recall@5']}%. In the answers as a model reads them, {good['shown']}% of the right tools are shown,"
        f" {good['with a signature']}% with a signature, in {good['tokens of an answer']:g} tokens on average. Of"
        f' {good["unanswerable"]} searches for what no tool does, {good["said so"]}% are answered with "No tool".'
    )
    return "\n\n".join(parts)


def _trials(trials: dict[str, Any]) -> str:
    if not trials:
        return "Not run."
    head = [
        "through",
        "agent",
        "day",
        "calls",
        "errors",
        "searches",
        "list",
        "search answers",
        "context",
        "input",
    ]
    keys = ("calls", "errors", "searches", "list", "search", "context", "input")
    rows = [
        [
            one.get("through", name),
            one.get("agent", "?"),
            one.get("day", "?"),
            *(one[k] for k in keys),
        ]
        for name, one in trials.items()
    ]
    return table(head, rows, words=3)


def plots(figures: dict[str, Any]) -> dict[str, str]:
    return {}
