"""Selection: a JMESPath expression over a result, bounded so that no expression can take us down.

`jmespath` evaluates expressions of anybody's making. Three things can go wrong, each with its
bound:

- *many steps*: every visit of the interpreter is counted (`Limits.steps`);
- *copies*: `[@,@] | [@,@] | …` doubles with each pipe. How often an expression can repeat its
  input is read off the expression itself (`_copies`) before it runs;
- *long texts*: `join` and `to_string` build new ones, so they are measured first (`Limits.text`).

JMESPath has no reference to the root, so nothing else multiplies.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jmespath import functions
from jmespath.exceptions import JMESPathError, JMESPathTypeError, UnknownFunctionError
from jmespath.parser import Parser
from jmespath.visitor import Options, TreeInterpreter

from pegboard.core.json import Json, JsonObject
from pegboard.errors import InvalidField

EXAMPLE = "items[?state=='open'].{id: id, title: title}"
SYNTAX = (
    f"A JMESPath expression is expected, such as {EXAMPLE}: texts in single quotes, keys with "
    "other characters than letters, digits and _ in double quotes."
)


@dataclass(frozen=True, slots=True)
class SelectionLimits:
    """How much an expression may ask for."""

    length: int = 1_000
    steps: int = 1_000_000
    copies: int = 64
    text: int = 1_000_000


DEFAULT_LIMITS = SelectionLimits()
QUICK_LIMITS = SelectionLimits(steps=10_000, text=50_000)
"""What takes a moment, in a value that is not large: beyond it, others would notice."""


def select(value: Json, expression: str, limits: SelectionLimits = DEFAULT_LIMITS) -> Json:
    """What the expression finds in the value; `None` when it finds nothing.

    Raises:
        InvalidField: It is no JMESPath, does not fit the value, or costs too much to run.
    """
    try:
        return evaluate(value, expression, limits)
    except TooExpensive as error:
        raise _invalid(expression, f"{error} Narrow it, or read the result in pages.") from error


def evaluate(value: Json, expression: str, limits: SelectionLimits = DEFAULT_LIMITS) -> Json:
    """The same as `select`, for those who can go on elsewhere when it takes too long.

    Raises:
        TooExpensive: It takes more than the limits allow.
        InvalidField: It is no JMESPath, or does not fit the value.
    """
    check_expression(expression, limits)
    parsed, _ = _compile(expression)
    try:
        return _Interpreter(limits).visit(parsed, value)
    except (JMESPathError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise _invalid(expression, _reason(error)) from error


def check_expression(expression: str, limits: SelectionLimits = DEFAULT_LIMITS) -> None:
    """Return when an expression may be run, before any value is there to run it on.

    Raises:
        InvalidField: It is no JMESPath, or can only be too expensive.
    """
    if len(expression) > limits.length:
        raise _invalid(expression, f"An expression has at most {limits.length:,} characters.")
    try:
        _, copies = _compile(expression)
    except (JMESPathError, RecursionError) as error:
        raise _invalid(expression, f"{_reason(error)} {SYNTAX}") from error
    if copies > limits.copies:
        raise _invalid(expression, f"It would repeat its input up to {copies:,} times.")


@lru_cache(maxsize=512)
def _compile(expression: str) -> tuple[Any, int]:
    """The syntax tree, and how often its result can hold its input."""
    parsed: Any = Parser().parse(expression).parsed
    return parsed, _copies(parsed)


def timeout_error(expression: str, why: str) -> InvalidField:
    """The error for an expression that was stopped."""
    return _invalid(expression, f"{why} Narrow it, or read the result in pages.")


def _reason(error: Exception) -> str:
    """What was wrong, on one line, without the value that it was wrong with."""
    if isinstance(error, RecursionError):
        return "It is nested too deeply."
    if isinstance(error, UnknownFunctionError):
        return _unknown_function(str(error))
    if isinstance(error, JMESPathTypeError):
        wanted = " or ".join(error.expected_types)
        return f"{error.function_name}() takes {wanted}, not {error.actual_type}."
    lines = str(error).splitlines() or [type(error).__name__]
    return f"{lines[0].rstrip('.:')[:300]}."


def _invalid(expression: str, why: str) -> InvalidField:
    shown = expression if len(expression) <= 200 else f"{expression[:200]}…"
    return InvalidField(f"Invalid select: {shown}. {why}", field=shown, expected=EXAMPLE)


def _unknown_function(message: str) -> str:
    from rapidfuzz import process

    name = message.removeprefix("Unknown function: ").removesuffix("()")
    known = sorted(_Functions.FUNCTION_TABLE)
    nearest = [match for match, _, _ in process.extract(name, known, limit=3)]
    return f"There is no function {name}(); perhaps {', '.join(nearest)}."


def _copies(node: JsonObject) -> int:
    """At most how often the result of an expression can hold the value that it is given.

    A multiselect adds up its members, except that members which start at different keys share the
    value between them; whatever is applied one after the other multiplies.
    """
    kind = node["type"]
    children: list[JsonObject] = [c for c in node.get("children", ()) if isinstance(c, dict)]
    if kind in ("multi_select_list", "multi_select_dict"):
        return _copies_of_members(children)
    if kind == "function_expression":
        applied = [c for c in children if c["type"] == "expref"]
        inputs = sum(_copies(c) for c in children if c["type"] != "expref") or 1
        escaped = 6 if node["value"] == "to_string" else 1  # a control character becomes \u0001
        return inputs * escaped * _product(applied)
    if kind in ("or_expression", "and_expression", "comparator", "not_expression"):
        return max((_copies(c) for c in children), default=1)
    if (
        kind == "filter_projection"
    ):  # its condition chooses and adds nothing, but must itself be cheap
        return max(_product(children[:2]), _copies(children[2]))
    return _product(children)


def _product(children: Sequence[JsonObject]) -> int:
    total = 1
    for child in children:
        total *= _copies(child)
    return total


def _copies_of_members(children: Sequence[JsonObject]) -> int:
    of_key: dict[str, int] = defaultdict(int)
    of_all = 0
    for child in children:
        key = _first_key(child)
        if key is None:
            of_all += _copies(child)
        else:
            of_key[key] += _copies(child)
    return max(1, of_all + max(of_key.values(), default=0))


def _first_key(node: JsonObject) -> str | None:
    """The key at which an expression enters the value, if it does so at one."""
    while node["type"] in _ENTERED_AT_THE_LEFT:
        node = node["children"][0]
    return node["value"] if node["type"] == "field" else None


_ENTERED_AT_THE_LEFT = frozenset(
    [
        "key_val_pair",
        "subexpression",
        "index_expression",
        "projection",
        "value_projection",
        "filter_projection",
        "flatten",
        "pipe",
    ]
)


class TooExpensive(Exception):
    """A bound was reached; no `ValueError`, which stands for an expression that does not fit."""


class _Functions(functions.Functions):
    """JMESPath's functions, where those that build texts measure them first."""

    def __init__(self, limits: SelectionLimits) -> None:
        self._limits = limits

    @functions.signature({"types": ["string"]}, {"types": ["array-string"]})
    def _func_join(self, separator: str, parts: list[str]) -> str:
        length = sum(map(len, parts)) + len(separator) * max(0, len(parts) - 1)
        self._admit(length)
        return separator.join(parts)

    @functions.signature({"types": []})
    def _func_to_string(self, value: Any) -> str:
        if isinstance(value, str):
            return value
        text: list[str] = []
        length = 0
        for piece in json.JSONEncoder(separators=(",", ":"), default=str).iterencode(value):
            length += len(piece)
            self._admit(length)
            text.append(piece)
        return "".join(text)

    def _admit(self, length: int) -> None:
        if length > self._limits.text:
            raise TooExpensive(f"It builds a text of more than {self._limits.text:,} characters.")


class _Interpreter(TreeInterpreter):
    """JMESPath's interpreter, counting its visits."""

    def __init__(self, limits: SelectionLimits) -> None:
        super().__init__(Options(custom_functions=_Functions(limits)))
        self._left = limits.steps
        self._steps = limits.steps

    def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        self._left -= 1
        if self._left < 0:
            raise TooExpensive(f"It takes more than {self._steps:,} steps.")
        return super().visit(node, *args, **kwargs)
