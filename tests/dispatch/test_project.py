"""E1-E3 on the way of a call: refused before it where possible, never an error after it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.dispatch.fakes import Recorder, Source, make_call

from pegboard.core.calls import CallResult, ResultShape, ToolCall
from pegboard.core.events import CallFinished
from pegboard.core.json import compact
from pegboard.core.tools import Tool, constant_definition
from pegboard.dispatch.call_events import ObserveOptions, observe
from pegboard.dispatch.project import projection_layer
from pegboard.errors import InvalidField

pytestmark = pytest.mark.anyio

ISSUE: dict[str, Any] = {"id": 7, "title": "Crash", "user": {"login": "ann", "id": 1}}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "title": {"type": "string"},
        "user": {"type": "object", "properties": {"login": {}, "id": {}}},
    },
}
MISSING = "io.github.pegboard/missing_fields"


def asking(
    *fields: str, select: str | None = None, schema: dict[str, Any] | None = None, **about: Any
) -> ToolCall:
    tool = Tool("get_issue", constant_definition({"type": "object"}, schema), **about)
    return ToolCall(tool, {}, shape=ResultShape(include_fields=fields, select=select))


async def answered(result: CallResult, call: ToolCall) -> CallResult:
    source = Source()
    source.queue.append(result)
    return await projection_layer()(source)(call)


async def test_without_fields_the_very_same_result_comes_back():
    whole = CallResult.json(ISSUE)
    assert await answered(whole, asking()) is whole


async def test_structured_content_and_its_text_are_projected_alike():
    result = await answered(CallResult.json(ISSUE), asking("id", "user.login"))
    assert result.structured == {"id": 7, "user": {"login": "ann"}}
    assert result.content == [{"type": "text", "text": compact(result.structured)}]
    assert result.meta == {}


async def test_json_in_text_is_projected_and_prose_left_alone():
    given = CallResult.text("Found it:")
    given.content.append({"type": "text", "text": compact(ISSUE)})
    result = await answered(given, asking("title"))
    assert [block["text"] for block in result.content] == ["Found it:", '{"title":"Crash"}']


async def test_an_unknown_field_of_a_known_schema_is_refused_before_the_call():
    source = Source()
    with pytest.raises(InvalidField, match="Invalid field: titel") as caught:
        await projection_layer()(source)(asking("id", "titel", schema=SCHEMA))
    assert source.calls == []
    assert "title" in caught.value.details["expected"]


@pytest.mark.parametrize(("fields", "select"), [(("a..b",), None), ((), "items[?"), ((), "")])
async def test_a_malformed_path_or_expression_is_refused_before_the_call(
    fields: tuple[str, ...], select: str | None
):
    source = Source()
    with pytest.raises(InvalidField):
        await projection_layer()(source)(asking(*fields, select=select))
    assert source.calls == []


async def test_missing_fields_are_reported_in_a_note():
    result = await answered(CallResult.json(ISSUE), asking("id", "nope"))
    assert result.structured == {"id": 7}
    assert not result.is_error
    assert result.meta[MISSING] == ["nope"]
    assert result.content[0]["text"] == '{"id":7}'
    assert result.content[1]["text"] == (
        "Missing fields: nope. Available: id, title, user.login, user.id."
    )


async def test_a_result_that_is_not_json_comes_back_with_a_word_about_it():
    result = await answered(CallResult.text("prose"), asking("id"))
    assert result.content[0] == {"type": "text", "text": "prose"}
    assert "not JSON" in result.content[1]["text"]
    assert result.meta[MISSING] == ["id"]


@pytest.mark.parametrize(
    "given",
    [
        CallResult.text('{"id": 1, "x": 2}', is_error=True),
        CallResult({"resultType": "input_required", "inputRequests": {}}),
        CallResult({"task": {"taskId": "t"}}),
    ],
)
async def test_errors_and_unfinished_results_are_untouched(given: CallResult):
    assert await answered(given, asking("id")) is given


async def test_a_declared_root_is_used_in_the_check_and_in_the_result():
    schema = {"type": "object", "properties": {"data": SCHEMA, "log": {"type": "array"}}}
    call = asking("title", schema=schema, projection_root="data")
    result = await answered(CallResult.json({"data": ISSUE, "log": [1]}), call)
    assert result.structured == {"data": {"title": "Crash"}}


async def test_select_computes_and_structured_content_stays_an_object():
    rows = {"items": [{"id": 1, "s": "open"}, {"id": 2, "s": "closed"}]}
    result = await answered(CallResult.json(rows), asking(select="items[?s=='open'].id"))
    assert result.structured == {"result": [1]}
    assert result.content == [{"type": "text", "text": "[1]"}]
    result = await answered(CallResult.json(rows), asking("id", select="items[0]"))
    assert result.structured == {"id": 1}


async def test_an_expression_that_does_not_fit_leaves_the_result_whole_and_says_so():
    result = await answered(CallResult.json(ISSUE), asking(select="sum(title)"))
    assert result.structured == ISSUE
    assert "sum() takes" in result.meta["io.github.pegboard/select_error"]
    assert "The result is complete" in result.content[1]["text"]


async def test_a_circular_value_is_no_trouble():
    loop: dict[str, Any] = {"id": 1}
    loop["self"] = loop
    given = CallResult({"content": [], "structuredContent": loop})
    assert (await answered(given, asking("id"))).structured == {"id": 1}
    assert (await answered(given, asking("self.id"))).structured == {"self": {"id": 1}}


async def test_json_of_any_depth_comes_back_projected_or_whole():
    for depth in (1, *range(700, 1_100), 100_000):  # around where reading and writing give up
        text = '{"drop":0,"keep":' + '{"a":' * depth + "1" + "}" * depth + "}"
        result = await answered(CallResult.text(text), asking("keep"))
        said = result.content[0]["text"]
        assert said in (text, text.replace('"drop":0,', ""))
        assert said != text or "No fields were selected" in result.content[1]["text"]


async def test_an_observer_hears_the_tokens_before_and_after():
    recorder, source = Recorder(), Source()
    source.queue.append(CallResult.json(ISSUE))
    watched = observe(ObserveOptions(observer=recorder, count=len))
    await watched(projection_layer(count=len)(source))(asking("id"))
    (finished,) = recorder.of(CallFinished)
    assert finished.projected
    assert (finished.tokens_out_before, finished.tokens_out) == (
        len(compact(ISSUE)),
        len('{"id":7}'),
    )


async def test_an_ordinary_call_is_not_noted_as_projected():
    recorder = Recorder()
    await observe(ObserveOptions(observer=recorder))(projection_layer()(Source()))(make_call())
    assert not recorder.of(CallFinished)[0].projected
