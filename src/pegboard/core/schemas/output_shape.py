"""The fields of a result, read from its output schema.

    items, items[].id, items[].user, items[].user.name     paths, each parent before its children
    items[]{id, user{name}}                                the same as an outline
    {items[]{id, user{...}}, total}                        the shape, short enough for a search line

`[]` goes into the items of a list, `*` into the values of a map. A name that is not plain is quoted
as JSON. The shape names fields without types: enough to choose `include_fields`, and a small part
of what the output schema costs. A long one says less: nested objects close to `{…}`, the largest
and deepest first, and at last only the first fields are named. `…` marks everything left out.

`relaxed_output` gives an output schema that still fits when a part of the result was left out. A
client that knows a tool's output schema refuses results that do not fit it. A projection removes
members and items and invents nothing, so a schema without the assertions that something *is there*
fits whatever remains. The assertions about what is there stay: types, formats, upper limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from pegboard.core.json import Json, JsonObject
from pegboard.core.schemas.scalars import MORE, literal
from pegboard.core.schemas.schema_view import SchemaView, folded
from pegboard.core.schemas.signatures import is_never
from pegboard.core.schemas.traversal import (
    ANNOTATIONS,
    NOTHING,
    fits,
    localised,
    lookup,
    with_children,
)

DEEPEST = 8
MOST = 1_000

_EACH = "[]"
_ANY = "*"
_PLAIN = re.compile(r"[\w$@/-]+")


@dataclass(frozen=True, slots=True)
class Field:
    """One step into a result and what lies below it; `cut` when more does than was read.

    `views` are the schemas that a value there may have.
    """

    step: str
    below: tuple[Field, ...] = ()
    cut: bool = False
    views: tuple[SchemaView, ...] = ()


def output_fields(schema: Json, *, most: int = MOST) -> Iterator[str]:
    """Each path into a result of this schema, parents before children; at most so many."""
    return (path for path, _ in fields_by_path(schema, most=most))


def fields_by_path(schema: Json, *, most: int = MOST) -> Iterator[tuple[str, Field]]:
    """The same with what is known of each."""
    return islice(_paths(field_tree(schema), ""), most)


def field_outline(schema: Json, *, most: int = MOST) -> str:
    """All fields on one line, nested in braces; `…` where there are more."""
    return _outline(field_tree(schema), iter(range(most)))


def field_tree(schema: Json) -> tuple[Field, ...]:
    """The fields of a result of this schema, each with those below it."""
    return _fields([SchemaView.of(schema)], 0)


def _fields(views: Sequence[SchemaView], level: int) -> tuple[Field, ...]:
    """What values of these schemas hold, all of them together."""
    steps: dict[str, list[SchemaView]] = {}
    for view in views:
        for shape in _shapes(view):
            for step, inside in _steps(shape):
                steps.setdefault(step, []).append(inside)
    if level >= DEEPEST:
        return (Field(MORE, cut=True),) if steps else ()
    return tuple(_field(step, inside, level + 1) for step, inside in steps.items())


def _field(step: str, views: Sequence[SchemaView], level: int) -> Field:
    cut = any(view.cut for view in views)
    return Field(step, _fields(views, level), cut, tuple(views))


def _shapes(view: SchemaView, level: int = 0) -> Iterator[SchemaView]:
    """The alternatives of a value, through nested unions."""
    if view.cut or level > DEEPEST:
        return
    if not view.alternatives:
        yield folded(view)
    for one in view.alternatives:
        yield from _shapes(one, level + 1)


def _steps(view: SchemaView) -> Iterator[tuple[str, SchemaView]]:
    for name, schema in view.members.items():
        inside = view.at(schema)
        if not is_never(inside):
            yield (name if _PLAIN.fullmatch(name) else literal(name)), inside
    if view.extra is not False:
        yield _ANY, view.at(view.extra)
    items = view.schema.get("items", view.schema.get("prefixItems"))
    for schema in items if isinstance(items, list) else [items]:
        if isinstance(schema, dict):
            yield _EACH, view.at(schema)


def _paths(fields: Sequence[Field], prefix: str) -> Iterator[tuple[str, Field]]:
    for field in fields:
        if field.step == MORE:
            continue
        if field.step == _EACH:
            yield from _paths(field.below, prefix + _EACH)
            continue
        path = f"{prefix}.{field.step}" if prefix else field.step
        if field.step != _ANY:
            yield path, field
        yield from _paths(field.below, path)


def _outline(fields: Sequence[Field], left: Iterator[int]) -> str:
    texts: list[str] = []
    for field in fields:
        if field.step != _EACH and next(left, None) is None:
            texts.append(MORE)
            break
        texts.append(field.step + _braced(field, left))
    return ", ".join(texts)


def _braced(field: Field, left: Iterator[int]) -> str:
    """What lies below a field; a list says so by its own brackets."""
    inner = _outline(field.below, left)
    if not field.cut and (not inner or [one.step for one in field.below] == [_EACH]):
        return inner
    return f"{{{', '.join(filter(None, (inner, MORE if field.cut else '')))}}}"


SHAPE_LIMIT = 400
"""Characters that a shape may have before it says less."""

_DEEPEST = 4
_MOST = 300
"""Fields that are looked at; what a result has beyond them is cut before it is measured."""
_LONGEST_NAME = 80


def returns(schema: Json, *, limit: int = SHAPE_LIMIT) -> str:
    """The fields of a result in braces; empty when the schema names none."""
    root = _Node(_children(field_tree(schema), iter(range(_MOST)), 1))
    if len(root.children) == 1 and root.children[0].name == "[]":
        root = root.children[0]  # a list at the root is not inside an object
    return _fitted(root, limit) if root.children else ""


@dataclass(eq=False)
class _Node:
    """One field on its way to text; a closed one hides what is below it."""

    children: list[_Node]
    name: str = ""
    closed: bool = False

    def text(self) -> str:
        if not self.children and not self.closed:
            return self.name
        inner = MORE if self.closed else ", ".join(child.text() for child in self.children)
        return f"{self.name}{{{inner}}}"


def _fitted(root: _Node, limit: int) -> str:
    while len(text := root.text()) > limit:
        nested = [(d, len(n.text()), n) for d, n in _below(root, 1) if n.children and not n.closed]
        if len(nested) > 1 or (nested and len(root.children) > 1):
            max(nested, key=lambda one: one[:2])[2].closed = True
        else:  # closing the one object that holds everything would leave nothing
            return _shortened(root, nested[0][2] if nested else root, limit)
    return text


def _shortened(root: _Node, node: _Node, limit: int) -> str:
    """The text with as many of a node's first fields as fit; always one."""
    names = node.children
    for count in range(len(names) - 1, 0, -1):
        node.children = [*names[:count], _Node([], MORE)]
        if len(root.text()) <= limit:
            break
    return root.text()


