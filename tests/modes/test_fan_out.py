"""Several calls in one request: bounds, switches, and what each outcome says."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Literal

import anyio
import pytest
from mcp_types import ImageContent, TextContent
from tests.boards import office_board

from pegboard import CallResult, InvalidArguments, Pegboard
from pegboard.core.json import JsonObject
from pegboard.modes.auto import MODES_BY_NAME
from pegboard.testing import FakeSource, board_of, make_tool

pytestmark = pytest.mark.anyio


async def fanned(board: Pegboard, calls: Any) -> Any:
    view = await board.view()
    call_tools = MODES_BY_NAME["proxy"].builders(view)["call_tools"](view)
    answer = await call_tools.answer(view, {"calls": calls})
    return json.loads(answer.content[0]["text"])["results"]


async def test_a_fan_out_has_an_upper_bound() -> None:
    calls = [{"name": "echo", "arguments": {"text": "x"}}] * 101
    with pytest.raises(InvalidArguments, match="101 calls at once are too many: at most 100"):
        await fanned(office_board(), calls)
    assert len(await fanned(office_board(), calls[:100])) == 100


async def test_a_tool_can_be_described_in_the_same_request_as_calls() -> None:
    echo = {"name": "echo", "arguments": {"text": "x"}}
    described, echoed = await fanned(
        office_board(), [{"name": "describe_tools", "arguments": {"names": ["echo"]}}, echo]
    )
    assert described["ok"]
    assert described["result"].startswith("echo")
    assert (echoed["name"], echoed["ok"]) == ("echo", True)


async def test_tools_can_be_searched_in_the_same_request_as_calls() -> None:
    found, echoed = await fanned(
        office_board(),
        [
            {"name": "search_tools", "arguments": {"queries": ["echo"]}},
            {"name": "echo", "arguments": {"text": "x"}},
        ],
    )
    assert (found["ok"], echoed["ok"]) == (True, True)
    assert found["result"].startswith("echo(")


async def test_a_bad_description_request_fails_alone() -> None:
    bad = {"name": "describe_tools", "arguments": {"names": "echo", "names_of": 1}}
    outcomes = await fanned(office_board(), [bad, {"name": "echo", "arguments": {"text": "x"}}])
    assert [outcome["ok"] for outcome in outcomes] == [False, True]


async def test_only_structured_content_says_how_long_each_call_took() -> None:
    view = replace(await office_board().view(), structured=True)
    call_tools = MODES_BY_NAME["proxy"].builders(view)["call_tools"](view)
    answer = await call_tools.answer(
        view, {"calls": [{"name": "echo", "arguments": {"text": "x"}}]}
    )
    assert "duration_ms" not in answer.content[0]["text"]
    assert answer.structured["results"][0]["duration_ms"] >= 0


async def test_a_fan_out_that_is_switched_off_is_not_listed() -> None:
    view = await office_board(fan_out=False).view()
    assert "call_tools" not in MODES_BY_NAME["proxy"].builders(view)
    dispatch = MODES_BY_NAME["hierarchy"].builders(view)["tools_dispatch"](view)
    with pytest.raises(InvalidArguments, match="switched off"):
        await dispatch.answer(view, {"calls": [{"tool": "echo", "params": {"text": "x"}}]})


async def test_a_result_of_several_kinds_is_its_text_with_what_belongs_to_it() -> None:
    board = Pegboard("camera")

    def snap() -> Any:
        return [TextContent(text="click"), ImageContent(data="aGk=", mime_type="image/png")]

    board.tool(annotations={"readOnlyHint": True})(snap)
    (outcome,) = await fanned(board, [{"name": "snap"}])
    assert outcome["result"] == "click"
    assert outcome["attachments"] == [{"block": 1, "type": "image", "mimeType": "image/png"}]


@pytest.mark.parametrize(
    ("unfinished", "reason"),
    [
        ({"resultType": "input_required", "inputRequests": {}}, "needs input from the user"),
        ({"resultType": "task", "taskId": "7"}, "started a task"),
        ({"task": {"taskId": "7", "status": "working"}}, "started a task"),
    ],
)
async def test_a_call_that_has_not_finished_is_to_be_made_by_itself(
    unfinished: JsonObject, reason: str
) -> None:
    """MCP 2026-07-28, multi round-trip requests and tasks: neither has a place in a batch."""
    tool = make_tool("book", risk="read")
    board = board_of(hotel=FakeSource([tool], book=CallResult(unfinished)))
    (outcome,) = await fanned(board, [{"name": "hotel.book"}])
    assert outcome["ok"] is False
    assert "result" not in outcome
    assert outcome["error"]["kind"] == "tool_error"
    assert outcome["error"]["message"] == (
        f"book {reason}, so its result is missing here: call it by itself."
    )


async def test_risk_is_not_checked_where_it_is_not_split() -> None:
    (outcome,) = await fanned(
        office_board(risk="single"), [{"name": "cancel_event", "arguments": {"title": "x"}}]
    )
    assert outcome["ok"] is True


async def test_fields_are_chosen_call_by_call() -> None:
    calls = [
        {"name": "get_issue", "arguments": {"id": 1}, "include_fields": ["id"]},
        {"name": "get_issue", "arguments": {"id": 1}, "include_fields": 5},
    ]
    good, bad = await fanned(office_board(), calls)
    assert good["result"] == {"id": 1}
    assert (bad["ok"], bad["error"]["kind"]) == (False, "invalid_field")


@pytest.mark.parametrize("mode", ["proxy", "hierarchy"])
async def test_changes_run_in_the_order_given_and_reads_between_them_in_parallel(
    mode: Literal["proxy", "hierarchy"],
) -> None:
    board = Pegboard("desk")
    log: list[str] = []
    both_read = [anyio.Event(), anyio.Event()]

    @board.tool
    async def set_note(text: str) -> str:
        log.append(f"set {text}")
        await anyio.sleep(0.05 if text == "first" else 0)
        log.append(f"done {text}")
        return text

    @board.tool(annotations={"readOnlyHint": True})
    async def read_note(number: int) -> int:
        log.append("read")
        both_read[number].set()
        await both_read[1 - number].wait()  # forever, if the other had to wait for this one
        return number

    steps: list[tuple[str, JsonObject]] = [
        ("set_note", {"text": "first"}),
        ("read_note", {"number": 0}),
        ("read_note", {"number": 1}),
        ("set_note", {"text": "second"}),
        ("set_note", {"text": "third"}),
    ]
    names, values = ("tool", "params") if mode == "hierarchy" else ("name", "arguments")
    calls = [{names: name, values: arguments} for name, arguments in steps]
    view = await board.view()
    given: JsonObject = {"calls": calls}
    meta_tool = "tools_dispatch"
    if mode == "proxy":
        meta_tool, given = "call_write_tool", {"name": "call_tools", "arguments": given}
    batch = MODES_BY_NAME[mode].builders(view)[meta_tool](view)
    with anyio.fail_after(10):
        answer = await batch.answer(view, given)
    outcomes = json.loads(answer.content[0]["text"])["results"]
    assert [outcome["ok"] for outcome in outcomes] == [True] * 5
    assert log == [
        *("set first", "done first", "read", "read"),
        *("set second", "done second", "set third", "done third"),
    ]


async def test_tools_that_nothing_is_known_about_still_run_in_parallel() -> None:
    board = Pegboard("desk")
    arrived = [anyio.Event(), anyio.Event()]

    @board.tool
    async def meet(number: int) -> int:
        arrived[number].set()
        await arrived[1 - number].wait()
        return number

    with anyio.fail_after(10):
        outcomes = await fanned(
            board, [{"name": "meet", "arguments": {"number": n}} for n in range(2)]
        )
    assert [outcome["ok"] for outcome in outcomes] == [True, True]
