"""What is said of a large result: its structure, within a budget, with nothing cut silently."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.calls import CallResult
from pegboard.core.json import compact
from pegboard.core.results.paths import OMISSION, build_outline
from pegboard.core.results.spill_notice import (
    LINE_LENGTH,
    SpillPolicy,
    build_notice,
    build_preview,
    new_handle,
    read_contents,
    spill_key,
    split_lines,
)
from pegboard.core.tools import Tool, constant_definition

ISSUES: list[Any] = [
    {"id": i, "title": f"Issue {i}", "user": {"login": "ann"} if i % 2 else None, "tags": ["x"]}
    for i in range(900)
]
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=200),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=60,
)


def words(text: str) -> int:
    """A tokenizer of the tests' own: never more tokens than bytes."""
    return len(re.findall(r"\w+|[^\w\s]", text))


def test_an_outline_has_paths_and_types():
    assert build_outline({"items": ISSUES, "total": 900}) == {
        "items": "array[900]",
        "total": "integer",
        "items[].id": "integer",
        "items[].title": "string",
        "items[].user": "null|object",
        "items[].tags": "array[1] of string",
        "items[].user.login": "string",
    }


def test_an_outline_counts_what_it_does_not_list():
    shown = build_outline({f"k{i}": i for i in range(100)}, limit=10)
    assert len(shown) == 11
    assert shown[OMISSION] == "at least 90 more"


def test_an_outline_of_very_deep_or_circular_objects_ends():
    deep: Any = {"x": 1}
    for _ in range(5_000):
        deep = {"a": deep}
    loop: dict[str, Any] = {}
    loop["again"] = loop
    assert OMISSION in build_outline(deep)
    assert OMISSION in build_outline(loop)


def test_a_preview_shows_the_head_and_says_how_much_more_there_is():
    shown = build_preview({"items": ISSUES, "total": 900}, 200, words)
    assert shown["total"] == 900
    assert shown["items"][0] == ISSUES[0]
    count = len(shown["items"]) - 1
    assert shown["items"][-1] == f"{OMISSION} {900 - count} more"


def test_a_preview_of_text_shows_its_head_and_its_end():
    log = "\n".join(f"line {i}" for i in range(10_000))
    shown = build_preview(log, 100, words)
    assert shown.startswith("line 0\nline 1\n")
    assert shown.endswith("line 9999")
    assert re.search(rf"{OMISSION} 9,9\d\d more lines", shown)
    assert words(shown) <= 100


def test_a_preview_says_how_many_characters_of_a_text_are_left_out():
    assert build_preview({"body": "x" * 5_000}, 60, words)["body"].endswith(
        f"{OMISSION} +4,600 characters"
    )


@given(values, st.integers(60, 400))
def test_a_preview_keeps_to_its_budget(value: Any, budget: int):
    assert words(compact(build_preview(value, budget, words))) <= budget


@given(values)
def test_what_fits_generously_is_shown_whole_or_marked(value: Any):
    shown = build_preview(value, 100_000, words)
    assert shown == value or OMISSION in compact(shown)


@given(st.text(max_size=2_000) | st.just("x" * 5_000 + "\n" + "y" * 10))
def test_the_lines_of_a_text_are_the_text(text: str):
    lines = split_lines(text)
    assert "".join(lines) == text
    assert all(len(line) <= LINE_LENGTH for line in lines)


def test_a_handle_has_128_random_bits():
    assert new_handle(lambda n: b"\x01" * n) == "01" * 16


def test_the_key_of_a_handle_is_another_for_another_principal():
    assert spill_key("ann", "h") != spill_key("bob", "h")
    assert spill_key("a", "bh") != spill_key("ab", "h")
    assert "h1" not in spill_key("ann", "h1")


def test_a_notice_has_what_the_contract_says():
    said = build_notice(
        "abc",
        {"items": ISSUES},
        tokens=31_000,
        expires_at=1_800_000_000.0,
        policy=SpillPolicy(),
        count=words,
    )
    assert said.keys() >= {"handle", "tokens", "preview", "fields", "rows", "expires_at"}
    assert (said["handle"], said["tokens"], said["rows"]) == ("abc", 31_000, 900)
    assert said["fields"]["items[].title"] == "string"
    assert said["expires_at"] == "2027-01-15T08:00:00Z"


def test_a_notice_about_text_counts_its_lines():
    said = build_notice("h", "a\nb\nc", tokens=9, expires_at=0, policy=SpillPolicy(), count=words)
    assert (said["lines"], said["fields"]) == (3, {})
    assert "rows" not in said


def test_budgets_are_per_call_then_per_tool_then_general():
    policy = SpillPolicy(tokens=10, per_tool={"git.log": 20, "show": None})
    log = Tool("log", constant_definition({}), server="git")
    show = Tool("show", constant_definition({}), server="git")
    other = Tool("other", constant_definition({}))
    assert policy.budget(log) == 20
    assert policy.budget(log, 30) == 30
    assert policy.budget(show) is None
    assert policy.budget(other) == 10
    assert policy.budget(other, 0) is None


IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
BLOB = {"type": "resource", "resource": {"uri": "x://b", "blob": "aGk="}}
LINK = {"type": "resource_link", "uri": "x://y", "name": "y"}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


@pytest.mark.parametrize(
    ("content", "structured", "value", "left"),
    [
        ([text("prose")], None, "prose", []),
        ([text('{"a": 1}')], {"a": 1}, {"a": 1}, []),
        ([text("Short."), text('{"a": 1}'), IMAGE], None, {"a": 1}, [text("Short."), IMAGE]),
        ([text("p" * 2_000), BLOB], {"a": 1}, [{"a": 1}, "p" * 2_000], [BLOB]),
        ([text("one"), text("two")], None, ["one", "two"], []),
        ([LINK, LINK], None, [LINK, LINK], []),
        ([IMAGE], "only structured", "only structured", [IMAGE]),
    ],
)
def test_contents_are_each_thing_once_and_what_is_no_text_stays(
    content: list[Any], structured: Any, value: Any, left: list[Any]
):
    wire: dict[str, Any] = {"content": content}
    if structured is not None:
        wire["structuredContent"] = structured
    contents = read_contents(CallResult(wire))
    assert contents.value == value
    assert list(contents.left) == left


def test_a_mirror_counts_once_and_as_it_is_written():
    pretty = '{\n  "a": 1\n}'
    contents = read_contents(CallResult.text(pretty, structured={"a": 1}))
    assert contents.texts == (pretty,)
