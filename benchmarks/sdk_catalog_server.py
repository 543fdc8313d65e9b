"""The same as `catalog_server.py` with the official SDK, which most servers are made with.

What such a server takes to start is loading the SDK: about what `python -c "import mcp"` takes.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import anyio
import mcp_types as t
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

from catalog_server import listed, load, respond


def make(path: str, server: str) -> Server[Any]:
    tools = load(path, server)
    entries = [t.Tool.model_validate(listed(tool)) for tool in tools.values()]

    async def list_tools(ctx: Any, params: Any) -> t.ListToolsResult:
        return t.ListToolsResult(tools=entries)

    async def call_tool(ctx: Any, params: Any) -> t.CallToolResult:
        given = {"name": params.name, "arguments": params.arguments}
        answer = respond({"method": "tools/call", "params": given}, tools)
        return t.CallToolResult.model_validate(answer.get("result") or _failed(answer))

    return Server("catalog", version="1", on_list_tools=list_tools, on_call_tool=call_tool)


def _failed(answer: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": json.dumps(answer)}], "isError": True}


async def main(path: str, server: str) -> None:
    made = make(path, server)
    async with stdio_server() as (incoming, outgoing):
        await made.run(incoming, outgoing, made.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2])
