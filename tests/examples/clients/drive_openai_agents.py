"""Runs the example of the OpenAI Agents SDK with a scripted model; prints what it did as JSON."""

from __future__ import annotations

import asyncio
import json
import sys

from agents import Runner, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call
from examples.openai_agents_client import build_agent, gateway


async def run(command: list[str]) -> None:
    model = ScriptedModel(
        [
            [function_call("search_tools", {"queries": ["list projects"]}, call_id="1")],
            [function_call("call_tool", {"name": "tracker_list_projects"}, call_id="2")],
            [function_call("call_tool", {"name": "tracker_get_issue"}, call_id="3")],
            [assistant_message("done")],
        ]
    )
    async with gateway(command) as server:
        result = await Runner.run(build_agent(model, server), "Which projects are there?")
    model.assert_complete()
    read = [item.output for item in result.new_items if item.type == "tool_call_output_item"]
    shown = [tool.name for tool in model.calls[0].tools]
    print(json.dumps({"shown": shown, "read": list(map(str, read)), "answer": result.final_output}))


if __name__ == "__main__":
    set_tracing_disabled(True)
    asyncio.run(run(sys.argv[1:]))
