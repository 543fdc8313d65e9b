"""Fields against an output schema: which paths a result can have, said before the call.

JSON Schema objects are open unless closed; here a schema that lists properties is taken at its
word and anything else is refused, since a misspelt field costs a whole call. Only what a schema
leaves open on purpose (`additionalProperties`, no properties at all, a reference that leads
elsewhere) admits any path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import TypeAlias

from pegboard.core.envelope import sole_content
from pegboard.core.json import Json, JsonObject
from pegboard.core.paths import Mark, Step, invalid_field, join_path, parse_fields, parse_path
from pegboard.core.schemas import output_fields
from pegboard.errors import InvalidField

_SCALARS = ("string", "number", "integer", "boolean", "null")
_ALTERNATIVES = ("anyOf", "oneOf")
_REFINEMENTS = ("allOf",)
_ANYTHING: JsonObject = {"additionalProperties": True}
_MAX_BRANCHES = 1_000


Available: TypeAlias = "JsonObject | Sequence[str] | Set[str] | None"
"""What fields there are: an output schema, a list of paths, or `None` where nothing is known."""


def validate_fields(fields: Sequence[str], schema: Available, root: str | None = None) -> None:
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
        reading = _Reading(schema)
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


def without_aliases(
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


def available_fields(schema: Available) -> list[str]:
    """The paths that an error lists."""
    return list(output_fields(schema)) if isinstance(schema, dict) else list(schema or ())


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


def _parsed(field: str, schema: Available) -> tuple[Step, ...]:
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


class _Reading:
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
