"""`pegboard demo`: a client uses an example server with over a hundred tools, step by step."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from rich.table import Table

from pegboard.cli.output import JsonOption, err, line, out, print_json
from pegboard.core.json import JsonObject, compact
from pegboard.core.tools import Risk
from pegboard.errors import ConfigError
from pegboard.modes.mode import CALL_TOOL_BY_RISK
from pegboard.tokens import DEFAULT_TOKENIZER, count_tokens

if TYPE_CHECKING:
    from mcp import Client, StdioServerParameters

TASK = "file a bug report"
READ_BY_MODELS = ("name", "description", "inputSchema")


@dataclass(frozen=True, slots=True)
class Step:
    """One request, what the model reads of the answer, and its token cost."""

    title: str
    sent: str
    read: str
    tokens: int


@dataclass(slots=True)
class Tour:
    """The demo: its steps, and the cost of listing all tools instead."""

    tools: int = 0
    everything: int = 0
    steps: list[Step] = field(default_factory=list["Step"])

    def add(self, title: str, sent: str, read: str, tokens: int | None = None) -> None:
        self.steps.append(Step(title, sent, read, count_tokens(read) if tokens is None else tokens))

    @property
    def total(self) -> int:
        return sum(step.tokens for step in self.steps)


def demo(as_json: JsonOption = False) -> None:
    """Start an example server with over a hundred tools, use it, and show the cost of each step."""
    with err.status("Starting the example server on stdio ..."):
        tour = anyio.run(_tour)
    if as_json:
        print_json(_as_json(tour))
    else:
        _show(tour)


async def _tour() -> Tour:
    from mcp import Client

    tour = Tour()
    async with Client(_server()) as client:
        await _list(client, tour)
        found = await _search(client, tour)
        await _call(client, tour, found)
    return tour


async def _list(client: Client, tour: Tour) -> None:
    shown = [_as_read(t) for t in (await client.list_tools()).tools]
    whole = await _request(client, "tools/list", {"lazy": False})
    tour.tools = len(whole["tools"])
    tour.everything = sum(count_tokens(_part(t)) for t in whole["tools"])
    names = ", ".join(t["name"] for t in shown)
    tour.add("list", "tools/list", names, sum(count_tokens(t) for t in shown))


async def _search(client: Client, tour: Tour) -> str:
    answer = _text(await client.call_tool("search_tools", {"query": TASK, "limit": 5}))
    tour.add("search", f'search_tools("{TASK}", limit=5)', answer)
    return answer.split("(")[0]


async def _call(client: Client, tour: Tour, name: str) -> None:
    described = _text(await client.call_tool("describe_tools", {"names": [name]}))
    tour.add("describe (if needed)", f"describe_tools([{name!r}])", described)
    arguments, risk = await _example_call(client, name)
    through = CALL_TOOL_BY_RISK[risk]
    called = _text(await client.call_tool(through, {"name": name, "arguments": arguments}))
    tour.add("call", f"{through}({name!r}, {compact(arguments)})", called)


async def _example_call(client: Client, name: str) -> tuple[JsonObject, Risk]:
    """The arguments of the tool's first example, so that the call succeeds, and the tool's risk."""
    result = await client.call_tool(
        "describe_tools", {"names": [name]}, meta={"io.github.pegboard/structured": True}
    )
    tool = (result.structured_content or {})["tools"][0]
    examples = tool.get("examples") or [{"invocation": {}}]
    return examples[0]["invocation"], tool["risk"]


async def _request(client: Client, method: str, params: JsonObject) -> JsonObject:
    import mcp_types

    class Answer(mcp_types.Result):
        tools: list[JsonObject]

    request = mcp_types.Request[JsonObject, str](method=method, params=params)
    answer = await client.session.send_request(request, Answer)  # pyright: ignore[reportArgumentType] a method of ours
    return {"tools": answer.tools}


def _server() -> StdioServerParameters:
    from mcp import StdioServerParameters

    inside, beside = Path(__file__).parents[1], Path(__file__).parents[3]
    for folder, module in ((inside, "pegboard.examples.tracker"), (beside, "examples.tracker")):
        if (folder / "examples" / "tracker").is_dir():
            path = os.pathsep.join(filter(None, [str(beside), os.environ.get("PYTHONPATH")]))
            return StdioServerParameters(
                command=sys.executable,
                args=["-m", module],
                env={**os.environ, "PYTHONPATH": path, "PEGBOARD_MODE": "proxy"},
            )
    raise ConfigError("The example server is not installed: reinstall Pegboard.")


def _as_read(tool: Any) -> JsonObject:
    return _part(tool.model_dump(by_alias=True, mode="json", exclude_none=True))


def _part(entry: JsonObject) -> JsonObject:
    return {key: entry[key] for key in READ_BY_MODELS if key in entry}


def _text(result: Any) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


def _as_json(tour: Tour) -> JsonObject:
    return {
        "tokenizer": DEFAULT_TOKENIZER,
        "tools": tour.tools,
        "everything": tour.everything,
        "steps": [
            {"title": s.title, "sent": s.sent, "read": s.read, "tokens": s.tokens}
            for s in tour.steps
        ],
        "total": tour.total,
    }


def _show(tour: Tour) -> None:
    for step in tour.steps:
        out.print(line((step.title, "bold cyan"), f"  {step.sent}"))
        lines = step.read.split("\n")
        for text in lines[:7]:
            out.print(f"  {text}"[: out.width - 1], style="dim")
        if len(lines) > 7:
            out.print(f"  ... {len(lines) - 7} more lines", style="dim")
    table = Table("step", "tokens", box=None, header_style="bold", title_justify="left")
    table.columns[1].justify = "right"
    for step in tour.steps:
        table.add_row(step.title, f"{step.tokens:,}")
    table.add_row("total", f"{tour.total:,}", style="bold")
    table.add_row(f"listing all {tour.tools} tools instead", f"{tour.everything:,}")
    out.print()
    out.print(table)
    saved = 1 - tour.total / tour.everything
    gain = (f"\n{saved:.0%} saved", "bold green")
    out.print(line(gain, " on the first task. The list does not grow with the catalog."))
    out.print(
        f"Counted with {DEFAULT_TOKENIZER}: what a model reads of the list (name, description, "
        "inputSchema) and of each answer.",
        style="dim",
    )
