"""Lazy lists and field projection."""

import anyio
from pydantic import BaseModel

from pegboard import InvalidField, Pegboard, project, validate_fields
from pegboard.testing import connect


class Episode(BaseModel):
    id: int
    task: str
    outcome: str
    steps: list[str]


board = Pegboard("memory", mode="stub")


@board.tool
def get_episode(id: int) -> Episode:
    """Read one episode."""
    return Episode(id=id, task="paint", outcome="done", steps=["sand", "prime", "paint"])


async def main() -> None:
    result = await board.call("get_episode", {"id": 7}, include_fields=["id", "outcome"])
    assert result.output == {"id": 7, "outcome": "done"}

    [tool] = board.describe("get_episode")
    assert tool.output_fields == ("id", "task", "outcome", "steps")
    validate_fields(["id", "steps"], tool.output_schema)
    try:
        validate_fields(["color"], tool.output_schema)
    except InvalidField as exc:
        message = exc.message
    assert "color" in message

    async with connect(board) as client:  # every tool accepts `include_fields`
        arguments = {"id": 7, "include_fields": ["outcome"]}
        response = await client.call_tool("get_episode", arguments)
        assert response.structured_content == {"outcome": "done"}

    assert project({"items": [{"id": 1, "text": "x"}]}, ["items.id"]) == {"items": [{"id": 1}]}


if __name__ == "__main__":
    anyio.run(main)
