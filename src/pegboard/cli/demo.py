"""`pegboard demo`: a client uses an example server with over a hundred tools, step by step."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from rich.table import Table

from pegboard.cli.output import JsonOption, err, line, out, print_json, shorten_line
from pegboard.core.json import JsonObject, compact
from pegboard.errors import ConfigError
from pegboard.modes.mode import CALL_TOOL_BY_RISK
from pegboard.tokens import DEFAULT_TOKENIZER, count_entry_tokens, count_tokens, extract_prompt_part

if TYPE_CHECKING:
    from mcp import StdioServerParameters

TASK = "file a bug report"
QUERIES = ["list projects", "list open issues of a project"]
PROGRAM = """
projects = (await list_projects())["projects"]
pages = await asyncio.gather(*[list_issues(project=p["key"]) for p in projects])
{
    p["key"]: dict(collections.Counter(i["assignee"] or "nobody" for i in page["issues"]))
    for p, page in zip(projects, pages)
}
""".strip()
"""How many open issues each member has in each project."""


@dataclass(frozen=True, slots=True)
class Step:
    """One request, what the model reads of the answer, and its token cost."""

    title: str
    sent: str
    read: str
    tokens: int

    def show(self) -> None:
        """Print the request, and enough of the answer to recognize it."""
        sent, *further = self.sent.split("\n")
        out.print(line((self.title, "bold cyan"), f"  {sent}"))
        for text in further:
            out.print(shorten_line(f"  {text}"))
        lines = self.read.split("\n")
        for text in lines[:7]:
            out.print(shorten_line(f"  {text}"), style="dim")
        if len(lines) > 7:
            out.print(f"  ... {len(lines) - 7} more lines", style="dim")


@dataclass(frozen=True, slots=True)
class ProgramTour:
    """One program in place of several calls, and what it read in place of the model."""

    search: Step
    run: Step
    calls: int
    tokens_inside: int

    def to_json(self) -> JsonObject:
        return asdict(self)

    def show(self) -> None:
        out.print(line(("\nThe same server in code mode", "bold")))
        self.search.show()
        self.run.show()
        inside = (f"about {self.tokens_inside:,} tokens", "bold green")
        out.print(
            line(f"The program made {self.calls} calls and read ", inside, " of results. ")
            + line(f"The model read {self.run.tokens:,}.")
        )


@dataclass(slots=True)
class Tour:
    """The demo: its steps, and the cost of listing all tools instead."""

    tools: int = 0
    everything: int = 0
    steps: list[Step] = field(default_factory=list["Step"])
    program: ProgramTour | None = None

    def add(self, title: str, sent: str, read: str, tokens: int | None = None) -> None:
        self.steps.append(Step(title, sent, read, count_tokens(read) if tokens is None else tokens))

    @property
    def total(self) -> int:
        return sum(step.tokens for step in self.steps)

    def to_json(self) -> JsonObject:
        return {
            "tokenizer": DEFAULT_TOKENIZER,
            "tools": self.tools,
            "everything": self.everything,
            "steps": [asdict(step) for step in self.steps],
            "total": self.total,
            "program": None if self.program is None else self.program.to_json(),
        }

    def show(self) -> None:
        for step in self.steps:
            step.show()
        table = Table("step", "tokens", box=None, header_style="bold", title_justify="left")
        table.columns[1].justify = "right"
        for step in self.steps:
            table.add_row(step.title, f"{step.tokens:,}")
        table.add_row("total", f"{self.total:,}", style="bold")
        table.add_row(f"listing all {self.tools} tools instead", f"{self.everything:,}")
        out.print()
        out.print(table)
        gain = (f"\n{1 - self.total / self.everything:.0%} saved", "bold green")
        out.print(line(gain, " on the first task. The list does not grow with the catalog."))
        out.print(
            f"Counted with {DEFAULT_TOKENIZER}: what a model reads of the list (name, description, "
            "inputSchema) and of each answer.",
            style="dim",
        )
        if self.program is not None:
            self.program.show()


def demo(as_json: JsonOption = False) -> None:
    """Start an example server with over a hundred tools, use it, and show the cost of each step."""
    with err.status("Starting the example server on stdio ..."):
        tour = anyio.run(run_tour)
    if as_json:
        print_json(tour.to_json())
    else:
        tour.show()


async def run_tour() -> Tour:
    """List, search, describe and call as a model would, through a real client."""
    import mcp_types
    from mcp import Client

    class EveryTool(mcp_types.Result):
        tools: list[JsonObject]

    tour = Tour()
    async with Client(example_server()) as client:
        listed = (await client.list_tools()).tools
        shown = [
            extract_prompt_part(tool.model_dump(by_alias=True, mode="json", exclude_none=True))
            for tool in listed
        ]
        names = ", ".join(entry["name"] for entry in shown)
        tour.add("list", "tools/list", names, sum(map(count_tokens, shown)))

        request = mcp_types.Request[JsonObject, str](method="tools/list", params={"lazy": False})
        whole = await client.session.send_request(request, EveryTool)  # pyright: ignore[reportArgumentType] a parameter of ours
        tour.tools = len(whole.tools)
        tour.everything = count_entry_tokens(whole.tools)

        found = _text(await client.call_tool("search_tools", {"query": TASK, "limit": 5}))
        tour.add("search", f'search_tools("{TASK}", limit=5)', found)
        name = found.split("(")[0]

        # It is not listed, so it goes through the call tool, as a model would do it.
        describe = {"name": "describe_tools", "arguments": {"names": [name]}}
        described = _text(await client.call_tool("call_tool", describe))
        tour.add("describe (if needed)", f"describe_tools([{name!r}])", described)

        # The tool's first example has arguments with which the call succeeds.
        details = await client.call_tool(
            "call_tool", describe, meta={"io.github.pegboard/structured": True}
        )
        tool = (details.structured_content or {})["tools"][0]
        arguments = (tool.get("examples") or [{"invocation": {}}])[0]["invocation"]
        call_tool = CALL_TOOL_BY_RISK[tool["risk"]]
        called = _text(await client.call_tool(call_tool, {"name": name, "arguments": arguments}))
        tour.add("call", f"{call_tool}({name!r}, {compact(arguments)})", called)
    if find_spec("pydantic_monty"):  # the extra `code`
        tour.program = await _run_program()
    return tour


async def _run_program() -> ProgramTour:
    """Search and run one program, as a model would in code mode."""
    from mcp import Client

    async with Client(example_server("code")) as client:
        found = _text(await client.call_tool("search_tools", {"queries": QUERIES}))
        result = await client.call_tool("run_code", {"code": PROGRAM})
    value, about = _text(result), (result.meta or {})["io.github.pegboard/run"]
    search = Step("search", f"search_tools({compact(QUERIES)})", found, count_tokens(found))
    run = Step("program", f"run_code\n{PROGRAM}", value, count_tokens(value))
    return ProgramTour(search, run, about["calls"], about["tokens_inside"])


def example_server(mode: str = "proxy") -> StdioServerParameters:
    """How the example server is started: from the installed package, or from a clone."""
    from mcp import StdioServerParameters

    # A wheel has the examples inside the package; a clone has them beside `src`.
    inside, beside = Path(__file__).parents[1], Path(__file__).parents[3]
    for folder, module in ((inside, "pegboard.examples.tracker"), (beside, "examples.tracker")):
        if (folder / "examples" / "tracker").is_dir():
            path = os.pathsep.join(filter(None, [str(beside), os.environ.get("PYTHONPATH")]))
            return StdioServerParameters(
                command=sys.executable,
                args=["-m", module],
                env={**os.environ, "PYTHONPATH": path, "PEGBOARD_MODE": mode},
            )
    raise ConfigError("The example server is not installed: reinstall Pegboard.")


def _text(result: Any) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")
