"""Projection: keeping the requested fields of a result.

The fields are compiled once into states of a small automaton; a value is then walked together with
them:

    fields  id, items[].user, items[].*.at      value  {"id": 7, "items": [{"user": …, "made": …}]}

            start ──id──> whole        `whole` keeps its subtree as it is, the same object
              └──items──> ┌──user──> whole + …
                          └──any───> ──at──> whole

The walk is top down with an explicit stack: a container is created empty, put in its place, and
filled later. So depth costs no recursion, keys keep their order, and fields that were not requested
are never visited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pegboard.core.json import Json, JsonObject, compact
from pegboard.core.results.output_fields import validate_fields
from pegboard.core.results.paths import Mark, envelope_key, invalid_field, parse_fields, parse_path
from pegboard.core.token_budget import Count

__all__ = [
    "Projection",
    "Savings",
    "measure_savings",
    "project",
    "project_report",
    "validate_fields",
]

_MAX_NESTED_LISTS = 16
_MAX_CACHED_FIELDS = 64  # a longer list is hardly ever repeated


@dataclass(frozen=True, slots=True)
class Projection:
    """The projected value, and the requested fields that it did not have."""

    value: Json
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Savings:
    """Tokens of a value before and after a projection."""

    before: int
    after: int
    missing: tuple[str, ...] = ()

    @property
    def saved(self) -> float:
        """The share saved, from 0 to 1."""
        return 1 - self.after / self.before if self.before else 0.0


def project(value: Json, fields: Sequence[str], root: str | None = None) -> Json:
    """The value with only the requested fields; without any, the value itself.

    Paths start at the root of the value. If it has none of their first steps and is an envelope,
    or has the declared `root`, they start inside it and the envelope stays.

    Raises:
        InvalidField: A path is malformed, or there is no object to take fields from. A path that
            finds nothing is not an error: see `project_report`.
    """
    requested = _as_tuple(fields)
    if requested and not _contains_objects(value):
        names = {type(None): "null", bool: "a boolean", str: "text", list: "a list of other values"}
        kind = "a number" if type(value) in (int, float) else type(value).__name__
        raise invalid_field(
            ", ".join(requested),
            "Fields are taken from an object or a list of objects, not from "
            f"{names.get(type(value), kind)}.",
        )
    return project_report(value, requested, root).value


def project_report(value: Json, fields: Sequence[str], root: str | None = None) -> Projection:
    """The projected value, with the fields that it did not have; they never raise an error.

    For results of calls that ran: they stay results, whichever fields were requested.
    """
    requested = _as_tuple(fields)
    if not requested:
        return Projection(value)
    compiled = _compile_cached if len(requested) <= _MAX_CACHED_FIELDS else _compile
    start = compiled(requested)
    hits: set[_State] = set()
    where = _find_start(value, start, root)
    projected = _project_inside(value, where, lambda content: _keep(content, start, hits))
    found = {index for state in hits for index in state.below()}
    return Projection(projected, tuple(f for i, f in enumerate(requested) if i not in found))


def measure_savings(
    value: Json, fields: Sequence[str], count: Count, root: str | None = None
) -> Savings:
    """The tokens that a projection saves on a value, both counted as compact JSON."""
    projected = project_report(value, fields, root)
    return Savings(count(compact(value)), count(compact(projected.value)), projected.missing)


def _as_tuple(fields: Sequence[str]) -> tuple[str, ...]:
    # A single text may name several fields, and must not be taken letter by letter.
    return parse_fields(fields) if isinstance(fields, str) else tuple(fields)


def _contains_objects(value: Json) -> bool:
    """Whether fields can be taken: from an object, or from the elements of a list, if any."""
    layer = [value]
    for _ in range(_MAX_NESTED_LISTS):
        lists = [item for item in layer if isinstance(item, list)]
        if any(isinstance(item, dict) for item in layer) or (lists and not any(lists)):
            return True
        layer = [element for inner in lists for element in inner]
    return False


class _Node:
    """A step of the requested paths; `fields` are the positions of those that end here."""

    __slots__ = ("any", "children", "fields")

    def __init__(self) -> None:
        self.children: dict[str, _Node] = {}
        self.any: _Node | None = None
        self.fields: list[int] = []


class _State:
    """The steps that are active at once, since `*` and a key can both match one member.

    The states that follow are computed when a value first leads there (not with `cached_property`,
    whose lock costs more than the work).
    """

    __slots__ = ("_named", "_nodes", "_other", "_wildcards", "whole")

    def __init__(self, nodes: Sequence[_Node]) -> None:
        self._nodes = nodes
        self._wildcards = [node.any for node in nodes if node.any is not None]
        self._named: dict[str, _State] | None = None
        self._other: _State | None = None
        self.whole = any(node.fields for node in nodes)

    @property
    def named(self) -> dict[str, _State]:
        """The states that follow the keys that the paths name."""
        if self._named is None:
            nodes: dict[str, list[_Node]] = {}
            for node in self._nodes:
                for key, child in node.children.items():
                    nodes.setdefault(key, []).append(child)
            self._named = {key: _State(under + self._wildcards) for key, under in nodes.items()}
        return self._named

    @property
    def other(self) -> _State | None:
        """The state that follows any other key."""
        if self._other is None and self._wildcards:
            self._other = _State(self._wildcards)
        return self._other

    def below(self) -> Iterator[int]:
        """The fields that end here or further in."""
        queue = list(self._nodes)
        while queue:
            node = queue.pop()
            yield from node.fields
            queue.extend(node.children.values())
            if node.any is not None:
                queue.append(node.any)


def _compile(fields: Iterable[str]) -> _State:
    top = _Node()
    for position, field in enumerate(fields):
        node = top
        for step in parse_path(field):
            if step is Mark.ANY:
                node.any = node = node.any or _Node()
            elif isinstance(step, str):
                node = node.children.setdefault(step, _Node())
            elif isinstance(step, int):
                raise invalid_field(
                    field, "Lists are mapped over: write [] (or nothing) instead of a number."
                )
        node.fields.append(position)
    return _State([top])


_compile_cached = lru_cache(maxsize=512)(_compile)


def _find_start(value: Json, start: _State, root: str | None) -> tuple[str, ...]:
    """The keys that lead to where the paths start: none, or those of the envelope's content."""
    if not isinstance(value, dict) or start.whole or start.other is not None:
        return ()
    if any(key in value for key in start.named):
        return ()
    declared = tuple(step for step in parse_path(root) if isinstance(step, str)) if root else ()
    inner: Json = value
    for key in declared:
        inner = inner.get(key) if isinstance(inner, dict) and key in inner else _NOTHING
    if declared and inner is not _NOTHING:
        return declared
    key = envelope_key(value)
    return () if key is None else (key,)


