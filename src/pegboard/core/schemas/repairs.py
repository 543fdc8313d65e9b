"""Schemas that providers and clients refuse, made acceptable without changing what they accept.

Model providers want an object at the root: `type: object`, no `anyOf`, `oneOf`, `allOf`, `not`,
`enum` or `$ref` there, definitions in one place, no `$id`; some clients want every property's
schema to be an object. The repair keeps the meaning among objects, which is all that a call can
send:

- references become pointers from the root, `$id`s go, nested definitions move to the root;
- what may not stand at the root moves into `{"if": {}, "then": {...}}`, which always applies;
- properties and requirements that the branches imply are repeated at the root, because models
  read the properties there.

Before draft 7 there was no `if`: there, what may not stand at the root is dropped. So is a keyword
of the wrong shape, and a root type that no object has. `Repair.exact` is then false: the schema
accepts more than the original, and arguments are still checked against the original before a call.

`strip_generated_titles` removes the titles that generators derive from names. pydantic titles every
property, class and root with its own name in other letters (`due_on` is "Due On"): a fifth of the
tokens of a generated schema. A title that an author wrote differs from the name and stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pegboard.core.json import Json, JsonObject, is_within_bounds
from pegboard.core.schemas.traversal import (
    ANNOTATIONS,
    DEFINITIONS,
    NOT_FOUND,
    Path,
    children,
    follow_path,
    ignores_ref_siblings,
    is_schema,
    localize_references,
    lookup,
    map_children,
    parse_pointer,
    schema_as_object,
    to_pointer,
)

_REFUSED = ("$ref", "allOf", "anyOf", "oneOf", "not", "enum", "const")
"""Keywords that providers refuse at the root."""
_CONDITION = ("if", "then", "else")
_WITHOUT_CONDITIONS = ("draft-03", "draft-04", "draft-06")
_NOTHING_FITS: JsonObject = {"type": "object", "minProperties": 1, "maxProperties": 0}
_MAX_CHAIN = 16
_PLAIN = frozenset({"type", "properties", "required"}) | ANNOTATIONS
"""Keywords of a branch that can be joined into the root without a loss."""


class Repair(NamedTuple):
    """A schema fit to be shown, and whether it accepts exactly the original's objects."""

    schema: JsonObject
    exact: bool = True


def repair_schema(schema: Json) -> Repair:
    """The schema as providers accept it; the same object when nothing was wrong."""
    if schema is False:
        return Repair(dict(_NOTHING_FITS))
    if not isinstance(schema, dict):
        return Repair({"type": "object"}, exact=schema is True)
    if not is_within_bounds(schema):  # too large to be walked: only the type can be set
        return _set_type(schema)
    exact = True
    # The shape is fixed again at the end: what came to the root from elsewhere may be wrong too.
    for step in (
        _fix_shape,
        localize_references,
        gather_definitions,
        _dereference_root,
        _clear_root,
        _fix_shape,
        _set_type,
    ):
        schema, is_exact = step(schema)
        exact = exact and is_exact
    return Repair(schema, exact)


def _fix_shape(root: JsonObject) -> Repair:
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


def _dereference_root(root: JsonObject) -> Repair:
    """The target of a `$ref` at the root in place of it, if no sibling keyword counts."""
    seen: set[str] = set()
    while isinstance(reference := root.get("$ref"), str):
        notes = {k: v for k, v in root.items() if k in ANNOTATIONS or k in DEFINITIONS}
        unknown = Repair({k: v for k, v in notes.items() if k in ANNOTATIONS}, exact=False)
        beside = root.keys() - notes.keys() - {"$ref"}
        referred = {path[0] if path else "type" for path in reference_targets(root)}
        if reference in seen or len(seen) >= _MAX_CHAIN:
            return unknown
        # Its sibling keywords are dropped below, so nothing may refer to their parts.
        if ignores_ref_siblings(root) and beside & referred:
            return unknown
        seen.add(reference)
        target = lookup(root, reference)
        silent = beside <= {"type"} - referred and root.get("type", "object") == "object"
        if not silent and not ignores_ref_siblings(root):
            break  # since 2019-09 the keywords beside a reference count: it is moved away below
        if target is NOT_FOUND or not is_schema(target):
            return Repair({**notes, "$ref": reference})
        root = {**schema_as_object(target), **notes}
    return Repair(root)


def _clear_root(root: JsonObject) -> Repair:
    """Nothing at the root that providers refuse there."""
    if not any(keyword in root for keyword in _REFUSED):
        return Repair(root)
    root = hoist_branches(root)
    moved = [keyword for keyword in root if keyword in _REFUSED]
    if not moved:
        return Repair(root)
    dialect = root.get("$schema")
    if isinstance(dialect, str) and any(draft in dialect for draft in _WITHOUT_CONDITIONS):
        # A definition is not applied, and references to its parts still find them there.
        name = free_name("Refused", root_definitions(root))
        rest, parts = _split(root, moved, ("$defs", name))
        return Repair({**rest, "$defs": {**root_definitions(rest), name: parts}}, exact=False)
    # A condition that the schema has itself moves along: there can be only one at a time.
    moved += [keyword for keyword in root if keyword in _CONDITION]
    rest, parts = _split(root, moved, ("then",))
    return Repair({**rest, "if": {}, "then": parts})


