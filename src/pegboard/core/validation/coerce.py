"""Reading what weak models send: the right arguments in the wrong wrapping.

Arguments that fit come back as the same object. Of others only what the schema refuses is touched,
and only where there is one way to read it:

- a text that spells the whole object, or an object that names the tool once more around them;
- a text where a number, a boolean, a list or an object is wanted and no text is;
- `null` for an optional parameter that does not take it: it was left out.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Final, NoReturn

import jsonschema_rs

from pegboard.core.json import Json, JsonObject, json_type
from pegboard.core.schemas.parameter_docs import all_types
from pegboard.core.schemas.signatures import allowed_values
from pegboard.core.validation.problems import at, leaves
from pegboard.core.validation.validators import Validator
from pegboard.errors import InvalidArguments

_ROUNDS = 3
_WRAPPERS = ("arguments", "params", "parameters", "args", "input")
_NAMES = ("name", "tool", "tool_name", "toolName", "type")
_FENCED = re.compile(r"```\w*\s*(.*?)\s*```", re.DOTALL)
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_LONGEST_NUMBER = 400
_NOTHING: Final = object()


def understood(
    tool: str, given: Json, schema: Validator | JsonObject, *, coerce: bool = True
) -> JsonObject:
    """The arguments that were meant; not checked yet.

    Args:
        tool: The tool's name.
        given: What the client sent.
        schema: The tool's parameters; a validator that is there already saves compiling one.
        coerce: Whether texts may become the numbers, booleans, lists and objects that they spell.

    Raises:
        InvalidArguments: It is no object, nor a text that spells one.
    """
    validator = schema if isinstance(schema, Validator) else Validator(schema)
    arguments = as_object(tool, given)
    if validator.accepts(arguments) and not validator.strangers(arguments):
        return arguments
    arguments = _unwrapped(tool, arguments, validator)
    for _ in range(_ROUNDS):
        mended = _mended(arguments, validator, coerce=coerce)
        if mended is arguments:
            break
        arguments = mended
    return arguments


def as_object(tool: str, given: Json) -> JsonObject:
    """The arguments as an object, decoded where they are a text that spells one."""
    for _ in range(2):  # some encode twice
        if isinstance(given, str):
            given = _decoded(tool, given)
    if given is None:
        return {}
    if isinstance(given, dict):
        return given
    _refuse(tool, f"the arguments must be an object, not {_A[json_type(given)]}")


def _decoded(tool: str, text: str) -> Json:
    text = text.strip()
    if fenced := _FENCED.fullmatch(text):
        text = fenced[1]
    if not text:
        return {}
    try:
        return json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as exc:
        near = text[max(0, exc.pos - 20) : exc.pos + 20]
        place = f"line {exc.lineno} column {exc.colno}, near {near!r}"
        _refuse(tool, f"the arguments are a text that is not JSON: {exc.msg} at {place}")
    except (ValueError, RecursionError) as exc:
        _refuse(tool, f"the arguments are a text that is not JSON: {exc}")


def _refuse(tool: str, what: str) -> NoReturn:
    raise InvalidArguments(f"{tool}: {what}. Send a JSON object.", tool=tool, expected="object")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


_A = {
    **{"array": "a list", "string": "a text", "boolean": "a boolean", "null": "null"},
    **{"integer": "a number", "number": "a number", "object": "an object"},
}


def _unwrapped(tool: str, arguments: JsonObject, validator: Validator) -> JsonObject:
    """The arguments without a second layer that names the tool again."""
    own = validator.parameters
    if len(arguments) == 1 and tool in arguments and tool not in own:
        return _inner(arguments, tool)
    for wrapper in _WRAPPERS:
        others = {key: value for key, value in arguments.items() if key != wrapper}
        named = all(k in _NAMES and k not in own and _is_name(v, tool) for k, v in others.items())
        if wrapper in arguments and wrapper not in own and named:
            return _inner(arguments, wrapper)
    return arguments


def _inner(arguments: JsonObject, key: str) -> JsonObject:
    """What stands under a key, if it is an object, a text that spells one, or nothing."""
    try:
        return as_object(key, arguments[key])
    except InvalidArguments:
        return arguments


def _is_name(value: Json, tool: str) -> bool:
    """Whether a text is the tool's name, with or without its group, or a word for a call."""
    if not isinstance(value, str):
        return False
    return value in (tool, "function", "tool_use", "tool_call") or any(
        value.endswith(mark + tool) or tool.endswith(mark + value) for mark in (".", "/", "__", ":")
    )


def _mended(arguments: JsonObject, validator: Validator, *, coerce: bool) -> JsonObject:
    """The arguments with every refused value replaced that can only mean one other."""
    changes = list(_changes(arguments, validator, coerce=coerce))
    if not changes:
        return arguments
    made = deepcopy(arguments)
    for path, meant in changes:
        holder: Json = made
        for step in path[:-1]:
            holder = holder[step]
        if meant is _NOTHING:
            holder.pop(path[-1], None)
        else:
            holder[path[-1]] = meant
    return made


def _changes(
    arguments: JsonObject, validator: Validator, *, coerce: bool
) -> Iterator[tuple[Sequence[str | int], Json]]:
    for error in validator.errors(arguments):
        for leaf in leaves(error):
            if not leaf.instance_path:
                continue
            if leaf.instance is None:
                if _is_optional(leaf, validator.schema):
                    yield leaf.instance_path, _NOTHING
            elif coerce and isinstance(leaf.instance, str):
                meant = _meant(leaf.instance, leaf, validator.schema)
                if meant is not _NOTHING:
                    yield leaf.instance_path, meant


def _is_optional(error: jsonschema_rs.ValidationError, schema: JsonObject) -> bool:
    """Whether the value is a named member that its object can do without."""
    name, path = error.instance_path[-1], list(error.schema_path)
    for end in range(len(path) - 1, 0, -1):
        if path[end - 1] == "properties" and path[end] == name:
            return name not in at(path[: end - 1], schema).required
    return False


def _meant(text: str, error: jsonschema_rs.ValidationError, schema: JsonObject) -> Json:
    """The one value of another type that a text can stand for here."""
    view = at(error.schema_path[:-1], schema)
    wanted = set(all_types(view))
    if "string" in wanted:
        return _NOTHING
    meant = _spelled_by(text.strip())
    kind = json_type(meant)
    fits = kind in wanted or (kind == "integer" and "number" in wanted)
    if kind == "number" and "integer" in wanted and meant == int(meant):
        meant, fits = int(meant), True
    allowed = allowed_values(view)
    return meant if fits and (allowed is None or meant in allowed) else _NOTHING


def _spelled_by(text: str) -> Json:
    """The JSON value that a text spells; itself when it spells none."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if _NUMBER.fullmatch(text) and len(text) <= _LONGEST_NUMBER:
        number = float(text) if any(mark in text for mark in ".eE") else int(text)
        return number if abs(number) < math.inf else text
    if text[:1] in ("[", "{"):
        try:
            return json.loads(text, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            return text
    return text
