"""An MCP server on stdio with the tools of a catalog: `catalog_server.py FILE [SERVER]`.

It starts in milliseconds, without the SDK, and answers every call with what arrived, so that a
benchmark can check that the right tool was really called with the right arguments:
`{"called": "server/tool", "arguments": {...}}`.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def load(path: str, server: str | None) -> dict[str, dict[str, Any]]:
    with open(path, encoding="utf-8") as lines:
        tools = [json.loads(line) for line in lines]
    return {t["name"]: t for t in tools if server is None or t.get("server") == server}


def listed(tool: dict[str, Any]) -> dict[str, Any]:
    kept = {key: tool[key] for key in ("name", "description", "annotations") if tool.get(key)}
    return {**kept, "inputSchema": tool.get("inputSchema") or {"type": "object"}}


def respond(message: dict[str, Any], tools: dict[str, dict[str, Any]]) -> dict[str, Any]:
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        info = {"name": "catalog", "version": "1"}
        answer = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
        return {"result": {**answer, "serverInfo": info}}
    if method == "tools/list":
        return {"result": {"tools": [listed(tool) for tool in tools.values()]}}
    if method == "ping":
        return {"result": {}}
    if method == "tools/call" and params.get("name") in tools:
        tool = tools[params["name"]]
        name = f"{tool.get('server') or ''}/{tool['name']}"
        echo = {"called": name, "arguments": params.get("arguments") or {}}
        return {"result": {"content": [{"type": "text", "text": json.dumps(echo)}]}}
    return {"error": {"code": -32601, "message": f"Method not found: {method}"}}


def main(path: str, server: str | None = None) -> None:
    tools = load(path, server)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        answer = {"jsonrpc": "2.0", "id": message["id"], **respond(message, tools)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
