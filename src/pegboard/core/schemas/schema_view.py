"""A schema as found in the wild, read without ever failing.

`SchemaView` shows one place of a schema document with references followed and `allOf` merged, so
that readers see plain `properties`, `type` and `anyOf`:

    {"$ref": "#/$defs/Issue"}      ->   {"type": "object", "properties": {...}, "required": [...]}
    {"allOf": [A, B], "title": T}  ->   what A and B both say, with the title T

Hostile documents cost a bounded amount of work. A recursion ends where a reference occurs again on
the path that led to it (`cut`), and all views of one document share one budget of steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce

from pegboard.core.json import Json, JsonObject, is_within_bounds
from pegboard.core.schemas.traversal import (
    ANNOTATIONS,
    NOT_FOUND,
    ignores_ref_siblings,
    is_schema,
    localize_references,
    lookup,
)

TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")
NEVER: JsonObject = {"not": {}}

# Names that people write where JSON Schema has its own; validators refuse them, readers need not.
_ALIASES = {
    **{name: name for name in TYPES},
    **{"str": "string", "int": "integer", "float": "number", "double": "number"},
    **{"bool": "boolean", "list": "array", "tuple": "array", "dict": "object", "map": "object"},
    **{"none": "null"},
}
_LOWER_BOUNDS = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems"})
_UPPER_BOUNDS = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems"})

# Real schemas stay far below these; they bound the work that a hostile one can cause.
_MAX_STEPS = 10_000
_MAX_TRAIL = 32
_MAX_MERGE_DEPTH = 24
_MAX_BRANCH_DEPTH = 4


class _Budget:
    """Steps left for all views of one document."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self) -> bool:
        self.left -= 1
        return self.left >= 0


@dataclass(frozen=True, slots=True)
class SchemaView:
    """One place of a schema document, with the references followed that led here (`trail`).

    `exact` is false if following and merging could not preserve everything. `cut` is true if
    nothing more can be read: at a recursion, or at the end of the budget.
    """

    schema: JsonObject
    root: JsonObject
    budget: _Budget
    trail: frozenset[str] = frozenset()
    exact: bool = True
    cut: bool = False

    @classmethod
    def of(cls, schema: Json) -> SchemaView:
        """The view of a whole document, whatever kind of value it is."""
        if not isinstance(schema, dict) or not is_within_bounds(schema):
            unread = schema is not True  # which accepts everything, and is read completely
            return cls({}, {}, _Budget(0), exact=not unread, cut=unread)
        root, _ = localize_references(schema)
        whole = cls(root, root, _Budget(_MAX_STEPS))
        return whole.at(root)

    @property
    def is_spent(self) -> bool:
        """Whether the budget of the document is used up, so that everything further is cut."""
        return self.budget.left < 0

    def at(self, schema: Json) -> SchemaView:
        """The view of a schema inside this one's document, below this one."""
        return self._resolve(schema, 0)

    def _resolve(self, schema: Json, merges: int) -> SchemaView:
        """A schema with its reference followed or its `allOf` merged, if it has one."""
        # `allOf` inside `allOf` and chains of references multiply, so their depth is limited too.
        if not self.budget.spend() or merges > _MAX_MERGE_DEPTH:
            return self._with_schema({}, cut=True)
        if not isinstance(schema, dict):
            accepted = NEVER if schema is False else {}
            return self._with_schema(accepted, exact=isinstance(schema, bool))
        if isinstance(schema.get("$ref"), str):
            return self._follow_reference(schema, merges + 1)
        parts = schema.get("allOf")
        if not isinstance(parts, list) or not parts:
            return self._with_schema(schema)
        base = self._with_schema({k: v for k, v in schema.items() if k != "allOf"})
        return reduce(SchemaView._merge, (self._resolve(part, merges + 1) for part in parts), base)

    def _follow_reference(self, schema: JsonObject, merges: int) -> SchemaView:
        reference: str = schema["$ref"]
        beside = {k: v for k, v in schema.items() if k != "$ref"}
        if ignores_ref_siblings(self.root):
            beside = {k: v for k, v in beside.items() if k in ANNOTATIONS}
        # The same reference twice on one path is a recursion. It may be a schema that is fine for
        # validators (a tree of comments), so it is only cut here and not an error.
        if reference in self.trail or len(self.trail) >= _MAX_TRAIL:
            return self._with_schema(beside, cut=True)
        target = lookup(self.root, reference)
        if target is NOT_FOUND or not is_schema(target):
            return self._with_schema(beside, exact=False)
        # Only what is behind the reference has it on its trail: a sibling may use it again.
        here = replace(self, trail=self.trail | {reference})
        behind = here._resolve(target, merges)
        return self._resolve(beside, merges)._merge(behind) if beside else behind

    def _with_schema(
        self, schema: JsonObject, *, exact: bool = True, cut: bool = False
    ) -> SchemaView:
        return replace(self, schema=schema, exact=exact, cut=cut)

    def _merge(self, other: SchemaView) -> SchemaView:
        """What both say; annotations of this one win."""
        schema, exact = merge_schemas(self.schema, other.schema)
        return replace(
            self,
            schema=schema,
            trail=self.trail | other.trail,
            exact=exact and self.exact and other.exact,
            cut=self.cut or other.cut,
        )

    @property
    def types(self) -> tuple[str, ...]:
        """The declared types, by their JSON Schema names; empty when any will do."""
        declared = self.schema.get("type")
        names = declared if isinstance(declared, list) else [declared]
        known = (_ALIASES.get(n.lower()) for n in names if isinstance(n, str))
        return tuple(dict.fromkeys(name for name in known if name))

    @property
    def properties(self) -> Mapping[str, Json]:
        found = self.schema.get("properties")
        return found if isinstance(found, dict) else {}

    @property
    def required(self) -> tuple[str, ...]:
        found = self.schema.get("required")
        return tuple(n for n in found if isinstance(n, str)) if isinstance(found, list) else ()

    @property
    def description(self) -> str:
        found = self.schema.get("description")
        return found.strip() if isinstance(found, str) else ""

    @property
    def members(self) -> dict[str, Json]:
        """The properties, required ones first; a required name without a schema takes anything."""
        required = dict.fromkeys(self.required)
        named: dict[str, Json] = {name: self.properties.get(name, {}) for name in required}
        return named | {n: s for n, s in self.properties.items() if n not in required}

    @property
    def extra(self) -> Json:
        """The schema of members that have no name; `False` where the schema mentions none."""
        for keyword in ("additionalProperties", "unevaluatedProperties"):
            if keyword in self.schema:
                found = self.schema[keyword]
                return found if is_schema(found) else False
        return False

    @property
    def alternatives(self) -> tuple[SchemaView, ...]:
        """The branches of `anyOf` or `oneOf`, if any, each with the keywords beside them."""
        for keyword in ("anyOf", "oneOf"):
            branches = self.schema.get(keyword)
            if isinstance(branches, list) and branches:
                beside = {k: v for k, v in self.schema.items() if k != keyword}
                views = (self.at(branch) for branch in branches)
                if not beside.keys() - ANNOTATIONS:
                    return tuple(views)
                return tuple(view._merge(self._with_schema(beside)) for view in views)
        return ()


