"""The token cost of each mode, counted by using the mode as a model would.

For each mode the list is requested, and then the definitions of some tools, by the steps that a
model takes in that mode (search, describe, ...). The sample of tools is spread evenly over the
catalog, and each tool is searched for by its own summary.
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
from pegboard.measure.session_costs import DiscoveryCost
from pegboard.modes.instructions import build_instructions
from pegboard.modes.mode import View, ViewRequest
from pegboard.server.tool_methods import ToolMethods, ToolRequest
from pegboard.tokens import DEFAULT_TOKENIZER, count_entry_tokens, count_tokens, extract_prompt_part

SAMPLE = 10


@dataclass(frozen=True, slots=True)
class ModeCost:
    """The token cost of one mode."""

    mode: ModeName
    entries: int
    """The number of tools that it lists."""
    list: int
    """Tokens of its list."""
    instructions: int
    """Tokens of the instructions that come with it."""
    first_definition: int
    """Tokens read from the list to one tool's definition, on average."""
    finding: DiscoveryCost


async def measure_modes(
    board: Pegboard, *, tokenizer: str = DEFAULT_TOKENIZER, sample: int = SAMPLE
) -> dict[ModeName, ModeCost]:
    """The cost of every mode on a board."""
    # A profile hides tools, and what a client cannot see costs it nothing.
    catalog = (await board.view(whole=True)).catalog
    tools = sample_evenly(catalog.enabled, sample)
    costs: dict[ModeName, ModeCost] = {}
    for mode in MODES:
        entries = await list_entries(board, mode)
        listed = count_entry_tokens(entries, tokenizer)
        answers: list[list[int]] = []
        growth = 0
        for tool in tools:
            client = _SimulatedClient(board, mode)
            if mode == "stub":
                # The client fetches the definition and adds it to the list that it sends to the
                # model.
                growth += count_tokens(await client.describe(tool), tokenizer)
            steps = _discovery_steps(mode, tool, catalog)
            answers.append([count_tokens(await client.call(*step), tokenizer) for step in steps])
            if mode == "dynamic":
                # Tools that the search finds are then listed: the list itself grows.
                grown = count_entry_tokens(await client.list_entries(), tokenizer) - listed
                growth += max(grown, 0)
        finding = DiscoveryCost(
            tuple(sum(column) / len(tools) for column in zip(*answers, strict=True)),
            growth / max(len(tools), 1),
        )
        costs[mode] = ModeCost(
            mode=mode,
            entries=len(entries),
            list=listed,
            instructions=count_tokens(build_instructions(board.instructions, mode), tokenizer),
            first_definition=round(sum(finding.answers) + finding.growth),
            finding=finding,
        )
    return costs


async def count_list_tokens(
    board: Pegboard, mode: ModeName, *, tokenizer: str = DEFAULT_TOKENIZER
) -> int:
    """Tokens that a model reads of a mode's list."""
    return count_entry_tokens(await list_entries(board, mode), tokenizer)


async def list_entries(board: Pegboard, mode: ModeName) -> list[JsonObject]:
    """The entries of a mode's list."""
    return await _SimulatedClient(board, mode).list_entries()


def sample_evenly(tools: Sequence[Tool], count: int) -> list[Tool]:
    """`count` tools, spread evenly over the sequence, or all if there are fewer."""
    if len(tools) <= count:
        return list(tools)
    return [tools[index * len(tools) // count] for index in range(count)]


# --- the steps to a definition --------------------------------------------------------------------

Step = tuple[str, JsonObject]


def _discovery_steps(mode: ModeName, tool: Tool, catalog: Catalog) -> list[Step]:
    """The meta-tools that a model calls in a mode before it can call the tool."""
    query: JsonObject = {"query": tool.summary or tool.name.replace("_", " ")}
    group = group_name(tool)
    match mode:
        case "proxy":
            # The signature in the answer of the search is often enough: this is an upper bound.
            described: JsonObject = {"names": [catalog.address(tool)]}
            return [("search_tools", query), ("describe_tools", described)]
        case "dynamic" | "code":
            return [("search_tools", query)]
        case "index":
            listing: JsonObject = {"category": tool.category} if tool.category else {}
            return [
                ("list_available_tools", listing),
                ("get_tool_description", {"tool_name": catalog.address(tool)}),
            ]
        case "hierarchy":
            return [
                ("tools_list_categories", {}),
                ("tools_list_tools", {"category": group}),
                ("tools_get_schema", {"category": group, "tool": tool.name}),
            ]
        case _:
            return []


class _SimulatedClient:
    """One client in one mode, with its own session."""

    def __init__(self, board: Pegboard, mode: ModeName) -> None:
        self._answers = ToolMethods(_AnyModeBoard(board))
        # Only the legacy era has sessions, which the dynamic mode needs.
        self._caller = Caller(era="legacy", mode=mode)
        self._session = _SessionTools()

    async def list_entries(self) -> list[JsonObject]:
        """The complete list, over all pages."""
        entries: list[JsonObject] = []
        params: JsonObject = {}
        while True:
            page = await self._request("tools/list", params)
            entries += page["tools"]
            if "nextCursor" not in page:
                return entries
            params = {"cursor": page["nextCursor"]}

    async def call(self, name: str, arguments: JsonObject) -> str:
        """The text of a meta-tool's answer."""
        result = await self._request("tools/call", {"name": name, "arguments": arguments})
        return "\n".join(block.get("text", "") for block in result["content"])

    async def describe(self, tool: Tool) -> JsonObject:
        """The definition that a client fetches for a stub."""
        found = await self._request("tools/describe_batch", {"names": [tool.id]})
        if not found["tools"]:
            raise PegboardError(f"{tool.id} is listed but cannot be described.", tool=tool.id)
        schema = found["tools"][0]["schema"]
        return extract_prompt_part(schema)

    async def _request(self, method: str, params: JsonObject) -> JsonObject:
        request = ToolRequest(method, params, self._caller, session=self._session)
        answer = await self._answers.answer(request)
        if answer is None:  # not one of our methods; the protocol's own would answer it
            raise PegboardError(f"{method} is not answered.")
        return answer


class _SessionTools:
    """The enabled tools of a simulated session."""

    def __init__(self) -> None:
        self._ids: dict[str, None] = {}

    async def enabled(self) -> Collection[str]:
        return list(self._ids)

    async def enable(self, tool_ids: Sequence[str]) -> None:
        self._ids |= dict.fromkeys(tool_ids)

    async def used(self, tool_id: str) -> None: ...


class _AnyModeBoard:
    """A board whose mode is chosen by the caller, regardless of its configuration."""

    def __init__(self, board: Pegboard) -> None:
        self._board = board

    @property
    def options(self) -> Options:
        return replace(self._board.options, mode="auto", page_size=None)

    async def view(self, caller: Caller, **request: Unpack[ViewRequest]) -> View:
        view = await self._board.view(caller, **request)
        return replace(view, options=replace(view.options, mode="auto"))
