"""JMESPath over results, bounded against expressions of anybody's making."""

from typing import Any

import pytest

from pegboard.core.results.selection import SelectionLimits, check_expression, select
from pegboard.errors import InvalidField

VALUE: dict[str, Any] = {
    "items": [
        {"id": 1, "state": "open", "user": {"login": "ann"}, "n": 3},
        {"id": 2, "state": "closed", "user": {"login": "bob"}, "n": 1},
        {"id": 3, "state": "open", "user": None, "n": 2},
    ],
    "text": "x" * 2_000,
    "texts": ["y" * 500] * 2_000,
}


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("items[?state=='open'].id", [1, 3]),
        ("items[*].missing", []),
        ("items[0].{id: id, who: user.login}", {"id": 1, "who": "ann"}),
        ("sort_by(items, &n)[*].id", [2, 3, 1]),
        ("length(items)", 3),
        ("nothing.here", None),
        ("join('-', items[*].state)", "open-closed-open"),
        ("to_string(items[0].user)", '{"login":"ann"}'),
        ("max_by(items, &n).id", 1),
    ],
)
def test_an_expression_finds_what_jmespath_says(expression: str, found: Any):
    assert select(VALUE, expression) == found


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("items[?state=='open'", "Incomplete expression"),
        ("a-b", "Unknown token"),
        ("", "cannot be empty"),
        ("(" * 600 + "a", "nested too deeply"),
        ("a" * 2_000, "at most 1,000 characters"),
    ],
)
def test_what_is_no_expression_is_refused_before_any_value_is_there(expression: str, why: str):
    with pytest.raises(InvalidField, match=why) as caught:
        check_expression(expression)
    assert caught.value.details["expected"]


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("lenght(items)", "perhaps length"),
        ("length(items[0].id)", "length.. takes string or array or object, not number"),
        ("items[?n > 'x']", "not supported"),
        ("sum(items[*].state)", "array-number"),
    ],
)
def test_what_does_not_fit_the_value_says_what_would(expression: str, why: str):
    with pytest.raises(InvalidField, match=why):
        select(VALUE, expression)


@pytest.mark.parametrize(
    "expression",
    [
        "[@,@]" + "|[@,@]" * 60,
        "{a:@,b:@}" + ".{a:@,b:@}" * 30,
        "to_string(" * 30 + "@" + ")" * 30,
        "merge({a: @}, {b: @})" + "|merge({a: @}, {b: @})" * 20,
        "map(&[@,@], map(&[@,@], map(&[@,@], map(&[@,@], map(&[@,@,@,@,@], @)))))",
        "items[?[@,@]" + "|[@,@]" * 40 + "]",
    ],
)
def test_an_expression_that_multiplies_its_input_is_refused_before_it_runs(expression: str):
    with pytest.raises(InvalidField, match="repeat its input"):
        check_expression(expression)


def test_a_wide_but_plain_expression_is_no_copy():
    wide = "items[*].{" + ", ".join(f"f{i}: f{i}.x" for i in range(60)) + "}"
    assert len(select(VALUE, wide)) == 3


@pytest.mark.parametrize("expression", ["join(text, texts)", "to_string([texts, texts])"])
def test_a_text_that_would_be_huge_is_not_built(expression: str):
    with pytest.raises(InvalidField, match="builds a text"):
        select(VALUE, expression)


def test_steps_are_counted():
    rows = [{"a": i} for i in range(1_000)]
    assert len(select(rows, "[*].a")) == 1_000
    with pytest.raises(InvalidField, match="more than 500 steps"):
        select(rows, "[*].a", SelectionLimits(steps=500))
