"""Programs in place of calls, with the `mcp` SDK: `python -m examples.code_client [KIND]`.

A model would write the programs; here they are fixed. KIND says how the person is asked before
anything is deleted:

    modern    a question through the client, in the current protocol (the default)
    legacy    the same in the protocol with sessions
    by-name   a client that cannot ask: it approves `run_destructive_code` by its name
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult

COUNT = """
issues = (await list_issues(status="any", limit=100))["issues"]
dict(collections.Counter(issue["status"] for issue in issues))
"""
COPY = """
for issue in ("WEB-1", "WEB-2"):
    await copy_attachment(attachment=1, to_issue=issue)
"""
CLEAN_UP = """
deleted = []
for group in (await find_duplicate_attachments())["groups"]:
    for copy in sorted(one["id"] for one in group["attachments"])[1:]:
        await delete_attachment(attachment=copy)
        deleted.append(copy)
deleted
"""
Approve = Callable[[str], Awaitable[bool]]


async def ask_in_terminal(question: str) -> bool:
    """Show what would be done, and wait for an answer."""
    print(question)
    return (await anyio.to_thread.run_sync(input, "Go on? [y/N] ")).strip().lower() == "y"


async def run_program(client: Client, tool: str, program: str, approve: Approve) -> str:
    """What a program returned; where it waits for consent and the client cannot ask, asks here."""
    result = await client.call_tool(tool, {"code": program.strip()})
    text = _text(result)
    waiting = (result.meta or {}).get("io.github.pegboard/run", {}).get("run")
    if waiting and await approve(text):
        return _text(await client.call_tool("run_destructive_code", {"run": waiting}))
    return text


async def main(kind: str = "modern", approve: Approve = ask_in_terminal) -> list[str]:
    """Run three programs: one reads, one writes, one deletes."""

    async def ask_person(context: Any, params: Any) -> ElicitResult:
        agreed = await approve(params.message)
        return ElicitResult(
            action="accept" if agreed else "decline", content={} if agreed else None
        )

    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "examples.tracker"],
        env={**os.environ, "PEGBOARD_MODE": "code"},
    )
    options: dict[str, Any] = {} if kind == "by-name" else {"elicitation_callback": ask_person}
    era = "legacy" if kind == "legacy" else "auto"
    async with Client(server, mode=era, **options) as client:
        found = _text(await client.call_tool("search_tools", {"queries": ["list issues"]}))
        return [
            found.splitlines()[0],
            await run_program(client, "run_code", COUNT, approve),
            await run_program(client, "run_write_code", COPY, approve),
            await run_program(client, "run_write_code", CLEAN_UP, approve),
        ]


def _text(result: Any) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


if __name__ == "__main__":
    chosen = sys.argv[1] if len(sys.argv) > 1 else "modern"
    print("\n".join(anyio.run(main, chosen, ask_in_terminal)))
