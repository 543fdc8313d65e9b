"""The parameters of a tool, written for a model in fewer tokens than their JSON Schema.

`list_parameters` gives them one by one, as the `index` mode lists them. `describe_parameters` gives
them all as lines of text:

    project: str - Key of the project
    filter?: object - Which issues
      status?: ("open"|"done")[] - Any of these
      assignee?: str|null - Nobody when null
    limit?: int 1..100 = 20

Nested objects get lines of their own where their members have descriptions, and one line otherwise.
What lines cannot express (conditions, recursion) makes the text incomplete: then the schema itself
must be shown.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeGuard

from pegboard.core.json import Json, JsonObject, json_type
from pegboard.core.schemas.schema_view import TYPES, SchemaView
from pegboard.core.schemas.signatures import (
    ELLIPSIS,
    FULL_DETAIL,
    Detail,
    allowed_values,
    format_alternatives,
    format_literal,
    format_parameter,
    format_type,
    format_unnamed_members,
    has_unwritten_rules,
    is_never,
    parameters_view,
    quote_name,
    value_types,
)
from pegboard.core.schemas.traversal import ANNOTATIONS

_MAX_UNION_DEPTH = 8
_MAX_NESTING = 8
_MAX_EXAMPLES = 3

_ACCEPTS = Detail(depth=4, values=64, literal=200)
_HEADING = Detail(depth=0, values=FULL_DETAIL.values, literal=FULL_DETAIL.literal)
_BRIEF = Detail(depth=0, values=3, literal=24)
_SHORT_TYPES = {"string": "str", "integer": "int", "boolean": "bool"}


def list_parameters(schema: Json) -> dict[str, JsonObject]:
    """Each parameter with `type`, `description`, `required`, and `default` and `enum` if any.

    A default of null is left out, and so is null as a value that means the same.

    `type` is one JSON Schema type, or several joined with `|`. What it does not say (the items of
    an array, the members of an object, a range) is in `accepts`, in the notation of signatures.
    """
    view = parameters_view(schema)
    required = set(view.required)
    return {
        name: _parameter(child, name in required)
        for name, child in ((name, view.at(schema)) for name, schema in view.members.items())
        if name in required or not is_never(child)
    }


def _parameter(view: SchemaView, required: bool) -> JsonObject:
    types = all_types(view)
    options = format_alternatives(view, _ACCEPTS)
    if not required and view.schema.get("default", ELLIPSIS) is None and len(types) > 1:
        # Leaving it out and sending null mean the same here, so one way is enough.
        types = tuple(name for name in types if name != "null")
        options = [text for text in options if text != "null"]
    description = view.description
    if not description:
        # pydantic writes an optional parameter as `anyOf: [{..., description}, {type: null}]`.
        given = [one for one in view.alternatives if value_types(one) != ("null",)]
        description = given[0].description if len(given) == 1 else description
    made: JsonObject = {
        "type": "|".join(types) or "any",
        "description": description,
        "required": required,
    }
    if view.schema.get("default") is not None:
        made["default"] = view.schema["default"]
    values = _values(view)
    if values is not None:
        made["enum"] = [value for value in values if value is not None or "null" in types]
    elif (accepts := "|".join(options)) != (
        "|".join(_SHORT_TYPES.get(name, name) for name in types) or "any"
    ):
        made["accepts"] = accepts
    return made


def _values(view: SchemaView, level: int = 0) -> list[Json] | None:
    """The only values that are allowed, where every alternative lists its own."""
    if view.cut or level > _MAX_UNION_DEPTH or has_unwritten_rules(view):
        return None
    if (values := allowed_values(view)) is not None:
        return list(values)
    if value_types(view) == ("null",):
        return [None]
    # One alternative without a list of values, and the whole has none.
    each = [_values(one, level + 1) for one in view.alternatives]
    if not any(each) or None in each:
        return None
    found = [value for values in each for value in values or ()]
    return None if found == [None] else found  # null alone is a type, not a choice of values


def all_types(view: SchemaView, level: int = 0) -> tuple[str, ...]:
    """All types that a value may have, through literals and alternatives."""
    values = allowed_values(view)
    if view.cut or level > _MAX_UNION_DEPTH:
        return ()
    if values is not None and "type" not in view.schema:
        found = {json_type(value) for value in values}
    elif view.alternatives:
        each = [all_types(one, level + 1) for one in view.alternatives]
        found = {name for names in each for name in names} if all(each) else set[str]()
    else:
        return value_types(view)
    return tuple(name for name in TYPES if name in found)


@dataclass(frozen=True, slots=True)
class ParameterDocs:
    """Lines about all parameters; `complete` when a caller needs nothing beyond them."""

    text: str
    complete: bool


def describe_parameters(schema: Json) -> ParameterDocs:
    """Everything in the schema that a caller needs, descriptions included."""
    view = SchemaView.of(schema)
    page = _Lines()
    if view.description:
        page.write(1, view.description)
    rest, rules = _split_rules(view)
    page.members(rest, 0)
    for rule in rules:
        page.write(0, rule)
    # Conditions that became sentences are no longer in `rest`; all others make it incomplete.
    page.complete &= not rest.cut and not has_unwritten_rules(rest) and not rest.alternatives
    return ParameterDocs("\n".join(page.lines), page.complete)


@dataclass(slots=True)
class _Lines:
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
            member, is_required = view.at(schema), name in required
            if is_never(member) and not is_required:  # it may never be given: nothing to say
                continue
            # Without descriptions inside, the notation says everything on one line.
            inside = nested_objects(member)
            if indent >= _MAX_NESTING or not any(map(_is_described, inside)):
                line = format_parameter(member, name, is_required, FULL_DETAIL)
                self._write_typed(indent, line, _remarks(member))
                continue
            heading = format_parameter(member, name, is_required, _HEADING)
            heading = heading.replace(f"{{{ELLIPSIS}}}", "object")
            self._write_typed(indent, heading, _remarks(member))
            for number, one in enumerate(inside):
                self.complete &= not has_unwritten_rules(one) and not one.cut
                if len(inside) > 1:
                    word = "or" if number else "either"
                    self.write(indent + 1, f"{word}: {_remarks(one)}".rstrip(": "))
                self.members(one, indent + 1 + (len(inside) > 1))
        for text in format_unnamed_members(view, FULL_DETAIL):
            self._write_typed(indent, text, "")

    def _write_typed(self, indent: int, text: str, remarks: str) -> None:
        self.complete &= ELLIPSIS not in text
        self.write(indent, f"{text} - {remarks}" if remarks else text)


def nested_objects(view: SchemaView, level: int = 0) -> list[SchemaView]:
    """The objects with named members in a value: itself, alternatives, items, a map's values."""
    if view.cut or level > _MAX_NESTING or allowed_values(view) is not None:
        return []
    if view.alternatives:
        return [found for one in view.alternatives for found in nested_objects(one, level + 1)]
    if view.members:
        return [view]
    kind = value_types(view)
    inside = [view.extra] if "object" in kind and view.extra is not False else []
    inside += [view.schema.get("items")] if "array" in kind else []
    return [found for schema in inside for found in nested_objects(view.at(schema), level + 1)]


