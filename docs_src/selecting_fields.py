"""A few fields of a record instead of all of them."""

import json
from typing import Any

import anyio
from mcp import Client

from pegboard import Pegboard, build_server

board = Pegboard("shop", mode="proxy")


@board.tool(annotations={"readOnlyHint": True})
def get_order(number: int) -> dict[str, Any]:
    """Read one order with all its details."""
    items = [{"sku": f"A-{n}", "count": n, "note": "packed by hand"} for n in range(1, 4)]
    return {
        "order": {"number": number, "state": "sent", "customer": {"name": "Ann"}, "items": items}
    }


async def main() -> None:
    async with Client(build_server(board)) as client:

        async def order(**how: Any) -> Any:
            call = {"name": "get_order", "arguments": {"number": 7}, **how}
            return (await client.call_tool("call_tool", call)).structured_content

        # Paths start at the root or inside the envelope, and apply to each item of a list.
        assert await order(include_fields=["number", "items[].sku"]) == {
            "order": {"number": 7, "items": [{"sku": "A-1"}, {"sku": "A-2"}, {"sku": "A-3"}]}
        }
        # A key selects everything below it.
        assert await order(include_fields=["customer"]) == {"order": {"customer": {"name": "Ann"}}}
        # An expression can compute; a result that is not an object is returned as `result`.
        assert await order(select="order.items[?count > `1`].sku") == {"result": ["A-2", "A-3"]}

        # In a direct call, the fields are among the arguments.
        result = await client.call_tool("get_order", {"number": 7, "include_fields": ["state"]})
        assert result.structured_content == {"order": {"state": "sent"}}
        assert json.loads(result.content[0].text) == result.structured_content


if __name__ == "__main__":
    anyio.run(main)