def _split(root: JsonObject, moved: list[str], place: Path) -> tuple[JsonObject, JsonObject]:
    """The root without some keywords, and those keywords alone; references follow the move."""
    places: dict[Path, Path] = {(keyword,): (*place, keyword) for keyword in moved}
    root = redirect_references(root, places)
    rest = {k: v for k, v in root.items() if k not in moved}
    return rest, {k: root[k] for k in moved}


def _set_type(root: JsonObject) -> Repair:
    """`type: object` at the root; references to the whole root keep the type that it had."""
    declared = root.get("type", "object")
    if declared == "object" and "type" in root:
        return Repair(root)
    # `["object", "null"]` accepts the same objects; `"array"` accepts none, and is replaced.
    exact = declared == "object" or (isinstance(declared, list) and "object" in declared)
    if is_within_bounds(root) and () in reference_targets(root):
        name = free_name("Whole", root_definitions(root))
        root = redirect_references(root, {(): ("$defs", name)})
        whole = {k: v for k, v in root.items() if k not in DEFINITIONS and k not in ANNOTATIONS}
        root = {**root, "$defs": {**root_definitions(root), name: whole}}
    rest = {k: v for k, v in root.items() if k != "type"}
    return Repair({"type": "object", **rest}, exact)


def hoist_branches(root: JsonObject) -> JsonObject:
    """The same schema with the properties and requirements at the root that its branches imply."""
    # These keywords depend on which properties are named beside them, so none may be added.
    if root.get("additionalProperties", True) is not True or "patternProperties" in root:
        return root
    if any("unevaluatedProperties" in node for _, node in walk_schemas(root)):
        return root
    root = _join_all_of(root)
    for keyword in ("anyOf", "oneOf"):
        branches = root.get(keyword)
        if isinstance(branches, list) and branches:
            resolved = [_resolve_branch(root, branch) for branch in branches]
            properties = dict(_properties(root))
            for name in dict.fromkeys(name for branch in resolved for name in _properties(branch)):
                if name not in properties:
                    properties[name] = _common_schema(name, resolved)
            first = _required(resolved[0])
            needed = [name for name in first if all(name in _required(b) for b in resolved)]
            root = _complete(root, properties, needed)
    return root


def _join_all_of(root: JsonObject) -> JsonObject:
    """The root with the plain branches of `allOf` joined into it."""
    parts = root.get("allOf")
    if not isinstance(parts, list) or not parts:
        return root
    # A reference to a branch, or to the root as a whole, must find it unchanged.
    referred = any(path[:1] in ((), ("allOf",)) for path in reference_targets(root))
    others: list[Json] = []
    for part in parts:
        branch = _resolve_branch(root, part)
        plain = branch.keys() <= _PLAIN and branch.get("type", "object") == "object"
        if plain and isinstance(part, dict) and not referred:
            properties = dict(_properties(root))
            for name, schema in _properties(branch).items():
                ours = properties.get(name)
                properties[name] = schema if ours in (None, schema) else {"allOf": [ours, schema]}
            notes = {k: v for k, v in branch.items() if k in ("title", "description")}
            root = _complete({**notes, **root}, properties, _required(branch))
        else:
            others.append(part)
    rest = {k: v for k, v in root.items() if k != "allOf"}
    return rest | {"allOf": others} if others else rest


def _common_schema(name: str, branches: Sequence[JsonObject]) -> JsonObject:
    """What the branches say of a property: any of their schemas, if every branch restricts it.

    A branch without the property that is open to any other accepts every value for it, so then
    only the description can be repeated.
    """
    schemas = [_properties(b)[name] for b in branches if name in _properties(b)]
    distinct = [s for number, s in enumerate(schemas) if s not in schemas[:number]]
    absent = [branch for branch in branches if name not in _properties(branch)]
    if all(
        branch.get("additionalProperties") is False and "patternProperties" not in branch
        for branch in absent
    ):
        return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
    described = (s.get("description") for s in schemas if isinstance(s, dict))
    text = next((text for text in described if isinstance(text, str)), None)
    return {"description": text} if text else {}


def _complete(root: JsonObject, properties: JsonObject, required: Sequence[str]) -> JsonObject:
    made = {**root, "properties": properties} if properties else dict(root)
    more = [name for name in required if name not in _required(root)]
    return {**made, "required": [*_required(root), *more]} if more else made


def _resolve_branch(root: JsonObject, schema: Json) -> JsonObject:
    """The branch itself, or the target of its reference if it is nothing else."""
    if not isinstance(schema, dict):
        return {}
    alone = ignores_ref_siblings(root) or not schema.keys() - ANNOTATIONS - {"$ref"}
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not alone:
        return schema
    target = lookup(root, reference)
    # A second reference is not followed. Before draft 2019-09, its sibling keywords mean nothing.
    return target if isinstance(target, dict) and "$ref" not in target else {"$ref": reference}


