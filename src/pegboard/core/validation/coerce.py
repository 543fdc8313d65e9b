"""Coercing what weak models send: the right arguments in the wrong form.

    '{"limit": 5}'                             ->  {"limit": 5}    a string that holds the object
    {"name": "search", "arguments": {...}}     ->  {...}           the call instead of its arguments
    {"limit": "5"}                             ->  {"limit": 5}    a string where only a number fits
    {"limit": 5, "after": null}                ->  {"limit": 5}    null for an optional parameter

Valid arguments come back as the same object. Of others only the values that the schema refuses are
changed, and only where there is one way to read them.
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
from pegboard.core.validation.problems import relevant_errors, view_at
from pegboard.core.validation.validators import Validator
from pegboard.errors import InvalidArguments

_MAX_ROUNDS = 3
"""How often values are changed: a decoded list may hold strings that have to be coerced too."""
_WRAPPERS = ("arguments", "params", "parameters", "args", "input")
_NAMES = ("name", "tool", "tool_name", "toolName", "type")
_FENCED = re.compile(r"```\w*+(.*)```", re.DOTALL)
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_MAX_NUMBER_LENGTH = 400
_ABSENT: Final = object()
"""In place of a value: there is none, or it is to be removed."""
_TYPE_NAMES = {
    **{"array": "a list", "string": "a string", "boolean": "a boolean", "null": "null"},
    **{"integer": "a number", "number": "a number", "object": "an object"},
}


def coerce_arguments(
    tool: str, given: Json, schema: Validator | JsonObject, *, coerce: bool = True
) -> JsonObject:
    """The arguments that were likely meant; not validated yet.

    Args:
        tool: The tool's name.
        given: What the client sent.
        schema: The tool's parameters; a validator that is there already saves compiling one.
        coerce: Whether strings may become the numbers, booleans, lists and objects they contain.

    Raises:
        InvalidArguments: It is not an object, nor a string that holds one.
    """
    validator = schema if isinstance(schema, Validator) else Validator(schema)
    arguments = decode_arguments(tool, given)
    if validator.accepts(arguments) and not validator.unknown_names(arguments):
        return arguments
    for _ in range(_MAX_ROUNDS):
        # In each round: what was removed may have hidden that the rest is a wrapper.
        arguments = _unwrap(tool, arguments, validator)
        changes = list(_find_changes(arguments, validator, coerce=coerce))
        if not changes:
            break
        arguments = deepcopy(arguments)
        for path, meant in changes:
            holder: Json = arguments
            for step in path[:-1]:
                holder = holder[step]
            if meant is _ABSENT:
                holder.pop(path[-1], None)
            else:
                holder[path[-1]] = meant
    return arguments


def decode_arguments(tool: str, given: Json) -> JsonObject:
    """The arguments as an object, decoded where they are a string that holds one."""
    for _ in range(2):  # some models encode twice
        if not isinstance(given, str):
            break
        text = given.strip()
        if fenced := _FENCED.fullmatch(text):
            text = fenced[1].strip()
        try:
            given = json.loads(text, parse_constant=_reject_constant) if text else {}
        except json.JSONDecodeError as exc:
            near = text[max(0, exc.pos - 20) : exc.pos + 20]
            place = f"line {exc.lineno} column {exc.colno}, near {near!r}"
            _refuse(tool, f"the arguments are a string that is not JSON: {exc.msg} at {place}")
        except (ValueError, RecursionError) as exc:
            _refuse(tool, f"the arguments are a string that is not JSON: {exc}")
    if given is None:
        return {}
    if isinstance(given, dict):
        return given
    _refuse(tool, f"the arguments must be an object, not {_TYPE_NAMES[json_type(given)]}")


def _refuse(tool: str, what: str) -> NoReturn:
    raise InvalidArguments(f"{tool}: {what}. Send a JSON object.", tool=tool, expected="object")


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _unwrap(tool: str, arguments: JsonObject, validator: Validator) -> JsonObject:
    """The arguments without a second layer that names the tool again."""
    # A parameter of the tool itself that is called `arguments` or `name` is never a wrapper.
    own = validator.parameters
    if len(arguments) == 1 and tool in arguments and tool not in own:
        return _unwrap_key(arguments, tool)
    for wrapper in _WRAPPERS:
        if wrapper not in arguments or wrapper in own:
            continue
        # Beside the arguments there may only be what names the tool once more.
        others = [(key, value) for key, value in arguments.items() if key != wrapper]
        if all(k in _NAMES and k not in own and _names_tool(v, tool) for k, v in others):
            return _unwrap_key(arguments, wrapper)
    return arguments


def _unwrap_key(arguments: JsonObject, key: str) -> JsonObject:
    """The value of a key, if it is an object or a string that holds one; else all arguments."""
    try:
        return decode_arguments(key, arguments[key])
    except InvalidArguments:
        return arguments


def _names_tool(value: Json, tool: str) -> bool:
    """Whether a string is the tool's name, with or without its group, or a word for a call."""
    if not isinstance(value, str):
        return False
    return value in (tool, "function", "tool_use", "tool_call") or any(
        value.endswith(mark + tool) or tool.endswith(mark + value) for mark in (".", "/", "__", ":")
    )


def _find_changes(
    arguments: JsonObject, validator: Validator, *, coerce: bool
) -> Iterator[tuple[Sequence[str | int], Json]]:
    """Each refused value that can only mean one other: the path to it, and the other."""
    for error in validator.errors(arguments):
        for leaf in relevant_errors(error):
            if not leaf.instance_path:  # about the arguments as a whole
                continue
            if leaf.instance is None:
                if _is_optional(leaf, validator.schema):
                    yield leaf.instance_path, _ABSENT
            elif coerce and isinstance(leaf.instance, str):
                meant = _coerce_string(leaf.instance, leaf, validator.schema)
                if meant is not _ABSENT:
                    yield leaf.instance_path, meant


def _is_optional(error: jsonschema_rs.ValidationError, schema: JsonObject) -> bool:
    """Whether the value is a named member that its object does not require."""
    name, path = error.instance_path[-1], list(error.schema_path)
    # The innermost `properties` that names it: the path may go on through `anyOf` and `type`.
    for end in range(len(path) - 1, 0, -1):
        if path[end - 1] == "properties" and path[end] == name:
            return name not in view_at(path[: end - 1], schema).required
    return False


def _coerce_string(text: str, error: jsonschema_rs.ValidationError, schema: JsonObject) -> Json:
    """The one value of another type that a string can stand for here, or `_ABSENT`."""
    view = view_at(error.schema_path[:-1], schema)
    wanted = set(all_types(view))
    if "string" in wanted:  # it is a string that is wrong in another way, such as its length
        return _ABSENT
    meant = _parse_value(text.strip())
    kind = json_type(meant)
    fits = kind in wanted or (kind == "integer" and "number" in wanted)
    if kind == "number" and "integer" in wanted and meant == int(meant):  # such as "5.0"
        meant, fits = int(meant), True
    allowed = allowed_values(view)
    return meant if fits and (allowed is None or meant in allowed) else _ABSENT


def _parse_value(text: str) -> Json:
    """The boolean, number, list or object that a string contains; else the string itself."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if _NUMBER.fullmatch(text) and len(text) <= _MAX_NUMBER_LENGTH:
        number = float(text) if any(mark in text for mark in ".eE") else int(text)
        return number if abs(number) < math.inf else text  # "1e999" would be infinite
    if text[:1] in ("[", "{"):
        try:
            return json.loads(text, parse_constant=_reject_constant)
        except (ValueError, RecursionError):
            return text
    return text
