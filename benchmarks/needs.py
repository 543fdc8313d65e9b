"""How often are all tools that a request needs among the first five?

    python -m benchmarks.needs

The requests in `written_needs.jsonl` were written for the tools of 238 real servers: short lists of
an agent's steps (`agent`), sentences with two or three needs (`compound`), single needs (`one`), and
requests that no tool of the server answers (`missing`). The servers form four catalogs. Choices were
made on the first two; the others only check them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.data import data, records
from benchmarks.retrieval import VECTORS
from benchmarks.runner import Missing, say
from pegboard.adapters.catalog_file import CatalogFile
from pegboard.core.search import SearchIndex
from pegboard.core.search.relevance import is_near_miss
from pegboard.core.tools import Catalog
from pegboard.embed.live_index import LiveIndex
from pegboard.embed.vectorizer import LocalVectorizer

REQUESTS = Path(__file__).with_name("written_needs.jsonl")
CHOSEN_ON = (1, 2)
FIRST = 5


def indexes(requests: list[dict[str, Any]]) -> dict[int, SearchIndex]:
    """The index of each catalog: all tools of the servers that its requests were written for."""
    tools = CatalogFile.read(data("catalogs/toucan_5190.jsonl")).tools
    found: dict[int, SearchIndex] = {}
    for number in sorted({r["catalog"] for r in requests}):
        servers = {r["server"] for r in requests if r["catalog"] == number}
        catalog = Catalog([tool for tool in tools if tool.server in servers])
        found[number] = LiveIndex(LocalVectorizer(VECTORS)).prepare(catalog)
    return found


def describe(index_of: dict[int, SearchIndex], requests: list[dict[str, Any]]) -> str:
    """What share of the needed tools is found, and for how many requests all of them."""
    recall = complete = flagged = 0.0
    for request in requests:
        matches = index_of[request["catalog"]].search(request["query"], FIRST)
        needed = set(request["relevant"])
        found = len(needed & {match.tool.id for match in matches})
        recall += found / len(needed) if needed else 0
        complete += found == len(needed)
        best = matches[0] if matches else None
        flagged += best is None or is_near_miss(request["query"], best.tool, best.score)
    count = len(requests)
    share = f"{100 * flagged / count:.1f}% flagged as probably not answerable"
    if not requests[0]["relevant"]:
        return f"{count} requests, {share}"
    return f"{count} requests, R@5 {100 * recall / count:.1f}, all {100 * complete / count:.1f}%, {share}"


def main() -> None:
    requests = records(REQUESTS)
    try:
        index_of = indexes(requests)
    except Missing as exc:
        raise SystemExit(str(exc)) from None
    for title, wanted in (("chosen on", True), ("only checked", False)):
        for kind in ("agent", "compound", "one", "missing"):
            rows = [
                r for r in requests if r["kind"] == kind and (r["catalog"] in CHOSEN_ON) == wanted
            ]
            say(f"{title:13}{kind:9} {describe(index_of, rows)}")


if __name__ == "__main__":
    main()
