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
from pegboard.core.schemas.output_shape import FieldNode, fields_by_path
from pegboard.core.schemas.schema_view import SchemaView
from pegboard.core.schemas.signatures import (
    ELLIPSIS,
    Detail,
    allowed_values,
    format_literal,
    format_type,
)
from pegboard.core.tools import Tool
from pegboard.errors import InvalidField

_SCALARS = ("string", "number", "integer", "boolean", "null")
_ALTERNATIVES = ("anyOf", "oneOf")
_REFINEMENTS = ("allOf",)
_ANYTHING: JsonObject = {"additionalProperties": True}
_MAX_BRANCHES = 1_000


AvailableFields: TypeAlias = "JsonObject | Sequence[str] | Set[str] | None"
"""What fields there are: an output schema, a list of paths, or `None` where nothing is known."""


def validate_fields(
    fields: Sequence[str], schema: AvailableFields, root: str | None = None
) -> None:
    """Return when every path is well formed and is one of those that there are.

    Args:
        fields: The paths that are asked for.
        schema: The output schema, or the paths themselves, such as `Tool.output_fields`. With
            `None` nothing is known of the result, and any well-formed path will do.
        root: Where paths may start instead of at the root, as `project` takes it.

    Raises:
        InvalidField: Some cannot be; the message names them and lists the available ones.
        TypeError: `schema` is none of these.
    """
    asked = parse_fields(fields) if isinstance(fields, str) else tuple(fields)
    if schema is not None and not isinstance(schema, dict):
        schema = _names(schema)
    paths = [_parsed(field, schema) for field in asked]
    if not paths or schema is None:
        return
    if isinstance(schema, dict):
        reading = _OutputSchema(schema)
        prefix = reading.start(paths, root)
        allowed = [reading.allows((*prefix, *path)) for path in paths]
    else:
        allowed = [_is_listed(path, schema) for path in paths]
    wrong = [field for field, fits in zip(asked, allowed, strict=True) if not fits]
    if wrong:
        from rapidfuzz import process

        available = available_fields(schema)
        nearest = [
            match for match, _, _ in process.extract(wrong[0], available, limit=3, score_cutoff=60)
        ]
        raise invalid_field(", ".join(wrong), available=available, nearest=nearest)


def resolve_aliases(
    fields: Sequence[str],
    aliases: Mapping[str, str],
    schema: JsonObject | None,
    root: str | None = None,
) -> tuple[str, ...]:
    """The fields with aliases replaced by the keys that they stand for.

    A field that the result has under its own name stays as it is.
    """
    if not aliases:
        return tuple(fields)
    return tuple(
        field if _is_valid(field, schema, root) else _renamed(field, aliases) for field in fields
    )


def _is_valid(field: str, schema: JsonObject | None, root: str | None) -> bool:
    try:
        validate_fields((field,), schema, root)
    except InvalidField:
        return False
    return True


def _renamed(field: str, aliases: Mapping[str, str]) -> str:
    try:
        steps = parse_path(field)
    except InvalidField:
        return field  # whoever validates it says what is wrong
    return join_path(aliases.get(step, step) if isinstance(step, str) else step for step in steps)


def available_fields(schema: AvailableFields) -> list[str]:
    """The paths that an error lists."""
    return list(list_output_fields(schema)) if isinstance(schema, dict) else list(schema or ())


def _names(given: Json) -> tuple[str, ...]:
    if isinstance(given, Sequence | Set) and not isinstance(given, str | bytes):
        return tuple(given)
    raise TypeError(
        "validate_fields takes an output schema, a list of field names, or None; "
        f"got {type(given).__name__}."
    )


def _is_listed(path: Sequence[Step], available: Sequence[str]) -> bool:
    """Whether a path is one of a list's, or leads to one; lists are looked through."""
    asked = [step for step in path if step is not Mark.EACH]
    for known in available:
        steps = [step for step in parse_path(known) if step is not Mark.EACH]
        pairs = zip(asked, steps, strict=False)
        if len(asked) <= len(steps) and all(a in (Mark.ANY, s) for a, s in pairs):
            return True
    return False


def _parsed(field: str, schema: AvailableFields) -> tuple[Step, ...]:
    try:
        path = parse_path(field)
    except InvalidField as error:
        available = available_fields(schema)
        if not available:
            raise
        raise invalid_field(field, _reason(error), available) from error
    if any(isinstance(step, int) for step in path):
        written = join_path(Mark.EACH if isinstance(step, int) else step for step in path)
        raise invalid_field(
            field, f"Lists are mapped over: write {written}.", available_fields(schema)
        )
    return path


