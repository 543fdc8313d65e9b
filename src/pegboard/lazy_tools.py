"""`LazyTools`: the client's side of a lazy server, for programs that call tools themselves.

    async with Client("http://127.0.0.1:8000/mcp") as client:
        tools = LazyTools(client)
        best, *_ = await tools.find("milestones that are late")
        await tools.call(best.name, {"project": "WEB"})

No definition is fetched before it is needed, and each is fetched once. What a server offers decides
how it is used:

| the server has | definitions come from | calls are made |
|---|---|---|
| `tools/describe`, as every board and gateway | `tools/describe` | by name |
| the tools of the `proxy` mode, behind another gateway | `describe_tools` | by a call tool |
| neither | `tools/list` | by name |
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pegboard.core.json import Json, JsonObject
from pegboard.errors import ToolError, ToolNotFound

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult

EXTENSION = "io.github.pegboard/lazy-tools"
_STRUCTURED: Any = {"io.github.pegboard/structured": True}
_CALL_TOOLS = {
    "read": "call_tool",
    "write": "call_write_tool",
    "destructive": "call_destructive_tool",
}
_MAX_NAMES = 200
"""Names that one `tools/describe` takes."""

Way: TypeAlias = Literal["describe", "proxy", "plain"]


@dataclass(frozen=True, slots=True)
class FoundTool:
    """A tool that fits a task."""

    name: str
    summary: str = ""
    signature: str | None = None
    risk: str | None = None


class LazyTools:
    """The tools of one server, and the definitions that were fetched so far.

    Args:
        client: A connected client of the `mcp` package.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._way: Way | None = None
        self._meta_tools: frozenset[str] = frozenset()
        self._listed: list[FoundTool] | None = None
        self.definitions: dict[str, JsonObject] = {}
        """The definitions that were fetched, by name."""

    async def find(self, task: str, limit: int = 5) -> list[FoundTool]:
        """Tools that fit a task, best first.

        The server searches, if it can. Otherwise, tools that have words of the task in their name
        or summary are found.
        """
        await self._prepare()
        if "search_tools" in self._meta_tools:
            found = await self._ask_meta_tool("search_tools", {"query": task, "limit": limit})
            return [_found_tool(match) for match in found.get("matches", ())]
        wanted, tools = _words(task), await self.list()
        scored = [(len(wanted & _words(f"{tool.name} {tool.summary}")), tool) for tool in tools]
        best = sorted(scored, key=lambda one: -one[0])
        return [tool for score, tool in best if score][:limit]

    async def list(self) -> list[FoundTool]:
        """All tools with their summaries; a server in proxy mode behind a gateway has no list."""
        await self._prepare()
        if self._listed is None:
            listed = await self._request("tools/list", {"lazy": True})
            self._listed = [_found_tool(entry) for entry in listed["tools"]]
        return self._listed

    async def learn(self, names: Iterable[str]) -> None:
        """Fetch definitions that are not known yet, many at once.

        Raises:
            ToolNotFound: The server has no tool of one of these names.
        """
        await self._prepare()
        # Each once and in order, in as few requests as the server allows.
        missing = [name for name in dict.fromkeys(names) if name not in self.definitions]
        for start in range(0, len(missing), _MAX_NAMES):
            batch = missing[start : start + _MAX_NAMES]
            if self._way == "proxy":
                answer = await self._ask_meta_tool("describe_tools", {"names": batch})
            elif self._way == "describe":
                from mcp.shared.exceptions import MCPError

                try:
                    answer = await self._request("tools/describe", {"names": batch})
                except MCPError as exc:
                    data: Any = exc.error.data
                    unknown = data.get("unknownNames") if isinstance(data, dict) else None
                    if not unknown:
                        raise
                    raise ToolNotFound(str(unknown[0])) from exc
            else:
                break  # they were all in the list
            found = {str(entry["name"]): entry for entry in answer.get("tools", ())}
            self.definitions |= {name: found[name] for name in batch if name in found}
        for name in missing:
            if name not in self.definitions:
                raise ToolNotFound(name)

    async def describe(self, name: str) -> JsonObject:
        """The definition of one tool, with its `inputSchema`; fetched unless it is known.

        Raises:
            ToolNotFound: The server has no such tool.
        """
        await self.learn([name])
        return self.definitions[name]

    async def call(self, name: str, arguments: JsonObject | None = None) -> Json:
        """Call a tool; its structured result, the JSON in its text, or its text.

        Raises:
            ToolNotFound: The server has no such tool.
            ToolError: The call failed; the message is the server's.
        """
        given = arguments or {}
        definition = await self.describe(name)
        if self._way == "proxy":
            through = _CALL_TOOLS[definition.get("risk", "write")]
            # A server may have one call tool for all risks.
            through = through if through in self._meta_tools else "call_tool"
            call = {"name": name, "arguments": given}
            result = await self._client.call_tool(through, call, meta=_STRUCTURED)
        else:
            result = await self._client.call_tool(name, given)
        return _result_value(name, result)

    # How the server is used --------------------------------------------------------------------

    async def _prepare(self) -> None:
        """Find out once what the server offers."""
        if self._way is not None:
            return
        capabilities = self._client.server_capabilities
        offered = {**(capabilities.extensions or {}), **(capabilities.experimental or {})}
        listed = (await self._client.list_tools()).tools
        names = frozenset(tool.name for tool in listed)
        # In order of the cost of a definition: our own method, the meta-tool, the whole list.
        if EXTENSION in offered:
            self._way, self._meta_tools = "describe", names & {"search_tools"}
        # `describe_tools` works although it is not listed: models do not need it.
        elif {"search_tools", "call_tool"} <= names:
            self._way, self._meta_tools = "proxy", names
        else:
            self._way = "plain"
            entries = [tool.model_dump(by_alias=True, exclude_none=True) for tool in listed]
            self.definitions = {entry["name"]: entry for entry in entries}
            self._listed = [_found_tool(entry) for entry in entries]

    async def _ask_meta_tool(self, name: str, arguments: JsonObject) -> JsonObject:
        result = await self._client.call_tool(name, arguments, meta=_STRUCTURED)
        value = _result_value(name, result)
        return value if isinstance(value, dict) else {}

    async def _request(self, method: str, params: JsonObject) -> JsonObject:
        from mcp.types import Request
        from pydantic import TypeAdapter

        request = Request[dict[str, Any], str](method=method, params=params)
        answer: TypeAdapter[Any] = TypeAdapter(dict[str, Any])
        return await self._client.session.send_request(request, answer)


def _found_tool(entry: JsonObject) -> FoundTool:
    summary = str(entry.get("summary") or entry.get("description") or "")
    return FoundTool(
        str(entry["name"]),
        summary.strip().partition("\n")[0],
        entry.get("signature"),
        entry.get("risk"),
    )


def _result_value(name: str, result: CallToolResult) -> Json:
    texts = [block.text for block in result.content if block.type == "text"]
    text = "\n".join(texts)
    if result.is_error:
        raise ToolError(text or f"{name} failed without a message.", tool=name)
    if result.structured_content is not None:
        return result.structured_content
    if len(texts) == 1:
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def _words(text: str) -> set[str]:
    words = re.findall(r"[a-z0-9]+", text.lower())
    return {word.removesuffix("s") for word in words if len(word) > 2}
