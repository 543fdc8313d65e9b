"""JSON in texts without indentation; everything else to the last character as it was."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.calls import CallResult
from pegboard.core.json import Json, compact
from pegboard.core.results.shapes import add_note, find_payload
from pegboard.dispatch.compact_text import compact_content, compact_json_text

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4)
    ),
    max_leaves=20,
)
LONG = 12345678901234567890123
ISSUE = {"key": "A-1", "title": "two  spaces\n and: a, line"}


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ('{\n  "a": [\n    1,\n    2\n  ]\n}\n', '{"a":[1,2]}'),
        ('{"a": 1, "b": "x, y: z"}', '{"a":1,"b":"x, y: z"}'),
        ('{"a": "\\" ,  \\\\"}', '{"a":"\\" ,  \\\\"}'),
        ("[1, 2,\t3]", "[1,2,3]"),
        (f'{{"n": 1.10, "big": {LONG}, "e": 1E5}}', f'{{"n":1.10,"big":{LONG},"e":1E5}}'),
        ('{"a": 1, "a": 2}', '{"a":1,"a":2}'),
        ('{"a": "\\u00e9\\u6f22"}', '{"a":"é漢"}'),
        ('{"a": "\\u200b \\u0022 \\ud83d\\ude00 \\\\u00e9"}',
         '{"a":"\\u200b \\u0022 \\ud83d\\ude00 \\\\u00e9"}'),
        (json.dumps({"result": json.dumps(ISSUE, indent=2)}), compact(ISSUE)),
    ],
)  # fmt: skip
def test_json_is_written_compactly(text: str, short: str) -> None:
    assert compact_json_text(text) == short


@pytest.mark.parametrize(
    "text",
    [
        "prose,  with   spaces: and\nlines",
        "{ not json, at all }",
        "[1, 2",
        '{"a": 1} and then prose',
        '  "a string"  ',
        " 12 ",
        "[" * 100_000,
        '{"a": 1e999}',
        "# Heading\n\n- item",
        '{"result":"prose,  as it is"}',
    ],
)
def test_any_other_text_stays_as_it_is(text: str) -> None:
    assert compact_json_text(text) == text


@given(VALUES, st.sampled_from([None, 1, 4]), st.booleans())
def test_the_value_is_the_same(value: Json, indent: int | None, ascii_only: bool) -> None:
    for shown in ({"value": value}, [value]):
        text = json.dumps(shown, indent=indent, ensure_ascii=ascii_only)
        short = compact_json_text(text)
        assert json.loads(short) == shown
        assert len(short) <= len(text)
        assert compact_json_text(short) == short


def test_other_blocks_and_notes_stay() -> None:
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    given = CallResult(
        {"content": [image, {"type": "text", "text": '{"a": 1}', "annotations": {}}]}
    )
    noted = add_note(given, '{"note":   1}')
    assert compact_content(noted.content) == [
        image,
        {"type": "text", "text": '{"a":1}', "annotations": {}},
        noted.content[2],
    ]


def test_structured_content_still_finds_its_text() -> None:
    text = json.dumps(ISSUE, indent=2)
    result = CallResult.text(compact_json_text(text), structured={"result": text})
    payload = find_payload(result)
    assert payload is not None
    assert (payload.value, payload.texts, payload.is_encoded) == (ISSUE, (0,), True)
