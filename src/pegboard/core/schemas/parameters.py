"""The parameters of a tool one by one, as the `index` face gives them."""

from __future__ import annotations

from pegboard.core.json import Json, JsonObject
from pegboard.core.schemas.reading import TYPES, View
from pegboard.core.schemas.scalars import MORE, Room
from pegboard.core.schemas.signatures import parameters_of
from pegboard.core.schemas.spelling import is_never, kinds, literals, says_more
from pegboard.core.schemas.spelling import options as spelled_options

_ROOM = Room(depth=4, values=64, literal=200)
_DEEPEST = 8


def parameters(schema: Json) -> dict[str, JsonObject]:
    """Each parameter with `type`, `description`, `required`, and `default` and `enum` if any.

    A default of null is left out, and so is null as a value that means the same.

    `type` is one JSON Schema type, or several joined with `|`. What it does not tell (the items of
    an array, the members of an object, a range) is in `accepts`, as a signature would spell it.
    """
    view = parameters_of(schema)
    required = set(view.required)
    return {
        name: _parameter(child, name in required)
        for name, child in ((name, view.at(schema)) for name, schema in view.members.items())
        if name in required or not is_never(child)
    }


def _parameter(view: View, required: bool) -> JsonObject:
    types = types_of(view)
    options = spelled_options(view, _ROOM)
    if not required and view.schema.get("default", MORE) is None and len(types) > 1:
        # Leaving it out and sending null are the same here, so one way is enough.
        types = tuple(name for name in types if name != "null")
        options = [text for text in options if text != "null"]
    made: JsonObject = {
        "type": "|".join(types) or "any",
        "description": view.description or _only_alternative(view).description,
        "required": required,
    }
    if view.schema.get("default") is not None:
        made["default"] = view.schema["default"]
    values = _values(view)
    if values is not None:
        made["enum"] = [value for value in values if value is not None or "null" in types]
    elif (accepts := "|".join(options)) != ("|".join(map(_word, types)) or "any"):
        made["accepts"] = accepts
    return made


def _only_alternative(view: View) -> View:
    """What a value is when it is not null, where there is only one such thing."""
    given = [one for one in view.alternatives if kinds(one) != ("null",)]
    return given[0] if len(given) == 1 else view


def _values(view: View, level: int = 0) -> list[Json] | None:
    """The only values that are allowed, where every alternative lists its own."""
    if view.cut or level > _DEEPEST or says_more(view):
        return None
    if (values := literals(view)) is not None:
        return list(values)
    if kinds(view) == ("null",):
        return [None]
    each = [_values(one, level + 1) for one in view.alternatives]
    if not any(each) or None in each:
        return None
    found = [value for values in each for value in values or ()]
    return None if found == [None] else found


def types_of(view: View, level: int = 0) -> tuple[str, ...]:
    """All types that a value may have, through literals and alternatives."""
    values = literals(view)
    if view.cut or level > _DEEPEST:
        return ()
    if values is not None and "type" not in view.schema:
        found = {json_type(value) for value in values}
    elif view.alternatives:
        each = [types_of(one, level + 1) for one in view.alternatives]
        found = {name for names in each for name in names} if all(each) else set[str]()
    else:
        return kinds(view)
    return tuple(name for name in TYPES if name in found)


def json_type(value: Json) -> str:
    """The JSON Schema type of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _word(name: str) -> str:
    return {"string": "str", "integer": "int", "boolean": "bool"}.get(name, name)
