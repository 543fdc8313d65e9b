"""Schemas that providers and clients refuse, made acceptable without changing what they accept.

Model providers want an object at the root: `type: object`, no `anyOf`, `oneOf`, `allOf`, `not`,
`enum` or `$ref` there, definitions in one place, no `$id`; some clients want every property's
schema to be an object. The repair keeps the meaning among objects, which is all that a call can
send:

- references become pointers from the root, `$id`s go, nested definitions move to the root;
- what may not stand at the root moves into `{"if": {}, "then": {...}}`, which always applies;
- properties and requirements that the branches imply are repeated at the root (`hoisted`), because
  models read the properties there.

Before draft 7 there was no `if`: there, what cannot stand is dropped. So is a keyword of the wrong
shape, and a root type that no object has. `Repair.exact` is then false: the schema accepts more
than the original, which remains what arguments are checked against before a call.

`without_titles` removes the titles that generators derive from names. pydantic titles every
property, class and root with its own name in other letters (`due_on` is "Due On"): a fifth of the
tokens of a generated schema. A title that an author wrote differs from the name and stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pegboard.core.json import Json, JsonObject
from pegboard.core.schemas.traversal import (
    ANNOTATIONS,
    DEFINITIONS,
    NOTHING,
    Path,
    children,
    fits,
    follow,
    ignores_ref_siblings,
    is_schema,
    localised,
    lookup,
    pointer,
    schema_as_object,
    steps,
    with_children,
)


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


_PLAIN = frozenset({"type", "properties", "required"}) | ANNOTATIONS


def hoisted(root: JsonObject) -> JsonObject:
    """The same schema with implied properties and requirements at the root."""
    if _counts_names(root):
        return root
    root = _with_all(root)
    for keyword in ("anyOf", "oneOf"):
        branches = root.get(keyword)
        if isinstance(branches, list) and branches:
            root = _with_common(root, [_branch(root, branch) for branch in branches])
    return root


def _counts_names(root: JsonObject) -> bool:
    """Whether some keyword depends on which properties are named where: then none may be added."""
    if root.get("additionalProperties", True) is not True or "patternProperties" in root:
        return True
    return any("unevaluatedProperties" in node for _, node in nodes(root))


def _with_all(root: JsonObject) -> JsonObject:
    parts = root.get("allOf")
    if not isinstance(parts, list) or not parts:
        return root
    # Who refers to a branch, or to the root whatever its type, must find it unchanged.
    referred = any(path[:1] in ((), ("allOf",)) for path in targets(root))
    kept: list[Json] = []
    for part in parts:
        branch = _branch(root, part)
        plain = branch.keys() <= _PLAIN and branch.get("type", "object") == "object"
        if plain and isinstance(part, dict) and not referred:
            root = _joined(root, branch)
        else:
            kept.append(part)
    rest = {k: v for k, v in root.items() if k != "allOf"}
    return rest | {"allOf": kept} if kept else rest


def _joined(root: JsonObject, branch: JsonObject) -> JsonObject:
    """The root with all that one plain branch says."""
    properties = dict(_properties(root))
    for name, schema in _properties(branch).items():
        ours = properties.get(name)
        properties[name] = schema if ours in (None, schema) else {"allOf": [ours, schema]}
    notes = {k: v for k, v in branch.items() if k in ("title", "description")}
    return _completed({**notes, **root}, properties, _required(branch))


def _with_common(root: JsonObject, branches: Sequence[JsonObject]) -> JsonObject:
    """The root with what follows whichever of the branches holds."""
    properties = dict(_properties(root))
    for name in dict.fromkeys(name for branch in branches for name in _properties(branch)):
        if name not in properties:
            properties[name] = _common(name, branches)
    needed = [n for n in _required(branches[0]) if all(n in _required(b) for b in branches)]
    return _completed(root, properties, needed)


def _common(name: str, branches: Sequence[JsonObject]) -> JsonObject:
    """What all branches that allow the property say of it; its description where one is silent."""
    schemas = [_properties(b)[name] for b in branches if name in _properties(b)]
    distinct = [s for number, s in enumerate(schemas) if s not in schemas[:number]]
    silent = any(name not in _properties(b) and not _is_closed(b) for b in branches)
    if not silent:
        return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
    described = (s.get("description") for s in schemas if isinstance(s, dict))
    text = next((text for text in described if isinstance(text, str)), None)
    return {"description": text} if text else {}


def _completed(root: JsonObject, properties: JsonObject, required: Sequence[str]) -> JsonObject:
    made = {**root, "properties": properties} if properties else dict(root)
    more = [name for name in required if name not in _required(root)]
    return {**made, "required": [*_required(root), *more]} if more else made


def _branch(root: JsonObject, schema: Json) -> JsonObject:
    """The branch itself, or what it refers to if it does nothing else."""
    if not isinstance(schema, dict):
        return {}
    alone = ignores_ref_siblings(root) or not schema.keys() - ANNOTATIONS - {"$ref"}
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not alone:
        return schema
    target = lookup(root, reference)
    # A second reference is not followed; beside it nothing may be read before draft 2019-09.
    return target if isinstance(target, dict) and "$ref" not in target else {"$ref": reference}


def _is_closed(branch: JsonObject) -> bool:
    return branch.get("additionalProperties") is False and "patternProperties" not in branch


def _properties(schema: JsonObject) -> JsonObject:
    found = schema.get("properties")
    return (
        {name: schema_as_object(s) for name, s in found.items()} if isinstance(found, dict) else {}
    )


def _required(schema: JsonObject) -> list[str]:
    found = schema.get("required")
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


_REFUSED = ("$ref", "allOf", "anyOf", "oneOf", "not", "enum", "const")
_CONDITION = ("if", "then", "else")
_WITHOUT_CONDITIONS = ("draft-03", "draft-04", "draft-06")
_NOTHING_FITS: JsonObject = {"type": "object", "minProperties": 1, "maxProperties": 0}
_LONGEST_CHAIN = 16


class Repair(NamedTuple):
    """A schema fit to be shown, and whether it accepts exactly the original's objects."""

    schema: JsonObject
    exact: bool = True


