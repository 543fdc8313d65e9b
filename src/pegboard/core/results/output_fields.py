"""The fields that a tool's results can have, from its output schema: validation and reference.

JSON Schema objects are open unless closed. Here a schema that lists properties is taken literally
and any other field is rejected, since a misspelled field costs a whole call. Only what a schema
leaves open on purpose (`additionalProperties`, no properties at all, a reference to another
document) accepts any path.

The reference lists path, type, description and example of each field. An example comes from the
schema if it has one, otherwise from a sample result; on a page it may also come from a field of the
same name and type in a sample of another tool.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from pegboard.core.json import Json, JsonObject
from pegboard.core.results.paths import (
    Mark,
    Step,
    invalid_field,
    join_path,
    parse_fields,
    parse_path,
    sole_content,
)
from pegboard.core.schemas import list_output_fields
from pegboard.core.schemas.output_shape import fields_by_path
from pegboard.core.schemas.schema_view import SchemaView
from pegboard.core.schemas.signatures import (
    ELLIPSIS,
    Detail,
    allowed_values,
    format_literal,
    format_type,
)
from pegboard.core.schemas.traversal import NOT_FOUND, lookup
from pegboard.core.similar_names import nearest
from pegboard.core.tools import Tool
from pegboard.errors import InvalidField

_SCALARS = ("string", "number", "integer", "boolean", "null")
_DECLARES_MEMBERS = frozenset(("properties", "additionalProperties", "patternProperties"))
_ANYTHING: JsonObject = {"additionalProperties": True}
_MAX_BRANCHES = 1_000


AvailableFields: TypeAlias = "JsonObject | Sequence[str] | Set[str] | None"
"""The fields of a result: an output schema, a list of paths, or `None` if nothing is known."""


def validate_fields(
    fields: Sequence[str], schema: AvailableFields, root: str | None = None
) -> None:
    """Check that every path is well formed and is one that the result can have.

    Args:
        fields: The requested paths.
        schema: The output schema, or the paths themselves, such as `Tool.output_fields`. With
            `None` nothing is known of the result, and any well-formed path is valid.
        root: Where paths may start instead of at the root, as `project` takes it.

    Raises:
        InvalidField: Some are not valid; the message names them and lists the available ones.
        TypeError: `schema` is none of these.
    """
    requested = parse_fields(fields) if isinstance(fields, str) else tuple(fields)
    if schema is not None and not isinstance(schema, dict):
        given: Json = schema
        if not isinstance(given, Sequence | Set) or isinstance(given, str | bytes):
            raise TypeError(
                "validate_fields takes an output schema, a list of field names, or None; "
                f"got {type(given).__name__}."
            )
        schema = tuple(schema)
    paths = [_parse_requested(field, schema) for field in requested]
    # Nothing is known of the result, and to refuse a field that it may have would be worse than to
    # let a wrong one through: the projection reports that one later.
    if not paths or schema is None:
        return
    if isinstance(schema, dict):
        output = _OutputSchema(schema)
        prefix = output.start(paths, root)
        allowed = [output.allows((*prefix, *path)) for path in paths]
    else:
        known = [_without_each(parse_path(path)) for path in schema]
        allowed = [any(map(partial(_leads_to, _without_each(path)), known)) for path in paths]
    invalid = [field for field, is_valid in zip(requested, allowed, strict=True) if not is_valid]
    if invalid:
        available = available_fields(schema)
        similar = nearest(invalid[0], available, limit=3)
        raise invalid_field(", ".join(invalid), available=available, nearest=similar)


def is_text_wrapper(schema: JsonObject | None) -> bool:
    """Whether an output schema is only the wrapper that SDKs put around a function's text.

    It says nothing about the fields of that text, which is often JSON.
    """
    members = None if schema is None else schema.get("properties")
    match members:
        case {"result": {"type": "string"}}:
            return len(members) == 1
        case _:
            return False


def resolve_aliases(
    fields: Sequence[str],
    aliases: Mapping[str, str],
    schema: JsonObject | None,
    root: str | None = None,
) -> tuple[str, ...]:
    """The fields with aliases replaced by the keys that they stand for.

    A field that the result has under its own name stays unchanged.
    """
    if not aliases:
        return tuple(fields)
    resolved: list[str] = []
    # One by one: some fields of a request may be aliases while others are keys of the result.
    for field in fields:
        try:
            validate_fields((field,), schema, root)
        except InvalidField:
            try:
                steps = parse_path(field)
            except InvalidField:
                pass  # left as it is: the later validation reports what is wrong with it
            else:
                field = join_path(aliases.get(s, s) if isinstance(s, str) else s for s in steps)
        resolved.append(field)
    return tuple(resolved)


def available_fields(schema: AvailableFields) -> list[str]:
    """The paths that an error lists."""
    return list(list_output_fields(schema)) if isinstance(schema, dict) else list(schema or ())


def _without_each(path: Sequence[Step]) -> list[Step]:
    # `items[].id` and `items.id` mean the same: lists are mapped over wherever they are.
    return [step for step in path if step is not Mark.EACH]


def _leads_to(path: Sequence[Step], known: Sequence[Step]) -> bool:
    """Whether a path is a known one, or a parent of it."""
    pairs = zip(path, known, strict=False)
    return len(path) <= len(known) and all(step in (Mark.ANY, other) for step, other in pairs)


def _parse_requested(field: str, schema: AvailableFields) -> tuple[Step, ...]:
    """The steps of a requested path; an error also lists the available fields."""
    try:
        path = parse_path(field)
    except InvalidField as error:
        available = available_fields(schema)
        if not available:
            raise
        opening = f"Invalid field: {error.details.get('field', '')}."
        reason = error.message.removeprefix(opening).strip()
        raise invalid_field(field, reason, available) from error
    if any(isinstance(step, int) for step in path):
        corrected = join_path(Mark.EACH if isinstance(step, int) else step for step in path)
        raise invalid_field(
            field, f"Lists are mapped over: write {corrected}.", available_fields(schema)
        )
    return path


class _OutputSchema:
    """One output schema, and the members that its values can have."""

    def __init__(self, document: JsonObject) -> None:
        self._document = document

    def start(self, paths: Sequence[Sequence[Step]], root: str | None) -> tuple[Step, ...]:
        """Where the paths begin: the root, or inside the envelope that the schema describes."""
        # One path that starts at the root is enough: then the caller knows the whole result.
        if any(self.allows(path[:2] if path[0] is Mark.EACH else path[:1]) for path in paths):
            return ()
        if root and self.allows(parse_path(root)):
            return parse_path(root)
        members = [
            (name, bool(self._objects([member])))
            for node in self._objects([self._document])
            for name, member in _properties(node).items()
        ]
        key = sole_content(members)
        return () if key is None else (key,)

    def allows(self, path: Sequence[Step]) -> bool:
        """Whether some value of the schema has the path."""
        schemas: list[Json] = [self._document]
        for step in _without_each(path):
            schemas = [
                member for node in self._objects(schemas) for member in _member_schemas(node, step)
            ]
            if not schemas:
                return False
        return True

    def _objects(self, schemas: Sequence[Json]) -> list[JsonObject]:
        """The object schemas behind references, alternatives and lists."""
        found: list[JsonObject] = []
        queue: list[tuple[Json, bool]] = [(schema, True) for schema in schemas]
        seen: set[int] = set()
        # `seen` ends cycles of references; the bound ends schemas that only look finite.
        while queue and len(seen) < _MAX_BRANCHES:
            node, alone = queue.pop()
            if node is True:
                found.append(_ANYTHING)
            if not isinstance(node, dict) or id(node) in seen:
                continue
            seen.add(id(node))
            related = list(self._related(node))
            queue.extend(related)
            if not _DECLARES_MEMBERS.isdisjoint(node):
                found.append(node)
            elif alone and not related:
                # A schema that declares no members may still have some, unless it is of scalars.
                kinds = node.get("type")
                if kinds is None:
                    is_scalar = "enum" in node or "const" in node
                else:
                    listed = kinds if isinstance(kinds, list) else [kinds]
                    is_scalar = all(kind in _SCALARS for kind in listed)
                if not is_scalar:
                    found.append(_ANYTHING)
        return found

    def _related(self, node: JsonObject) -> Iterator[tuple[Json, bool]]:
        """Schemas of the same value or its elements, and whether each describes it alone.

        A branch of `allOf` that lists no properties says nothing about the members: it does not
        make the object open, unlike one that stands alone.
        """
        if "$ref" in node or "$dynamicRef" in node:
            reference = node.get("$ref")
            found = lookup(self._document, reference) if isinstance(reference, str) else NOT_FOUND
            # Nothing is fetched: other documents are unknown, so any field of theirs is allowed.
            yield (True if found is NOT_FOUND else found), True
        for keyword in ("anyOf", "oneOf"):
            yield from ((branch, True) for branch in _as_list(node.get(keyword)))
        yield from ((branch, False) for branch in _as_list(node.get("allOf")))
        yield from ((node[keyword], False) for keyword in ("then", "else") if keyword in node)
        if "items" in node and not isinstance(node["items"], list):
            yield node["items"], True
        for element in [*_as_list(node.get("prefixItems")), *_as_list(node.get("items"))]:
            yield element, True


def _as_list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _properties(node: JsonObject) -> JsonObject:
    properties = node.get("properties")
    return properties if isinstance(properties, dict) else {}


def _member_schemas(node: JsonObject, step: Step) -> Iterator[Json]:
    """The schemas of the member that a step names."""
    known = _properties(node)
    if step is Mark.ANY:
        yield from known.values()
    elif step in known:
        yield known[str(step)]
        return
    if node.get("patternProperties"):
        yield True  # an untrusted pattern is not run on an untrusted key
    # JSON Schema allows further members by default. Servers rarely mean that where they list some,
    # and an error about an unknown field is what a model can act on.
    more = node.get("additionalProperties", not known)
    if more is not False:
        yield more


# --- the reference --------------------------------------------------------------------------------

_TYPE_DETAIL = Detail(depth=0, values=12, literal=40)
_EXAMPLE_DETAIL = Detail(depth=0, values=0, literal=60)
_LONGEST_TEXT = 40
_INTRODUCTION = (
    "The fields in the results of each tool. Every path can be passed to `include_fields`; a\n"
    "parent includes everything below it.\n"
)


@dataclass(frozen=True, slots=True)
class FieldEntry:
    """One field that `include_fields` may name; `example` is JSON text, or empty."""

    path: str
    type: str
    description: str
    example: str

    @property
    def kind(self) -> tuple[str, str]:
        """What identifies a field across tools: its own name, and its type."""
        return self.path.rpartition(".")[2], self.type

    def wire(self) -> JsonObject:
        """The entry as JSON."""
        return {
            "path": self.path,
            "type": self.type,
            "description": self.description,
            "example": self.example,
        }

    def row(self) -> str:
        """The entry as a row of a Markdown table."""
        cells = (_code(self.path), _code(self.type), self.description, _code(self.example))
        escaped = (" ".join(cell.split()).replace("|", "\\|") for cell in cells)
        return f"| {' | '.join(escaped)} |"


def list_field_entries(tool: Tool, sample: Json = None) -> list[FieldEntry]:
    """All fields of a tool's results, parents before children."""
    if (schema := tool.output_schema) is None:
        return []
    entries: list[FieldEntry] = []
    for path, field in fields_by_path(schema):
        kinds = dict.fromkeys(
            format_type(view, _TYPE_DETAIL).replace(f"{{{ELLIPSIS}}}", "object")
            for view in field.views
        )
        written = next((view.description for view in field.views if view.description), "")
        description = written or _find_description(tool, path)
        example = _find_example(path, field.views, sample)
        entries.append(FieldEntry(path, "|".join(kinds), description, example))
    return entries


