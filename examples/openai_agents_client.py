"""An agent of the OpenAI Agents SDK with all tools of a gateway.

    pip install -r examples/requirements-openai-agents.txt    # in an environment of its own
    python -m examples.openai_agents_client MODEL "Which milestones are running late?"

The gateway is another process, so what it is made with and what the agent is made with do not have
to agree. The agent is shown the few tools of the proxy mode, whatever stands behind it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from agents import Agent, Runner
from agents.mcp import MCPServerStdio

GATEWAY = ("pegboard", "serve", "--config", "examples/gateway.toml", "--mode", "proxy")


def gateway(command: Sequence[str] = GATEWAY) -> MCPServerStdio:
    """The gateway as the SDK starts it; a first call may have to start a server, so it waits."""
    return MCPServerStdio(
        params={"command": command[0], "args": list(command[1:])},
        name="pegboard",
        cache_tools_list=True,  # the list of the proxy mode never changes
        client_session_timeout_seconds=60,
    )


def build_agent(model: Any, server: MCPServerStdio) -> Agent[None]:
    """An agent that has the gateway's tools."""
    return Agent(
        name="assistant",
        model=model,
        instructions="Search for a tool before you call one.",
        mcp_servers=[server],
    )


async def main(model: str, task: str) -> None:
    """Have a model carry out a task."""
    async with gateway() as server:
        print((await Runner.run(build_agent(model, server), task)).final_output)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