def _reason(error: InvalidField) -> str:
    """The part of a message that follows the name of the field."""
    return error.message.removeprefix(f"Invalid field: {error.details.get('field', '')}.").strip()


class _OutputSchema:
    """One schema, read for the members that its values can have."""

    def __init__(self, document: JsonObject) -> None:
        self._document = document

    def start(self, paths: Sequence[Sequence[Step]], root: str | None) -> tuple[Step, ...]:
        """Where the paths begin: the root, or inside the envelope that the schema describes."""
        if any(self.allows(path[:2] if path[0] is Mark.EACH else path[:1]) for path in paths):
            return ()
        if root and self.allows(parse_path(root)):
            return parse_path(root)
        objects = self._objects([self._document])
        members = [
            (name, bool(self._objects([member])))
            for node in objects
            for name, member in _properties(node).items()
        ]
        key = sole_content(members)
        return () if key is None else (key,)

    def allows(self, path: Sequence[Step]) -> bool:
        """Whether some value of the schema has the path."""
        schemas: list[Json] = [self._document]
        for step in path:
            if step is Mark.EACH:
                continue  # lists are looked through wherever they stand
            schemas = [member for node in self._objects(schemas) for member in _members(node, step)]
            if not schemas:
                return False
        return True

    def _objects(self, schemas: Sequence[Json]) -> list[JsonObject]:
        """The object schemas behind references, alternatives and lists."""
        found: list[JsonObject] = []
        queue: list[tuple[Json, bool]] = [(schema, True) for schema in schemas]
        seen: set[int] = set()
        while queue and len(seen) < _MAX_BRANCHES:
            node, alone = queue.pop()
            if node is True:
                found.append(_ANYTHING)
            if not isinstance(node, dict) or id(node) in seen:
                continue
            seen.add(id(node))
            behind = list(self._behind(node))
            queue.extend(behind)
            if (
                "properties" in node
                or "additionalProperties" in node
                or "patternProperties" in node
            ):
                found.append(node)
            elif alone and not behind and _may_hold(node):
                found.append(_ANYTHING)
        return found

    def _behind(self, node: JsonObject) -> Iterator[tuple[Json, bool]]:
        """Schemas about the same value or its elements, and whether each speaks alone."""
        if "$ref" in node or "$dynamicRef" in node:
            yield self._resolved(node.get("$ref")), True
        for keyword in _ALTERNATIVES:
            yield from ((branch, True) for branch in _listed(node.get(keyword)))
        for keyword in _REFINEMENTS:
            yield from ((branch, False) for branch in _listed(node.get(keyword)))
        for keyword in ("then", "else"):
            if keyword in node:
                yield node[keyword], False
        if "items" in node and not isinstance(node["items"], list):
            yield node["items"], True
        for element in [*_listed(node.get("prefixItems")), *_listed(node.get("items"))]:
            yield element, True

    def _resolved(self, reference: Json) -> Json:
        """The schema that a local reference points at; whatever lies elsewhere may be anything."""
        if reference == "#":
            return self._document
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return True
        node: Json = self._document
        for part in reference[2:].split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(node, dict) or key not in node:
                return True
            node = node[key]
        return node


