"""Boards and dashboards that the tests share."""

from __future__ import annotations

from typing import Any

import httpx2
from starlette.testclient import TestClient

from pegboard import Pegboard
from pegboard.core.calls import Caller
from pegboard.core.risk import annotated_risk
from pegboard.core.tools import Tool, constant_definition
from pegboard.dashboard import ServerRow, Viewer

SERVERS = ("github", "calendar", "files", "search", "billing")
VERBS = ("create", "list", "update", "delete", "export")
THINGS = ("issue", "event", "file", "page", "invoice", "comment", "label", "report")
RISKS = {
    "list": {"readOnlyHint": True},
    "export": {"readOnlyHint": True},
    "delete": {"destructiveHint": True},
}


def large_board(size: int = 5_000) -> Pegboard:
    """A board of many servers' tools, as a gateway would have them."""
    board = Pegboard("company")
    board.mount({}, [_tool(number) for number in range(size)])
    return board


def _tool(number: int) -> Tool:
    verb, thing = VERBS[number % 5], THINGS[number // 5 % 8]
    server = f"{SERVERS[number % len(SERVERS)]}-{number // 500}"
    words = f"{verb.capitalize()} {'an' if thing[0] in 'aeiou' else 'a'} {thing} of area {number}"
    hints = RISKS.get(verb, {"destructiveHint": False})
    return Tool(
        name=f"{verb}_{thing}_{number}",
        definition=constant_definition(
            {
                "type": "object",
                "properties": {
                    "title": {"type": "string", "description": "What it is called."},
                    "area": {"type": "integer"},
                },
                "required": ["title"],
            }
        ),
        server=server,
        category=thing,
        summary=words,
        description=f"{words}. Takes a title and gives back what was done.",
        annotations=hints,
        risk=annotated_risk(hints) or "write",
    )


def servers() -> list[ServerRow]:
    return [
        ServerRow(name="github-0", state="ready", version="1.4.0", era="modern", in_flight=1),
        ServerRow(name="files-0", state="cold", era="legacy"),
        ServerRow(
            name="billing-0",
            state="failed",
            problem="billing-0 did not start: the command was not found.",
            retry_after=30,
        ),
    ]


async def ada_or_bob(token: str | None) -> Viewer | None:
    """Ada operates, Bob looks; nobody else is known."""
    known = {"ada-key": Viewer(Caller("ada"), True), "bob-key": Viewer(Caller("bob"))}
    return known.get(token or "")


def visit(board: Pegboard, **page: Any) -> TestClient:
    """A client of the application of a board."""
    return TestClient(board.asgi(**page), base_url="http://127.0.0.1:8000")


def csrf_token_in(answer: httpx2.Response | Any) -> str:
    """The CSRF token in the form of a page."""
    return answer.text.split('name="csrf_token" value="')[1].split('"')[0]
