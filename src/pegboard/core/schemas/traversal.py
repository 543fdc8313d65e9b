"""Walking a schema document: where its subschemas are, and where its references lead.

This is the one module that knows the applicator keywords of JSON Schema. Everything that walks or
rewrites schemas goes through `children` and `map_children`, so that data (`default`, `enum`,
`examples`) and properties that happen to be *named* `$ref` or `items` are never mistaken for
schemas. A value of the wrong shape for its keyword (`properties` as a list) is data too.

A document may embed smaller documents, each with an `$id` that its own references are relative to:

    {"$defs": {"b": {"$id": "b",                    {"$defs": {"b": {
                     "$ref": "#/$defs/c",      ->                    "$ref": "#/$defs/b/$defs/c",
                     "$defs": {"c": {...}}}}}                        "$defs": {"c": {...}}}}}

`localize_references` removes those names and rewrites every reference as a JSON pointer from the
one root. The schema accepts the same values, and every reader has one rule to know. Nothing is ever
fetched: a reference that leads out of the document stays as it is, and `lookup` finds nothing
behind it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias
from urllib.parse import quote, unquote, urljoin

from pegboard.core.json import Json, JsonObject, is_within_bounds

Path: TypeAlias = tuple[str, ...]
"""The keys that lead from the root of a document to one of its parts."""

# fmt: off
ANNOTATIONS = frozenset((
    "title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly",
    "$comment", "$schema",
))
# fmt: on
"""Keywords that never decide whether a value is valid."""
DEFINITIONS = ("$defs", "definitions")
NOT_FOUND = object()

# Keywords that hold one schema, a list of schemas, or an object of schemas by name. `items` was a
# list of schemas until 2019-09, which is now `prefixItems`.
_ONE = frozenset(
    {"items", "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if"}
    | {"not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
)
_MANY = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_NAMED = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)
_DYNAMIC = frozenset({"$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor"})
_SINCE_2019 = frozenset(
    {"$defs", "dependentSchemas", "prefixItems", "unevaluatedItems", "unevaluatedProperties"}
)
_OLD_DRAFTS = ("draft-03", "draft-04", "draft-06", "draft-07")


def is_schema(value: Json) -> bool:
    return isinstance(value, (dict, bool))


def schema_as_object(schema: Json) -> JsonObject:
    """The same schema, never as a boolean; what is not a schema accepts everything."""
    if isinstance(schema, dict):
        return schema
    return {"not": {}} if schema is False else {}


def children(schema: JsonObject) -> Iterator[tuple[Path, Json]]:
    """Each subschema directly inside, with the path to it."""
    for keyword, value in schema.items():
        if keyword in _NAMED and isinstance(value, dict):
            yield from (((keyword, name), s) for name, s in value.items() if is_schema(s))
        elif keyword in _MANY and isinstance(value, list):
            yield from (((keyword, str(i)), s) for i, s in enumerate(value) if is_schema(s))
        elif keyword in _ONE and is_schema(value):
            yield (keyword,), value


def map_children(schema: JsonObject, change: Callable[[Json, Path], Json]) -> JsonObject:
    """The same schema with each direct subschema replaced by what `change` makes of it."""
    made: JsonObject = {}
    for keyword, value in schema.items():
        if keyword in _NAMED and isinstance(value, dict):
            made[keyword] = {
                name: change(s, (keyword, name)) if is_schema(s) else s for name, s in value.items()
            }
        elif keyword in _MANY and isinstance(value, list):
            made[keyword] = [
                change(s, (keyword, str(i))) if is_schema(s) else s for i, s in enumerate(value)
            ]
        elif keyword in _ONE and is_schema(value):
            made[keyword] = change(value, (keyword,))
        else:
            made[keyword] = value
    return made


def to_pointer(path: Path) -> str:
    """The path as a JSON pointer in a URI fragment."""
    return "#" + "".join(
        "/" + quote(step.replace("~", "~0").replace("/", "~1"), safe="!$&'()*+,;=:@~-._")
        for step in path
    )


def parse_pointer(reference: str) -> Path | None:
    """The path that a local pointer names; `None` for any other reference."""
    if reference == "#":
        return ()
    if not reference.startswith("#/"):
        return None
    return tuple(
        unquote(step).replace("~1", "/").replace("~0", "~") for step in reference[2:].split("/")
    )


def follow_path(root: Json, path: Path) -> Json:
    """The value at a path, or `NOT_FOUND`."""
    here = root
    for step in path:
        if isinstance(here, dict) and step in here:
            here = here[step]
        elif isinstance(here, list):
            # A long run of digits would be a huge integer to build, and is beyond any list.
            index = int(step) if step.isdecimal() and len(step) < 9 else sys.maxsize
            if index >= len(here):
                return NOT_FOUND
            here = here[index]
        else:
            return NOT_FOUND
    return here


def lookup(root: JsonObject, reference: str) -> Json:
    """The schema behind a local reference, or `NOT_FOUND`."""
    path = parse_pointer(reference)
    return NOT_FOUND if path is None else follow_path(root, path)


def ignores_ref_siblings(root: JsonObject) -> bool:
    """Whether keywords beside a `$ref` mean nothing, as was the rule up to draft 7."""
    dialect = root.get("$schema")
    return isinstance(dialect, str) and any(draft in dialect for draft in _OLD_DRAFTS)


def localize_references(schema: JsonObject) -> tuple[JsonObject, bool]:
    """The same schema with pointers in place of `$id` and anchors, and whether that was certain.

    It is not where a reference names a document by a name that two different ones have. A schema
    without such names is returned itself.
    """
    # Most schemas have neither `$id` nor anchors, and are not copied.
    names = _Names(schema, ignores_ref_siblings(schema))
    if not is_within_bounds(schema) or not names.collect():
        return schema, True
    made = names.strip(schema, (), _WHOLE)
    return made, names.certain


class _Document(NamedTuple):
    """What a schema is embedded in: the name and the path of the nearest `$id` around it.

    `known` is false below keywords that the dialect does not have, where an `$id` is plain data.
    """

    uri: str
    path: Path
    known: bool = True


_WHOLE = _Document("", ())


@dataclass(slots=True)
class _Names:
    """The names of the documents and anchors inside one schema, and the paths to them."""

    root: JsonObject
    old: bool
    documents: dict[str, list[Path]] = field(default_factory=dict[str, list[Path]])
    anchors: dict[tuple[Path, str], Path] = field(default_factory=dict[tuple[Path, str], Path])
    certain: bool = True

    def collect(self) -> bool:
        """Record all names; whether there are any and all of them can be removed."""
        found, dialect = False, self.root.get("$schema")
        pending: list[tuple[Json, Path, _Document]] = [(self.root, (), _WHOLE)]
        while pending:
            node, path, around = pending.pop()
            if not isinstance(node, dict):
                continue
            # Dynamic references resolve by the path that evaluation took, so no fixed pointer can
            # replace them; and an embedded document of another dialect has other rules.
            if _DYNAMIC & node.keys() or node.get("$schema", dialect) != dialect:
                return False
            found |= "$id" in node or "$anchor" in node
            document = self._document(node, path, around)
            if document.path == path:  # the node has an `$id`, or is the root
                self.documents.setdefault(document.uri, []).append(path)
            anchor, name = node.get("$anchor"), node.get("$id")
            if isinstance(anchor, str):
                self.anchors.setdefault((document.path, anchor), path)
            # How anchors were written up to draft 7.
            if isinstance(name, str) and name.startswith("#"):
                self.anchors.setdefault((document.path, name[1:]), path)
            below = [
                (child, (*path, *step), self._below(document, step))
                for step, child in children(node)
            ]
            pending += reversed(below)  # a stack: the first child is to be read first
        return found

    def strip(self, node: Json, path: Path, around: _Document) -> Json:
        """The node without names, and with pointers in place of them."""
        if not isinstance(node, dict):
            return node
        document = self._document(node, path, around)
        made = map_children(
            node,
            lambda child, step: self.strip(child, (*path, *step), self._below(document, step)),
        )
        for keyword in ("$id", "$anchor"):
            made.pop(keyword, None)
        if isinstance(made.get("$ref"), str):
            made["$ref"] = self._resolve(made["$ref"], document)
        return made

    def _document(self, node: JsonObject, path: Path, around: _Document) -> _Document:
        """The document that a node belongs to: itself, if it has an `$id` that counts."""
        name = node.get("$id")
        if not isinstance(name, str) or name.startswith("#") or not around.known:
            return around
        if self.old and "$ref" in node:  # siblings of `$ref` mean nothing there
            return around
        return _Document(_join_uri(around.uri, name), path)

    def _below(self, document: _Document, step: Path) -> _Document:
        unknown = self.old and step[0] in _SINCE_2019
        return document._replace(known=False) if unknown else document

    def _resolve(self, reference: str, document: _Document) -> str:
        """The reference as a pointer from the root; unchanged where it leads out of the schema."""
        target, _, fragment = reference.partition("#")
        uri = _join_uri(document.uri, target) if target else document.uri
        places = self.documents.get(uri, [])
        first = follow_path(self.root, places[0]) if places else None
        self.certain &= all(follow_path(self.root, other) == first for other in places[1:])
        if not places and target:
            return reference
        # A bare fragment means the document around it, even if another has the same name.
        path = places[0] if target else document.path
        if fragment.startswith("/"):
            return to_pointer(path) + fragment
        place = self.anchors.get((path, unquote(fragment))) if fragment else path
        return reference if place is None else to_pointer(place)


def _join_uri(base: str, name: str) -> str:
    try:
        return urljoin(base, name).partition("#")[0]
    except ValueError:  # not a URI, such as "http://[x": then it is a name of its own
        return name
