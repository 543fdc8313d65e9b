"""The parameters of a tool, written for a model in fewer tokens than their JSON Schema.

`parameters` gives them one by one, as the `index` mode lists them. `described` gives them all as
lines of text:

    project: str - Key of the project
    filter?: object - Which issues
      status?: ("open"|"done")[] - Any of these
      assignee?: str|null - Nobody when null
    limit?: int 1..100 = 20

Nested objects get lines of their own where somebody described their members, and one line
otherwise. What lines cannot express (conditions, recursion) makes the text incomplete: then the
schema itself must be shown.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pegboard.core.json import Json, JsonObject
from pegboard.core.schemas.scalars import FULL, MORE, Room, literal
from pegboard.core.schemas.schema_view import TYPES, SchemaView
from pegboard.core.schemas.signatures import (
    is_never,
    kinds,
    literals,
    member,
    named,
    parameters_of,
    says_more,
    spelled,
    unnamed,
)
from pegboard.core.schemas.signatures import options as spelled_options
from pegboard.core.schemas.traversal import ANNOTATIONS

_ROOM = Room(depth=4, values=64, literal=200)
_MAX_UNION_DEPTH = 8


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


def _parameter(view: SchemaView, required: bool) -> JsonObject:
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


def _only_alternative(view: SchemaView) -> SchemaView:
    """What a value is when it is not null, where there is only one such thing."""
    given = [one for one in view.alternatives if kinds(one) != ("null",)]
    return given[0] if len(given) == 1 else view


def _values(view: SchemaView, level: int = 0) -> list[Json] | None:
    """The only values that are allowed, where every alternative lists its own."""
    if view.cut or level > _MAX_UNION_DEPTH or says_more(view):
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


def types_of(view: SchemaView, level: int = 0) -> tuple[str, ...]:
    """All types that a value may have, through literals and alternatives."""
    values = literals(view)
    if view.cut or level > _MAX_UNION_DEPTH:
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


_HEAD = Room(depth=0, values=FULL.values, literal=FULL.literal)
_GLANCE = Room(depth=0, values=3, literal=24)
_EXAMPLES = 3
_MAX_NESTING = 8


@dataclass(frozen=True, slots=True)
class Described:
    """Lines about all parameters; `complete` when a caller needs nothing beyond them."""

    text: str
    complete: bool


def described(schema: Json) -> Described:
    """Everything that the schema tells a caller, descriptions included."""
    view = SchemaView.of(schema)
    page = _Page()
    if view.description:
        page.write(0, view.description)
    rest, rules = _rules(view)
    page.members(rest, 0)
    for rule in rules:
        page.write(0, rule)
    page.complete &= not rest.cut and not says_more(rest) and not rest.alternatives
    return Described("\n".join(page.lines), page.complete)


@dataclass(slots=True)
class _Page:
    """Lines as they are written, and whether nothing had to be left out."""

    lines: list[str] = field(default_factory=list[str])
    complete: bool = True

    def write(self, indent: int, text: str) -> None:
        first, *others = text.splitlines() or [""]
        self.lines.append("  " * indent + first)
        self.lines += ["  " * (indent + 1) + line.strip() for line in others if line.strip()]

    def members(self, view: SchemaView, indent: int) -> None:
        """A line for each member of an object, and below it lines for what is described inside."""
        required = set(view.required)
        for name, schema in view.members.items():
            self._member(view.at(schema), name, name in required, indent)
        for text in unnamed(view, FULL):
            self._typed(indent, text, "")

    def _member(self, view: SchemaView, name: str, required: bool, indent: int) -> None:
        if is_never(view) and not required:
            return
        inside = objects(view)
        if indent >= _MAX_NESTING or not any(map(_is_described, inside)):
            self._typed(indent, member(view, name, required, FULL), _remarks(view))
            return
        head = member(view, name, required, _HEAD).replace(f"{{{MORE}}}", "object")
        self._typed(indent, head, _remarks(view))
        for number, one in enumerate(inside):
            self.complete &= not says_more(one) and not one.cut
            if len(inside) > 1:
                self.write(
                    indent + 1, f"{'or' if number else 'either'}: {_remarks(one)}".rstrip(": ")
                )
            self.members(one, indent + 1 + (len(inside) > 1))

    def _typed(self, indent: int, text: str, remarks: str) -> None:
        self.complete &= MORE not in text
        self.write(indent, f"{text} - {remarks}" if remarks else text)


def objects(view: SchemaView, level: int = 0) -> list[SchemaView]:
    """The objects with named members in a value: itself, alternatives, items, a map's values."""
    if view.cut or level > _MAX_NESTING or literals(view) is not None:
        return []
    if view.alternatives:
        return [found for one in view.alternatives for found in objects(one, level + 1)]
    if view.members:
        return [view]
    kind = kinds(view)
    inside = [view.extra] if "object" in kind and view.extra is not False else []
    inside += [view.schema.get("items")] if "array" in kind else []
    return [found for schema in inside for found in objects(view.at(schema), level + 1)]


