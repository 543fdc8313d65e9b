"""The first server: two tools, shown through whatever mode suits the client."""

from pegboard import Example, Pegboard

board = Pegboard("notes")
notes = board.category("notes", description="Short texts with a title")
_kept: dict[str, str] = {}


@notes.tool(examples=[Example("Keep a title and a text", {"title": "todo", "text": "buy milk"})])
def keep_note(title: str, text: str) -> str:
    """Keep a note under its title.

    Args:
        title: What to find it by.
        text: The note itself.
    """
    _kept[title] = text
    return f"kept {title}"


@notes.tool(annotations={"readOnlyHint": True}, related=["keep_note"])
def read_note(title: str) -> str:
    """Read a note by its title."""
    return _kept.get(title, "there is no such note")


if __name__ == "__main__":
    board.run()  # stdio; board.run(http="127.0.0.1:8000") serves streamable HTTP
