"""Tokens of the same results through us and through the peers, as JSON.

    PYTHONPATH=src:. python benchmarks/results_peers.py [--compressor PATH]

`--compressor` is the program of mcp-compressor; without it, only we and FastMCP are measured. The
results come from a server of the official SDK on stdio, as a client of it would get them. Over
4,000 tokens we keep a result and say what is in it, and `read_result` reads the rest; `pegboard,
all` is the whole of it in one text. FastMCP cuts what is over its limit, for good. `lost` is the
share of the values in a result that a model cannot get at any more: not in the text, nor, with us,
in what `read_result` gives.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastmcp import Client as FastClient
from fastmcp import FastMCP
from fastmcp.server.middleware.response_limiting import ResponseLimitingMiddleware
from mcp import Client, StdioServerParameters, stdio_client
from mcp.server import MCPServer

from benchmarks.results_data import listings
from pegboard.core.calls import LOCAL, Call, CallResult
from pegboard.core.reading import Reading
from pegboard.core.spill import SpillPolicy
from pegboard.core.tools import Tool, constant
from pegboard.dispatch.pipeline import compose
from pegboard.dispatch.spill import read_result, spill_layer
from pegboard.dispatch.tables import table_layer
from pegboard.store.memory import MemoryStore
from pegboard.tokens import DEFAULT_TOKENIZER, count_tokens

ROOT = Path(__file__).parent.parent
RESULTS = {f"{name}, {rows}": value for rows in (20, 400) for name, value in listings(rows).items()}
TOOL = Tool("sample", constant({"type": "object"}), risk="read")


def serve() -> None:
    server = MCPServer("samples")

    @server.tool(structured_output=False)
    def sample(name: str) -> str:
        """A result of that name."""
        value = RESULTS[name]
        return value if isinstance(value, str) else json.dumps(value, indent=2)

    server.run()


def backend() -> list[str]:
    return [sys.executable, str(Path(__file__).resolve()), "--serve"]


def parameters(command: list[str]) -> StdioServerParameters:
    paths = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    return StdioServerParameters(command=command[0], args=command[1:], env=os.environ | paths)


async def through(command: list[str], tool: str, wrap: bool) -> dict[str, str]:
    """The text of every result, through whatever the command starts."""
    found: dict[str, str] = {}
    async with Client(stdio_client(parameters(command))) as client:
        for name in RESULTS:
            arguments: dict[str, Any] = {"name": name}
            if wrap:
                arguments = {"tool_name": "sample", "tool_input": arguments}
            result = await client.call_tool(tool, arguments)
            found[name] = "\n".join(getattr(block, "text", "") for block in result.content)
    return found


async def ours(
    given: dict[str, str], budget: int | None, kept: dict[str, str] | None = None
) -> dict[str, str]:
    """What we send; with `kept`, that gets what can be read of the results that were kept back."""
    found: dict[str, str] = {}
    for name, text in given.items():

        async def run(call: Call, text: str = text) -> CallResult:
            return CallResult.text(text)

        store = MemoryStore()
        spill = spill_layer(
            store=store,
            clock=time.time,
            random=os.urandom,
            count=count_tokens,
            policy=SpillPolicy(tokens=budget),
        )
        handler = compose([spill, table_layer(count=count_tokens)], run)
        found[name] = (await handler(Call(TOOL, {}))).output
        if kept is not None:
            kept[name] = found[name] + await read_all(store, found[name])
    return found


async def read_all(store: MemoryStore, said: str, path: str | None = None) -> str:
    """Every page of a kept result, as `read_result` gives them, and of what a page shortened."""
    text, offset = "", 0
    while said.startswith('{"handle"'):
        page = await read_result(
            json.loads(said)["handle"],
            Reading(path=path, offset=offset),
            store=store,
            caller=LOCAL,
            clock=time.time,
            count=count_tokens,
        )
        text += json.dumps(page, ensure_ascii=False)
        for inner in page.get("shortened", ()):
            text += await read_all(store, said, inner)
        if "next" not in page:
            break
        offset = page["next"]["offset"]
    return text


def lost(value: Any, text: str) -> float:
    """The share of a result's values that a text does not have, in percent."""
    leaves = sorted(set(_leaves(value)))
    gone = sum(not any(form in text for form in (leaf, leaf.removesuffix(".0"))) for leaf in leaves)
    return round(100 * gone / len(leaves), 1)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)
    elif isinstance(value, str):
        yield from filter(None, value.split("\n"))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield json.dumps(value)


async def limited(given: dict[str, str]) -> dict[str, str]:
    """FastMCP with its response limit at about our budget: 4 characters a token."""
    server = FastMCP("samples", middleware=[ResponseLimitingMiddleware(max_size=16_000)])

    @server.tool(output_schema=None)
    def sample(name: str) -> str:
        return given[name]

    found: dict[str, str] = {}
    async with FastClient(server) as client:
        for name in given:
            result = await client.call_tool("sample", {"name": name}, raise_on_error=False)
            found[name] = "\n".join(getattr(block, "text", "") for block in result.content)
    return found


async def main(compressor: str | None) -> None:
    direct = await through(backend(), "sample", wrap=False)
    readable: dict[str, str] = {}
    texts = {
        "as sent": direct,
        "pegboard": await ours(direct, 4_000, readable),
        "pegboard, all": await ours(direct, None),
        "fastmcp": await limited(direct),
    }
    if compressor:
        for option in ("--toonify", "--shrinkfit"):
            command = [compressor, option, "-n", "samples", "--", *backend()]
            texts[f"mcp-compressor {option}"] = await through(
                command, "samples_invoke_tool", wrap=True
            )
    tokens = {
        name: {who: count_tokens(said[name]) for who, said in texts.items()} for name in RESULTS
    }
    texts["pegboard"] = readable
    losses = {
        name: {who: lost(value, said[name]) for who, said in texts.items()}
        for name, value in RESULTS.items()
    }
    told = {"tokenizer": DEFAULT_TOKENIZER, "tokens": tokens, "lost, %": losses}
    print(json.dumps(told, indent=2))


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--serve", action="store_true")
    options.add_argument("--compressor", default=os.environ.get("MCP_COMPRESSOR"))
    chosen = options.parse_args()
    if chosen.serve:
        serve()
    else:
        asyncio.run(main(chosen.compressor))
