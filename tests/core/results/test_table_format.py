"""Tables say the same in fewer tokens, and nothing is lost on the way."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.results.table_format import decode_table, encode_table

RECORDS = [
    {"id": 1, "name": "Ann Lee", "user": {"login": "ann", "id": 7}, "note": None},
    {"id": 2, "name": "Bo", "user": {"login": "bo", "id": 8}, "tags": ["x"]},
]

# fmt: off
tricky = st.sampled_from([
    "", " ", "a,b", "true", "null", "1", "-1.5e3", "007", "NaN", "-", '"', "[1]", "{", "x\n", "\r",
    "a:b", " lead", "trail ", "1,", "\u2028", "é", "2026-01-01T00:00:00Z", "Infinity", "\\", "a}:",
])
# fmt: on
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | tricky
    | st.text(max_size=6)
)
names = st.sampled_from(
    ["id", "a.b", "a b", "", "*", "x", "user", 'q"', "[", "}", ":", ","]
) | st.text(max_size=3)
cells = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
records = st.lists(st.dictionaries(names, cells, max_size=4), max_size=5)
values = records | st.dictionaries(names, records | cells, max_size=4)


def test_a_list_of_records_is_a_header_and_rows():
    assert encode_table(RECORDS) == (
        "[2]{id,name,user.login,user.id,note,tags}:\n"
        "1,Ann Lee,ann,7,null,\n"  #
        '2,Bo,bo,8,,["x"]'
    )


def test_an_envelope_keeps_what_is_beside_its_rows():
    text = encode_table({"total": 2, "items": RECORDS, "next": None})
    assert text is not None
    assert text.startswith("total: 2\nitems[2]{id,")
    assert text.endswith("\nnext: null")


@pytest.mark.parametrize(
    "value",
    [None, 7, "text", [], [1, 2], [{"a": 1}], [{}, {}], {}, {"a": 1}, {"a": [1, 2]}, [{"a": 1}, 2]],
)
def test_what_holds_no_records_is_no_table(value: Any):
    assert encode_table(value) is None


@given(values)
def test_reading_a_table_gives_the_value_back(value: Any):
    text = encode_table(value)
    if text is not None:
        assert normal(decode_table(text)) == normal(value)


@given(st.lists(st.fixed_dictionaries({"id": scalars, "v": tricky, "w": tricky}), min_size=2))
def test_uniform_flat_records_are_always_a_table(value: list[Any]):
    text = encode_table(value)
    assert text is not None
    assert len(text.split("\n")) == len(value) + 1
    assert normal(decode_table(text)) == normal(value)


@given(st.text(alphabet='ab[]{}:,."0123\n\\ ', max_size=40))
def test_a_text_that_is_no_table_is_refused_and_nothing_else_happens(text: str):
    try:
        found = decode_table(text)
    except ValueError:
        return
    assert json.loads(json.dumps(found)) == found  # else it is JSON like any other


def normal(value: Any) -> str:
    """Equal exactly for values that are the same JSON, whatever the order of keys."""
    return json.dumps(value, sort_keys=True)