def resolve_field_descriptions(tool: Tool) -> dict[str, str]:
    """The author's descriptions of this tool's fields that its schema does not have, by path.

    All tools of a server may share one table, so only what applies to this tool is taken from it.
    """
    if not tool.field_descriptions or (schema := tool.output_schema) is None:
        return {}
    found = {
        path.replace("[]", ""): _find_description(tool, path)
        for path, field in fields_by_path(schema)
        if not any(view.description for view in field.views)
    }
    return {path: text for path, text in found.items() if text}


def render_fields_page(server: str, tools: Iterable[Tool], samples: Mapping[str, Json]) -> str:
    """The reference of all tools of a server, as Markdown; `samples` are results by tool id."""
    listed = sorted(tools, key=lambda t: (t.category or "", t.name))
    entries = {t.id: list_field_entries(t, samples.get(t.id)) for t in listed}
    examples: dict[tuple[str, str], str] = {}
    for entry in (e for of_tool in entries.values() for e in of_tool if e.example):
        examples.setdefault(entry.kind, entry.example)
    lines = [f"# Fields of {server}\n", _INTRODUCTION]
    category = None
    for tool in listed:
        if tool.category != category:
            category = tool.category
            lines.append(f"## {category or 'other'}\n")
        lines += [f"### {tool.name}\n", f"{tool.summary}.\n"]
        if not entries[tool.id]:
            lines.append("Does not declare the fields of its result.\n")
            continue
        lines += ["| field | type | description | example |", "|---|---|---|---|"]
        for entry in entries[tool.id]:
            example = entry.example or examples.get(entry.kind, "")
            lines.append(replace(entry, example=example).row())
        lines.append("")
    return "\n".join(lines)


