"""Selection: a JMESPath expression over a result, bounded because callers write the expressions.

Three things can go wrong, each with its limit (`SelectionLimits`):

- *many steps*: every visit of the interpreter is counted (`steps`);
- *copies*: `[@,@] | [@,@] | …` doubles with each pipe. How often an expression can repeat its
  input is computed from the expression itself before it runs (`copies`);
- *long texts*: `join` and `to_string` build new ones, so they are measured first (`text`).

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
from pegboard.core.similar_names import nearest
from pegboard.errors import InvalidField

EXAMPLE = "items[?state=='open'].{id: id, title: title}"
SYNTAX = (
    f"A JMESPath expression is expected, such as {EXAMPLE}: texts in single quotes, keys with "
    "characters other than letters, digits and _ in double quotes."
)


@dataclass(frozen=True, slots=True)
class SelectionLimits:
    """What an expression may cost."""

    length: int = 1_000
    steps: int = 1_000_000
    copies: int = 64
    text: int = 1_000_000


DEFAULT_LIMITS = SelectionLimits()
QUICK_LIMITS = SelectionLimits(steps=10_000, text=50_000)
"""For the event loop: beyond these, other clients would notice."""


def select(value: Json, expression: str, limits: SelectionLimits = DEFAULT_LIMITS) -> Json:
    """What the expression finds in the value; `None` when it finds nothing.

    Raises:
        InvalidField: It is not JMESPath, does not fit the value, or costs too much to run.
    """
    try:
        return evaluate_expression(value, expression, limits)
    except TooExpensive as error:
        raise too_expensive_error(expression, str(error)) from error


def evaluate_expression(
    value: Json, expression: str, limits: SelectionLimits = DEFAULT_LIMITS
) -> Json:
    """The same as `select`, for callers that can run it elsewhere when it takes too long.

    Raises:
        TooExpensive: It takes more than the limits allow.
        InvalidField: It is not JMESPath, or does not fit the value.
    """
    check_expression(expression, limits)
    parsed, _ = _compile(expression)
    try:
        return _Interpreter(limits).visit(parsed, value)
    except (JMESPathError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise _invalid(expression, _reason(error)) from error


def check_expression(expression: str, limits: SelectionLimits = DEFAULT_LIMITS) -> None:
    """Check that an expression may be run; needs no value to run it on.

    Raises:
        InvalidField: It is not JMESPath, or is too expensive for any value.
    """
    if len(expression) > limits.length:
        raise _invalid(expression, f"An expression has at most {limits.length:,} characters.")
    try:
        _, copies = _compile(expression)
    except (JMESPathError, RecursionError) as error:
        raise _invalid(expression, f"{_reason(error)} {SYNTAX}") from error
    if copies > limits.copies:
        raise _invalid(expression, f"It would repeat its input up to {copies:,} times.")


# Checked before the call and run after it, and often repeated: parsed once.
@lru_cache(maxsize=512)
def _compile(expression: str) -> tuple[Any, int]:
    """The syntax tree, and how often its result can hold its input."""
    parsed: Any = Parser().parse(expression).parsed
    return parsed, _copies(parsed)


def too_expensive_error(expression: str, why: str) -> InvalidField:
    """The error for an expression that was stopped at a limit or at a deadline."""
    return _invalid(expression, f"{why} Narrow it, or read the result in pages.")


def _reason(error: Exception) -> str:
    """What is wrong, on one line, without the value: results do not belong in messages."""
    if isinstance(error, RecursionError):
        return "It is nested too deeply."
    if isinstance(error, UnknownFunctionError):
        name = str(error).removeprefix("Unknown function: ").removesuffix("()")
        similar = nearest(name, sorted(_Functions.FUNCTION_TABLE), limit=3)
        hint = f"perhaps {', '.join(similar)}" if similar else "see the functions of JMESPath"
        return f"There is no function {name}(); {hint}."
    if isinstance(error, JMESPathTypeError):
        wanted = " or ".join(error.expected_types)
        return f"{error.function_name}() takes {wanted}, not {error.actual_type}."
    lines = str(error).splitlines() or [type(error).__name__]
    return f"{lines[0].rstrip('.:')[:300]}."


def _invalid(expression: str, why: str) -> InvalidField:
    shown = expression if len(expression) <= 200 else f"{expression[:200]}…"
    return InvalidField(f"Invalid select: {shown}. {why}", field=shown, expected=EXAMPLE)


def _copies(node: JsonObject) -> int:
    """The upper bound on how often the result of an expression can contain its input.

    A multiselect adds up its members, except that members which start at different keys share the
    input between them. Expressions applied one after the other multiply.
    """
    kind = node["type"]
    children: list[JsonObject] = [c for c in node.get("children", ()) if isinstance(c, dict)]
    if kind in ("multi_select_list", "multi_select_dict"):
        by_key: dict[str, int] = defaultdict(int)
        elsewhere = 0
        for child in children:
            # The key at which a member enters the input, if it does so at one.
            first = child
            while first["type"] in _STARTS_WITH_FIRST_CHILD:
                first = first["children"][0]
            if first["type"] == "field":
                by_key[first["value"]] += _copies(child)
            else:
                elsewhere += _copies(child)
        return max(1, elsewhere + max(by_key.values(), default=0))
    if kind == "function_expression":
        applied = [c for c in children if c["type"] == "expref"]
        inputs = sum(_copies(c) for c in children if c["type"] != "expref") or 1
        escaped = 6 if node["value"] == "to_string" else 1  # a control character becomes \u0001
        return inputs * escaped * _product(applied)
    if kind in ("or_expression", "and_expression", "comparator", "not_expression"):
        # One of the operands, or a boolean: never both.
        return max((_copies(c) for c in children), default=1)
    if kind == "filter_projection":
        # Its condition chooses and adds nothing to the result, but must itself be cheap.
        return max(_product(children[:2]), _copies(children[2]))
    return _product(children)


def _product(children: Sequence[JsonObject]) -> int:
    total = 1
    for child in children:
        total *= _copies(child)
    return total


_STARTS_WITH_FIRST_CHILD = frozenset(
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
    """A limit was reached. Not a `ValueError`, which means that an expression does not fit."""


class _Functions(functions.Functions):
    """JMESPath's functions; those that build texts measure them first."""

    def __init__(self, limits: SelectionLimits) -> None:
        self._limits = limits

    @functions.signature({"types": ["string"]}, {"types": ["array-string"]})
    def _func_join(self, separator: str, parts: list[str]) -> str:
        length = sum(map(len, parts)) + len(separator) * max(0, len(parts) - 1)
        self._check_length(length)
        return separator.join(parts)

    @functions.signature({"types": []})
    def _func_to_string(self, value: Any) -> str:
        if isinstance(value, str):
            return value
        text: list[str] = []
        length = 0
        for piece in json.JSONEncoder(separators=(",", ":"), default=str).iterencode(value):
            length += len(piece)
            self._check_length(length)
            text.append(piece)
        return "".join(text)

    def _check_length(self, length: int) -> None:
        if length > self._limits.text:
            raise TooExpensive(f"It builds a text of more than {self._limits.text:,} characters.")


class _Interpreter(TreeInterpreter):
    """JMESPath's interpreter, counting its visits."""

    def __init__(self, limits: SelectionLimits) -> None:
        super().__init__(Options(custom_functions=_Functions(limits)))
        # `visit` runs for every node and every element, so its count bounds the time.
        self._left = limits.steps
        self._steps = limits.steps

    def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        self._left -= 1
        if self._left < 0:
            raise TooExpensive(f"It takes more than {self._steps:,} steps.")
        return super().visit(node, *args, **kwargs)
