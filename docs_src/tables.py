"""Records as a table: the same data in fewer tokens, and how to get the original."""

from typing import Any

import anyio
from mcp import Client

from pegboard import Pegboard, build_server, count_tokens
from pegboard.core.results.table_format import decode_table

board = Pegboard("sales", mode="proxy")


@board.tool(annotations={"readOnlyHint": True})
def list_sales() -> list[dict[str, Any]]:
    """List the sales of a day."""
    return [{"id": n, "article": "lamp", "price": 12.5} for n in range(40)]


async def main() -> None:
    async with Client(build_server(board)) as client:
        call = {"name": "list_sales", "arguments": {}}
        table = (await client.call_tool("call_tool", call)).content[0].text
        raw = await client.call_tool("call_tool", {**call, "raw": True})

    assert table.startswith("[40]{id,article,price}:\n0,lamp,12.5\n")
    records = raw.structured_content["result"]
    assert decode_table(table) == records
    assert count_tokens(table) < 0.85 * count_tokens(records)


if __name__ == "__main__":
    anyio.run(main)
