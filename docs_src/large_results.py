"""A result that is too large to send: the preview, and reading the rest."""

import json
from typing import Any

import anyio
from mcp import Client

from pegboard import Pegboard, build_server

board = Pegboard(
    "archive",
    mode="proxy",
    spill_tokens=2_000,  # larger results are stored; None sends all results in full
    spill_per_tool={"read_letter": None},
    spill_ttl=600.0,
)


@board.tool(annotations={"readOnlyHint": True})
def list_letters() -> list[dict[str, Any]]:
    """List all letters in the archive."""
    return [{"id": n, "subject": f"Letter {n}", "unread": n % 100 == 0} for n in range(3_000)]


@board.tool(annotations={"readOnlyHint": True})
def read_letter(id: int) -> str:
    """Read one letter."""
    return f"Dear reader, this is letter {id}. " * 500


async def main() -> None:
    async with Client(build_server(board)) as client:

        async def ask(tool: str, **arguments: Any) -> Any:
            return json.loads((await client.call_tool(tool, arguments)).content[0].text)

        notice = await ask("call_tool", name="list_letters", arguments={})
        assert notice["rows"] == 3_000
        assert set(notice["fields"]) == {"[].id", "[].subject", "[].unread"}
        assert notice["preview"][0] == {"id": 0, "subject": "Letter 0", "unread": True}
        handle = notice["handle"]

        page = await ask("read_result", handle=handle, offset=10, limit=2)
        assert [letter["id"] for letter in page["value"]] == [10, 11]
        assert page["next"] == {"offset": 12}

        unread = await ask("read_result", handle=handle, select="[?unread].id")
        assert unread["value"][:3] == [0, 100, 200]

        found = await ask("read_result", handle=handle, grep="Letter 2999")
        assert found["matches"][0]["at"] == "[2999]"


if __name__ == "__main__":
    anyio.run(main)
