"""An SDK server in both eras for the calls question: `call_server.py [PORT]`; stdio without a port.

`search` answers at once, with its process id; `wait` answers after a tenth of a second.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import anyio
import mcp_types as t
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

WAIT = 0.1
SCHEMA = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "limit": {"type": "integer", "minimum": 1},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["query"],
}
READS = t.ToolAnnotations(read_only_hint=True)


async def list_tools(ctx: Any, params: Any) -> t.ListToolsResult:
    names = {"search": "Search the records.", "wait": "Wait for a tenth of a second."}
    return t.ListToolsResult(
        tools=[
            t.Tool(name=name, description=text, input_schema=SCHEMA, annotations=READS)
            for name, text in names.items()
        ]
    )


async def call_tool(ctx: Any, params: Any) -> t.CallToolResult:
    if params.name == "wait":
        await anyio.sleep(WAIT)
    asked = (params.arguments or {}).get("query")
    text = json.dumps({"query": asked, "hits": [f"hit {n}" for n in range(10)], "pid": os.getpid()})
    return t.CallToolResult(content=[t.TextContent(type="text", text=text)])


def make() -> Any:
    return Server(
        "calls",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=lambda name: SCHEMA,
    )


def main(port: str | None = None) -> None:
    server = make()
    if port is not None:
        import uvicorn

        app = server.streamable_http_app()
        uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="error")
        return

    async def run() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(run)


if __name__ == "__main__":
    main(*sys.argv[1:])