def _is_described(view: SchemaView, level: int = 0) -> bool:
    """Whether somebody wrote about a member of this object, however deep."""
    below = [view.at(schema) for schema in view.members.values()]
    if any(_remarks(one) for one in below):
        return True
    return level < _MAX_NESTING and any(
        _is_described(inner, level + 1) for one in below for inner in objects(one)
    )


def _remarks(view: SchemaView) -> str:
    """What people wrote about a value, its items and its alternatives."""
    notes = [view.description] if view.description else []
    inside = objects(view)
    values = [one for one in view.alternatives if set(kinds(one)) != {"null"}]
    notes += [
        one.description if len(values) == 1 else f"{spelled(one, _GLANCE)}: {one.description}"
        for one in view.alternatives
        if one.description and one.description != view.description and one not in inside[1:]
    ]
    items = view.schema.get("items")
    if isinstance(items, dict) and (each := view.at(items).description):
        notes.append(f"each: {each}")
    examples = view.schema.get("examples")
    if isinstance(examples, list) and examples:
        shown = ", ".join(literal(example) for example in examples[:_EXAMPLES])
        notes.append(f"e.g. {shown}")
    if view.schema.get("deprecated") is True:
        notes.append("deprecated")
    return "; ".join(notes)


def _rules(view: SchemaView) -> tuple[SchemaView, list[str]]:
    """Conditions between parameters that a sentence can say, and the schema without them."""
    said: dict[str, str] = {}
    for keyword, opening in (("anyOf", "At least one of"), ("oneOf", "Exactly one of")):
        choices = [_names_only(branch) for branch in _listed(view.schema.get(keyword))]
        if choices and all(choices):
            said[keyword] = f"{opening}: {'; '.join(' + '.join(names) for names in choices)}"
    if excluded := _names_only(view.schema.get("not")):
        said["not"] = f"Not together: {', '.join(excluded)}"
    needs = view.schema.get("dependentRequired")
    if isinstance(needs, dict) and all(_all_texts(names) for names in needs.values()):
        said["dependentRequired"] = "; ".join(
            f"{named(name)} needs {', '.join(map(named, names))}" for name, names in needs.items()
        )
    for keyword, opening in (("minProperties", "At least"), ("maxProperties", "At most")):
        if isinstance(count := view.schema.get(keyword), int):
            said[keyword] = f"{opening} {count} parameters"
    rest = {keyword: value for keyword, value in view.schema.items() if keyword not in said}
    return replace(view, schema=rest), list(said.values())


def _names_only(branch: Json) -> list[str]:
    """The parameters that a branch requires, if it says nothing else."""
    if not isinstance(branch, dict) or branch.keys() - {"required", "type"} - ANNOTATIONS:
        return []
    names = branch.get("required")
    return [named(name) for name in names] if isinstance(names, list) and _all_texts(names) else []


def _all_texts(names: Json) -> bool:
    return isinstance(names, list) and all(isinstance(name, str) for name in names)


def _listed(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
