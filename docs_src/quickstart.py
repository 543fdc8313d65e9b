"""A first server with two tools, listed in the mode that suits the client."""

from pegboard import Example, Pegboard

board = Pegboard("notes")
notes = board.category("notes", description="Short texts with a title")
_saved: dict[str, str] = {}


@notes.tool(examples=[Example("Save a note to buy milk", {"title": "todo", "text": "buy milk"})])
def save_note(title: str, text: str) -> str:
    """Save a note under its title.

    Args:
        title: The title to find it by.
        text: The text of the note.
    """
    _saved[title] = text
    return f"saved {title}"


@notes.tool(annotations={"readOnlyHint": True}, related=["save_note"])
def read_note(title: str) -> str:
    """Read a note by its title."""
    return _saved.get(title, "There is no note with this title.")


if __name__ == "__main__":
    board.run()  # stdio; board.run(http="127.0.0.1:8000") serves streamable HTTP
