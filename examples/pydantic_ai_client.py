"""A Pydantic AI agent with all tools of a gateway: `python -m examples.pydantic_ai_client MODEL`.

Needs `pydantic-ai-slim[mcp]` and the key of a model. The agent is shown the few tools of the proxy
mode, whatever stands behind it, and finds the rest by searching.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import anyio
from fastmcp.client import Client
from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset

TASK = "Which milestones are running late?"


def tracker() -> MCPToolset[Any]:
    """The example tracker; put your own `pegboard serve --config FILE` here."""
    transport = StdioTransport(sys.executable, ["-m", "examples.tracker"], env=dict(os.environ))
    return MCPToolset(Client(transport))


def build_agent(model: Any) -> Agent[None, str]:
    """An agent that has the tracker's tools."""
    return Agent(model, toolsets=[tracker()], instructions="Search for a tool before you call one.")


async def main(model: str) -> None:
    """Have a model answer a question about the tracker."""
    agent = build_agent(model)
    async with agent:
        print((await agent.run(TASK)).output)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