def _listed(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _may_hold(node: JsonObject) -> bool:
    """Whether a schema that says nothing of its members may have some."""
    kinds = node.get("type")
    if kinds is None:
        return "enum" not in node and "const" not in node
    return not all(kind in _SCALARS for kind in (kinds if isinstance(kinds, list) else [kinds]))


def _properties(node: JsonObject) -> JsonObject:
    properties = node.get("properties")
    return properties if isinstance(properties, dict) else {}


def _members(node: JsonObject, step: Step) -> Iterator[Json]:
    """The schemas of the member that a step names."""
    known = _properties(node)
    if step is Mark.ANY:
        yield from known.values()
    elif step in known:
        yield known[str(step)]
        return
    if node.get("patternProperties"):
        yield True  # a pattern from outside is not run on a key from outside
    more = node.get("additionalProperties", not known)
    if more is not False:
        yield more


_ROOM = Detail(depth=0, values=12, literal=40)
_SHORT = Detail(depth=0, values=0, literal=60)
_LONGEST_TEXT = 40


@dataclass(frozen=True, slots=True)
class FieldEntry:
    """One field that `include_fields` may name; `example` is JSON text, or empty."""

    path: str
    type: str
    description: str
    example: str

    def wire(self) -> JsonObject:
        """The entry as JSON."""
        return {
            "path": self.path,
            "type": self.type,
            "description": self.description,
            "example": self.example,
        }


def list_field_entries(tool: Tool, sample: Json = None) -> list[FieldEntry]:
    """All fields of a tool's results, parents before children."""
    if (schema := tool.output_schema) is None:
        return []
    return [_entry(tool, path, field, sample) for path, field in fields_by_path(schema)]


def render_fields_page(server: str, tools: Iterable[Tool], samples: Mapping[str, Json]) -> str:
    """The reference of all tools of a server, as Markdown; `samples` are results by tool id."""
    listed = sorted(tools, key=lambda t: (t.category or "", t.name))
    entries = {t.id: list_field_entries(t, samples.get(t.id)) for t in listed}
    known: dict[tuple[str, str], str] = {}
    for entry in (e for of_tool in entries.values() for e in of_tool if e.example):
        known.setdefault(_kind(entry), entry.example)
    parts = [f"# Fields of {server}\n", _INTRODUCTION]
    group = None
    for tool in listed:
        if tool.category != group:
            group = tool.category
            parts.append(f"## {group or 'other'}\n")
        rows = [e if e.example else _with_example(e, known) for e in entries[tool.id]]
        parts.append(_section(tool, rows))
    return "\n".join(parts)


def _kind(entry: FieldEntry) -> tuple[str, str]:
    """What tells one field from another across tools: its own name, and its type."""
    return entry.path.rpartition(".")[2], entry.type


def _with_example(entry: FieldEntry, known: Mapping[tuple[str, str], str]) -> FieldEntry:
    return replace(entry, example=known.get(_kind(entry), ""))


_INTRODUCTION = (
    "What the results of each tool hold. Every path can be given to `include_fields`; a parent\n"
    "keeps all that lies below it.\n"
)


def _section(tool: Tool, entries: Sequence[FieldEntry]) -> str:
    lines = [f"### {tool.name}\n", f"{tool.summary}.\n"]
    if not entries:
        return "\n".join([*lines, "Says nothing of its result.\n"])
    lines += ["| field | type | description | example |", "|---|---|---|---|"]
    lines += [_row(entry) for entry in entries]
    return "\n".join([*lines, ""])


def _row(entry: FieldEntry) -> str:
    cells = (_code(entry.path), _code(entry.type), entry.description, _code(entry.example))
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


def _code(text: str) -> str:
    return f"`{text}`" if text and "`" not in text else text


def _entry(tool: Tool, path: str, field: FieldNode, sample: Json) -> FieldEntry:
    kinds = dict.fromkeys(_type(view) for view in field.views)
    written = next((view.description for view in field.views if view.description), "")
    description = written or _explained(tool, path)
    return FieldEntry(path, "|".join(kinds), description, _example(path, field.views, sample))


def _explained(tool: Tool, path: str) -> str:
    """What the author says of a field beside the schema: the longest end of its path decides.

    A path begins with the tool, so that `delete_issue.comments` means one field of one tool.
    """
    steps = [tool.name, *path.replace("[]", "").split(".")]
    ends = (".".join(steps[start:]) for start in range(len(steps)))
    return next((text for end in ends if (text := tool.field_descriptions.get(end))), "")


def _type(view: SchemaView) -> str:
    return format_type(view, _ROOM).replace(f"{{{ELLIPSIS}}}", "object")


def _example(path: str, views: Sequence[SchemaView], sample: Json) -> str:
    for view in views:
        for value in (*_listed(view.schema.get("examples")), *(allowed_values(view) or ())):
            if value is not None:
                return _shorten_example(value)
    found = (
        _shorten_example(v) for v in _values_at(sample, parse_path(path)) if v not in (None, [], {})
    )
    return next((text for text in found if text != ELLIPSIS), "")


def _shorten_example(value: Json) -> str:
    """The text of a value; a long text with its beginning, other long values not at all."""
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        value = value[: _LONGEST_TEXT - 3] + "..."
    return format_literal(value, _SHORT)


def _values_at(value: Json, path: Sequence[Step]) -> Iterator[Json]:
    """Every value that a path leads to; lists are looked through."""
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
