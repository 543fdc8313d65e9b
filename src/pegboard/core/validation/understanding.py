"""Reading what weak models send: the same arguments in another wrapping.

Only what the schema refuses is touched, and only where there is one way to read it. Arguments that
fit as they are come back as the same object.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any, Final

from pegboard.core.json import Json, JsonObject
from pegboard.core.validation.validators import Validator
from pegboard.errors import InvalidArguments

_MOST_ROUNDS = 3
_WRAPPERS = ("arguments", "params", "parameters", "input", "args")
_NAMES = ("name", "tool", "tool_name", "toolName")
_WORDS: dict[str, Json] = {"true": True, "false": False, "null": None, "none": None}
_NOTHING: Final = object()


def understood(tool: str, given: Json, validator: Validator, *, coerce: bool = True) -> JsonObject:
    """The arguments that were meant; not checked yet.

    Args:
        tool: The tool's name.
        given: What the client sent.
        validator: The tool's schema.
        coerce: Whether texts may become the numbers, booleans, lists and objects they spell.

    Raises:
        InvalidArguments: It is no object, nor a text that spells one.
    """
    arguments = _unwrapped(tool, _as_object(tool, given), validator)
    if validator.accepts(arguments):
        return arguments
    return _mended(arguments, validator, coerce=coerce)


def _as_object(tool: str, given: Json) -> JsonObject:
    if given is None or given == "":
        return {}
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError) as exc:
            raise InvalidArguments(
                f"{tool}: the arguments are a text that is not JSON ({exc}). Send an object.",
                tool=tool,
            ) from None
    if isinstance(given, dict):
        return given
    raise InvalidArguments(
        f"{tool}: the arguments must be an object, not {type(given).__name__}.", tool=tool
    )


def _unwrapped(tool: str, arguments: JsonObject, validator: Validator) -> JsonObject:
    """The arguments without a second layer that names the tool again."""
    own = validator.schema.get("properties")
    known: Any = own if isinstance(own, dict) else {}
    if len(arguments) == 1 and tool in arguments and tool not in known:
        return _as_object(tool, arguments[tool])
    for wrapper in _WRAPPERS:
        if wrapper not in arguments or wrapper in known:
            continue
        others = {k: v for k, v in arguments.items() if k != wrapper}
        if all(k in _NAMES and k not in known and v == tool for k, v in others.items()):
            return _as_object(tool, arguments[wrapper])
    return arguments


def _mended(arguments: JsonObject, validator: Validator, *, coerce: bool) -> JsonObject:
    """The arguments with every refused value replaced that can only mean one other."""
    for _ in range(_MOST_ROUNDS):
        changed = copy.deepcopy(arguments)
        count = 0
        for error in validator.errors(arguments):
            count += _mend(changed, list(error.instance_path), coerce=coerce)
        if not count:
            return arguments
        arguments = changed
        if validator.accepts(arguments):
            break
    return arguments


def _mend(arguments: JsonObject, path: Sequence[str | int], *, coerce: bool) -> bool:
    if not path:
        return False
    *before, last = path
    holder: Any = arguments
    for step in before:
        holder = holder[step]
    value = holder[last]
    if value is None and isinstance(last, str):
        del holder[last]  # `null` for what was left out; if it is required, that is said instead
        return True
    meant = _meant(value) if coerce else _NOTHING
    if meant is _NOTHING:
        return False
    holder[last] = meant
    return True


def _meant(value: Json) -> Json:
    """The one other value that this may stand for: what a text spells, or the text of a number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        return _NOTHING
    text = value.strip()
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        meant = json.loads(text)
    except (ValueError, RecursionError):
        return _NOTHING
    return _NOTHING if isinstance(meant, str) else meant