def _project_inside(value: Json, where: Sequence[str], keep: Callable[[Json], Json]) -> Json:
    """The envelope with its content projected, and the plain values beside it."""
    if not where:
        return keep(value)
    projected: JsonObject = {}
    for key, item in value.items():
        if key == where[0]:
            projected[key] = _project_inside(item, where[1:], keep)
        elif not isinstance(item, (dict, list)):
            projected[key] = item  # totals and cursors are small, and needed to read on
    return projected


_NOTHING = object()


def _keep(value: Json, start: _State, hits: set[_State]) -> Json:
    """What the states keep of a value; every state that found something is added to `hits`."""
    todo: list[tuple[Json, _State, Json, int]] = []

    def open_item(item: Json, state: _State, nested: int) -> Json:
        """The item if all of it is selected, an empty container to be filled, or nothing."""
        if state.whole or item is None:
            hits.add(state)  # null on the way is an answer: there is no user whose name to return
            return item
        if isinstance(item, dict):
            container: Json = {}
        elif isinstance(item, list) and nested < _MAX_NESTED_LISTS:
            container = []
        else:
            return _NOTHING
        if not item and (isinstance(item, list) or not state.named):
            hits.add(state)  # an empty list has no element that could lack the field
        todo.append((item, state, container, nested))
        return container

    projected = open_item(value, start, 0)
    if projected is _NOTHING:
        return value
    while todo:
        source, state, container, nested = todo.pop()
        if isinstance(source, list):
            parts = (open_item(item, state, nested + 1) for item in source)
            container.extend(part for part in parts if part is not _NOTHING)
            continue
        named, other = state.named, state.other
        for key, item in source.items():
            following = named.get(key, other)
            if following is None:
                continue
            if following.whole:  # the common end of a path: a function call less per member
                hits.add(following)
                container[key] = item
            elif (part := open_item(item, following, 0)) is not _NOTHING:
                container[key] = part
    return projected
