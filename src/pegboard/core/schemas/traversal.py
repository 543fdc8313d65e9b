"""Walking a schema document: where its subschemas are, and where its references lead.

This is the one module that knows the applicator keywords of JSON Schema. Everything that walks or
rewrites schemas goes through `children` and `with_children`, so that data (`default`, `enum`,
`examples`) and properties that happen to be *named* `$ref` or `items` are never mistaken for
schemas. A value of the wrong shape for its keyword (`properties` as a list) is data too.

A document may embed smaller documents, each with an `$id` that its own references are relative to.
`localize` removes those names and rewrites every reference as a JSON pointer, `#/...`, from the one
root. That leaves what the schema accepts unchanged, and every reader has one rule to know. Nothing
is ever fetched: a reference that leads out of the document stays as it is, and `lookup` finds
nothing behind it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias
from urllib.parse import quote, unquote, urljoin

from pegboard.core.json import Json, JsonObject

Path: TypeAlias = tuple[str, ...]

ANNOTATIONS = frozenset(
    {
        "title",
        "description",
        "default",
        "examples",
        "example",
        "deprecated",
        "readOnly",
        "writeOnly",
    }
    | {"$comment", "$schema"}
)
DEFINITIONS = ("$defs", "definitions")

_ONE = frozenset(
    {"items", "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if"}
    | {"not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
)
_MANY = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_NAMED = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)


def is_schema(value: Json) -> bool:
    return isinstance(value, (dict, bool))


def schema_as_object(schema: Json) -> JsonObject:
    """The same schema never as a boolean; anything that is no schema accepts everything."""
    if isinstance(schema, dict):
        return schema
    return {"not": {}} if schema is False else {}


def children(schema: JsonObject) -> Iterator[tuple[Path, Json]]:
    """Each subschema directly inside, with the way to it."""
    for keyword, value in schema.items():
        if keyword in _NAMED and isinstance(value, dict):
            yield from (((keyword, name), s) for name, s in value.items() if is_schema(s))
        elif keyword in _MANY and isinstance(value, list):
            yield from (((keyword, str(i)), s) for i, s in enumerate(value) if is_schema(s))
        elif keyword in _ONE and is_schema(value):
            yield (keyword,), value


def with_children(schema: JsonObject, change: Callable[[Json, Path], Json]) -> JsonObject:
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


def fits(value: Json, *, depth: int = 100, nodes: int = 50_000) -> bool:
    """Whether a JSON value is small enough to be walked: at most so deep, of so many parts.

    Without recursion, so that a value deeper than the interpreter's stack is measured, not fatal; a
    value that contains itself is deeper than any bound.
    """
    level: list[Json] = [value]
    while level:
        nodes -= len(level)
        if depth < 0 or nodes < 0:
            return False
        depth -= 1
        level = [part for node in level for part in _parts(node)]
    return True


class Size(NamedTuple):
    """How large a JSON value is: its values, names of members included, and their characters."""

    values: int
    characters: int


def measured(value: Json, most: int) -> Size | None:
    """The size of a JSON value; `None` when it has more than so many values."""
    values = characters = 0
    level: list[Json] = [value]
    while level:
        values += len(level)
        if values > most:
            return None
        below: list[Json] = []
        for node in level:
            if isinstance(node, str):
                characters += len(node)
            elif isinstance(node, dict):
                below.extend(node)
                below.extend(node.values())
            elif isinstance(node, list):
                below.extend(node)
            elif isinstance(node, int):
                characters += node.bit_length() >> 5
        level = below
    return Size(values, characters)


def _parts(node: Json) -> list[Json]:
    if isinstance(node, dict):
        return list(node.values())
    return node if isinstance(node, list) else []


_DYNAMIC = frozenset({"$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor"})
_SINCE_2019 = frozenset(
    {"$defs", "dependentSchemas", "prefixItems", "unevaluatedItems", "unevaluatedProperties"}
)
_OLD_DRAFTS = ("draft-03", "draft-04", "draft-06", "draft-07")
NOTHING = object()


def pointer(path: Path) -> str:
    """The URI fragment of a way from the root."""
    return "#" + "".join(
        "/" + quote(step.replace("~", "~0").replace("/", "~1"), safe="!$&'()*+,;=:@~-._")
        for step in path
    )


def steps(reference: str) -> Path | None:
    """The way that a local pointer names; `None` for any other reference."""
    if reference == "#":
        return ()
    if not reference.startswith("#/"):
        return None
    return tuple(
        unquote(step).replace("~1", "/").replace("~0", "~") for step in reference[2:].split("/")
    )


def follow(root: Json, path: Path) -> Json:
    """What stands there, or `NOTHING`."""
    here = root
    for step in path:
        if isinstance(here, dict) and step in here:
            here = here[step]
        elif isinstance(here, list) and (index := _index(step)) < len(here):
            here = here[index]
        else:
            return NOTHING
    return here


def _index(step: str) -> int:
    return int(step) if step.isdecimal() and len(step) < 9 else sys.maxsize


def lookup(root: JsonObject, reference: str) -> Json:
    """The schema behind a local reference, or `NOTHING`."""
    path = steps(reference)
    return NOTHING if path is None else follow(root, path)


def ignores_ref_siblings(root: JsonObject) -> bool:
    """Whether keywords beside a `$ref` mean nothing: so it was until draft 7."""
    dialect = root.get("$schema")
    return isinstance(dialect, str) and any(draft in dialect for draft in _OLD_DRAFTS)


def localised(schema: JsonObject) -> tuple[JsonObject, bool]:
    """The same schema with pointers instead of `$id` and anchors, and whether these were clear.

    They are not where a reference names a document by a name that two different ones have. A schema
    without names is returned itself.
    """
    names = _Names(schema, ignores_ref_siblings(schema))
    if not fits(schema) or not names.collect():
        return schema, True
    made = names.stripped(schema, (), _WHOLE)
    return made, names.certain


class _Document(NamedTuple):
    """What a schema stands in: the name and the place of the nearest `$id` around it.

    `known` is false below keywords that the dialect does not have, where an `$id` is only a word.
    """

    uri: str
    path: Path
    known: bool = True


_WHOLE = _Document("", ())


@dataclass(slots=True)
class _Names:
    """What the documents and anchors inside one schema are called, and where they stand."""

    root: JsonObject
    old: bool
    documents: dict[str, list[Path]] = field(default_factory=dict[str, list[Path]])
    anchors: dict[tuple[Path, str], Path] = field(default_factory=dict[tuple[Path, str], Path])
    certain: bool = True

    def collect(self) -> bool:
        """Note all names; whether there are any and all can be taken away."""
        found, dialect = False, self.root.get("$schema")
        pending: list[tuple[Json, Path, _Document]] = [(self.root, (), _WHOLE)]
        while pending:
            node, path, around = pending.pop()
            if not isinstance(node, dict):
                continue
            if _DYNAMIC & node.keys() or node.get("$schema", dialect) != dialect:
                return False
            found |= "$id" in node or "$anchor" in node
            document = self._document(node, path, around)
            if document.path == path:
                self.documents.setdefault(document.uri, []).append(path)
            for anchor in self._anchors(node):
                self.anchors.setdefault((document.path, anchor), path)
            below = [
                (child, (*path, *step), self._below(document, step))
                for step, child in children(node)
            ]
            pending += reversed(below)
        return found

    def stripped(self, node: Json, path: Path, around: _Document) -> Json:
        """The node without names, and with pointers in place of them."""
        if not isinstance(node, dict):
            return node
        document = self._document(node, path, around)
        made = with_children(
            node,
            lambda child, step: self.stripped(child, (*path, *step), self._below(document, step)),
        )
        for keyword in ("$id", "$anchor"):
            made.pop(keyword, None)
        if isinstance(made.get("$ref"), str):
            made["$ref"] = self._pointed(made["$ref"], document)
        return made

    def _same(self, one: Path, other: Path) -> bool:
        return follow(self.root, one) == follow(self.root, other)

    def _document(self, node: JsonObject, path: Path, around: _Document) -> _Document:
        name = node.get("$id")
        if not isinstance(name, str) or name.startswith("#") or not around.known:
            return around
        if self.old and "$ref" in node:
            return around
        return _Document(_joined(around.uri, name), path)

    def _anchors(self, node: JsonObject) -> Iterator[str]:
        anchor, name = node.get("$anchor"), node.get("$id")
        if isinstance(anchor, str):
            yield anchor
        if isinstance(name, str) and name.startswith("#"):  # so it was until draft 7
            yield name[1:]

    def _below(self, document: _Document, step: Path) -> _Document:
        unknown = self.old and step[0] in _SINCE_2019
        return document._replace(known=False) if unknown else document

    def _pointed(self, reference: str, document: _Document) -> str:
        target, _, fragment = reference.partition("#")
        uri = _joined(document.uri, target) if target else document.uri
        places = self.documents.get(uri, [])
        self.certain &= all(self._same(places[0], other) for other in places[1:])
        if not places and target:
            return reference
        # A bare fragment means the document around it, even if another has the same name.
        path = places[0] if target else document.path
        if fragment.startswith("/"):
            return pointer(path) + fragment
        place = self.anchors.get((path, unquote(fragment))) if fragment else path
        return reference if place is None else pointer(place)


def _joined(base: str, name: str) -> str:
    try:
        return urljoin(base, name).partition("#")[0]
    except ValueError:  # not a URI, such as "http://[x": its own name then
        return name
