"""The shape of a result on one line, for a model that decides what to read of it.

    {issues[]{key, title, assignee}, total}

Field names without types: enough to choose `include_fields`, and a small part of what the output
schema costs. A line that would be long says less: nested objects close to `{…}`, the largest and
deepest first, and at last only the first fields are named. `…` marks everything left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pegboard.core.json import Json
from pegboard.core.schemas.fields import Field, field_tree
from pegboard.core.schemas.scalars import MORE

LIMIT = 400
"""Characters that a shape may have before it says less."""

_DEEPEST = 4
_MOST = 300
"""Fields that are looked at; what a result has beyond them is cut before it is measured."""
_LONGEST_NAME = 80


def returns(schema: Json, *, limit: int = LIMIT) -> str:
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
