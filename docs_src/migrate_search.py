"""A search that enables the tools it finds."""

import anyio

from pegboard import Pegboard
from pegboard.testing import connect

board = Pegboard("tracker", mode="dynamic", pins=["whoami"], session_cap=40)
issues = board.category("issues", description="Bugs and tasks")


@board.tool(annotations={"readOnlyHint": True})
def whoami() -> str:
    """Return the name of the current user."""
    return "ada"


@issues.tool(aliases=["file a bug"])
def create_issue(title: str) -> str:
    """Create an issue."""
    return f"created {title}"


@issues.tool(annotations={"readOnlyHint": True})
def list_issues() -> list[str]:
    """List all issues."""
    return ["Door does not open"]


async def main() -> None:
    best = board.search("file a bug")[0]
    assert best.tool.name == "create_issue"
    assert best.why  # why it matches
    result = await board.call("create_issue", {"title": "Lamp is dark"})  # works without a search
    assert result.output == {"result": "created Lamp is dark"}

    async with connect(board, era="legacy") as client:

        async def listed() -> set[str]:
            return {tool.name for tool in (await client.list_tools()).tools}

        assert await listed() == {"whoami", "search_tools", "call_tool"}
        await client.call_tool("search_tools", {"query": "file a bug"})
        assert "create_issue" in await listed()  # enabled, and the client was notified

        old = {"toolName": "list_issues", "args": {}}  # the earlier meta-tool still works
        assert "Door" in str((await client.call_tool("invoke_tool", old)).content)


if __name__ == "__main__":
    anyio.run(main)