def unwrap_root(schema: JsonObject) -> JsonObject:
    """The schema with a `$ref` at the root followed and `allOf` there merged."""
    return SchemaView.of(schema).schema


def merge_branches(view: SchemaView, level: int = 0) -> SchemaView:
    """An object that names every member that any of its branches names.

    A branch is what `anyOf`, `oneOf`, a condition or a dependency adds. Which branch asks for which
    member is lost, so the view is not `exact` unless there was nothing to merge.
    """
    branches = all_branches(view)
    if not branches or level > _MAX_BRANCH_DEPTH:
        return view
    schemas: dict[str, list[Json]] = {}
    for branch in (merge_branches(branch, level + 1) for branch in branches):
        for name, schema in branch.properties.items():
            known = schemas.setdefault(name, [])
            known += [schema] if schema not in known else []
    # A member is required only if every alternative requires it; a condition may not apply at all.
    needed = [set(merge_branches(one, level + 1).required) for one in view.alternatives]
    common = set[str].intersection(*needed) if needed else set[str]()
    schema = {k: v for k, v in view.schema.items() if k not in ("anyOf", "oneOf")}
    schema["properties"] = {
        **{n: s[0] if len(s) == 1 else {"anyOf": s} for n, s in schemas.items()},
        **view.properties,
    }
    schema["required"] = list(dict.fromkeys([*view.required, *sorted(common)]))
    return replace(view, schema=schema, exact=False)


def all_branches(view: SchemaView) -> list[SchemaView]:
    """The alternatives of a value, and what else applies to it under a condition."""
    schema = view.schema
    conditional = [schema[keyword] for keyword in ("if", "then", "else") if keyword in schema]
    for keyword in ("dependentSchemas", "dependencies"):
        found = schema.get(keyword)
        if isinstance(found, dict):
            conditional += [value for value in found.values() if is_schema(value)]
    return [*view.alternatives, *(view.at(one) for one in conditional)]


def merge_schemas(one: JsonObject, other: JsonObject) -> tuple[JsonObject, bool]:
    """What both schemas say, and whether nothing was lost; annotations of the first win."""
    made = dict(one)
    exact = not _is_closed_against(one, other) and not _is_closed_against(other, one)
    for keyword, value in other.items():
        if keyword not in made:
            made[keyword] = value
        elif keyword in ANNOTATIONS or made[keyword] == value:
            continue
        elif (joined := _join(keyword, made[keyword], value)) is not None:
            made[keyword] = joined
        else:
            exact = False  # the first one's value stays, and the other's demand is lost
    return made, exact


def _is_closed_against(one: JsonObject, other: JsonObject) -> bool:
    """Whether merging would change what one schema says about unnamed members.

    `additionalProperties` speaks of all members that the *same* schema does not name, so names that
    come from the other one would be exempt from it.
    """
    if one.get("additionalProperties", True) is True and "patternProperties" not in one:
        return False
    names, more = one.get("properties"), other.get("properties")
    if not isinstance(more, dict):
        return False
    return bool(more.keys() - (names if isinstance(names, dict) else {}))


def _join(keyword: str, one: Json, other: Json) -> Json:
    """The value of a keyword that demands what both demand; `None` if there is none."""
    match keyword:
        case "properties" if isinstance(one, dict) and isinstance(other, dict):
            shared = {
                name: one[name] if one[name] == schema else {"allOf": [one[name], schema]}
                for name, schema in other.items()
                if name in one
            }
            return {**one, **other, **shared}
        case "required" if isinstance(one, list) and isinstance(other, list):
            return [*one, *(name for name in other if name not in one)]
        case "type":
            # An integer is a number, so of these two the narrower one remains.
            ours, theirs = _as_list(one), _as_list(other)
            both = [t for t in ours if t in theirs or (t == "integer" and "number" in theirs)]
            both += [t for t in theirs if t == "integer" and "number" in ours and t not in both]
            return both or None
        case "enum":
            return [value for value in _as_list(one) if value in _as_list(other)] or None
        case _ if keyword in _LOWER_BOUNDS | _UPPER_BOUNDS and all(
            isinstance(v, (int, float)) and not isinstance(v, bool) for v in (one, other)
        ):
            return max(one, other) if keyword in _LOWER_BOUNDS else min(one, other)
        case _:
            return None


def _as_list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [value]
