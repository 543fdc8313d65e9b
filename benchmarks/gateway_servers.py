"""Servers for the gateway benchmarks: `python gateway_servers.py NAME COUNT` is one, on stdio.

It starts in milliseconds and speaks the handshake era without the SDK, so that what is measured is
the gateway.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = str(Path(__file__).resolve())
NOUNS = ("issue", "invoice", "branch", "customer", "ticket", "page", "build", "image", "alert")
VERBS = ("create", "list", "update", "delete", "search", "export", "archive", "restore")


def tools(name: str, count: int) -> list[dict[str, Any]]:
    """Tools as real servers have them: a paragraph, four parameters, a nested one."""
    return [tool(name, number) for number in range(count)]


def tool(name: str, number: int) -> dict[str, Any]:
    verb, noun = VERBS[number % len(VERBS)], NOUNS[number // len(VERBS) % len(NOUNS)]
    return {
        "name": f"{verb}_{noun}_{number}",
        "description": f"{verb.title()} one {noun} of {name}. The {noun} is found by its id within "
        f"the given project, and fields that are not given keep the value that they have. "
        f"Returns the {noun} as it is afterwards, with its history.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "project": {"type": "string", "description": f"The project of the {noun}."},
                "id": {"type": "integer", "description": f"Which {noun}.", "minimum": 1},
                "state": {"type": "string", "enum": ["open", "closed", "all"], "default": "open"},
                "filter": {
                    "type": "object",
                    "properties": {
                        "author": {"type": "string", "description": "Login of the author."},
                        "since": {"type": "string", "format": "date-time"},
                    },
                },
            },
            "required": ["project"],
        },
    }


def configuration(servers: int, count: int) -> dict[str, Any]:
    """An `mcpServers` file with so many servers of so many tools."""
    return {
        "mcpServers": {
            f"server{number}": {
                "command": sys.executable,
                "args": ["-S", HERE, f"server{number}", str(count)],
            }
            for number in range(servers)
        }
    }


def serve(name: str, count: int) -> None:
    listed = tools(name, count)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        answer = {"jsonrpc": "2.0", "id": message["id"], **respond(message, name, listed)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def respond(message: dict[str, Any], name: str, listed: list[dict[str, Any]]) -> dict[str, Any]:
    match message["method"]:
        case "initialize":
            result: dict[str, Any] = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": name, "version": "1"},
            }
        case "tools/list":
            result = {"tools": listed}
        case "tools/call":
            result = {"content": [{"type": "text", "text": message["params"]["name"]}]}
        case _:
            return {"error": {"code": -32601, "message": "Method not found"}}
    return {"result": result}


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
