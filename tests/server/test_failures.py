"""Failures of tools with an output schema: every client must still be able to read them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic import BaseModel, ConfigDict
from tests.conformance.clients import Answer, Era, Job, play_python, play_typescript, served
from tests.conformance.scenarios import LISTING, call

from pegboard import Pegboard, ToolError
from pegboard.server.serving import build_server

STEPS = {
    "list": LISTING,
    "clashing": call("job_status", number=1),
    "strict": call("job_owner", number=1),
    "map": call("job_counts", number=1),
    "invalid": call("job_owner", number="one"),
}


class Status(BaseModel):
    """An answer with a field of the name that our errors have, and of another type."""

    state: str
    error: str | None = None


class Owner(BaseModel):
    """An answer that forbids every other field."""

    model_config = ConfigDict(extra="forbid")
    name: str


def jobs() -> Pegboard:
    board = Pegboard("jobs", mode="eager")

    @board.tool
    def job_status(number: int) -> Status:
        raise ToolError("There is no such job.")

    @board.tool
    def job_owner(number: int) -> Owner:
        raise ToolError("There is no such job.")

    @board.tool
    def job_counts(number: int) -> dict[str, int]:
        raise ToolError("There is no such job.")

    return board


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(jobs().asgi()) as address:
        yield f"{address}/mcp"


CLIENTS: list[tuple[str, Era]] = [
    ("1", "legacy"),
    ("2", "legacy"),
    ("2", "modern"),
    ("python", "legacy"),
    ("python", "modern"),
]


@pytest.mark.parametrize(("client", "era"), CLIENTS)
def test_a_failure_is_read_whatever_output_was_promised(url: str, client: str, era: Era) -> None:
    if client == "python":
        told = play_python(url, era, STEPS)
    else:
        told = play_typescript("1" if client == "1" else "2", [Job({"url": url}, era, STEPS)])[0]
    assert len(told["list"].names) == 3
    for key in ("clashing", "strict", "map"):
        assert _text(told[key]) == "There is no such job.", key
    assert "`number` must be int" in _text(told["invalid"])


def test_the_data_of_a_failure_is_left_out_only_where_it_would_be_refused(url: str) -> None:
    told = play_python(url, "modern", STEPS)
    assert told["strict"].mendable["kind"] == "tool_error"
    for key in ("clashing", "map"):
        assert "structuredContent" not in (told[key].result or {})


def _text(answer: Answer) -> str:
    assert answer.result is not None, answer.error
    assert answer.result["isError"] is True
    return answer.result["content"][0]["text"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_tool_without_parameters_refuses_those_that_it_does_not_have(era: Era) -> None:
    """Unknown parameters are reported, never silently dropped."""
    board = Pegboard("bell", mode="eager")

    @board.tool
    def ring() -> str:
        return "ding"

    told = play_python(
        build_server(board, environ={}),
        era,
        {"plain": call("ring"), "extra": call("ring", loud=True)},
    )
    assert told["plain"].text == "ding"
    assert "loud" in told["extra"].mendable["message"]
