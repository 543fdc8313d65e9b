"""A server on the SDK that keeps a table in memory, as an in-memory database does."""

from __future__ import annotations

import os

from mcp.server import MCPServer

server = MCPServer("table")
rows: dict[str, str] = {}


@server.tool()
def put(key: str, value: str) -> str:
    """Write a row."""
    rows[key] = value
    return str(os.getpid())


@server.tool()
def read() -> str:
    """Read all rows, with the id of the process."""
    return f"{os.getpid()} {sorted(rows.items())}"


if __name__ == "__main__":
    server.run()
