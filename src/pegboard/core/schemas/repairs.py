"""Schemas that providers and clients refuse, made acceptable without changing what they accept.

Model providers want an object at the root: `type: object`, no `anyOf`, `oneOf`, `allOf`, `not`,
`enum` or `$ref` there, definitions in one place, no `$id`; some clients want every property's
schema to be an object. The repair keeps the meaning among objects, which is all that a call can
send:

- references become pointers from the root, `$id`s go, nested definitions move to the root;
- what may not stand at the root moves into `{"if": {}, "then": {...}}`, which always applies;
- properties and requirements that the branches imply are repeated at the root, for models to read.

Before draft 7 there was no `if`: there, what cannot stand is dropped. So is a keyword of the wrong
shape, and a root type that no object has. `Repair.exact` is then false: the schema accepts more
than the original, which remains what arguments are checked against before a call.
"""

from __future__ import annotations

from typing import NamedTuple

from pegboard.core.json import Json, JsonObject
from pegboard.core.schemas.hoisting import hoisted
from pegboard.core.schemas.keywords import (
    ANNOTATIONS,
    DEFINITIONS,
    Path,
    as_object,
    fits,
    is_schema,
)
from pegboard.core.schemas.moving import definitions, free_name, gathered, redirected, targets
from pegboard.core.schemas.references import (
    NOTHING,
    ignores_ref_siblings,
    localised,
    lookup,
)

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
        changes["properties"] = {name: as_object(one) for name, one in properties.items()}
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
        root = {**as_object(target), **notes}
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
