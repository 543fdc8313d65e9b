"""The history of calls on the dashboard: arguments, errors, refused and unknown calls."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.boards import office_board
from tests.dashboard.boards import ada_or_bob, visit

from pegboard import Pegboard
from pegboard.core.calls import Caller
from pegboard.core.redaction import Redactor
from pegboard.errors import PegboardError
from pegboard.modes.mode import find_tool, record_rejection

ADA, BOB = {"Authorization": "Bearer ada-key"}, {"Authorization": "Bearer bob-key"}


@pytest.fixture
def board() -> Pegboard:
    return office_board()


async def call(board: Pegboard, tool: str, arguments: dict[str, Any], who: str = "bob") -> None:
    with suppress(PegboardError):
        await board.call(tool, arguments, caller=Caller(who))


async def reject(board: Pegboard, tool: str, arguments: dict[str, Any], who: str = "bob") -> None:
    view = await board.view(Caller(who))
    with pytest.raises(PegboardError), record_rejection(view, tool, arguments):
        find_tool(view, tool)


def calls_page(board: Pegboard, who: dict[str, str], query: str = "", **fields: Any) -> str:
    client: TestClient = visit(board, identify=ada_or_bob, **fields)
    return client.get(f"/ui/calls{query}", headers=who).text


@pytest.mark.anyio
async def test_the_caller_sees_arguments_without_secrets(board: Pegboard) -> None:
    await call(board, "echo", {"text": "tiger-9-lily and ghp_0123456789abcdefghij"})
    shown = calls_page(board, BOB, redactor=lambda: Redactor(["tiger-9-lily"]))
    assert "[redacted] and [redacted]" in shown
    assert "tiger" not in shown


@pytest.mark.anyio
async def test_a_failed_call_shows_its_message(board: Pegboard) -> None:
    await call(board, "get_issue", {"id": "x", "surprise": 1})
    shown = calls_page(board, BOB)
    assert "invalid_arguments" in shown
    assert "surprise" in shown.split("invalid_arguments")[1].split("</p>")[0]


@pytest.mark.anyio
async def test_operators_see_the_call_of_another_but_not_what_is_in_it(board: Pegboard) -> None:
    await call(board, "echo", {"text": "for bob alone"})
    await call(board, "get_issue", {"id": "for bob alone"})
    adas = calls_page(board, ADA)
    assert "/ui/tool?id=echo" in adas
    assert "for bob alone" not in adas
    assert "Only the caller can see the message." in adas
    assert "for bob alone" in calls_page(board, ADA, arguments=lambda: "operators")


@pytest.mark.anyio
async def test_arguments_can_be_turned_off(board: Pegboard) -> None:
    await call(board, "get_issue", {"id": "for bob alone"})
    shown = calls_page(board, BOB, arguments=lambda: "off")
    assert "for bob alone" not in shown
    assert "Arguments" not in shown


@pytest.mark.anyio
async def test_unknown_names_are_listed_as_text(board: Pegboard) -> None:
    await reject(board, "<b>list_isues", {"project": "WEB"})
    shown = calls_page(board, BOB)
    assert "&lt;b&gt;list_isues" in shown
    assert "unknown tool" in shown
    assert "WEB" in shown
    assert "1 refused" in visit(board, identify=ada_or_bob).get("/", headers=BOB).text


@pytest.mark.anyio
async def test_one_caller_does_not_see_the_guesses_of_another(board: Pegboard) -> None:
    await reject(board, "secret_guess", {}, who="carol")
    assert "secret_guess" not in calls_page(board, BOB)
    assert "secret_guess" in calls_page(board, ADA)


@pytest.mark.anyio
async def test_guesses_do_not_push_calls_off_the_page(board: Pegboard) -> None:
    await call(board, "echo", {"text": "hello"})
    for number in range(150):
        await reject(board, f"guess{number}", {})
    assert "/ui/tool?id=echo" in calls_page(board, BOB)


@pytest.mark.anyio
async def test_problems_are_shown_alone(board: Pegboard) -> None:
    await call(board, "echo", {"text": "fine"})
    await call(board, "get_issue", {"nothing": True})
    await reject(board, "guess", {})
    shown = calls_page(board, BOB, "?only=problems")
    assert "guess" in shown
    assert "get_issue" in shown
    assert "/ui/tool?id=echo" not in shown


def test_a_board_without_problems_says_so(board: Pegboard) -> None:
    assert "No call has failed." in calls_page(board, BOB, "?only=problems")


@pytest.mark.anyio
async def test_calls_have_the_names_that_clients_use(board: Pegboard) -> None:
    board.mount({}, [])

    @board.tool(category="notes")
    def read_note() -> str:
        """Read a note."""
        return "milk"

    await call(board, "read_note", {})
    shown = calls_page(board, BOB)
    assert ">read_note</a>" in shown
    assert ">notes.read_note<" not in shown
