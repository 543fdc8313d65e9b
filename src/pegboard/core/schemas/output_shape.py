"""The fields of a result, read from its output schema.

    items, items[].id, items[].user, items[].user.name     paths, each parent before its children
    items[]{id, user{name}}                                the same as an outline
    {items[]{id, user{...}}, total}                        the shape, short enough for a search line

`[]` goes into the items of a list, `*` into the values of a map. A name that is not plain is quoted
as JSON. The shape names fields without types: enough to choose `include_fields`, in a small part of
the tokens of the output schema. A long one is shortened: nested objects become `{…}`, the largest
and deepest first, and at last only the first fields are named. `…` marks everything left out.

`relax_output_schema` gives an output schema that still fits when a part of the result was left out.
A client that knows a tool's output schema refuses results that do not fit it. A projection removes
members and items and invents nothing, so a schema without the assertions that something *is there*
fits whatever remains. The assertions about what is there stay: types, formats, upper limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from pegboard.core.json import Json, JsonObject, is_within_bounds
from pegboard.core.schemas.schema_view import SchemaView, merge_branches
from pegboard.core.schemas.signatures import ELLIPSIS, format_literal, is_never
from pegboard.core.schemas.traversal import (
    ANNOTATIONS,
    NOT_FOUND,
    localize_references,
    lookup,
    map_children,
)

MAX_DEPTH = 8
MAX_FIELDS = 1_000
SHAPE_LIMIT = 400
"""Characters that a shape may have before it is shortened."""

_EACH = "[]"
_ANY = "*"
_PLAIN_NAME = re.compile(r"[\w$@/-]+")
_MAX_SHAPE_DEPTH = 4
_MAX_SHAPE_FIELDS = 300
"""Fields that a shape is built from; further ones are cut before its length is measured."""
_MAX_SHAPE_NAME = 80

_DEMANDS = frozenset(
    {"required", "minProperties", "dependentRequired", "minItems", "contains", "minContains"}
    | {"maxContains", "uniqueItems", "unevaluatedProperties", "unevaluatedItems"}
    # Whether a condition holds can change when a part of the value is gone.
    | {"not", "if", "then", "else", "dependentSchemas", "dependencies"}
    # Items move to other positions when some are removed.
    | {"prefixItems", "additionalItems"}
)
"""Keywords that a part of a valid value may violate."""


@dataclass(frozen=True, slots=True)
class FieldNode:
    """One step into a result and the fields below it; `cut` when there are more than were read.

    `views` are the schemas that a value there may have.
    """

    step: str
    below: tuple[FieldNode, ...] = ()
    cut: bool = False
    views: tuple[SchemaView, ...] = ()

    @property
    def is_list(self) -> bool:
        """Whether the items of a list are all that is below."""
        return [one.step for one in self.below] == [_EACH]


def list_output_fields(schema: Json, *, most: int = MAX_FIELDS) -> Iterator[str]:
    """Each path into a result of this schema, parents before children; at most this many."""
    return (path for path, _ in fields_by_path(schema, most=most))


def fields_by_path(schema: Json, *, most: int = MAX_FIELDS) -> Iterator[tuple[str, FieldNode]]:
    """The same paths, each with its field."""
    return islice(_paths(build_field_tree(schema), ""), most)


def format_field_outline(schema: Json, *, most: int = MAX_FIELDS) -> str:
    """All fields on one line, nested in braces; `…` where there are more."""
    return _format_outline(build_field_tree(schema), iter(range(most)))


def build_field_tree(schema: Json) -> tuple[FieldNode, ...]:
    """The fields of a result of this schema, each with those below it."""
    return _build_fields([SchemaView.of(schema)], 0)


def _build_fields(views: Sequence[SchemaView], level: int) -> tuple[FieldNode, ...]:
    """The fields of a value that has any of these schemas."""
    steps: dict[str, list[SchemaView]] = {}
    # A step that several alternatives have is one field, with the schemas of all of them.
    for view in views:
        for alternative in _flatten_alternatives(view):
            for step, inside in _steps(alternative):
                steps.setdefault(step, []).append(inside)
    if level >= MAX_DEPTH:
        return (FieldNode(ELLIPSIS, cut=True),) if steps else ()
    return tuple(
        FieldNode(
            step,
            _build_fields(inside, level + 1),
            cut=any(view.cut for view in inside),
            views=tuple(inside),
        )
        for step, inside in steps.items()
    )


def _flatten_alternatives(view: SchemaView, level: int = 0) -> Iterator[SchemaView]:
    """The alternatives of a value, through nested unions."""
    if view.cut or level > MAX_DEPTH:
        return
    if not view.alternatives:
        yield merge_branches(view)
    for one in view.alternatives:
        yield from _flatten_alternatives(one, level + 1)


def _steps(view: SchemaView) -> Iterator[tuple[str, SchemaView]]:
    """Each step that leads into a value, with the schema of what is there."""
    for name, schema in view.members.items():
        inside = view.at(schema)
        if not is_never(inside):
            yield (name if _PLAIN_NAME.fullmatch(name) else format_literal(name)), inside
        if view.is_spent:  # nothing more can be read, and there may be many thousands of them
            return
    if view.extra is not False:
        yield _ANY, view.at(view.extra)
    items = view.schema.get("items", view.schema.get("prefixItems"))
    for schema in items if isinstance(items, list) else [items]:
        if isinstance(schema, dict):
            yield _EACH, view.at(schema)


def _paths(fields: Sequence[FieldNode], prefix: str) -> Iterator[tuple[str, FieldNode]]:
    for field in fields:
        if field.step == ELLIPSIS:
            continue
        if field.step == _EACH:  # the items of a list have no path of their own, only their fields
            yield from _paths(field.below, prefix + _EACH)
            continue
        path = f"{prefix}.{field.step}" if prefix else field.step
        if field.step != _ANY:
            yield path, field
        yield from _paths(field.below, path)


def _format_outline(fields: Sequence[FieldNode], left: Iterator[int]) -> str:
    """The fields on one line; `left` runs out after the most fields that may be named."""
    texts: list[str] = []
    for field in fields:
        if field.step != _EACH and next(left, None) is None:
            texts.append(ELLIPSIS)
            break
        inner = _format_outline(field.below, left)
        # The brackets of a list are enough: `items[]{id}`, not `items{[]{id}}`.
        if field.cut or (inner and not field.is_list):
            inner = f"{{{', '.join(filter(None, (inner, ELLIPSIS if field.cut else '')))}}}"
        texts.append(field.step + inner)
    return ", ".join(texts)


def format_result_shape(schema: Json, *, limit: int = SHAPE_LIMIT) -> str:
    """The fields of a result in braces; empty when the schema names none."""
    root = _ShapeNode(_shape_nodes(build_field_tree(schema), iter(range(_MAX_SHAPE_FIELDS)), 1))
    if len(root.children) == 1 and root.children[0].name == _EACH:
        root = root.children[0]  # a list at the root is not inside an object
    if not root.children:
        return ""
    # Nodes are closed or left out until the text fits.
    while len(text := root.text()) > limit:
        nested = [(depth, len(node.text()), node) for depth, node in root.open_below()]
        if len(nested) > 1 or (nested and len(root.children) > 1):
            _, _, deepest = max(nested, key=lambda one: one[:2])
            deepest.closed = True
            continue
        # Closing the one object that holds everything would leave nothing to read, so name as many
        # of its first fields as fit, and always one.
        node = nested[0][2] if nested else root
        names = node.children
        for count in range(len(names) - 1, 0, -1):
            node.children = [*names[:count], _ShapeNode([], ELLIPSIS)]
            if len(root.text()) <= limit:
                break
        return root.text()
    return text


@dataclass(eq=False)
class _ShapeNode:
    """One field on its way to text; a closed one hides the fields below it."""

    children: list[_ShapeNode]
    name: str = ""
    closed: bool = False

    def text(self) -> str:
        if not self.children and not self.closed:
            return self.name
        inner = ELLIPSIS if self.closed else ", ".join(child.text() for child in self.children)
        return f"{self.name}{{{inner}}}"

    def open_below(self, depth: int = 1) -> Iterator[tuple[int, _ShapeNode]]:
        """All nodes below that are shown and have fields themselves, with their depth."""
        for child in self.children:
            if child.children and not child.closed:
                yield depth, child
                yield from child.open_below(depth + 1)


def _shape_nodes(fields: Sequence[FieldNode], left: Iterator[int], depth: int) -> list[_ShapeNode]:
    nodes: list[_ShapeNode] = []
    for field in fields:
        if next(left, None) is None:
            nodes.append(_ShapeNode([], ELLIPSIS))
            break
        name = field.step if len(field.step) <= _MAX_SHAPE_NAME else ELLIPSIS
        inner, cut = field, field.cut
        while inner.is_list:  # lists are written on the name: `items[]`
            inner = inner.below[0]
            name, cut = f"{name}{_EACH}", cut or inner.cut
        if cut or (inner.below and depth >= _MAX_SHAPE_DEPTH):
            nodes.append(_ShapeNode([], name, closed=True))
        else:
            nodes.append(_ShapeNode(_shape_nodes(inner.below, left, depth + 1), name))
    return nodes


def relax_output_schema(schema: Json) -> JsonObject:
    """A schema that any projection of a valid result fits; itself when it demands nothing."""
    if not isinstance(schema, dict) or not is_within_bounds(schema):
        return {"type": "object"}
    root, certain = localize_references(schema)
    if not certain:  # a reference may mean something else than we would read
        return {"type": "object"}
    made = _drop_demands(root)
    made = _drop_lost_references(made, made)
    return schema if made == schema else made


def _drop_demands(schema: Json) -> Json:
    if not isinstance(schema, dict):
        return schema is not False
    # A constant that is an object or a list may lose a part of itself.
    constants = {k: schema.get(k) for k in ("enum", "const")}
    dropped = _DEMANDS | {
        k
        for k, values in constants.items()
        if isinstance(values, dict)
        or (isinstance(values, list) and any(isinstance(v, (dict, list)) for v in values))
    }
    if "prefixItems" in schema or isinstance(schema.get("items"), list):
        dropped |= {"items"}
    if schema.get("additionalProperties") is False:
        dropped |= {"additionalProperties"}
    rest = {k: v for k, v in schema.items() if k not in dropped}
    made = map_children(rest, lambda child, _: _drop_demands(child))
    if "oneOf" in made:  # with a part gone, a value may fit several alternatives
        either = {"anyOf": made.pop("oneOf")}
        if "anyOf" in made:
            return {**made, "allOf": [*made.get("allOf", []), either]}
        return made | either
    return made


def _drop_lost_references(schema: Json, root: JsonObject) -> Json:
    """A schema that accepts anything in place of each reference to a part that was dropped."""
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref")
    if isinstance(reference, str) and lookup(root, reference) is NOT_FOUND:
        return {keyword: value for keyword, value in schema.items() if keyword in ANNOTATIONS}
    return map_children(schema, lambda child, _: _drop_lost_references(child, root))