def repaired(schema: Json) -> JsonObject:
    """The schema as providers take it; the same object when nothing was wrong."""
    return repair(schema).schema


def repair(schema: Json) -> Repair:
    """The schema as providers take it, and whether it still accepts exactly the same objects."""
    if schema is False:
        return Repair(dict(_NOTHING_FITS))
    if not isinstance(schema, dict):
        return Repair({"type": "object"}, exact=schema is True)
    if not fits(schema):
        return _typed(schema)
    exact = True
    # Shaped again at the end: what comes to the root from elsewhere may have the same faults.
    for step in (_shaped, _gathered, _dereferenced, _rooted, _shaped, _typed):
        schema, kept = step(schema)
        exact = exact and kept
    return Repair(schema, exact)


def _shaped(root: JsonObject) -> Repair:
    """`properties` as an object of objects, `required` as a list of names."""
    changes: JsonObject = {}
    exact = True
    properties = root.get("properties", {})
    if not isinstance(properties, dict):
        changes["properties"], exact = {}, False
    elif not all(isinstance(one, dict) for one in properties.values()):
        exact = all(map(is_schema, properties.values()))
        changes["properties"] = {name: schema_as_object(one) for name, one in properties.items()}
    required = root.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        names = required if isinstance(required, list) else []
        changes["required"], exact = [name for name in names if isinstance(name, str)], False
    return Repair({**root, **changes} if changes else root, exact)


def _gathered(root: JsonObject) -> Repair:
    root, named = localised(root)
    root, placed = gathered(root)
    return Repair(root, named and placed)


