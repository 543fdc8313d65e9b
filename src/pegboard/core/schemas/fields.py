"""The fields of a result: as paths that a projection may name, and as one compact outline.

    items, items[].id, items[].user, items[].user.name     paths, each parent before its children
    items[]{id, user{name}}                                the same as an outline

`[]` goes into the items of a list, `*` into the values of a map. A name that is not plain is quoted
as JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from pegboard.core.json import Json
from pegboard.core.schemas.reading import View, folded
from pegboard.core.schemas.scalars import MORE, literal
from pegboard.core.schemas.spelling import is_never

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
    views: tuple[View, ...] = ()


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
    return _fields([View.of(schema)], 0)


def _fields(views: Sequence[View], level: int) -> tuple[Field, ...]:
    """What values of these schemas hold, all of them together."""
    steps: dict[str, list[View]] = {}
    for view in views:
        for shape in _shapes(view):
            for step, inside in _steps(shape):
                steps.setdefault(step, []).append(inside)
    if level >= DEEPEST:
        return (Field(MORE, cut=True),) if steps else ()
    return tuple(_field(step, inside, level + 1) for step, inside in steps.items())


def _field(step: str, views: Sequence[View], level: int) -> Field:
    cut = any(view.cut for view in views)
    return Field(step, _fields(views, level), cut, tuple(views))


def _shapes(view: View, level: int = 0) -> Iterator[View]:
    """The alternatives of a value, through nested unions."""
    if view.cut or level > DEEPEST:
        return
    if not view.alternatives:
        yield folded(view)
    for one in view.alternatives:
        yield from _shapes(one, level + 1)


def _steps(view: View) -> Iterator[tuple[str, View]]:
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
