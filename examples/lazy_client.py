"""A client's side of a lazy server: find, describe once, call: `python -m examples.lazy_client`.

    async with connect(server) as client:
        tools = LazyTools(client)
        name = (await tools.find("milestones that are late"))[0]
        result = await tools.call(name, {"project": "WEB"})

Definitions are fetched when a tool is first called and kept by name, several at once where they are
known to be needed. It works with any server that has the proxy mode, over any transport of the SDK.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import anyio
from mcp import Client, StdioServerParameters

STRUCTURED: Any = {"io.github.pegboard/structured": True}
_CALL_BY_RISK = {
    "read": "call_tool",
    "write": "call_write_tool",
    "destructive": "call_destructive_tool",
}


@dataclass
class LazyTools:
    """The tools behind a proxy mode, with the definitions seen so far."""

    client: Client
    schemas: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    fetched: int = 0
    """Definitions that were asked for over the wire."""

    async def find(self, task: str, limit: int = 5) -> list[str]:
        """Names of tools that fit a task, best first."""
        found = await self._meta("search_tools", {"query": task, "limit": limit})
        return [match["name"] for match in found["matches"]]

    async def learn(self, names: Iterable[str]) -> None:
        """Fetch the definitions that are not known yet, in one request."""
        missing = [name for name in dict.fromkeys(names) if name not in self.schemas]
        if missing:
            described = await self._meta("describe_tools", {"names": missing})
            self.schemas |= {tool["name"]: tool for tool in described["tools"]}
            self.fetched += len(described["tools"])

    async def call(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        """Call a tool through the call tool of its risk; its result as JSON, else as text.

        Raises:
            LookupError: There is no such tool.
            RuntimeError: The call failed; says what the server said.
        """
        await self.learn([name])
        if name not in self.schemas:
            raise LookupError(f"No tool is called {name!r}.")
        through = _CALL_BY_RISK[self.schemas[name].get("risk", "write")]
        given = {"name": name, "arguments": arguments or {}}
        result = await self.client.call_tool(through, given)
        text = "\n".join(block.text for block in result.content if block.type == "text")
        if result.is_error:
            raise RuntimeError(text)
        return result.structured_content if result.structured_content is not None else text

    async def _meta(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        result = await self.client.call_tool(name, arguments, meta=STRUCTURED)
        return result.structured_content or {}


async def main() -> None:
    """Use the example tracker as a program would that has never seen it."""
    command = [sys.executable, "-m", "examples.tracker"]
    server = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    async with Client(server) as client:
        tools = LazyTools(client)
        names = await tools.find("which milestones are running late", limit=3)
        print("found:", ", ".join(names))
        await tools.learn(names)
        print("list_projects ->", await tools.call("list_projects"))
        print(f"{tools.fetched} definitions fetched for {len(tools.schemas)} tools known")


if __name__ == "__main__":
    anyio.run(main)
