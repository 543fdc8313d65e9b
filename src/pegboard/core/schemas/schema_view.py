"""A schema as found in the wild, read without ever failing.

`View` shows one place of a schema document with references followed and `allOf` merged, so that
readers see plain `properties`, `type`, `anyOf`. Hostile documents cost a bounded amount: recursion
ends where a reference is met again on its own way (`cut`), and all views of one document share one
budget of steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce

from pegboard.core.json import Json, JsonObject
from pegboard.core.schemas.traversal import (
    ANNOTATIONS,
    NOTHING,
    fits,
    ignores_ref_siblings,
    is_schema,
    localised,
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
_STEPS = 10_000
_LONGEST_TRAIL = 32
_DEEPEST_MERGE = 24
_DEEPEST_FOLD = 4


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
    """One place of a schema document.

    `exact` is false where following and merging could not keep everything; `cut` where nothing more
    can be read: a recursion, or the end of the budget.
    """

    schema: JsonObject
    root: JsonObject
    budget: _Budget
    trail: frozenset[str] = frozenset()
    exact: bool = True
    cut: bool = False

    @classmethod
    def of(cls, schema: Json) -> SchemaView:
        """The view of a whole document, whatever it is."""
        if not isinstance(schema, dict) or not fits(schema):
            unread = schema is not True
            return cls({}, {}, _Budget(0), exact=not unread, cut=unread)
        root, _ = localised(schema)
        whole = cls(root, root, _Budget(_STEPS))
        return whole.at(root)

    def at(self, schema: Json) -> SchemaView:
        """The view of a schema that stands in this one's document, below this one."""
        return self._settled(schema, 0)

    def _settled(self, schema: Json, merges: int) -> SchemaView:
        if not self.budget.spend() or merges > _DEEPEST_MERGE:
            return self._bare({}, cut=True)
        if not isinstance(schema, dict):
            return self._bare(NEVER if schema is False else {}, exact=isinstance(schema, bool))
        if isinstance(schema.get("$ref"), str):
            return self._followed(schema, merges + 1)
        parts = schema.get("allOf")
        if not isinstance(parts, list) or not parts:
            return self._bare(schema)
        base = self._bare({k: v for k, v in schema.items() if k != "allOf"})
        return reduce(SchemaView._merged, (self._settled(part, merges + 1) for part in parts), base)

    def _followed(self, schema: JsonObject, merges: int) -> SchemaView:
        reference: str = schema["$ref"]
        beside = {k: v for k, v in schema.items() if k != "$ref"}
        if ignores_ref_siblings(self.root):
            beside = {k: v for k, v in beside.items() if k in ANNOTATIONS}
        if reference in self.trail or len(self.trail) >= _LONGEST_TRAIL:
            return self._bare(beside, cut=True)
        target = lookup(self.root, reference)
        if target is NOTHING or not is_schema(target):
            return self._bare(beside, exact=False)
        here = replace(self, trail=self.trail | {reference})
        behind = here._settled(target, merges)
        return self._settled(beside, merges)._merged(behind) if beside else behind

    def _bare(self, schema: JsonObject, *, exact: bool = True, cut: bool = False) -> SchemaView:
        return replace(self, schema=schema, exact=exact, cut=cut)

    def _merged(self, other: SchemaView) -> SchemaView:
        """Both at once; annotations of this one win."""
        schema, exact = merged(self.schema, other.schema)
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
        """The schema of members that have no name; `False` when there are none to speak of."""
        for keyword in ("additionalProperties", "unevaluatedProperties"):
            if keyword in self.schema:
                found = self.schema[keyword]
                return found if is_schema(found) else False
        return False

    @property
    def alternatives(self) -> tuple[SchemaView, ...]:
        """The branches of `anyOf` or `oneOf`, if any, each with what stands beside them."""
        for keyword in ("anyOf", "oneOf"):
            branches = self.schema.get(keyword)
            if isinstance(branches, list) and branches:
                beside = {k: v for k, v in self.schema.items() if k != keyword}
                return tuple(self._alternative(branch, beside) for branch in branches)
        return ()

    def _alternative(self, branch: Json, beside: JsonObject) -> SchemaView:
        view = self.at(branch)
        if not beside.keys() - ANNOTATIONS:
            return view
        return view._merged(self._bare(beside))


