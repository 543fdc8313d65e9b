"""A LangChain agent with all tools of a gateway, by `langchain-mcp-adapters`.

    pip install -r examples/requirements-langchain.txt    # in an environment of its own
    python -m examples.langchain_client MODEL "Which milestones are running late?"

The gateway is another process, so what it is made with and what the agent is made with do not have
to agree. One session is held for the whole task: without it the adapters would start a gateway for
every single call.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools

GATEWAY = ("pegboard", "serve", "--config", "examples/gateway.toml", "--mode", "proxy")


async def carry_out(model: Any, task: str, command: Sequence[str] = GATEWAY) -> list[Any]:
    """Have a model carry out a task; gives the messages of the whole conversation."""
    client = MultiServerMCPClient(
        {"pegboard": {"transport": "stdio", "command": command[0], "args": list(command[1:])}}
    )
    async with client.session("pegboard") as session:
        agent = create_agent(
            model,
            await load_mcp_tools(session),
            system_prompt="Search for a tool before you call one.",
        )
        answer = await agent.ainvoke({"messages": [{"role": "user", "content": task}]})
    return answer["messages"]


async def main(model: str, task: str) -> None:
    """Print what the model answers."""
    print((await carry_out(model, task))[-1].text)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
