from typing import Any

import anyio

from pegboard import Pegboard

board = Pegboard("expenses", mode="code")
_claims = {
    n: {"id": n, "member": "ana" if n % 3 else "ben", "euros": 10 * n, "state": "open"}
    for n in range(1, 31)
}


@board.tool(annotations={"readOnlyHint": True})
def list_claims(member: str | None = None) -> list[dict[str, Any]]:
    """List expense claims."""
    return [claim for claim in _claims.values() if member in (None, claim["member"])]


@board.tool(annotations={"readOnlyHint": False, "destructiveHint": False})
def approve_claim(id: int) -> dict[str, Any]:
    """Approve a claim."""
    _claims[id]["state"] = "approved"
    return _claims[id]


@board.tool(annotations={"destructiveHint": True})
def delete_claim(id: int) -> dict[str, Any]:
    """Delete a claim."""
    return _claims.pop(id)


SUM_UP = """
claims = await list_claims()
totals = collections.Counter()
for claim in claims:
    totals[claim["member"]] += claim["euros"]
dict(totals)
"""
MISSPELLED = 'sum(claim["euros"] for claim in await list_claim())'
APPROVE = """
small = [claim for claim in await list_claims() if claim["euros"] <= 50]
for claim in small:
    await approve_claim(id=claim["id"])
len(small)
"""
DELETE = """
for claim in await list_claims(member="ben"):
    if claim["euros"] > 250:
        await delete_claim(id=claim["id"])
"""


async def main() -> None:
    result = await board.run_code(SUM_UP)
    assert result.structured == {"ana": 3000, "ben": 1650}

    result = await board.run_code(MISSPELLED)
    assert result.is_error
    assert result.structured["ran"] == "nothing"
    assert "list_claims(" in result.structured["message"]

    result = await board.run_code(APPROVE)  # it names a tool that writes
    assert result.structured["ran"] == "nothing"
    result = await board.run_code(APPROVE, write=True)
    assert result.structured == {"result": 5}

    asked: list[Any] = []

    def consent(question: Any) -> bool:
        asked.extend(question.calls)
        return True

    await board.run_code(DELETE, write=True, consent=consent)
    assert [arguments["id"] for _, arguments in asked] == [27, 30]
    assert len(_claims) == 28


if __name__ == "__main__":
    anyio.run(main)