def folded(view: SchemaView, level: int = 0) -> SchemaView:
    """An object that names every member that any of its branches names.

    A branch is what `anyOf`, `oneOf`, a condition or a dependency adds. Which branch asks for what
    is lost, so the view is not `exact` unless there was nothing to fold.
    """
    alternatives = view.alternatives
    branches = branches_of(view)
    if not branches or level > _DEEPEST_FOLD:
        return view
    seen: dict[str, list[Json]] = {}
    for branch in (folded(branch, level + 1) for branch in branches):
        for name, schema in branch.properties.items():
            known = seen.setdefault(name, [])
            known += [schema] if schema not in known else []
    needed = [set(folded(one, level + 1).required) for one in alternatives]
    common = set[str].intersection(*needed) if needed else set[str]()
    schema = {k: v for k, v in view.schema.items() if k not in ("anyOf", "oneOf")}
    schema["properties"] = {
        **{n: s[0] if len(s) == 1 else {"anyOf": s} for n, s in seen.items()},
        **view.properties,
    }
    schema["required"] = list(dict.fromkeys([*view.required, *sorted(common)]))
    return replace(view, schema=schema, exact=False)


def branches_of(view: SchemaView) -> list[SchemaView]:
    """Everything else that applies to the same value, under some condition or other."""
    return [*view.alternatives, *(view.at(schema) for schema in _conditional(view.schema))]


def _conditional(schema: JsonObject) -> Iterator[Json]:
    """Schemas that apply to the same value under a condition."""
    yield from (schema[keyword] for keyword in ("if", "then", "else") if keyword in schema)
    for keyword in ("dependentSchemas", "dependencies"):
        found = schema.get(keyword)
        if isinstance(found, dict):
            yield from (value for value in found.values() if is_schema(value))


def merged(one: JsonObject, other: JsonObject) -> tuple[JsonObject, bool]:
    """What both schemas say at once, and whether nothing was lost; annotations of the first win."""
    made, exact = dict(one), not _closed_against(one, other) and not _closed_against(other, one)
    for keyword, value in other.items():
        if keyword not in made:
            made[keyword] = value
        elif keyword in ANNOTATIONS or made[keyword] == value:
            continue
        elif keyword in _JOINS:
            joined = _JOINS[keyword](made[keyword], value)
            exact = exact and joined is not None
            made[keyword] = made[keyword] if joined is None else joined
        else:
            exact = False
    return made, exact


def _closed_against(one: JsonObject, other: JsonObject) -> bool:
    """Whether one schema's word on unnamed members would change by the other's names."""
    if one.get("additionalProperties", True) is True and "patternProperties" not in one:
        return False
    names, more = one.get("properties"), other.get("properties")
    if not isinstance(more, dict):
        return False
    return bool(more.keys() - (names if isinstance(names, dict) else {}))


def _both_properties(one: Json, other: Json) -> Json:
    if not isinstance(one, dict) or not isinstance(other, dict):
        return None
    shared = {
        name: one[name] if one[name] == schema else {"allOf": [one[name], schema]}
        for name, schema in other.items()
        if name in one
    }
    return {**one, **other, **shared}


def _all_names(one: Json, other: Json) -> Json:
    if not isinstance(one, list) or not isinstance(other, list):
        return None
    return [*one, *(name for name in other if name not in one)]


def _common_types(one: Json, other: Json) -> Json:
    ours, theirs = _listed(one), _listed(other)
    both = [t for t in ours if t in theirs or (t == "integer" and "number" in theirs)]
    both += [t for t in theirs if t == "integer" and "number" in ours and t not in both]
    return both or None


def _common_values(one: Json, other: Json) -> Json:
    return [value for value in _listed(one) if value in _listed(other)] or None


def _listed(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [value]


def _larger(one: Json, other: Json) -> Json:
    return max(one, other) if _numbers((one, other)) else None


def _smaller(one: Json, other: Json) -> Json:
    return min(one, other) if _numbers((one, other)) else None


def _numbers(values: Iterable[Json]) -> bool:
    return all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)


_JOINS = {
    "properties": _both_properties,
    "required": _all_names,
    "type": _common_types,
    "enum": _common_values,
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems"), _larger),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems"), _smaller),
}
