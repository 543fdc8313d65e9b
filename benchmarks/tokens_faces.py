"""What each face costs on real catalogues, against listing everything, as a model reads it.

Catalogues come from the folder in `PEGBOARD_BENCH` (JSON lines of tools, `benchmarks/data.py`) and
from the examples. Figures: the list, the list with one search answer of five signatures, savings.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import anyio

from benchmarks.data import bench_folder
from pegboard import Pegboard, count_tokens
from pegboard.core.calls import Caller
from pegboard.core.options import FACES
from pegboard.server.answers import Answers, Request

QUERIES = (
    "create an issue",
    "find a file by its name",
    "who is available tomorrow",
    "delete old records",
    "send a message to the team",
    "show me the latest changes",
)
READ = ("name", "description", "inputSchema")


def main() -> dict[str, Any]:
    return {"tokenizer": "o200k_base", "catalogues": anyio.run(_all)}


async def _all() -> dict[str, Any]:
    boards = {name: lambda p=path, **o: Pegboard.from_catalog(p, **o) for name, path in _files()}
    figures = {name: await _figures(make) for name, make in boards.items()}
    from examples.memory import build_board as memory
    from examples.tracker import build_board as tracker

    for name, board in (("tracker (152)", tracker()), ("memory (26)", memory())):
        figures[name] = await _faces_of(board)
    return figures


def _files() -> list[tuple[str, Path]]:
    folder = bench_folder()
    if folder is None:
        return []
    names = ["sets/mcpproxy_golden/tools", "sets/azure_mcp/tools", "sets/dust_mcp/tools",
             "catalogs/projects_470", "catalogs/toucan_5190"]  # fmt: skip
    return [(n.removesuffix("/tools").split("/")[-1], folder / f"{n}.jsonl") for n in names]


async def _figures(make: Any) -> dict[str, Any]:
    plain = make(face="proxy", fan_out=False, spill_tokens=None)
    listing = await _list_tokens(plain)
    answers = [await _search_tokens(plain, q) for q in QUERIES]
    return {
        **await _faces_of(make()),
        "proxy_without_extras": listing,
        "list_and_search": {
            "median": listing + statistics.median(answers),
            "largest": listing + max(answers),
        },
    }


async def _faces_of(board: Pegboard) -> dict[str, Any]:
    everything = sum(count_tokens(_part(t.wire())) for t in board.tools())
    faces: dict[str, Any] = {}
    for face in FACES:
        board.options = type(board.options)(
            **{
                **{f: getattr(board.options, f) for f in board.options.__slots__},
                "face": face,
                "pins": (),
            }
        )
        tokens = await _list_tokens(board, era="legacy")
        if face == "index":
            tokens += await _call_tokens(board, "list_available_tools", {})
        faces[face] = {"tokens": tokens, "saved": round(1 - tokens / everything, 4)}
    return {"tools": len(board.tools()), "everything": everything, "faces": faces}


async def _list_tokens(board: Pegboard, era: Any = "modern") -> int:
    result = await Answers(board).answer(Request("tools/list", {}, Caller(era=era)))
    assert result is not None
    return sum(count_tokens(_part(entry)) for entry in result["tools"])


async def _search_tokens(board: Pegboard, query: str) -> int:
    return await _call_tokens(board, "search_tools", {"query": query, "limit": 5})


async def _call_tokens(board: Pegboard, name: str, arguments: dict[str, Any]) -> int:
    params = {"name": name, "arguments": arguments}
    result = await Answers(board).answer(Request("tools/call", params, Caller(era="legacy")))
    assert result is not None
    assert not result.get("isError"), result
    return sum(count_tokens(block["text"]) for block in result["content"])


def _part(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: entry[key] for key in READ if key in entry}


if __name__ == "__main__":
    import json

    print(json.dumps(main(), indent=2))
