"""E1: the asked fields of a result, nothing else, and nothing invented."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.core.json import compact
from pegboard.core.results.paths import join_path, quote_key
from pegboard.core.results.projection import measure_savings, project, project_report
from pegboard.errors import InvalidField

EPISODE: dict[str, Any] = {
    "episode": {
        "id": "e1",
        "task_description": "Mend the parser",
        "outcome": {"type": "success", "verdict": "good"},
        "steps": [
            {"tool": "read", "latency": 3, "result": {"ok": True}},
            {"tool": "write", "latency": 5, "result": None},
        ],
        "tags": ["a", "b"],
    }
}

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
)
names = st.sampled_from(["a", "b", "c", "a.b", "*", "total"]) | st.text(max_size=3)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=25,
)
objects = st.dictionaries(names, values, max_size=5)
fields = st.lists(
    st.lists(st.sampled_from(["a", "b", "c", "*", '"a.b"', "total"]), min_size=1, max_size=3).map(
        ".".join
    ),
    min_size=1,
    max_size=4,
)


def test_no_fields_give_the_very_same_object():
    assert project(EPISODE, []) is EPISODE
    assert project(EPISODE, ()) is EPISODE


def test_dotted_paths_reach_into_objects_and_over_lists():
    kept = project(EPISODE["episode"], ["id", "outcome.type", "steps[].tool"])
    assert kept == {
        "id": "e1",
        "outcome": {"type": "success"},
        "steps": [{"tool": "read"}, {"tool": "write"}],
    }


@pytest.mark.parametrize("path", ["steps.tool", "steps[].tool", "steps[*].tool"])
def test_the_brackets_of_a_list_may_be_left_out(path: str):
    kept = project(EPISODE["episode"], [path])
    assert kept == {"steps": [{"tool": "read"}, {"tool": "write"}]}


def test_a_parent_keeps_its_whole_subtree_even_if_a_part_is_requested_too():
    kept = project(EPISODE["episode"], ["outcome.type", "outcome"])
    assert kept == {"outcome": {"type": "success", "verdict": "good"}}
    assert kept["outcome"] is EPISODE["episode"]["outcome"]


def test_a_wildcard_stands_for_every_key():
    users = {"ann": {"age": 3, "name": "A"}, "bob": {"age": 4, "name": "B"}, "n": 2}
    assert project(users, ["*.age"]) == {"ann": {"age": 3}, "bob": {"age": 4}}
    assert project(users, ["*.age", "bob.name"])["bob"] == {"age": 4, "name": "B"}
    assert project(users, ["*"]) == users


def test_keys_keep_their_order():
    assert list(project({"c": 1, "b": 2, "a": 3}, ["a", "c"])) == ["c", "a"]


def test_a_list_at_the_root_is_mapped_over():
    assert project([{"id": 1, "x": 2}, {"x": 3}], ["id"]) == [{"id": 1}, {}]


def test_lists_in_lists_are_mapped_over():
    assert project({"m": [[{"a": 1, "b": 2}], []]}, ["m.a"]) == {"m": [[{"a": 1}], []]}


def test_keys_with_dots_are_quoted_or_escaped():
    value = {"a.b": {"c": 1, "d": 2}, "a": 3}
    assert project(value, ['"a.b".c']) == {"a.b": {"c": 1}}
    assert project(value, [r"a\.b.c"]) == {"a.b": {"c": 1}}


def test_inside_an_envelope_the_envelope_stays():
    assert project(EPISODE, ["id"]) == {"episode": {"id": "e1"}}
    assert project({"items": [{"id": 1, "x": 2}]}, ["id"]) == {"items": [{"id": 1}]}


def test_what_pages_an_envelope_stays_too():
    page = {"items": [{"id": 1, "x": 2}], "total_count": 40, "nextCursor": "k"}
    assert project(page, ["id"]) == {"items": [{"id": 1}], "total_count": 40, "nextCursor": "k"}


def test_paths_from_the_root_win_over_the_envelope():
    assert project(EPISODE, ["episode.id"]) == {"episode": {"id": "e1"}}
    assert project({"id": {"id": 1, "x": 2}}, ["id"]) == {"id": {"id": 1, "x": 2}}


def test_a_record_with_other_fields_is_no_envelope():
    record = {"id": 1, "title": "t", "labels": [{"name": "x"}]}
    report = project_report(record, ["name"])
    assert report.value == {}
    assert report.missing == ("name",)


def test_a_declared_root_is_taken_when_no_first_step_exists():
    value = {"data": {"rows": [{"id": 1, "x": 2}], "more": [1]}, "ok": True, "log": ["…"]}
    assert project(value, ["id"], root="data.rows") == {"data": {"rows": [{"id": 1}]}, "ok": True}
    assert project(value, ["ok"], root="data.rows") == {"ok": True}
    assert project({"id": 5, "x": 6}, ["id"], root="data.rows") == {"id": 5}


def test_fields_that_are_nowhere_are_reported_and_not_raised():
    report = project_report(EPISODE["episode"], ["id", "nope", "outcome.nope", "tags.name"])
    assert report.value == {"id": "e1", "outcome": {}, "tags": []}
    assert report.missing == ("nope", "outcome.nope", "tags.name")


def test_null_and_empty_lists_on_the_way_are_answers():
    report = project_report({"user": None, "items": [], "x": 1}, ["user.name", "items[].id"])
    assert report.value == {"user": None, "items": []}
    assert report.missing == ()


def test_a_field_that_some_elements_have_is_not_missing():
    assert project_report([{"a": 1}, {"b": 2}], ["a"]).missing == ()


@pytest.mark.parametrize("value", ["prose", 42, None, True, [1, 2], [[1], ["a"]], [None]])
def test_fields_of_a_value_that_is_not_an_object_are_rejected(value: Any):
    with pytest.raises(InvalidField, match=r"Invalid field: id\. Fields are taken from an object"):
        project(value, ["id"])
    assert project(value, []) == value


@pytest.mark.parametrize("value", ["prose", 42, None, True, [1, 2]])
def test_the_result_of_a_call_that_ran_stays_what_it_is(value: Any):
    assert project_report(value, ["id"]).value in (value, [])


@pytest.mark.parametrize("value", [[], [[]], {}, [{}], {"items": []}])
def test_what_could_hold_objects_and_is_empty_is_no_mistake(value: Any):
    assert project(value, ["id"]) == value


def test_fields_in_one_text_are_not_taken_letter_by_letter():
    assert project({"id": 1, "i": 2, "d": 3, "x": 4}, "id, x") == {"id": 1, "x": 4}


@pytest.mark.parametrize("path", ["a..b", "items[0].id", ""])
def test_a_malformed_path_raises(path: str):
    with pytest.raises(InvalidField, match="Invalid field"):
        project({"a": 1}, [path])


def test_ten_thousand_paths_are_fine():
    value = {f"k{i}": {"x": i, "y": i} for i in range(10_000)}
    kept = project(value, [f"k{i}.x" for i in range(10_000)])
    assert kept == {f"k{i}": {"x": i} for i in range(10_000)}


def test_many_wildcards_at_once_do_not_multiply():
    deep: Any = {"end": 1}
    for _ in range(10):
        deep = {"a": deep, "b": deep}
    mixed = [""]
    for _ in range(10):
        mixed = [f"{path}{step}." for path in mixed for step in ("a", "*")]
    assert project(deep, [f"{path}end" for path in mixed]) == deep


def test_very_deep_values_need_no_stack():
    deep: Any = {"x": 1}
    for _ in range(100_000):
        deep = {"a": deep}
    assert project({"keep": deep, "drop": 1}, ["keep"])["keep"] is deep
    assert project(deep, ["a.a.b"]) == {"a": {"a": {}}}


def test_circular_values_end():
    loop: list[Any] = []
    loop.append(loop)
    report = project_report({"loop": loop}, ["loop.id"])
    assert report.missing == ("loop.id",)


@given(objects)
def test_projecting_every_key_is_the_identity(value: dict[str, Any]):
    assert project(value, [quote_key(key) for key in value]) == value


@given(objects)
def test_a_wildcard_at_the_root_is_the_identity(value: dict[str, Any]):
    assert project(value, ["*"]) == value


@given(values, fields)
def test_projecting_twice_is_projecting_once(value: Any, asked: list[str]):
    once = project_report(value, asked).value
    assert project_report(once, asked).value == once


@given(values, fields)
def test_projection_never_invents_data(value: Any, asked: list[str]):
    assert is_part_of(project_report(value, asked).value, value)


@given(values, fields)
def test_projection_leaves_the_value_alone(value: Any, asked: list[str]):
    before = repr(value)
    project_report(value, asked)
    assert repr(value) == before


@given(objects, st.data())
def test_a_path_to_any_plain_value_keeps_it(value: dict[str, Any], data: st.DataObject):
    leaves = list(paths_to_leaves(value))
    if not leaves:
        return
    steps, leaf = data.draw(st.sampled_from(leaves))
    kept = project(value, [join_path(steps)])
    for step in steps:
        kept = kept[step]
    assert kept == leaf


def paths_to_leaves(
    value: dict[str, Any], at: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, item in value.items():
        if isinstance(item, dict):
            yield from paths_to_leaves(item, (*at, key))
        else:
            yield (*at, key), item


def is_part_of(part: Any, whole: Any) -> bool:
    """Whether a value comes from another by leaving out members and elements."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and is_part_of(part[key], whole[key]) for key in part)
    if isinstance(part, list) and isinstance(whole, list):
        rest = iter(whole)
        return all(any(is_part_of(item, other) for other in rest) for item in part)
    return part == whole


@settings(deadline=None)
@given(objects, fields)
def test_savings_are_the_tokens_of_both_texts(value: dict[str, Any], asked: list[str]):
    report = measure_savings(value, asked, len)
    assert report.before == len(compact(value))
    assert report.after == len(compact(project(value, asked)))
    assert report.saved == pytest.approx(1 - report.after / report.before)