def _properties(schema: JsonObject) -> JsonObject:
    found = schema.get("properties")
    return (
        {name: schema_as_object(s) for name, s in found.items()} if isinstance(found, dict) else {}
    )


def _required(schema: JsonObject) -> list[str]:
    found = schema.get("required")
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def walk_schemas(root: JsonObject) -> Iterator[tuple[Path, JsonObject]]:
    """Every schema of a document that is an object, with the path to it."""
    pending: list[tuple[Path, JsonObject]] = [((), root)]
    while pending:
        path, node = pending.pop()
        yield path, node
        pending += [((*path, *step), s) for step, s in children(node) if isinstance(s, dict)]


def reference_targets(root: JsonObject) -> set[Path]:
    """Where the local references of a document lead."""
    references = (node.get("$ref") for _, node in walk_schemas(root))
    found = (parse_pointer(reference) for reference in references if isinstance(reference, str))
    return {path for path in found if path is not None}


def gather_definitions(root: JsonObject) -> tuple[JsonObject, bool]:
    """The same schema with nested definitions at the root, and whether its meaning was certain.

    Schemas that were pasted into others bring definitions along and refer to them as if they were
    still at the root. Such a reference leads nowhere; it is taken to mean the nearest definition of
    that name around it.
    """
    taken = set(root_definitions(root))
    places: dict[Path, Path] = {}
    for path, node in walk_schemas(root):
        for keyword in DEFINITIONS if path else ():
            found = node.get(keyword)
            for name in found if isinstance(found, dict) else ():
                new_name = free_name(name, taken)
                places[(*path, keyword, name)] = ("$defs", new_name)
                taken.add(new_name)
    if not places:
        return root, True
    moves = _Moves(root, places)
    made = moves.rebuild(root, ())
    made["$defs"] = {
        **root_definitions(made),
        **{new[1]: moves.rebuild(follow_path(root, old), old) for old, new in places.items()},
    }
    return made, moves.certain


def root_definitions(root: JsonObject) -> JsonObject:
    found = root.get("$defs")
    return found if isinstance(found, dict) else {}


def redirect_references(root: JsonObject, places: Mapping[Path, Path]) -> JsonObject:
    """The same document with references to some places changed to lead to others."""
    return _Moves(root, places).rebuild(root, ()) if places else root


def free_name(wanted: str, taken: Mapping[str, Json] | set[str]) -> str:
    """The name, or the first numbered variant of it that is not in use."""
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name


@dataclass(slots=True)
class _Moves:
    """The parts of a document that move, by path; `certain` unless a target had to be guessed."""

    root: JsonObject
    places: Mapping[Path, Path]
    certain: bool = True

    def rebuild(self, node: Json, path: Path) -> Json:
        """The node with references to the new places, without the definitions that left it."""
        if not isinstance(node, dict):
            return node
        moved = {
            keyword
            for keyword in DEFINITIONS
            if isinstance(node.get(keyword), dict)
            and any((*path, keyword, name) in self.places for name in node[keyword])
        }
        rest = {k: v for k, v in node.items() if k not in moved}
        made = map_children(rest, lambda child, step: self.rebuild(child, (*path, *step)))
        if isinstance(made.get("$ref"), str):
            made["$ref"] = self._redirect(made["$ref"], path)
        return made

    def _redirect(self, reference: str, path: Path) -> str:
        target = parse_pointer(reference)
        if target is None:
            return reference
        # The longest prefix counts: a definition inside a definition may move on its own.
        for end in range(len(target), -1, -1):
            if target[:end] in self.places and (end or not target):
                return to_pointer((*self.places[target[:end]], *target[end:]))
        if follow_path(self.root, target) is NOT_FOUND:
            for end in range(len(path), 0, -1):  # the nearest definition of that name around it
                place = self.places.get((*path[:end], *target[:2]))
                if place is not None:
                    self.certain = False
                    return to_pointer((*place, *target[2:]))
        return reference


def strip_generated_titles(schema: JsonObject) -> JsonObject:
    """The same schema without generated titles, at every depth."""
    title = schema.get("title")
    # The root is titled with the name of its class, and authors write words with spaces.
    generated = isinstance(title, str) and title.isidentifier()
    return _strip_title(schema, title if generated else None)


def _strip_title(schema: JsonObject, generated: str | None) -> JsonObject:
    """The schema without its title if that is the generated one, and its parts likewise."""
    if generated is not None and schema.get("title") == generated:
        schema = {key: value for key, value in schema.items() if key != "title"}
    return map_children(schema, _strip_child)


def _strip_child(schema: Json, path: Path) -> Json:
    if not isinstance(schema, dict):
        return schema
    match path:
        case ("properties", name):
            return _strip_title(schema, name.title().replace("_", " ").strip())
        case (keyword, name) if keyword in DEFINITIONS:
            return _strip_title(schema, name)
        case _:
            return _strip_title(schema, None)
