"""A program that uses a lazy server without loading its catalog: `python -m examples.lazy_client`.

`LazyTools` finds a tool by what it does, fetches its definition once, and calls it.
"""

from __future__ import annotations

import os
import sys

import anyio
from mcp import Client, StdioServerParameters

from pegboard import LazyTools


async def main() -> None:
    """Use the example tracker as a program would that has never seen it."""
    command = [sys.executable, "-m", "examples.tracker"]
    server = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    async with Client(server) as client:
        tools = LazyTools(client)
        found = await tools.find("which milestones are running late", limit=3)
        print("found:", ", ".join(tool.name for tool in found))
        print("list_projects ->", await tools.call("list_projects"))
        print(f"{len(tools.definitions)} of {len(await tools.list())} definitions were fetched")


if __name__ == "__main__":
    anyio.run(main)
