"""What the branches of a root schema imply, said at the root as well.

Models read the properties at the root. A schema may keep them in branches: all of `allOf`, one of
`anyOf` or `oneOf`. Whatever follows from the branches can be repeated at the root without changing
what is accepted; a branch of `allOf` that is thereby said in full is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence

from pegboard.core.json import Json, JsonObject
from pegboard.core.schemas.keywords import ANNOTATIONS, as_object
from pegboard.core.schemas.moving import nodes, targets
from pegboard.core.schemas.references import ignores_ref_siblings, lookup

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
    return {name: as_object(s) for name, s in found.items()} if isinstance(found, dict) else {}


def _required(schema: JsonObject) -> list[str]:
    found = schema.get("required")
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []
