"""The compact notation of a schema: types, and how to call a tool on one line.

    str[]    int 1..100    {id: str, tags?: str[]}
    create_issue(project: str, title: str, priority?: "low"|"medium"|"high" = "medium")

Everything that a caller must respect is either written or marked with `…`, the sign that the full
description has more. Left out, because it never decides what to send: bounds beyond what a double
holds exactly, a `minLength` of one, a `pattern` beside the `format` that it spells out, and whether
a nested object takes members that it does not name.

A signature that would be long says less: nested objects shallower, enums shorter, at last only some
of the optional parameters. Required parameters are always named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from pegboard.core.json import Json
from pegboard.core.schemas import scalars
from pegboard.core.schemas.scalars import MORE, Room, literal, marked
from pegboard.core.schemas.schema_view import SchemaView, folded

_PLAIN_NAME = re.compile(r"[\w$@./-]+")
_DEEPEST = 40
_COMPARED = 16
_LONGEST_VALUE = 48
_LONG_ENUM = 16
_UNSAID = frozenset(
    {"not", "if", "dependentRequired", "dependentSchemas", "dependencies", "propertyNames"}
    | {"minProperties", "maxProperties", "contains", "unevaluatedItems", "additionalItems"}
    | {"$dynamicRef", "$recursiveRef"}
)
_HINTS = {
    "object": ("properties", "additionalProperties", "patternProperties", "required"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems"),
    "string": ("pattern", "format", "minLength", "maxLength", "contentEncoding"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
}


def spelled(view: SchemaView, room: Room, level: int = 0) -> str:
    """The type that a value must have; with `…` wherever there is more to know."""
    return "|".join(options(view, room, level))


def options(view: SchemaView, room: Room, level: int = 0) -> list[str]:
    """The same, one text per alternative; null comes last."""
    if view.cut or level > _DEEPEST:
        return [MORE]
    if is_never(view):
        return ["never"]
    values, alternatives = literals(view), view.alternatives
    if values is not None:
        texts = _each_literal(values, room)
    elif alternatives:
        texts = _each_alternative(alternatives, room, level + 1)
    else:
        texts = [_of_kind(kind, view, room, level + 1) for kind in kinds(view)] or ["any"]
    texts = sorted(dict.fromkeys(texts), key="null".__eq__)
    if says_more(view) or ("oneOf" in view.schema and not _disjoint(alternatives)):
        texts[-1] = marked(texts[-1])
    return texts


def member(view: SchemaView, name: str, required: bool, room: Room, level: int = 0) -> str:
    """One parameter: `limit?: int 1..100 = 50`; empty for one that may never be given."""
    texts = options(view, room, level)
    if texts == ["never"] and not required:
        return ""
    default = ""
    value = view.schema.get("default")
    if value is not None:
        default = f" = {literal(value, room)}"
    elif "default" in view.schema and not required and len(texts) > 1:
        # Leaving it out and sending null are the same here, so one way is enough.
        texts = [text for text in texts if text != "null"]
    return f"{named(name)}{'' if required else '?'}: {'|'.join(texts)}{default}"


def members(view: SchemaView, room: Room, level: int = 0) -> list[str]:
    """All parameters of an object, required ones first, then what else it takes."""
    required = set(view.required)
    spoken = [
        member(view.at(schema), name, name in required, room, level)
        for name, schema in view.members.items()
    ]
    return [text for text in spoken if text] + list(unnamed(view, room, level))


def unnamed(view: SchemaView, room: Room, level: int = 0) -> Iterator[str]:
    """What an object takes beyond its named members: `[key]: str`, `[/^x-/]: any`."""
    patterns = view.schema.get("patternProperties")
    for pattern, schema in patterns.items() if isinstance(patterns, dict) else ():
        key = scalars.slashed(str(pattern), room).strip()
        yield f"[{key}]: {spelled(view.at(schema), room, level)}"
    if view.extra is not False:
        yield f"[key]: {spelled(view.at(view.extra), room, level)}"


def named(name: str) -> str:
    """A parameter's name, quoted where it could be misread."""
    return name if _PLAIN_NAME.fullmatch(name) else literal(name)


