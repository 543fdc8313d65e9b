"""Checking arguments: what is refused, in which words, and what goes through."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard.core.tools import Example, Tool, constant_definition
from pegboard.core.validation import Validator, Validators, check_examples
from pegboard.errors import ConfigError, InvalidArguments

CREATE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "project": {"type": "string"},
        "title": {"type": "string", "maxLength": 10},
        "priority": {"enum": ["low", "medium", "high"]},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100},
        "tags": {"type": "array", "items": {"type": "string"}},
        "place": {
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
        "source": {
            "oneOf": [
                {
                    "type": "object",
                    "properties": {"kind": {"const": "url"}, "url": {"type": "string"}},
                    "required": ["kind", "url"],
                },
                {
                    "type": "object",
                    "properties": {"kind": {"const": "id"}, "id": {"type": "integer"}},
                    "required": ["kind", "id"],
                },
            ]
        },
    },
    "required": ["project", "title"],
}
FITTING = {"project": "WEB", "title": "Crash"}


def refusal(schema: Any, arguments: Any) -> InvalidArguments:
    with pytest.raises(InvalidArguments) as caught:
        Validator(schema).check(arguments, "create_issue")
    return caught.value


def test_arguments_that_fit_come_back_themselves() -> None:
    arguments = {**FITTING, "priority": "low", "place": {"city": "Bonn"}}
    assert Validator(CREATE).check(arguments, "create_issue") is arguments


def test_a_refusal_carries_the_tool_the_field_what_was_expected_and_the_signature() -> None:
    error = refusal(CREATE, {**FITTING, "limit": 0})
    signature = error.details.pop("signature")
    assert error.details == {"tool": "create_issue", "field": "limit", "expected": "int 1..100"}
    assert signature.startswith("create_issue(project: str, title: str ..10, ")
    assert error.message == (
        f"create_issue: `limit` must be int 1..100, not 0. Call it as {signature}"
    )


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"priority": "hgh"}, '`priority` must be "low"|"medium"|"high", not "hgh"'),
        ({"title": "far too long"}, "`title` has 12 characters, at most 10 are allowed"),
        ({"title": None}, "`title` must be str ..10, not null"),
        ({"tags": "a"}, '`tags` must be str[], not "a"'),
        ({"tags": ["a", 5]}, "`tags[1]` must be str, not 5"),
        ({"place": {}}, "`place.city` is missing (str)"),
        (
            {"place": {"city": "B", "steet": "S"}},
            "there is no `place.steet` (did you mean `street`?)",
        ),
        ({"source": {"kind": "url"}}, "`source.url` is missing (str)"),
        ({"source": {"kind": "id", "id": "x"}}, '`source.id` must be int, not "x"'),
        (
            {"source": 5},
            '`source` must be {kind: "url", url: str}|{kind: "id", id: int}, not 5',
        ),
    ],
)
def test_an_error_names_the_field_what_is_wrong_and_what_is_right(more: Any, said: str) -> None:
    assert f"create_issue: {said}. Call it as" in refusal(CREATE, {**FITTING, **more}).message


@pytest.mark.parametrize(
    ("schema", "arguments", "said"),
    [
        ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {}, "the call needs `a` or `b`"),
        (
            {"not": {"required": ["a", "b"]}},
            {"a": 1, "b": 1},
            "the call may not have `a` and `b` together",
        ),
        (
            {"properties": {"a": {"uniqueItems": True}}},
            {"a": [1, 1]},
            "`a` has the same item twice",
        ),
        (
            {"properties": {"a": {"minItems": 2}}},
            {"a": [1]},
            "`a` has 1 items, at least 2 are needed",
        ),
        ({"properties": {"a": {"pattern": "^x"}}}, {"a": "y"}, '`a` must be str /^x/, not "y"'),
        ({"properties": {"a": False}}, {"a": 1}, "`a` may not be given"),
        ({"minProperties": 1}, {}, "the call has 0 members, at least 1 are needed"),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, "`b` is missing"),
        (
            {"properties": {"a": {"oneOf": [{"type": "integer"}, {"minimum": 0}]}}},
            {"a": 1},
            "`a` matches several alternatives, but must match exactly one",
        ),
        (
            {"properties": {"a": {"propertyNames": {"maxLength": 1}}}},
            {"a": {"bb": 1}},
            "`a` has a member with a wrong name",
        ),
    ],
)
def test_rules_that_no_type_expresses_are_described_in_words(
    schema: Any, arguments: Any, said: str
) -> None:
    assert said in refusal({"type": "object", **schema}, arguments).message


def test_an_unknown_parameter_is_reported_with_the_nearest_known_one() -> None:
    error = refusal(CREATE, {"project": "WEB", "titel": "Crash"})
    assert "there is no `titel` (did you mean `title`?); `title` is missing" in error.message
    assert error.details["field"] == "titel"
    assert error.details["nearest"] == ["title"]
    assert [problem["field"] for problem in error.details["problems"]] == ["titel", "title"]


@pytest.mark.parametrize(
    "opening",
    [
        {"additionalProperties": True},
        {"additionalProperties": {"type": "string"}},
        {"patternProperties": {"^x-": {}}},
        {"unevaluatedProperties": True},
        {"anyOf": [{"additionalProperties": True}, {"required": ["project"]}]},
    ],
)
def test_an_unknown_parameter_passes_where_the_schema_says_that_there_may_be_others(
    opening: Any,
) -> None:
    Validator({**CREATE, **opening}).check({**FITTING, "x-more": "yes"}, "create_issue")


OPEN: Any = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "max_results": {"type": "integer"}},
    "required": ["query"],
}


@pytest.mark.parametrize(
    ("given", "passes"),
    [
        ({"query": "a", "trace": True}, True),
        ({"query": "a", "max_results": 1, "maxResults": 2}, True),
        ({"query": "a", "max_page": 1}, True),
        ({"query": "a", "maxResults": 1}, False),
        ({"query": "a", "max_result": 1}, False),
        ({"querry": "a"}, False),
        ({"q": "a"}, False),
    ],
)
def test_a_tool_that_is_not_closed_takes_other_parameters_but_no_typos(
    given: Any, passes: bool
) -> None:
    assert Validator(OPEN, closed=False).accepts(given) is passes
    assert not Validator(OPEN).accepts(given)


def test_a_typo_is_refused_with_the_parameter_that_was_meant() -> None:
    with pytest.raises(InvalidArguments) as caught:
        Validator(OPEN, closed=False).check({"query": "a", "maxResults": 1, "trace": 1}, "find")
    assert caught.value.message.startswith(
        "find: there is no `maxResults` (did you mean `max_results`?). Call it as find("
    )
    assert caught.value.details["nearest"] == ["max_results"]


def test_what_is_unknown_is_named_where_something_is_missing() -> None:
    with pytest.raises(InvalidArguments, match=r"there is no `q`; `query` is missing"):
        Validator(OPEN, closed=False).check({"q": "a"}, "find")


def test_a_schema_that_forbids_other_parameters_is_obeyed_closed_or_not() -> None:
    forbidding = Validator({**OPEN, "additionalProperties": False}, closed=False)
    with pytest.raises(InvalidArguments, match="there is no `trace`"):
        forbidding.check({"query": "a", "trace": 1}, "find")


def test_a_schema_without_a_word_about_parameters_takes_any() -> None:
    assert Validator({"type": "object"}).accepts({"anything": 1})
    assert Validator({"properties": {}, "additionalProperties": True}).accepts({"anything": 1})


def test_a_schema_that_says_that_there_are_no_parameters_takes_none() -> None:
    assert not Validator({"properties": {}}).accepts({"a": 1})
    assert not Validator({"properties": {}, "additionalProperties": False}).accepts({"a": 1})


@pytest.mark.parametrize(
    "branch",
    [
        {"anyOf": [{"properties": {"extra": {}}}, {"required": ["project"]}]},
        {"allOf": [{"$ref": "#/$defs/More"}], "$defs": {"More": {"properties": {"extra": {}}}}},
        {"if": {"required": ["limit"]}, "then": {"properties": {"extra": {}}}},
        {"dependentSchemas": {"limit": {"properties": {"extra": {}}}}},
        {"required": ["project", "extra"]},
    ],
)
def test_a_parameter_that_any_branch_names_is_known(branch: Any) -> None:
    validator = Validator({**CREATE, **branch})
    assert validator.accepts({**FITTING, "extra": 1})
    assert not validator.accepts({**FITTING, "other": 1})


def test_many_problems_are_listed_briefly_and_counted() -> None:
    names = [f"p{n}" for n in range(20)]
    error = refusal({"properties": {name: {} for name in names}, "required": names}, {})
    assert "`p5` is missing; and 14 more. Call it as" in error.message


def test_a_long_value_is_cut_in_the_message() -> None:
    error = refusal(CREATE, {**FITTING, "limit": "x" * 10_000})
    assert len(error.message.split(" Call it as ")[0]) < 200


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "str"}, "str"),
        ({"properties": {"a": {"type": "strng"}}}, "strng"),
        ({"properties": {"a": {"properties": []}}}, "object"),
        ({"properties": {"a": {"$ref": "#/nowhere"}}}, "nowhere"),
        ({"type": "string"}, "not an object"),
        ([], "not an object"),
        ({"$schema": "https://example.test/own-dialect", "type": "object"}, "own-dialect"),
    ],
)
def test_a_wrong_schema_lets_everything_through_and_says_why(schema: Any, reason: str) -> None:
    validator = Validator(schema)
    assert validator.problem is not None
    assert reason in validator.problem
    assert validator.check({"a": 1}, "f") == {"a": 1}


@pytest.mark.parametrize(
    "reference",
    [
        "http://127.0.0.1:9/schema.json",
        "https://example.test/x",
        "file:///etc/hostname",
        "other.json",
    ],
)
def test_a_reference_out_of_the_schema_is_never_followed(reference: str) -> None:
    validator = Validator({"properties": {"a": {"$ref": reference}}})
    assert validator.problem is not None
    assert validator.accepts({"a": 1})


def test_definitions_that_were_pasted_below_the_root_are_used() -> None:
    pasted = {
        "properties": {"color": {"$ref": "#/$defs/Color"}},
        "$defs": {"Color": {"enum": ["red"]}},
    }
    validator = Validator({"type": "object", "properties": {"a": pasted}})
    assert validator.problem is None
    assert validator.accepts({"a": {"color": "red"}})
    assert not validator.accepts({"a": {"color": "blue"}})


def test_an_empty_list_of_properties_is_what_some_languages_write_for_an_empty_object() -> None:
    validator = Validator({"type": "object", "properties": [], "required": []})
    assert validator.problem is None
    assert validator.accepts({})


def test_the_draft_that_a_schema_names_is_respected() -> None:
    old = {"$schema": "http://json-schema.org/draft-04/schema#"}
    schema = {"properties": {"a": {"minimum": 0, "exclusiveMinimum": True}}}
    assert not Validator({**schema, **old}).accepts({"a": 0})
    assert Validator(schema).problem is not None  # in 2020-12 the bound is a number


def test_formats_are_left_to_the_server() -> None:
    for dialect in ("http://json-schema.org/draft-07/schema#", None):
        schema = {"properties": {"at": {"type": "string", "format": "date-time"}}}
        made = {**schema, "$schema": dialect} if dialect else schema
        assert Validator(made).accepts({"at": "tomorrow"})


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan")])
def test_what_is_not_json_is_refused_in_words(value: Any) -> None:
    schema = {"type": "object", "properties": {"a": {"type": ["integer", "object"]}}}
    error = refusal({**schema, "additionalProperties": {"type": "string"}}, {"a": value})
    assert error.details["tool"] == "create_issue"


def test_validators_are_cached_by_tool_and_rebuilt_when_the_schema_changes() -> None:
    validators = Validators()
    first = validators.get("a", CREATE)
    assert validators.get("a", CREATE) is first
    assert validators.get("a", {**CREATE}) is first
    assert validators.get("a", {"type": "object"}) is not first


def test_the_least_recently_used_validator_goes_first() -> None:
    validators = Validators(capacity=2)
    first, second = validators.get("a", CREATE), validators.get("b", CREATE)
    assert validators.get("a", CREATE) is first
    validators.get("c", CREATE)
    assert len(validators) == 2
    assert validators.get("a", CREATE) is first
    assert validators.get("b", CREATE) is not second


def test_an_example_must_be_a_valid_call() -> None:
    def tool(**invocation: Any) -> Tool:
        return Tool(
            "create_issue", constant_definition(CREATE), examples=(Example("A crash", invocation),)
        )

    check_examples(tool(**FITTING))
    with pytest.raises(ConfigError, match="The example 'A crash' is not a valid call to create"):
        check_examples(tool(project="WEB"))
