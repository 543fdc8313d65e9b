"""Moving parts of a schema document, with every reference to them kept true."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pegboard.core.json import Json, JsonObject
from pegboard.core.schemas.keywords import DEFINITIONS, Path, children, with_children
from pegboard.core.schemas.references import NOTHING, follow, pointer, steps


def nodes(root: JsonObject) -> Iterator[tuple[Path, JsonObject]]:
    """Every schema of a document that is an object, with the way to it."""
    pending: list[tuple[Path, JsonObject]] = [((), root)]
    while pending:
        path, node = pending.pop()
        yield path, node
        pending += [((*path, *step), s) for step, s in children(node) if isinstance(s, dict)]


def targets(root: JsonObject) -> set[Path]:
    """Where the local references of a document lead."""
    references = (node.get("$ref") for _, node in nodes(root))
    found = (steps(reference) for reference in references if isinstance(reference, str))
    return {path for path in found if path is not None}


def gathered(root: JsonObject) -> tuple[JsonObject, bool]:
    """The same schema with nested definitions at the root, and whether its meaning was certain.

    Schemas that were pasted into others bring definitions along and refer to them as if they still
    stood at the root. Such a reference leads nowhere; it is taken to mean the nearest definition of
    that name around it.
    """
    moves = _Moves(root, _new_places(root))
    if not moves.places:
        return root, True
    made = moves.rebuilt(root, ())
    made["$defs"] = {
        **definitions(made),
        **{new[1]: moves.rebuilt(follow(root, old), old) for old, new in moves.places.items()},
    }
    return made, moves.certain


def definitions(root: JsonObject) -> JsonObject:
    found = root.get("$defs")
    return found if isinstance(found, dict) else {}


def redirected(root: JsonObject, places: Mapping[Path, Path]) -> JsonObject:
    """The same document with references to some places leading to others."""
    return _Moves(root, places).rebuilt(root, ()) if places else root


def free_name(wanted: str, taken: Mapping[str, Json] | set[str]) -> str:
    """The name, or the first numbered one that nothing has."""
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name


def _new_places(root: JsonObject) -> dict[Path, Path]:
    taken = set(definitions(root))
    places: dict[Path, Path] = {}
    for path, node in nodes(root):
        for keyword in DEFINITIONS if path else ():
            found = node.get(keyword)
            for name in found if isinstance(found, dict) else ():
                places[(*path, keyword, name)] = ("$defs", free_name(name, taken))
                taken.add(places[(*path, keyword, name)][1])
    return places


@dataclass(slots=True)
class _Moves:
    root: JsonObject
    places: Mapping[Path, Path]
    certain: bool = True

    def rebuilt(self, node: Json, path: Path) -> Json:
        """The node with references to the new places, without the definitions that left it."""
        if not isinstance(node, dict):
            return node
        left = {
            k for k in DEFINITIONS if any((*path, k, n) in self.places for n in _names(node, k))
        }
        kept = {k: v for k, v in node.items() if k not in left}
        made = with_children(kept, lambda child, step: self.rebuilt(child, (*path, *step)))
        if isinstance(made.get("$ref"), str):
            made["$ref"] = self._led(made["$ref"], path)
        return made

    def _led(self, reference: str, path: Path) -> str:
        target = steps(reference)
        if target is None:
            return reference
        for end in range(len(target), -1, -1):
            if target[:end] in self.places and (end or not target):
                return pointer((*self.places[target[:end]], *target[end:]))
        if follow(self.root, target) is NOTHING:
            return self._guessed(reference, target, path)
        return reference

    def _guessed(self, reference: str, target: Path, path: Path) -> str:
        for end in range(len(path), 0, -1):
            place = self.places.get((*path[:end], *target[:2]))
            if place is not None:
                self.certain = False
                return pointer((*place, *target[2:]))
        return reference


def _names(node: JsonObject, keyword: str) -> list[str]:
    found = node.get(keyword)
    return list(found) if isinstance(found, dict) else []
