"""Tools with metadata, listed briefly and described on demand."""

import anyio

from pegboard import Example, Pegboard
from pegboard.testing import connect

board = Pegboard("mail", mode="index")
mail = board.category("mail", description="Letters and their recipients")


@mail.tool(
    summary="Send a letter",
    examples=[Example("To Ada", {"to": "ada", "text": "Hello"}, "sent to ada")],
    related=["list_letters"],
)
def send_letter(to: str, text: str, urgent: bool = False) -> str:
    """Send a letter to somebody.

    Args:
        to: The recipient.
        text: The text of the letter.
        urgent: Whether to send it today.
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
    assert tool.input_schema["properties"]["to"]["description"] == "The recipient."
    assert tool.examples[0].expected_output == "sent to ada"

    async with connect(board) as client:
        index = await client.call_tool("list_available_tools", {"category": "mail"})
        assert "Send a letter" in str(index.content)
        description = await client.call_tool("get_tool_description", {"tool_name": "send_letter"})
        assert "The recipient." in str(description.content)
        sent = await client.call_tool("send_letter", {"to": "ada", "text": "Hello"})  # by name
        assert "sent to ada" in str(sent.content)


if __name__ == "__main__":
    anyio.run(main)