def says_more(view: SchemaView) -> bool:
    """Whether the schema asserts something that no spelling has words for."""
    schema = view.schema
    if not view.exact or ("anyOf" in schema and "oneOf" in schema):
        return True
    if literals(view) is not None:
        return False
    return any(schema[keyword] not in (None, {}, []) for keyword in _UNSAID & schema.keys())


def is_never(view: SchemaView) -> bool:
    """Whether no value at all will do."""
    return "not" in view.schema and view.schema["not"] in ({}, True)


def literals(view: SchemaView) -> Sequence[Json] | None:
    """The only values that are allowed, where they are listed."""
    if "const" in view.schema:
        return [view.schema["const"]]
    values = view.schema.get("enum")
    return values if isinstance(values, list) and values else None


def kinds(view: SchemaView) -> tuple[str, ...]:
    """The types that a value may have, as declared or as other keywords suggest; empty for any."""
    if "type" in view.schema:
        return view.types
    return tuple(kind for kind, words in _HINTS.items() if any(w in view.schema for w in words))[:1]


def _of_kind(kind: str, view: SchemaView, room: Room, level: int) -> str:
    match kind:
        case "string":
            return scalars.string(view.schema, room)
        case "integer":
            return scalars.integer(view.schema)
        case "number":
            return scalars.decimal(view.schema)
        case "array":
            return _array(view, room, level)
        case "object":
            return _object(view, room, level)
        case _:
            return {"boolean": "bool"}.get(kind, kind)


def _array(view: SchemaView, room: Room, level: int) -> str:
    schema = view.schema
    first, rest = schema.get("prefixItems"), schema.get("items", True)
    if isinstance(rest, list):  # until 2019-09 a list of schemas was written as `items`
        first, rest = rest, schema.get("additionalItems", True)
    limits = scalars.span(
        scalars.number(schema.get("minItems")) or None, scalars.number(schema.get("maxItems"))
    )
    unique = " unique" if schema.get("uniqueItems") is True else ""
    if isinstance(first, list) and first:
        texts = [spelled(view.at(one), room, level) for one in first]
        if rest not in (True, False, {}):
            texts.append(f"...{_many(view.at(rest), room, level)}")
        return f"[{', '.join(texts)}]{limits}{unique}"
    return _many(view.at(rest), room, level) + limits + unique


def _many(view: SchemaView, room: Room, level: int) -> str:
    texts = options(view, room, level)
    joined = "|".join(texts)
    bare = len(texts) == 1 and (joined[0] in "{[" or " " not in joined)
    return f"{joined}[]" if bare else f"({joined})[]"


def _object(view: SchemaView, room: Room, level: int) -> str:
    if not view.members and view.extra is False and "patternProperties" not in view.schema:
        closed = view.schema.get("additionalProperties") is False
        return "{}" if closed and "properties" in view.schema else "object"
    if view.members and room.depth <= 0:
        return f"{{{MORE}}}"
    return f"{{{', '.join(members(view, room.inner, level))}}}"


def _each_literal(values: Sequence[Json], room: Room) -> list[str]:
    if len(values) == 2 and all(isinstance(v, bool) for v in values) and values[0] != values[1]:
        return ["bool"]
    if _LONG_ENUM < len(values) <= room.values:  # costs a third less than alternatives would
        return [f"enum{literal(values, room)}"]
    # One value more costs no more than saying that there is one more.
    shown = values if len(values) <= room.values + 1 else values[: room.values]
    hidden = len(values) - len(shown)
    room = replace(room, literal=max(room.literal, _LONGEST_VALUE))
    return [literal(v, room) for v in shown] + ([f"{MORE}{hidden} more"] if hidden else [])


