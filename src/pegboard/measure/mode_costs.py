"""What a model reads under each mode, asked of the modes themselves.

Each mode is asked for its list, and walked to the definition of some tools of the catalogue the way
a model would go. The tools are spread evenly over the catalogue and sought by their own summaries.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Unpack

from pegboard.board import Pegboard
from pegboard.core.calls import Caller
from pegboard.core.json import JsonObject
from pegboard.core.options import MODES, ModeName, Options
from pegboard.core.tools import Catalog, Tool, group_name
from pegboard.errors import PegboardError
from pegboard.measure.sessions import Finding
from pegboard.modes.mode import View, ViewRequest
from pegboard.server.tool_methods import Request, ToolMethods
from pegboard.tokens import DEFAULT_TOKENIZER, count_tokens

READ_BY_MODELS = ("name", "description", "inputSchema")
SAMPLE = 10


@dataclass(frozen=True, slots=True)
class ModeCost:
    """What one mode costs."""

    mode: ModeName
    entries: int
    """How many tools it lists."""
    list: int
    """Tokens of its list."""
    first_definition: int
    """Tokens read from the list to one tool's definition, on average."""
    finding: Finding


async def measure_modes(
    board: Pegboard, *, tokenizer: str = DEFAULT_TOKENIZER, sample: int = SAMPLE
) -> dict[ModeName, ModeCost]:
    """The cost of every mode of a board."""
    catalog = board.catalog
    tools = sample_evenly(catalog.enabled, sample)
    return {mode: await _mode_cost(board, mode, tools, tokenizer) for mode in MODES}


async def count_list_tokens(
    board: Pegboard, mode: ModeName, *, tokenizer: str = DEFAULT_TOKENIZER
) -> int:
    """Tokens of what a model reads of one mode's list."""
    return count_entry_tokens(await listed(board, mode), tokenizer)


async def listed(board: Pegboard, mode: ModeName) -> list[JsonObject]:
    """The entries of one mode's list."""
    return await _Walk(board, mode).entries()


def count_entry_tokens(entries: Sequence[JsonObject], tokenizer: str = DEFAULT_TOKENIZER) -> int:
    """Tokens of what a model reads of `tools/list` entries."""
    return sum(
        count_tokens({k: entry[k] for k in READ_BY_MODELS if k in entry}, tokenizer)
        for entry in entries
    )