def _below(node: _Node, depth: int) -> Iterator[tuple[int, _Node]]:
    for child in node.children:
        yield depth, child
        if not child.closed:
            yield from _below(child, depth + 1)


def _children(fields: Sequence[Field], left: Iterator[int], depth: int) -> list[_Node]:
    nodes: list[_Node] = []
    for field in fields:
        if next(left, None) is None:
            nodes.append(_Node([], MORE))
            break
        nodes.append(_node(field, left, depth))
    return nodes


def _node(field: Field, left: Iterator[int], depth: int) -> _Node:
    name = field.step if len(field.step) <= _LONGEST_NAME else MORE
    below, cut = field.below, field.cut
    while [one.step for one in below] == ["[]"]:  # lists are written on the name
        name, cut, below = f"{name}[]", cut or below[0].cut, below[0].below
    if cut or (below and depth >= _DEEPEST):
        return _Node([], name, closed=True)
    return _Node(_children(below, left, depth + 1), name)


_DEMANDS = frozenset(
    {"required", "minProperties", "dependentRequired", "minItems", "contains", "minContains"}
    | {"maxContains", "uniqueItems", "unevaluatedProperties", "unevaluatedItems"}
    # What applies only if something else does or does not hold may change sides.
    | {"not", "if", "then", "else", "dependentSchemas", "dependencies"}
    # Positions move when items go.
    | {"prefixItems", "additionalItems"}
)


def relaxed_output(schema: Json) -> JsonObject:
    """A schema that any projection of a valid result fits; itself when it asks for nothing."""
    if not isinstance(schema, dict) or not fits(schema):
        return {"type": "object"}
    root, certain = localised(schema)
    if not certain:
        return {"type": "object"}
    made = _relaxed(root)
    made = _without_lost(made, made)
    return schema if made == schema else made


def _relaxed(schema: Json) -> Json:
    if not isinstance(schema, dict):
        return schema is not False
    dropped = _DEMANDS | {
        keyword for keyword in ("enum", "const") if _has_parts(schema.get(keyword))
    }
    if "prefixItems" in schema or isinstance(schema.get("items"), list):
        dropped |= {"items"}
    if schema.get("additionalProperties") is False:
        dropped |= {"additionalProperties"}
    kept = {k: v for k, v in schema.items() if k not in dropped}
    made = with_children(kept, lambda child, _: _relaxed(child))
    if "oneOf" in made:  # with less in it, a value may fit several
        either = {"anyOf": made.pop("oneOf")}
        made = (
            {**made, "allOf": [*made.get("allOf", []), either]}
            if "anyOf" in made
            else made | either
        )
    return made


def _has_parts(values: Json) -> bool:
    """Whether a literal is an object or a list, of which a projection may take something away."""
    if isinstance(values, list):
        return any(isinstance(value, (dict, list)) for value in values)
    return isinstance(values, dict)


def _without_lost(schema: Json, root: JsonObject) -> Json:
    """Anything in place of a reference to what is no longer there."""
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref")
    if isinstance(reference, str) and lookup(root, reference) is NOTHING:
        return {keyword: value for keyword, value in schema.items() if keyword in ANNOTATIONS}
    return with_children(schema, lambda child, _: _without_lost(child, root))