def _code(text: str) -> str:
    return f"`{text}`" if text and "`" not in text else text


def _find_description(tool: Tool, path: str) -> str:
    """The author's description of a field outside the schema: the longest end of its path wins.

    A path begins with the tool, so that `delete_issue.comments` means one field of one tool.
    """
    steps = [tool.name, *path.replace("[]", "").split(".")]
    ends = (".".join(steps[start:]) for start in range(len(steps)))
    return next((text for end in ends if (text := tool.field_descriptions.get(end))), "")


def _find_example(path: str, views: Sequence[SchemaView], sample: Json) -> str:
    for view in views:
        for value in (*_as_list(view.schema.get("examples")), *(allowed_values(view) or ())):
            if value is not None:
                return _shorten_example(value)
    values = _values_at(sample, parse_path(path))
    found = (_shorten_example(value) for value in values if value not in (None, [], {}))
    return next((text for text in found if text != ELLIPSIS), "")


def _shorten_example(value: Json) -> str:
    """The JSON text of a value; a long text is truncated, other long values become `ELLIPSIS`."""
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        value = value[: _LONGEST_TEXT - 3] + "..."
    return format_literal(value, _EXAMPLE_DETAIL)


def _values_at(value: Json, path: Sequence[Step]) -> Iterator[Json]:
    """Every value that a path leads to; lists are mapped over."""
    if not path:
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _values_at(item, path)
    elif path[0] is Mark.EACH:
        yield from _values_at(value, path[1:])
    elif isinstance(value, dict):
        step = path[0]
        inner = value.values() if step is Mark.ANY else [value[step]] if step in value else []
        for item in inner:
            yield from _values_at(item, path[1:])