def _dereferenced(root: JsonObject) -> Repair:
    """What stands behind a `$ref` at the root, in its place, where nothing beside it has a say."""
    seen: set[str] = set()
    while isinstance(reference := root.get("$ref"), str):
        notes = {k: v for k, v in root.items() if k in ANNOTATIONS or k in DEFINITIONS}
        unknown = Repair({k: v for k, v in notes.items() if k in ANNOTATIONS}, exact=False)
        beside = root.keys() - notes.keys() - {"$ref"}
        referred = {path[0] if path else "type" for path in targets(root)}
        if reference in seen or len(seen) >= _LONGEST_CHAIN:
            return unknown
        if ignores_ref_siblings(root) and beside & referred:
            return unknown
        seen.add(reference)
        target = lookup(root, reference)
        silent = beside <= {"type"} - referred and root.get("type", "object") == "object"
        if not silent and not ignores_ref_siblings(root):
            break
        if target is NOTHING or not is_schema(target):
            return Repair({**notes, "$ref": reference})
        root = {**schema_as_object(target), **notes}
    return Repair(root)


def _rooted(root: JsonObject) -> Repair:
    """Nothing at the root that providers refuse there."""
    if not any(keyword in root for keyword in _REFUSED):
        return Repair(root)
    root = hoisted(root)
    moved = [keyword for keyword in root if keyword in _REFUSED]
    if not moved:
        return Repair(root)
    dialect = root.get("$schema")
    if isinstance(dialect, str) and any(draft in dialect for draft in _WITHOUT_CONDITIONS):
        # Out of force as a definition, where those who refer to its parts still find them.
        name = free_name("Refused", definitions(root))
        rest, parts = _split(root, moved, ("$defs", name))
        return Repair({**rest, "$defs": {**definitions(rest), name: parts}}, exact=False)
    moved += [keyword for keyword in root if keyword in _CONDITION]
    rest, parts = _split(root, moved, ("then",))
    return Repair({**rest, "if": {}, "then": parts})


def _split(root: JsonObject, moved: list[str], place: Path) -> tuple[JsonObject, JsonObject]:
    """The root without some keywords, and these alone, with references to their new place."""
    places: dict[Path, Path] = {(keyword,): (*place, keyword) for keyword in moved}
    root = redirected(root, places)
    rest = {k: v for k, v in root.items() if k not in moved}
    return rest, {k: root[k] for k in moved}


def _typed(root: JsonObject) -> Repair:
    """`type: object`; whoever refers to the root as a whole keeps the type that it had."""
    declared = root.get("type", "object")
    if declared == "object" and "type" in root:
        return Repair(root)
    exact = declared == "object" or (isinstance(declared, list) and "object" in declared)
    if fits(root) and () in targets(root):
        name = free_name("Whole", definitions(root))
        root = redirected(root, {(): ("$defs", name)})
        whole = {k: v for k, v in root.items() if k not in DEFINITIONS and k not in ANNOTATIONS}
        root = {**root, "$defs": {**definitions(root), name: whole}}
    rest = {k: v for k, v in root.items() if k != "type"}
    return Repair({"type": "object", **rest}, exact)


def without_titles(schema: JsonObject) -> JsonObject:
    """The same schema without generated titles, at every depth."""
    title = schema.get("title")
    generated = isinstance(title, str) and title.isidentifier()  # the name of a class
    return _without(schema, title if generated else None)


def _without(schema: JsonObject, generated: Json) -> JsonObject:
    if generated is not None and schema.get("title") == generated:
        schema = {key: value for key, value in schema.items() if key != "title"}
    return with_children(schema, _child)


def _child(schema: Json, path: Path) -> Json:
    if not isinstance(schema, dict):
        return schema
    match path:
        case ("properties", name):
            return _without(schema, name.title().replace("_", " ").strip())
        case (keyword, name) if keyword in DEFINITIONS:
            return _without(schema, name)
        case _:
            return _without(schema, None)