def sample_evenly(tools: Sequence[Tool], count: int) -> list[Tool]:
    """So many tools, evenly over the sequence; all of a short one."""
    if len(tools) <= count:
        return list(tools)
    return [tools[index * len(tools) // count] for index in range(count)]


async def _mode_cost(
    board: Pegboard, mode: ModeName, tools: Sequence[Tool], tokenizer: str
) -> ModeCost:
    entries = await _Walk(board, mode).entries()
    listed = count_entry_tokens(entries, tokenizer)
    walks = [await _walked(board, mode, tool, listed, tokenizer) for tool in tools]
    finding = _mean(walks)
    return ModeCost(
        mode=mode,
        entries=len(entries),
        list=listed,
        first_definition=round(sum(finding.answers) + finding.growth),
        finding=finding,
    )


async def _walked(
    board: Pegboard, mode: ModeName, tool: Tool, listed: int, tokenizer: str
) -> Finding:
    """What it takes to find one tool."""
    walk = _Walk(board, mode)
    if mode == "eager":
        return Finding()
    if mode == "stub":  # its client fetches the definition and lists it
        return Finding(growth=count_tokens(await walk.described(tool), tokenizer))
    steps = _STEPS[mode](tool, board.catalog)
    answers = [count_tokens(await walk.called(*step), tokenizer) for step in steps]
    if mode == "dynamic":
        growth = count_entry_tokens(await walk.entries(), tokenizer) - listed
        return Finding(tuple(answers), max(growth, 0))
    return Finding(tuple(answers))


def _mean(findings: Sequence[Finding]) -> Finding:
    if not findings:
        return Finding()
    count = len(findings)
    columns = zip(*(f.answers for f in findings), strict=True)
    return Finding(
        answers=tuple(sum(column) / count for column in columns),
        growth=sum(f.growth for f in findings) / count,
    )


# --- the way to a definition ----------------------------------------------------------------------

Step = tuple[str, JsonObject]


def _query(tool: Tool) -> str:
    return tool.summary or tool.name.replace("_", " ")


def _by_search(tool: Tool, catalog: Catalog) -> list[Step]:
    """Search, then describe: the signature in the answer is often enough, so this is the most."""
    names = [catalog.address(tool)]
    return [("search_tools", {"query": _query(tool)}), ("describe_tools", {"names": names})]


def _by_activation(tool: Tool, catalog: Catalog) -> list[Step]:
    return [("search_tools", {"query": _query(tool)})]


def _by_index(tool: Tool, catalog: Catalog) -> list[Step]:
    listing: JsonObject = {"category": tool.category} if tool.category else {}
    return [
        ("list_available_tools", listing),
        ("get_tool_description", {"tool_name": catalog.address(tool)}),
    ]


def _by_hierarchy(tool: Tool, catalog: Catalog) -> list[Step]:
    group = group_name(tool)
    return [
        ("tools_list_categories", {}),
        ("tools_list_tools", {"category": group}),
        ("tools_get_schema", {"category": group, "tool": tool.name}),
    ]


_STEPS = {
    "proxy": _by_search,
    "dynamic": _by_activation,
    "index": _by_index,
    "hierarchy": _by_hierarchy,
}


class _Walk:
    """One client under one mode, with a session of its own."""

    def __init__(self, board: Pegboard, mode: ModeName) -> None:
        self._answers = ToolMethods(_Under(board))
        self._caller = Caller(era="legacy", mode=mode)
        self._session = _Enabled()

    async def entries(self) -> list[JsonObject]:
        """Its whole list, over all pages."""
        entries: list[JsonObject] = []
        params: JsonObject = {}
        while True:
            page = await self._ask("tools/list", params)
            entries += page["tools"]
            if "nextCursor" not in page:
                return entries
            params = {"cursor": page["nextCursor"]}

    async def called(self, name: str, arguments: JsonObject) -> str:
        """The text of a meta-tool's answer."""
        result = await self._ask("tools/call", {"name": name, "arguments": arguments})
        return "\n".join(block.get("text", "") for block in result["content"])

    async def described(self, tool: Tool) -> JsonObject:
        """A definition as a client reads it that was shown a stub."""
        found = await self._ask("tools/describe_batch", {"names": [tool.id]})
        if not found["tools"]:
            raise PegboardError(f"{tool.id} is listed and cannot be described.", tool=tool.id)
        schema = found["tools"][0]["schema"]
        return {key: schema[key] for key in READ_BY_MODELS if key in schema}

    async def _ask(self, method: str, params: JsonObject) -> JsonObject:
        request = Request(method, params, self._caller, session=self._session)
        answer = await self._answers.answer(request)
        if answer is None:
            raise PegboardError(f"{method} is not answered.")
        return answer


class _Enabled:
    """The enabled tools of a session that lasts for one walk."""

    def __init__(self) -> None:
        self._ids: dict[str, None] = {}

    async def enabled(self) -> Collection[str]:
        return list(self._ids)

    async def enable(self, tool_ids: Sequence[str]) -> None:
        self._ids |= dict.fromkeys(tool_ids)

    async def used(self, tool_id: str) -> None: ...


class _Under:
    """A board whose mode is left to the caller, whatever it is configured to."""

    def __init__(self, board: Pegboard) -> None:
        self._board = board

    @property
    def options(self) -> Options:
        return replace(self._board.options, mode="auto", page_size=None)

    async def view(self, caller: Caller, **asked: Unpack[ViewRequest]) -> View:
        view = await self._board.view(caller, **asked)
        return replace(view, options=replace(view.options, mode="auto"))
