"""Tools with metadata, listed briefly and described on demand."""

import anyio

from pegboard import Example, Pegboard
from pegboard.testing import connect

board = Pegboard("mail", mode="index")
mail = board.category("mail", description="Letters and who they are for")


@mail.tool(
    summary="Send a letter",
    examples=[Example("To Ada", {"to": "ada", "text": "Hello"}, "sent to ada")],
    related=["list_letters"],
)
def send_letter(to: str, text: str, urgent: bool = False) -> str:
    """Send a letter to somebody.

    Args:
        to: Whom it is for.
        text: What it says.
        urgent: Whether it goes today.
    """
    return f"sent to {to}"


@mail.tool(annotations={"readOnlyHint": True})
def list_letters() -> list[str]:
    """List the letters that were sent."""
    return []


async def main() -> None:
    board.check()  # examples are valid calls, related tools exist
    assert [t.name for t in board.tools(category="mail")] == ["list_letters", "send_letter"]
    [tool] = board.describe("send_letter")
    assert tool.summary == "Send a letter"
    assert tool.input_schema["properties"]["to"]["description"] == "Whom it is for."
    assert tool.examples[0].expected_output == "sent to ada"

    async with connect(board) as client:
        index = await client.call_tool("list_available_tools", {"category": "mail"})
        assert "Send a letter" in str(index.content)
        told = await client.call_tool("get_tool_description", {"tool_name": "send_letter"})
        assert "Whom it is for." in str(told.content)
        sent = await client.call_tool("send_letter", {"to": "ada", "text": "Hello"})  # by its name
        assert "sent to ada" in str(sent.content)


if __name__ == "__main__":
    anyio.run(main)
