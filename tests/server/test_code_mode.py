"""The `code` mode as clients see it: its list, its answers, and questions in both eras."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from mcp import Client
from mcp_types import ElicitResult, Implementation
from tests.boards import office_board
from tests.programs.conftest import Tracker, tracker_board

from pegboard import Pegboard, build_server
from pegboard.core.tools import Tool, constant_definition
from pegboard.testing import connect, list_tokens

pytestmark = pytest.mark.anyio
DELETE = "rows = await list_issues()\n(await delete_issue(issue=rows[0]['key']))['deleted']"
Era = Literal["legacy", "modern"]


def asking_client(board: Pegboard, era: Era, action: str, asked: list[str]) -> Client:
    """A client whose user answers every question with `action`."""

    async def answer(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action=action, content={} if action == "accept" else None)  # type: ignore[arg-type]

    return Client(
        build_server(board),
        mode="legacy" if era == "legacy" else "auto",
        client_info=Implementation(name="test", version="0"),
        elicitation_callback=answer,
    )


async def test_the_list_is_constant_and_small() -> None:
    assert await list_tokens(office_board(), mode="code") <= 230
    async with connect(office_board(), mode="code") as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
    assert names == ["search_tools", "run_code", "run_write_code", "run_destructive_code"]


async def test_search_shows_what_programs_call_and_what_comes_back() -> None:
    async with connect(tracker_board(Tracker())) as client:
        result = await client.call_tool("search_tools", {"queries": ["list issues"]})
    text = result.content[0].text  # type: ignore[union-attr]
    assert 'list_issues(status?: str = "open") -> []{key, title, votes} - List issues' in text


async def test_search_shows_the_fields_that_a_list_of_any_objects_had() -> None:
    board = Pegboard("claims", mode="code")

    @board.tool(annotations={"readOnlyHint": True})
    def list_claims() -> list[dict[str, Any]]:
        """List claims."""
        return [{"id": 1, "euros": 10}]

    async with connect(board) as client:
        shown: list[str] = []
        for _ in range(2):
            found = await client.call_tool("search_tools", {"queries": ["list claims"]})
            shown.append(found.content[0].text)  # type: ignore[union-attr]
            await client.call_tool("run_code", {"code": "await list_claims()"})
        wrong = await client.call_tool("run_code", {"code": "(await list_claims())[0]['eur']"})
    assert ["-> ~[]{id, euros}" in text for text in shown] == [False, True]
    assert 'no key "eur" (keys: id, euros)' in wrong.content[0].text  # type: ignore[union-attr]


async def test_a_large_value_is_stored_and_a_list_becomes_a_table() -> None:
    async with connect(tracker_board(Tracker())) as client:
        table = await client.call_tool("run_code", {"code": "await list_issues() * 9"})
        large = await client.call_tool("run_code", {"code": "[str(n) * 9 for n in range(9999)]"})
        handle = json.loads(large.content[0].text)["handle"]  # type: ignore[union-attr]
        rest = await client.call_tool("run_code", {"code": f"kept('{handle}')[9998]"})
    assert table.content[0].text.startswith("[45]{key,title,votes}:")  # type: ignore[union-attr]
    assert rest.content[0].text == "9998" * 9  # type: ignore[union-attr]
    assert "in a program: kept(" in large.content[0].text  # type: ignore[union-attr]


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("action", ["accept", "decline"])
async def test_a_person_is_asked_once_before_anything_is_deleted(era: Era, action: str) -> None:
    tracker, asked = Tracker(), list[str]()
    async with asking_client(tracker_board(tracker), era, action, asked) as client:
        result = await client.call_tool("run_write_code", {"code": DELETE})
    assert len(asked) == 1
    assert 'delete_issue(issue="WEB-1")' in asked[0]
    text = result.content[0].text  # type: ignore[union-attr]
    if action == "accept":
        assert (text, tracker.done) == ("WEB-1", [("delete_issue", "WEB-1")])
    else:
        assert "was declined by the user" in text
        assert tracker.done == []


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_client_that_cannot_ask_goes_on_with_a_tool_of_its_own(era: Era) -> None:
    tracker = Tracker()
    async with connect(tracker_board(tracker), era=era) as client:
        waiting = await client.call_tool("run_write_code", {"code": DELETE})
        text = waiting.content[0].text  # type: ignore[union-attr]
        assert tracker.done == []
        run = text.partition('run="')[2].partition('"')[0]
        result = await client.call_tool("run_destructive_code", {"run": run})
        again = await client.call_tool("run_destructive_code", {"run": run})
    assert result.content[0].text == "WEB-1"  # type: ignore[union-attr]
    assert again.is_error
    assert len(tracker.done) == 1


async def test_progress_is_reported_after_each_call() -> None:
    seen: list[tuple[float, str | None]] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, message))

    async with connect(tracker_board(Tracker()), era="legacy") as client:
        await client.call_tool(
            "run_code",
            {"code": "await list_issues()\nawait read_report(name='q')\n1"},
            progress_callback=report,
        )
    assert seen == [(1, "list_issues"), (2, "read_report")]


async def test_proxy_offers_programs_where_that_is_configured() -> None:
    from pegboard.core.options import CodeOptions

    board = office_board(code=CodeOptions(in_proxy=True))
    async with connect(board, mode="proxy") as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool("run_code", {"code": "1 + 1"})
    assert {"call_tool", "run_code"} <= set(names)
    assert result.content[0].text == "2"  # type: ignore[union-attr]


async def test_what_a_signature_leaves_out_is_shown_by_the_search_that_the_answer_names() -> None:
    """Most clients let a model call only listed tools, and `describe_tools` is not listed here."""
    wide = {f"field_{n}": {"type": "string", "description": f"Field {n}."} for n in range(60)}
    schema: Any = {
        "type": "object",
        "properties": {"record": {"type": "object", "properties": wide}},
    }
    board = Pegboard("wide", mode="code")
    board.add(Tool("save_record", constant_definition(schema), description="Save a record."))
    async with connect(board) as client:
        found = await client.call_tool("search_tools", {"queries": ["save a record"]})
        hint = found.content[0].text.splitlines()[-1]  # type: ignore[union-attr]
        assert "describe_tools" not in hint
        named = hint[hint.index("{") : hint.rindex("}") + 1].replace("[name]", '["save_record"]')
        whole = await client.call_tool("search_tools", json.loads(named))
    assert "Field 59." in whole.content[0].text  # type: ignore[union-attr]
