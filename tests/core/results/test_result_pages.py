"""Reading a kept result in parts that fit, until nothing is left unread."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.core.json import compact
from pegboard.core.results.paths import OMISSION
from pegboard.core.results.result_pages import PageBudget, PageRequest, build_page, find_items
from pegboard.errors import InvalidArguments, InvalidField

ROWS: list[Any] = [
    {"id": i, "title": f"Issue {i}", "user": {"login": "ann" if i % 2 else "bob"}}
    for i in range(90)
]
PAGE = {"items": ROWS, "total": 90}
LOG = "".join(f"{i} {'ERROR' if i % 10 == 0 else 'info'} something\n" for i in range(300))


def words(text: str) -> int:
    return len(re.findall(r"\w+|[^\w\s]", text))


def reading(value: Any, tokens: int = 300, **asked: Any) -> dict[str, Any]:
    found = find_items(value, PageRequest(**asked), tokens)
    return build_page(found, PageBudget(tokens, words))


def test_an_envelope_is_read_by_its_rows():
    page = reading(PAGE, limit=3)
    assert page["value"] == ROWS[:3]
    assert (page["path"], page["offset"], page["total"]) == ("items", 0, 90)
    assert page["next"] == {"offset": 3}


def test_a_path_leads_to_one_part():
    assert reading(PAGE, path="items[7].user.login") == reading("bob" if 7 % 2 == 0 else "ann")
    assert reading(PAGE, path="total") == {"value": 90}
    assert reading(PAGE, path="items[-1]")["value"] == ROWS[-1]


def test_a_path_through_a_list_leads_to_all_of_it():
    page = reading(PAGE, path="items.id", offset=10, limit=4)
    assert page["value"] == [10, 11, 12, 13]
    assert reading({"a": {"x": 1}, "b": {"x": 2}}, path="*.x")["value"] == [1, 2]
    assert reading({"none": []}, path="none[].x")["value"] == []


@pytest.mark.parametrize("path", ["nope", "items.nope", "items[90]", "total.x", "items[0].id[0]"])
def test_a_path_that_leads_nowhere_is_refused_with_those_that_lead_somewhere(path: str):
    with pytest.raises(InvalidField, match="leads nowhere") as caught:
        reading(PAGE, path=path)
    assert "items[].title" in caught.value.details["expected"]


def test_a_page_keeps_to_the_budget_and_says_how_to_go_on():
    page = reading(PAGE, tokens=200)
    assert 2 < len(page["value"]) < 90
    assert words(compact(page["value"])) <= 200
    assert page["next"] == {"offset": len(page["value"])}


def test_an_element_too_large_alone_is_shortened_and_named():
    big = {"id": 1, "body": "word " * 5_000}
    page = reading({"items": [big, {"id": 2}]}, tokens=100)
    assert page["shortened"] == ["items[0]"]
    assert OMISSION in page["value"][0]["body"]
    assert page["next"] == {"offset": 1}
    body = reading({"items": [big]}, path="items[0].body", tokens=100)
    assert body["text"].startswith("word word")
    assert "next" in body


def test_an_object_is_read_by_its_members():
    value = {f"k{i}": f"value {i}" for i in range(50)} | {"list": [1]}
    page = reading(value, limit=2, offset=1)
    assert page["value"] == {"k1": "value 1", "k2": "value 2"}
    assert page["next"] == {"offset": 3}


def test_text_is_read_by_lines_and_from_its_end():
    page = reading(LOG, limit=2)
    assert page["text"] == "0 ERROR something\n1 info something\n"
    assert (page["total"], page["next"]) == (300, {"offset": 2})
    tail = reading(LOG, offset=-1)
    assert (tail["text"], tail["offset"]) == ("299 info something\n", 299)
    assert "next" not in tail


def test_one_endless_line_can_be_paged():
    page = reading("x" * 10_000, limit=3)
    assert page["text"] == "x" * 1_200
    assert page["total"] == 25


def test_grep_finds_lines_with_their_numbers():
    page = reading(LOG, grep="ERROR", limit=2)
    assert page["text"] == "0: 0 ERROR something\n10: 10 ERROR something\n"
    assert (page["total"], page["next"]) == (30, {"offset": 2})


def test_grep_finds_rows_with_their_paths():
    page = reading(PAGE, grep="issue 8[0-2]")
    assert [match["at"] for match in page["matches"]] == ["items[80]", "items[81]", "items[82]"]
    assert reading(PAGE, path=page["matches"][0]["at"])["value"] == page["matches"][0]["value"]


def test_grep_in_an_object_finds_the_plain_values_in_it():
    value = {"a": {"b": ["one", "two"]}, "c": 22, "d": "twofold"}
    assert reading(value, grep="two")["matches"] == [
        {"at": "a.b[1]", "value": "two"},
        {"at": "d", "value": "twofold"},
    ]
    assert reading(value, grep="22")["matches"] == [{"at": "c", "value": 22}]


def test_grep_minds_capitals_only_when_it_has_some():
    assert reading(LOG, grep="error")["total"] == 30
    assert reading(LOG, grep="Error")["total"] == 0
    assert reading(LOG, grep=r"\S+ info")["total"] == 270


@pytest.mark.parametrize("pattern", ["foo(", "(?<=a)b", "(?:a{1000}){1000}", "Foo("])
def test_what_is_no_pattern_is_searched_as_plain_text_and_says_so(pattern: str):
    page = reading(f"one\nhas {pattern} in it\n", grep=pattern)
    assert page["total"] == 1
    assert "plain text" in page["note"]


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*)*x", "([a-z]*){100}z"])
def test_a_pattern_that_would_hang_elsewhere_answers(pattern: str):
    assert reading("a" * 20_000 + "!", grep=pattern)["offset"] == 0


def test_text_with_half_a_surrogate_pair_can_be_searched():
    assert reading("a\ud800b\n", grep="b")["total"] == 1


def test_select_computes_and_is_paged_too():
    assert reading(PAGE, select="items[?user.login=='ann'] | length(@)") == {"value": 45}
    page = reading(PAGE, select="items[*].id", offset=5, limit=2)
    assert page["value"] == [5, 6]
    assert reading(PAGE, path="items[3]", select="title")["text"] == "Issue 3"
    assert reading(PAGE, path="items.id", select="max(@)") == {"value": 89}
    assert reading(PAGE, select="nothing") == {"value": None}


@pytest.mark.parametrize(
    "asked", [{"limit": 0}, {"limit": 10_001}, {"grep": ""}, {"grep": "x" * 201}]
)
def test_invalid_page_requests_are_rejected(asked: dict[str, Any]):
    with pytest.raises(InvalidArguments):
        reading(PAGE, **asked)


def test_an_offset_past_the_end_is_an_empty_page():
    assert reading(PAGE, offset=500) == {"path": "items", "value": [], "offset": 500, "total": 90}


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=4), inner, max_size=6)
    ),
    max_leaves=30,
)


@settings(deadline=None)
@given(st.lists(values, max_size=30), st.integers(30, 200))
def test_following_next_reads_every_element_exactly_once(rows: list[Any], tokens: int):
    read_so_far: list[Any] = []
    where = 0
    while True:
        page = reading(rows, tokens=tokens, offset=where)
        shortened = page.get("shortened", [])
        parts = [reading_whole(rows, path, tokens) for path in shortened] or page["value"]
        read_so_far += parts
        if "next" not in page:
            break
        where = page["next"]["offset"]
    assert read_so_far == rows


def reading_whole(value: Any, path: str, tokens: int) -> Any:
    """What `shortened` names, read with room enough."""
    page = reading(value, tokens=1_000_000, path=path)
    return page.get("text", page.get("value"))


@given(st.text(max_size=3_000), st.integers(20, 200))
def test_following_next_reads_all_of_a_text(text: str, tokens: int):
    whole, where = "", 0
    while True:
        page = reading({"text": text}, tokens=tokens, path="text", offset=where)
        whole += page["text"]
        if "next" not in page:
            break
        where = page["next"]["offset"]
    assert whole == text
