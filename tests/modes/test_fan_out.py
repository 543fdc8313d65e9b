"""Several calls in one request: bounds, switches, and what each outcome says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp_types import ImageContent, TextContent
from tests.boards import office_board

from pegboard import InvalidArguments, Pegboard
from pegboard.modes.registry import MODES_BY_NAME

pytestmark = pytest.mark.anyio


async def fanned(board: Pegboard, calls: Any) -> Any:
    view = await board.view()
    answer = (
        await MODES_BY_NAME["proxy"].meta_tools(view)["call_tools"].answer(view, {"calls": calls})
    )
    return json.loads(answer.content[0]["text"])["results"]


async def test_a_fan_out_has_an_upper_bound() -> None:
    calls = [{"name": "echo", "arguments": {"text": "x"}}] * 101
    with pytest.raises(InvalidArguments, match="101 calls at once are too many: at most 100"):
        await fanned(office_board(), calls)
    assert len(await fanned(office_board(), calls[:100])) == 100


async def test_a_fan_out_that_is_switched_off_is_not_listed() -> None:
    view = await office_board(fan_out=False).view()
    assert "call_tools" not in MODES_BY_NAME["proxy"].meta_tools(view)
    dispatch = MODES_BY_NAME["hierarchy"].meta_tools(view)["tools_dispatch"]
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


async def test_risk_is_not_asked_where_it_is_not_split() -> None:
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
