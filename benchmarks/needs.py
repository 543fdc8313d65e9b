"""How often are all tools that a request needs among the first five?

    python -m benchmarks.needs

Both files were written for this project. Their requests were not used for training. The servers were: of the
synthetic ones only the definitions, and of the real ones also other requests.

`held_out_servers.jsonl` has 107 synthetic servers, which form one catalog. Each tool has a request in
everyday words, a statement from which the need follows (`situation`), an agent's search (`agent`) and one of any
other form (`free`). Then there are requests for several tools (`compound`), and requests that no tool answers
(`missing`).

The requests in `written_needs.jsonl` were written for the tools of 238 real servers: short lists of
an agent's steps (`agent`), sentences with two or three needs (`compound`), single needs (`one`), and
requests that no tool of the server answers (`missing`). The servers form four catalogs. The rules
were tuned on the first two; the others are for validation.
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
from pegboard.core.tools import Catalog, Tool, constant_definition
from pegboard.embed.live_index import LiveIndex
from pegboard.embed.vectorizer import LocalVectorizer

REQUESTS = Path(__file__).with_name("written_needs.jsonl")
HELD_OUT = Path(__file__).with_name("held_out_servers.jsonl")
KINDS = ("everyday", "situation", "agent", "free")
TUNING_CATALOGS = (1, 2)
TOP_K = 5


def load_held_out_servers() -> tuple[SearchIndex, list[dict[str, Any]]]:
    """The index of the synthetic servers, and their requests."""
    tools: list[Tool] = []
    requests: list[dict[str, Any]] = []

    def add(kind: str, query: str, *relevant: str) -> None:
        requests.append({"catalog": 0, "kind": kind, "query": query, "relevant": relevant})

    for server in records(HELD_OUT):
        name = server["server"]
        for tool in server["tools"]:
            tools.append(_synthetic_tool(name, tool))
            for kind, query in zip(KINDS, tool["requests"], strict=True):
                add(kind, query, tools[-1].id)
        for request in server["compound"]:
            add("compound", request["query"], *(f"{name}::{tool}" for tool in request["tools"]))
        for query in server["missing"]:
            add("missing", query)
    return LiveIndex(LocalVectorizer(VECTORS)).prepare(Catalog(tools)), requests


def _synthetic_tool(server: str, entry: dict[str, Any]) -> Tool:
    properties = {
        name: {"type": "string", "description": text} if text else {"type": "string"}
        for name, text in entry["parameters"].items()
    }
    return Tool(
        entry["name"],
        constant_definition({"type": "object", "properties": properties}),
        id=f"{server}::{entry['name']}",
        server=server,
        description=entry["description"],
    )


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
    """Recall@5, the share of requests whose tools are all found, and the share that is flagged."""
    recall = complete = flagged = 0.0
    for request in requests:
        matches = index_of[request["catalog"]].search(request["query"], TOP_K)
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
    index, requests = load_held_out_servers()
    for kind in (*KINDS, "compound", "missing"):
        say(
            f"{'synthetic':13}{kind:9} {describe({0: index}, [r for r in requests if r['kind'] == kind])}"
        )
    requests = records(REQUESTS)
    try:
        index_of = indexes(requests)
    except Missing as exc:
        raise SystemExit(str(exc)) from None
    for title, wanted in (("tuning", True), ("validation", False)):
        for kind in ("agent", "compound", "one", "missing"):
            rows = [
                r
                for r in requests
                if r["kind"] == kind and (r["catalog"] in TUNING_CATALOGS) == wanted
            ]
            say(f"{title:13}{kind:9} {describe(index_of, rows)}")


if __name__ == "__main__":
    main()
