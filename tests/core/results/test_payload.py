"""Where the data of a result stands, whatever way an SDK wrote it."""

from typing import Any

import pytest

from pegboard.core.calls import CallResult
from pegboard.core.json import compact
from pegboard.core.results.shapes import (
    add_note,
    find_payload,
    payload_text,
    replace_value,
    replace_with_text,
)

ROWS: list[Any] = [{"id": 1, "x": "a"}, {"id": 2, "x": "b"}]


def result(*texts: str, structured: Any = None) -> CallResult:
    wire: dict[str, Any] = {"content": [{"type": "text", "text": text} for text in texts]}
    if structured is not None:
        wire["structuredContent"] = structured
    return CallResult(wire)


def texts(of: CallResult) -> list[str]:
    return [block["text"] for block in of.content]


@pytest.mark.parametrize(
    ("given", "mirror", "positions"),
    [
        (result(compact({"rows": ROWS}), structured={"rows": ROWS}), "whole", (0,)),
        (result('{ "rows":\n []}', structured={"rows": []}), "whole", (0,)),
        (result("Found:", compact(ROWS), structured={"result": ROWS}), "unwrapped", (1,)),
        (result(*map(compact, ROWS), structured={"result": ROWS}), "split", (0, 1)),
        (result("1", "two", structured={"result": [1, "two"]}), "split", (0, 1)),
        (result("long text", structured={"result": "long text"}), "unwrapped", (0,)),
        (result("Two rows.", structured={"rows": ROWS}), "none", ()),
        (result('{"v": NaN}', structured={"v": float("nan")}), "whole", (0,)),
        (result('{"v": NaN, "w": -Infinity}', structured={"v": None, "w": None}), "whole", (0,)),
        (result('{"v": 1, "w": NaN}', structured={"v": 2, "w": None}), "none", ()),
    ],
)
def test_the_texts_that_mirror_structured_content_are_recognised(
    given: CallResult, mirror: str, positions: tuple[int, ...]
):
    payload = find_payload(given)
    assert payload is not None
    assert (payload.mirror, payload.texts) == (mirror, positions)
    assert payload.value is given.structured


def test_without_structured_content_the_json_in_text_is_the_data():
    payload = find_payload(result("Here it is:", compact(ROWS)))
    assert payload is not None
    assert (payload.value, payload.texts) == (ROWS, (1,))


def test_numbers_come_through_as_they_are():
    payload = find_payload(result('{"f": 0.1, "i": 12345678901234567890, "e": 1e-7}'))
    assert payload is not None
    assert compact(payload.value) == '{"f":0.1,"i":12345678901234567890,"e":1e-07}'


def test_several_texts_of_json_are_a_list():
    payload = find_payload(result(*map(compact, ROWS)))
    assert payload is not None
    assert (payload.value, payload.mirror) == (ROWS, "split")


@pytest.mark.parametrize(
    "text",
    ["prose", "42", '"quoted"', "{not json}", "[1, 2", '{"v": 1e999}', "[" * 100_000, "", "  "],
)
def test_what_is_no_object_or_list_is_no_data(text: str):
    assert find_payload(result(text)) is None


def test_a_new_value_is_put_everywhere_the_old_one_stood():
    wrapped = result("Found:", compact(ROWS), structured={"result": ROWS})
    payload = find_payload(wrapped)
    assert payload is not None
    changed = replace_value(wrapped, payload, {"result": [{"id": 1}]})
    assert texts(changed) == ["Found:", '[{"id":1}]']
    assert changed.structured == {"result": [{"id": 1}]}
    assert texts(wrapped)[1] == compact(ROWS), "the old result is untouched"


def test_split_texts_stay_split_while_their_number_does():
    split = result(*map(compact, ROWS), structured={"result": ROWS})
    payload = find_payload(split)
    assert payload is not None
    assert texts(replace_value(split, payload, {"result": [{"id": 1}, {"id": 2}]})) == [
        '{"id":1}',
        '{"id":2}',
    ]
    assert texts(replace_value(split, payload, {"result": [{"id": 1}]})) == ['[{"id":1}]']


def test_annotations_of_a_text_block_survive():
    block = {"type": "text", "text": '{"a":1,"b":2}', "annotations": {"priority": 1}}
    given = CallResult({"content": [block]})
    payload = find_payload(given)
    assert payload is not None
    assert replace_value(given, payload, {"a": 1}).content == [block | {"text": '{"a":1}'}]


def test_one_text_can_stand_for_all_of_the_data():
    split = result("Hello", *map(compact, ROWS))
    payload = find_payload(split)
    assert payload is not None
    changed, position = replace_with_text(split, payload, "TABLE")
    assert (texts(changed), position) == (["Hello", "TABLE"], 1)
    only_structured = result(structured={"rows": ROWS})
    payload = find_payload(only_structured)
    assert payload is not None
    changed, position = replace_with_text(only_structured, payload, "TABLE")
    assert (texts(changed), position, changed.structured) == (["TABLE"], 0, None)


def test_a_note_of_ours_is_no_data():
    noted = add_note(result(*map(compact, ROWS), structured={"result": ROWS}), '{"not": "data"}')
    payload = find_payload(noted)
    assert payload is not None
    assert payload.mirror == "split"
    assert payload_text(noted, payload) == "\n".join(map(compact, ROWS))


@pytest.mark.parametrize("mark", [0, 1, -1, 9, "0", True, None])
def test_a_mark_of_a_table_that_is_none_is_not_believed(mark: Any):
    given = CallResult(
        {
            "content": [{"type": "text", "text": '{"a": 1}'}, {"type": "image", "data": ""}],
            "_meta": {"io.github.pegboard/table": mark},
        }
    )
    payload = find_payload(given)
    assert payload is not None
    assert payload.value == {"a": 1}