def _each_alternative(alternatives: Sequence[SchemaView], room: Room, level: int) -> list[str]:
    texts = [text for one in alternatives for text in options(one, room, level)]
    return [text for text in texts if text != "never"] or ["never"]


def _disjoint(alternatives: Sequence[SchemaView]) -> bool:
    """Whether no value fits two of them, so that `oneOf` says no more than `anyOf`."""
    if len(alternatives) > _COMPARED:
        return False
    return all(_apart(one, other) for one, other in combinations(alternatives, 2))


def _apart(one: SchemaView, other: SchemaView) -> bool:
    if _different_values(one, other):
        return True
    types, others = _reach(one), _reach(other)
    if types and others and not types & others:
        return True
    return any(
        _different_values(one.at(one.properties.get(name)), other.at(other.properties.get(name)))
        for name in set(one.required) & set(other.required)
    )


def _different_values(one: SchemaView, other: SchemaView) -> bool:
    ours, theirs = literals(one), literals(other)
    return ours is not None and theirs is not None and not any(value in theirs for value in ours)


def _reach(view: SchemaView) -> set[str]:
    return {"number" if name == "integer" else name for name in view.types}


SIGNATURE_LIMIT = 400
"""Characters that a signature may have before it says less."""

_ROOMS = (
    Room(depth=4, values=16, literal=80),
    Room(depth=3, values=8, literal=48),
    Room(depth=2, values=6, literal=32),
    Room(depth=1, values=4, literal=24),
    Room(depth=0, values=3, literal=16),
)


def signature(name: str, schema: Json, *, limit: int = SIGNATURE_LIMIT) -> str:
    """How to call a tool: names, types, defaults; `…` where its description has more."""
    view = parameters_of(schema)
    line = _Line(name, view, limit)
    texts = line.fitted()
    if view.cut or says_more(view):
        texts.append(MORE)
    return f"{name}({', '.join(texts)})"


def parameters_of(schema: Json) -> SchemaView:
    """The object of a tool's parameters, whichever branch of the schema names them."""
    return folded(SchemaView.of(schema))


class _Line:
    """The parameters of one signature, each with as much room as the line has for it."""

    def __init__(self, name: str, view: SchemaView, limit: int) -> None:
        self.view = view
        self.limit = limit - len(name) - len("()")
        self.required = set(view.required)
        self.rooms = dict.fromkeys(view.members, 0)
        self.texts = {name: self._spelled(name) for name in view.members}
        self.rest = list(unnamed(view, _ROOMS[-1]))

    def fitted(self) -> list[str]:
        """The texts of the parameters, the longest ones shortened first until the line fits."""
        while self._length() > self.limit:
            movable = [n for n, room in self.rooms.items() if room + 1 < len(_ROOMS)]
            if not movable:
                return self._without_some()
            longest = max(movable, key=lambda name: len(self.texts[name]))
            self.rooms[longest] += 1
            self.texts[longest] = self._spelled(longest)
        return [*filter(None, self.texts.values()), *self.rest]

    def _spelled(self, name: str) -> str:
        view = self.view.at(self.view.members[name])
        return member(view, name, name in self.required, _ROOMS[self.rooms[name]])

    def _length(self) -> int:
        return sum(len(text) + len(", ") for text in (*self.texts.values(), *self.rest) if text) - 2

    def _without_some(self) -> list[str]:
        """As many optional parameters as fit, and how many more there are."""
        texts = [text for text in self.texts.values() if text] + self.rest
        kept, left = len(self.required), self.limit - len(f"{MORE}999 more")
        left -= sum(len(text) + len(", ") for text in texts[:kept])
        while kept < len(texts) and left >= len(texts[kept]) + len(", "):
            left -= len(texts[kept]) + len(", ")
            kept += 1
        return [*texts[:kept], f"{MORE}{len(texts) - kept} more"] if kept < len(texts) else texts
