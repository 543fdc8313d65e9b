"""Runs the example of LangChain with a scripted model; prints what it did as JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from examples.langchain_client import carry_out
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolCall, ToolMessage

shown: list[str] = []


class Scripted(GenericFakeChatModel):
    """LangChain's own fake, which also takes tools and remembers which."""

    def bind_tools(self, tools: Any, **_: Any) -> Scripted:
        shown.extend(tool.name for tool in tools if tool.name not in shown)
        return self


def asks(number: str, tool: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[ToolCall(name=tool, args=arguments, id=number)])


async def run(command: list[str]) -> None:
    script = [
        asks("1", "search_tools", query="list projects"),
        asks("2", "call_tool", name="tracker_list_projects"),
        asks("3", "call_tool", name="tracker_get_issue"),
        AIMessage("done"),
    ]
    model = Scripted(messages=iter(script))
    messages = await carry_out(model, "Which projects are there?", command)
    read = [message.text for message in messages if isinstance(message, ToolMessage)]
    print(json.dumps({"shown": shown, "read": read, "answer": messages[-1].text}))


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1:]))
