"""References of a schema, all of them as JSON pointers from its root.

A schema document may hold smaller documents, each with an `$id` that its own references start from.
`localised` takes those names away and spells every reference as `#/...` from the one root, which
leaves what the schema accepts unchanged and every reader with one rule to know. Nothing is ever
fetched: a reference that leads out of the document stays as it is, and `lookup` finds nothing
behind it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import quote, unquote, urljoin

from pegboard.core.json import Json, JsonObject
from pegboard.core.schemas.keywords import Path, children, fits, with_children

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
