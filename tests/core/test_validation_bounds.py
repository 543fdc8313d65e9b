"""Schemas made to hurt: what they would cost is known before they are used."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from pegboard.core.validation import Validator
from pegboard.core.validation.bounds import MAX_DEPTH, compute_bounds, drop_unsafe_patterns
from pegboard.errors import InvalidArguments


def chain(length: int, uses: int = 1) -> dict[str, Any]:
    """Definitions of which each uses the next one so many times."""
    each = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * uses} for n in range(length)}
    return {"$ref": "#/$defs/d0", "$defs": {**each, f"d{length}": {"type": "object"}}}


def tree(*branches: dict[str, Any]) -> dict[str, Any]:
    """A recursive definition with these branches, each of which may refer to it as `Node`."""
    return {"properties": {"root": NODE}, "$defs": {"Node": {"anyOf": list(branches)}}}


NODE = {"$ref": "#/$defs/Node"}


def nested(levels: int, inner: Any = None, key: str = "a") -> Any:
    value = inner
    for _ in range(levels):
        value = {key: value}
    return value


def test_an_ordinary_schema_needs_no_bounds() -> None:
    assert compute_bounds(chain(10, uses=2))[:3] == (None, None, None)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (chain(30, uses=2), "unfolds"),
        (chain(3_000), "unfolds"),
        (nested(5_000, {}, "not"), "too deep"),
        ({"enum": list(range(60_000))}, "too large"),
        ({"$ref": "#"}, "without end"),
        ({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"not": {"$ref": "#"}}}}, "without end"),
    ],
    ids=["doubling", "long-chain", "deep", "large", "self", "in-a-circle"],
)
def test_a_schema_that_costs_too_much_is_not_used(schema: Any, reason: str) -> None:
    validator = Validator(schema)
    assert validator.problem is not None
    assert reason in validator.problem
    assert validator.accepts({"a": 1})


def test_a_recursive_schema_is_used() -> None:
    validator = Validator(tree({"type": "object", "properties": {"a": NODE}}, {"type": "integer"}))
    assert validator.problem is None
    assert validator.accepts({"root": nested(50, 1)})
    assert not validator.accepts({"root": nested(50, "x")})


@pytest.mark.parametrize("levels", [MAX_DEPTH + 10, 100_000])
def test_arguments_deeper_than_a_stack_are_refused_by_a_recursive_schema(levels: int) -> None:
    schema = tree({"type": "object", "properties": {"a": NODE}}, {"type": "integer"})
    with pytest.raises(InvalidArguments, match=f"more than {MAX_DEPTH} levels"):
        Validator(schema).check({"root": nested(levels, 1)}, "f")


def test_deep_arguments_fit_a_small_stack() -> None:
    schema = tree({"type": "object", "properties": {"a": NODE}}, {"type": "integer"})
    validator = Validator(schema)
    deepest, answers = compute_bounds(schema).deepest, list[bool]()
    assert deepest is not None
    before = threading.stack_size(512 * 1024)
    try:
        thread = threading.Thread(
            target=lambda: answers.append(validator.accepts({"root": nested(deepest - 2, 1)}))
        )
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert answers == [True]


def test_errors_are_listed_only_as_deep_as_the_list_stays_short() -> None:
    # Each level would double the list: at sixteen levels it takes half a minute to make.
    schema = tree(*({"type": "object", "properties": {"a": NODE}} for _ in range(2)))
    assert compute_bounds(schema).explained == 9
    with pytest.raises(InvalidArguments, match="somewhere deep inside"):
        Validator(schema).check({"root": nested(60, 5)}, "f")
    with pytest.raises(InvalidArguments, match="`root"):
        Validator(schema).check({"root": nested(3, 5)}, "f")


def test_a_pattern_that_backtracks_without_end_decides_nothing() -> None:
    # The engine gives up after a bounded number of steps; what it could not tell is no problem.
    validator = Validator({"properties": {"a": {"type": "string", "pattern": r"^(a|aa)+\1$"}}})
    arguments = {"a": "a" * 60 + "!"}
    assert validator.check(arguments, "f") is arguments


@pytest.mark.parametrize("pattern", [r"(?!.*\.\.)\S+@\S+\.\S+", r"(?<=a)b", r"(a)\1", "("])
def test_a_pattern_that_is_not_linear_is_left_to_the_server(pattern: str) -> None:
    schema = {"properties": {"a": {"pattern": pattern}, "n": {"type": "integer"}}}
    validator = Validator(schema)
    assert validator.problem is None
    assert drop_unsafe_patterns(schema)[1] == [pattern]
    assert validator.accepts({"a": "x" * 200_000})
    assert not validator.accepts({"n": "x"})


@pytest.mark.parametrize(
    "schema",
    [
        {"not": {"pattern": "(?!a)b"}},
        {"oneOf": [{"pattern": "(?!a)b"}, {"pattern": "(?=a)a"}]},
        {"if": {"pattern": "(?!a)b"}, "then": False},
        {"contains": {"pattern": "(?!a)b"}, "maxContains": 0, "minContains": 0},
        {"not": {"$ref": "#/$defs/odd"}},
        {"additionalProperties": False, "patternProperties": {"(?!a)b": {"type": "integer"}}},
    ],
    ids=["not", "oneOf", "if", "contains", "reference", "members"],
)
def test_leaving_a_pattern_out_never_refuses_more(schema: Any) -> None:
    whole = {"properties": {"a": schema}, "$defs": {"odd": {"pattern": "(?!a)b"}}}
    validator = Validator(whole)
    for value in ("a", "b", ["b"], {"b": 1}, {"b": "x"}, 1):
        assert validator.accepts({"a": value}), value


def test_work_is_known_before_anything_is_compiled_or_checked() -> None:
    text = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert not Validator(text).is_expensive({"a": "x" * 1_000_000}), (
        "nothing looks at its characters"
    )
    wide = {"properties": {"a": {"pattern": "[ab]*a[ab]{1000}c"}}}
    assert not Validator(wide).is_expensive({"a": "ab" * 100})
    assert Validator(wide).is_expensive({"a": "ab" * 10_000})
    assert Validator(text).is_expensive({"a": [1] * 10_000})
    many = {"properties": {f"p{n}": {"pattern": f"[ab]{{1000}}{n}"} for n in range(500)}}
    assert Validator(many).is_expensive({}), "compiling it alone takes long"