def _is_described(view: SchemaView, level: int = 0) -> bool:
    """Whether a member of this object has a description, at any depth."""
    below = [view.at(schema) for schema in view.members.values()]
    if any(_remarks(one) for one in below):
        return True
    return level < _MAX_NESTING and any(
        _is_described(inner, level + 1) for one in below for inner in nested_objects(one)
    )


def _remarks(view: SchemaView) -> str:
    """The descriptions of a value, its items and its alternatives, and its examples."""
    notes = [view.description] if view.description else []
    inside = nested_objects(view)
    values = [one for one in view.alternatives if set(value_types(one)) != {"null"}]
    notes += [
        one.description if len(values) == 1 else f"{format_type(one, _BRIEF)}: {one.description}"
        for one in view.alternatives
        if one.description and one.description != view.description and one not in inside[1:]
    ]
    items = view.schema.get("items")
    if isinstance(items, dict) and (each := view.at(items).description):
        notes.append(f"each: {each}")
    examples = view.schema.get("examples")
    if isinstance(examples, list) and examples:
        shown = ", ".join(format_literal(example) for example in examples[:_MAX_EXAMPLES])
        notes.append(f"e.g. {shown}")
    if view.schema.get("deprecated") is True:
        notes.append("deprecated")
    return "; ".join(notes)


def _split_rules(view: SchemaView) -> tuple[SchemaView, list[str]]:
    """The schema without the conditions that a sentence can express, and those sentences."""
    sentences: dict[str, str] = {}
    for keyword, opening in (("anyOf", "At least one of"), ("oneOf", "Exactly one of")):
        branches = view.schema.get(keyword)
        choices = [_required_only(b) for b in branches] if isinstance(branches, list) else []
        if choices and all(choices):
            sentences[keyword] = f"{opening}: {'; '.join(' + '.join(names) for names in choices)}"
    if excluded := _required_only(view.schema.get("not")):
        sentences["not"] = f"Not together: {', '.join(excluded)}"
    needs = view.schema.get("dependentRequired")
    if isinstance(needs, dict) and all(_is_list_of_strings(names) for names in needs.values()):
        sentences["dependentRequired"] = "; ".join(
            f"{quote_name(name)} needs {', '.join(map(quote_name, names))}"
            for name, names in needs.items()
        )
    for keyword, opening in (("minProperties", "At least"), ("maxProperties", "At most")):
        if isinstance(count := view.schema.get(keyword), int):
            sentences[keyword] = f"{opening} {count} parameters"
    rest = {keyword: value for keyword, value in view.schema.items() if keyword not in sentences}
    return replace(view, schema=rest), list(sentences.values())


def _required_only(branch: Json) -> list[str]:
    """The parameters that a branch requires, if it says nothing else."""
    if not isinstance(branch, dict) or branch.keys() - {"required", "type"} - ANNOTATIONS:
        return []
    names = branch.get("required")
    return [quote_name(name) for name in names] if _is_list_of_strings(names) else []


def _is_list_of_strings(value: Json) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
