"""What a client gets of results that are large, uniform, strange or somebody else's."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from tests.acceptance.support import call, in_both_eras, play
from tests.conformance.clients import Era, Transcript, served

from pegboard import CallResult, Pegboard
from pegboard.core.calls import ToolCall
from pegboard.core.results.table_format import decode_table
from pegboard.core.tools import Tool, constant_definition
from pegboard.tokens import count_tokens

READ = {"readOnlyHint": True}
STRUCTURED = {"io.github.pegboard/structured": True}


def archive(**options: Any) -> Pegboard:
    """A board whose tools answer in every shape that results come in."""
    board = Pegboard("archive", **options)

    @board.tool(annotations=READ)
    def rows(count: int, ragged: bool = False) -> list[dict[str, Any]]:
        """Like records, or such that have nothing in common."""
        if ragged:
            return [{f"key{n}": f"value {n}"} for n in range(count)]
        return [{"id": n, "name": f"row {n}", "even": n % 2 == 0} for n in range(count)]

    @board.tool(annotations=READ)
    def log(lines: int) -> str:
        """A long text."""
        return "".join(f"line {n}{' ERROR' if n % 500 == 7 else ''}\n" for n in range(lines))

    @board.tool(annotations=READ)
    def strange() -> dict[str, Any]:
        """Numbers that JSON has not."""
        return {"nan": float("nan"), "infinite": float("inf"), "one": 1}

    @board.tool(annotations=READ)
    def deep(levels: int) -> dict[str, Any]:
        """An object in an object, and so on."""
        value: dict[str, Any] = {"end": True}
        for _ in range(levels):
            value = {"in": value}
        return value

    @board.tool(annotations=READ)
    def circular() -> dict[str, Any]:
        """An object inside itself."""
        value: dict[str, Any] = {}
        value["self"] = value
        return value

    @board.tool(annotations=READ)
    def prose() -> str:
        """No JSON."""
        return "Nothing to select here."

    @board.tool(annotations=READ, deprecated="use rows")
    def old_rows() -> dict[str, int]:
        """Rows as they were."""
        return {"count": 1}

    return board


def of(tool: str, /, *, meta: Any = None, shape: dict[str, Any] | None = None, **own: Any) -> Any:
    return call("call_tool", meta=meta, name=tool, arguments=own, **(shape or {}))


# Large results -----------------------------------------------------------------------------------


def _notice(mode: str, era: Era, board: Pegboard) -> dict[str, Any]:
    step = {
        "proxy": of("rows", count=2_000),
        "dynamic": of("rows", count=2_000),
        "hierarchy": call("tools_dispatch", tool="rows", params={"count": 2_000}),
        "index": call("rows", count=2_000),
    }[mode]
    return play(board, era, {"large": step}, mode=mode)["large"].json


@in_both_eras
@pytest.mark.parametrize("mode", ["index", "hierarchy", "proxy", "dynamic"])
def test_a_large_result_stays_and_every_row_of_it_can_be_read(mode: str, era: Era) -> None:
    board = archive(mode=mode)
    notice = _notice(mode, era, board)
    assert notice["rows"] == 2_000
    assert notice["tokens"] > 4_000
    assert count_tokens(notice) < 1_000
    assert len(notice["handle"]) == 32
    ids: list[int] = []
    offset: int | None = 0
    while offset is not None:
        page = play(
            board, era, {"page": call("read_result", handle=notice["handle"], offset=offset)}
        )["page"].json
        ids += [row["id"] for row in page["value"]]
        offset = page.get("next", {}).get("offset")
    assert ids == list(range(2_000))


@pytest.mark.parametrize("mode", ["hierarchy", "dynamic"])
def test_a_client_that_calls_nothing_unlisted_reads_on_through_the_call_tool(mode: str) -> None:
    board = archive(mode=mode)
    notice = _notice(mode, "legacy", board)
    reading = {"handle": notice["handle"], "offset": 1_999}
    step = (
        call("tools_dispatch", tool="read_result", params=reading)
        if mode == "hierarchy"
        else call("call_tool", name="read_result", arguments=reading)
    )
    assert play(board, "legacy", {"page": step})["page"].json["value"][0]["id"] == 1_999


@in_both_eras
def test_a_kept_result_is_read_by_path_words_and_expression(era: Era) -> None:
    board = archive(mode="proxy")
    handle = _notice("proxy", era, board)["handle"]

    def read(**how: Any) -> Any:
        return call("read_result", handle=handle, **how)

    told = play(
        board,
        era,
        {
            "path": read(path="[7].name"),
            "grep": read(grep="row 1999"),
            "select": read(select="[?id > `1997`].name"),
            "nowhere": read(path="nowhere"),
            "no expression": read(select="]["),
            "no page": read(limit=0),
            "unknown parameter": read(line=3),
        },
    )
    assert told["path"].json["text"] == "row 7"
    assert [m["at"] for m in told["grep"].json["matches"]] == ["[1999]"]
    assert told["select"].json["value"] == ["row 1998", "row 1999"]
    assert told["nowhere"].mendable["kind"] == "invalid_field"
    assert told["no expression"].mendable["kind"] == "invalid_field"
    assert told["no page"].mendable["field"] == "limit"
    assert told["unknown parameter"].mendable["field"] == "line"


def test_a_long_text_is_kept_and_searched_by_lines() -> None:
    board = archive(mode="proxy")
    notice = play(board, "modern", {"log": of("log", lines=5_000)})["log"].json
    steps = {"errors": call("read_result", handle=notice["handle"], grep="ERROR")}
    found = play(board, "modern", steps)["errors"].json["text"].splitlines()
    assert notice["lines"] == 5_000
    assert [line.split()[-1] for line in found] == ["ERROR"] * 10


def test_the_budget_is_set_by_board_tool_and_call() -> None:
    board = archive(mode="proxy", spill_tokens=300, spill_per_tool={"log": None})
    told = play(
        board,
        "modern",
        {
            "by board": of("rows", count=80),
            "by tool": of("log", lines=2_000),
            "by call": of("rows", count=80, shape={"max_tokens": 5_000}),
        },
    )
    assert told["by board"].json["rows"] == 80
    assert "line 1999" in told["by tool"].text
    assert "row 79" in told["by call"].text


def _signed_in(app: Any) -> Callable[[Any, Any, Any], Awaitable[None]]:
    """The application behind a gate that takes every bearer token for the name of its owner."""

    async def gate(scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope.get("headers") or ())
        owner = headers.get(b"authorization", b"").removeprefix(b"Bearer ").decode()
        if owner:
            token = AccessToken(token=owner, client_id=owner, scopes=[], subject=owner)
            scope = {**scope, "user": AuthenticatedUser(token)}
        await app(scope, receive, send)

    return gate


@pytest.mark.anyio
async def test_a_handle_of_somebody_else_looks_like_none() -> None:
    with served(_signed_in(archive(mode="proxy").asgi())) as url:  # pyright: ignore[reportArgumentType] any ASGI application
        large = await _as("ann", url, "call_tool", {"name": "rows", "arguments": {"count": 2_000}})
        handle = json.loads(large.content[0].text)["handle"]
        own = await _as("ann", url, "read_result", {"handle": handle, "limit": 1})
        foreign = await _as("bob", url, "read_result", {"handle": handle, "limit": 1})
        unknown = await _as("bob", url, "read_result", {"handle": "0" * 32, "limit": 1})
    assert not own.is_error
    assert foreign.is_error
    assert foreign.content == unknown.content
    assert foreign.structured_content == unknown.structured_content


async def _as(owner: str, url: str, tool: str, arguments: dict[str, Any]) -> Any:
    headers = {"Authorization": f"Bearer {owner}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        transport = streamable_http_client(f"{url}/mcp", http_client=http)
        async with Client(transport) as client:
            return await client.call_tool(tool, arguments)


# Encodings ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["legacy", "modern"])
def told(request: pytest.FixtureRequest) -> Transcript:
    """Answers of the proxy mode, in every shape."""
    return play(
        archive(mode="proxy"),
        request.param,
        {
            "table": of("rows", count=50),
            "raw": of("rows", count=50, shape={"raw": True}),
            "structured": of("rows", count=50, meta=STRUCTURED),
            "direct": call("rows", count=50),
            "ragged": of("rows", count=50, ragged=True),
            "two": of("rows", count=2),
            "selected": of("rows", count=3, shape={"select": "result[?even].id"}),
            "bad select": of("rows", count=3, shape={"select": "result[?"}),
            "costly select": of("rows", count=3, shape={"select": "a." * 5_000 + "a"}),
            "strange": of("strange"),
            "strange field": of("strange", shape={"include_fields": ["nan", "one"]}),
            "deep": of("deep", levels=150),
            "deep field": of("deep", levels=150, shape={"include_fields": ["in.in"]}),
            "too deep": of("deep", levels=5_000),
            "circular": of("circular"),
            "prose": of("prose", shape={"include_fields": ["result"]}),
            "many fields": of("rows", count=1, shape={"include_fields": ["id"] * 10_000}),
            "old": of("old_rows"),
        },
    )


def test_like_records_come_as_a_table_that_says_the_same_in_fewer_tokens(told: Transcript) -> None:
    records = told["raw"].ok["structuredContent"]["result"]
    assert decode_table(told["table"].text) == records
    assert count_tokens(told["table"].text) <= 0.85 * count_tokens(records)
    assert "structuredContent" not in told["table"].ok


def test_raw_structured_and_direct_results_are_as_the_tool_gave_them(told: Transcript) -> None:
    for key in ("structured", "direct"):
        assert told[key].ok["structuredContent"] == told["raw"].ok["structuredContent"], key
        assert told[key].ok["content"] == told["raw"].ok["content"], key


def test_where_a_table_saves_too_little_there_is_none(told: Transcript) -> None:
    for key in ("ragged", "two"):
        assert "io.github.pegboard/table" not in told[key].ok.get("_meta", {}), key


def test_an_expression_selects_and_a_wrong_one_is_refused_before_the_call(told: Transcript) -> None:
    assert json.loads(told["selected"].text) == [0, 2]
    assert told["bad select"].mendable["kind"] == "invalid_field"
    assert told["costly select"].mendable["kind"] == "invalid_field"


def test_numbers_that_json_has_not_come_through_and_can_be_selected(told: Transcript) -> None:
    assert told["strange"].ok["structuredContent"]["one"] == 1
    kept = told["strange field"].ok
    assert kept["structuredContent"] == {"nan": None, "one": 1}
    assert json.loads(kept["content"][0]["text"]) == kept["structuredContent"]


def test_deep_and_circular_results_are_answers_not_crashes(told: Transcript) -> None:
    assert told["deep"].ok
    assert set(told["deep field"].ok["structuredContent"]) == {"in"}
    assert told["too deep"].mendable["kind"] == "tool_error"
    assert told["circular"].mendable["kind"] == "tool_error"


def test_ten_thousand_fields_and_prose_are_no_trouble(told: Transcript) -> None:
    assert told["many fields"].ok["structuredContent"] == {"result": [{"id": 0}]}
    assert "Nothing to select here." in told["prose"].text


def test_a_deprecated_tool_warns_and_still_answers(told: Transcript) -> None:
    answer = told["old"].ok
    assert answer["structuredContent"] == {"count": 1}
    assert "use rows" in answer["_meta"]["io.github.pegboard/warning"]
    assert answer["content"][-1]["text"].startswith("Warning: old_rows is deprecated")


# Schemas -----------------------------------------------------------------------------------------


@in_both_eras
def test_a_tool_with_an_invalid_schema_is_called_unchecked_and_reported_once(
    era: Era, caplog: pytest.LogCaptureFixture
) -> None:
    board = Pegboard("broken", mode="proxy")
    schema = {"type": "object", "properties": {"n": {"type": "no such type"}}}

    class Echo:
        async def tools(self) -> list[Tool]:
            return [
                Tool(
                    "echo",
                    constant_definition(schema),
                    server="there",
                    annotations=READ,
                    risk="read",
                )
            ]

        async def call(self, call: ToolCall) -> CallResult:
            return CallResult.json(call.arguments)

    board.mount(
        {"there": Echo()}, [Tool("echo", constant_definition(schema), server="there", risk="read")]
    )
    step = call("call_tool", name="echo", arguments={"n": 1})
    told = play(board, era, {"one": step, "two": step})
    assert told["one"].json == told["two"].json == {"n": 1}
    reports = [r for r in caplog.records if "called unchecked" in r.getMessage()]
    assert len(reports) == 1
