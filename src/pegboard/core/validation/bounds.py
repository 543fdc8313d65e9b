"""What checking against a schema may cost, found out before it is ever done.

A small schema can unfold to an enormous one: a definition that uses the next one twice, which uses
the next one twice. And a recursive one is as deep as the arguments are, while a validator in native
code has a stack to overflow. These bounds follow from the graph of references alone, in time that
is linear in the size of the schema:

- `problem`: it unfolds to too much, or refers to itself without end: do not check at all;
- `deepest`: levels of arguments that a recursive schema may be checked against;
- `explained`: levels up to which its errors can be listed, since each level multiplies the list by
  the number of branches that look at the same place;
- `per_value` and `per_character`: about how much work each value of the arguments, and each
  character of a text in them, can cause.

Regular expressions are bounded too. A foreign schema may hold any pattern, and a caller may send
any text. Look-around and back-references need backtracking, whose time can grow with the square of
a text and faster. The `regex` engine has neither, takes time proportional to pattern times text,
and bounds the pattern's size. So a pattern that it cannot compile is removed from the schema that
we check with: the server that wrote it decides, and the tool stays callable. Removing a pattern
must never make a schema refuse more than before. Under `not`, `if` and the like it would, so there
the whole keyword goes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import jsonschema_rs

from pegboard.core.json import Json, JsonObject, is_within_bounds
from pegboard.core.schemas.traversal import (
    DEFINITIONS,
    Path,
    children,
    localize_references,
    lookup,
    map_children,
)

LARGEST = 20_000
DEEPEST = 128
MOST_RECURSIVE = 200
MOST_FRAMES = 1_000
"""Nested steps of the validator that fit a thread's stack of 512 KiB with much to spare."""
MOST_EXPLAINED = 1_000

_INTO_ITEMS = frozenset({"items", "prefixItems", "additionalItems", "contains", "unevaluatedItems"})
_INTO_VALUES = frozenset({"additionalProperties", "patternProperties", "unevaluatedProperties"})
_ROOT = "#"
_REPEATED = 50
_DIVISION = 50
"""What these cost, by measurement, compared with a plain keyword or pattern."""


class Bounds(NamedTuple):
    """`None` wherever nothing needs bounding."""

    problem: str | None = None
    deepest: int | None = None
    explained: int | None = None
    per_value: int = 1
    per_character: int = 0


def bounds(schema: JsonObject) -> Bounds:
    """How far arguments can be checked against the schema."""
    if not is_within_bounds(schema):
        return Bounds("the schema is too large or too deep")
    root, _ = localize_references(schema)
    graph = _Graph(root)
    if graph.is_too_large():
        return Bounds("the schema unfolds to too many parts")
    if not graph.endless:
        return Bounds(per_value=graph.per_value, per_character=graph.per_character)
    if len(graph.endless) > MOST_RECURSIVE:
        return Bounds("the schema is recursive in too many ways")
    if _endless({name: body.in_place for name, body in graph.bodies.items()}):
        return Bounds("the schema refers to itself without end")
    return graph.recursion()


@dataclass(slots=True)
class _Body:
    """One schema that references lead to: its parts, and the references in them by where they look.

    The key of `references` is the name and the way from the value that the body is about: empty for
    the same value, `[]` for an item, `*` for any member.
    """

    parts: int = 0
    levels: int = 0
    per_value: int = 0
    per_character: int = 0
    references: Counter[tuple[str, Path]] = field(default_factory=Counter[tuple[str, Path]])

    @property
    def names(self) -> set[str]:
        return {name for name, _ in self.references}

    @property
    def in_place(self) -> set[str]:
        return {name for name, way in self.references if not way}


class _Graph:
    """The bodies of a schema by the references that lead to them."""

    def __init__(self, root: JsonObject) -> None:
        self.bodies: dict[str, _Body] = {}
        pending: list[tuple[str, Json]] = [(_ROOT, root)]
        while pending:
            name, schema = pending.pop()
            if name not in self.bodies:
                body = self.bodies[name] = _read(schema)
                pending += [(one, lookup(root, one)) for one in body.names]
        self.endless = _endless({name: body.names for name, body in self.bodies.items()})

    def is_too_large(self) -> bool:
        """Whether a body has too many parts or levels once references are what they lead to."""
        sizes, levels = dict.fromkeys(self.endless, 1), dict.fromkeys(self.endless, 1)
        for name in self._ordered():
            body = self.bodies[name]
            more = sum(count * sizes[one] for (one, _), count in body.references.items())
            size = body.parts + more
            level = body.levels + max((levels[one] for one in body.names), default=0)
            if size > LARGEST or level > MOST_FRAMES:
                return True
            if name not in self.endless:
                sizes[name], levels[name] = size, level
        return False

    @property
    def per_value(self) -> int:
        """The work that one value can cause, with references followed."""
        return self._unfolded({name: body.per_value for name, body in self.bodies.items()})

    @property
    def per_character(self) -> int:
        """The work that one character of a text can cause, with references followed."""
        return self._unfolded({name: body.per_character for name, body in self.bodies.items()})

    def _unfolded(self, own: Mapping[str, int]) -> int:
        """The sum over all parts; a recursive body counts once, since each level is new values."""
        sums: dict[str, int] = {name: own[name] for name in self.endless}
        for name in self._ordered():
            if name not in self.endless:
                references = self.bodies[name].references.items()
                sums[name] = own[name] + sum(count * sums[one] for (one, _), count in references)
        return sum(sums[name] for name in self.endless | {_ROOT})

    def _ordered(self) -> Iterator[str]:
        """All bodies, each after those that it refers to and that end."""
        done: set[str] = set()
        for start in self.bodies:
            stack = [(start, iter(self.bodies[start].names - self.endless))]
            while stack:
                name, rest = stack[-1]
                following = next((one for one in rest if one not in done), None)
                if following is not None:
                    stack.append((following, iter(self.bodies[following].names - self.endless)))
                    continue
                stack.pop()
                if name not in done:
                    done.add(name)
                    yield name

    def recursion(self) -> Bounds:
        """Bounds for a schema that is as deep as the arguments are."""
        looks: dict[str, Counter[Path]] = {}
        frames: dict[str, int] = {}
        for name in self.endless:
            self._look(name, looks, frames)
        explained = (
            int(len(way) * math.log(MOST_EXPLAINED, times))
            for found in looks.values()
            for way, times in found.items()
            if times > 1
        )
        deepest = max(1, min(DEEPEST, MOST_FRAMES // max(frames.values())))
        return Bounds(
            None,
            deepest,
            max(1, min(explained, default=deepest)),
            self.per_value,
            self.per_character,
        )

    def _look(
        self, name: str, looks: dict[str, Counter[Path]], frames: dict[str, int]
    ) -> Counter[Path]:
        """How often a body, with what it refers to in place, looks at each place below it."""
        if name in looks:
            return looks[name]
        body, found, deepest = self.bodies[name], Counter[Path](), 0
        for (one, way), count in body.references.items():
            if one not in self.endless:
                continue
            if way:
                found[way] += count
                continue
            for inner, times in self._look(one, looks, frames).items():
                found[inner] += count * times
            deepest = max(deepest, frames[one])
        looks[name], frames[name] = found, body.levels + deepest
        return found


def _read(schema: Json) -> _Body:
    body = _Body()
    pending: list[tuple[Json, Path, int]] = [(schema, (), 1)]
    while pending:
        node, way, level = pending.pop()
        body.parts += 1
        body.levels = max(body.levels, level)
        body.per_value += 1
        if not isinstance(node, dict):
            continue
        body.per_value += _values_compared(node)
        body.per_character += _patterns_tried(node)
        reference = node.get("$ref")
        if isinstance(reference, str):
            body.references[reference, way] += 1
        pending += [
            (child, (*way, *_step(path)), level + 1)
            for path, child in children(node)
            if path[0] not in DEFINITIONS
        ]
    return body


def _values_compared(node: JsonObject) -> int:
    lists = sum(len(node[k]) for k in ("enum", "required") if isinstance(node.get(k), list))
    return lists + (_DIVISION if "multipleOf" in node else 0)


def _patterns_tried(node: JsonObject) -> int:
    """Patterns by how large they may be once compiled: a number in braces repeats a part."""
    pattern, by_pattern = node.get("pattern"), node.get("patternProperties")
    tried = [pattern] if isinstance(pattern, str) else []
    tried += list(by_pattern) if isinstance(by_pattern, dict) else []
    return sum(_REPEATED if "{" in one else 1 + len(one) // 100 for one in tried) + (
        _DIVISION if "multipleOf" in node else 0  # the digits of a number are characters
    )


def _step(path: Path) -> Path:
    """Where a keyword looks, seen from the value that its schema is about."""
    if path[0] in _INTO_ITEMS:
        return ("[]",)
    if path[0] in _INTO_VALUES:
        return ("*",)
    return path[1:2] if path[0] == "properties" else ()


def _endless(graph: Mapping[str, set[str]]) -> set[str]:
    """The nodes from which some way never ends: what is left after taking away all that ends."""
    left = {name: set(following) for name, following in graph.items()}
    before: dict[str, list[str]] = {}
    for name, following in graph.items():
        for one in following:
            before.setdefault(one, []).append(name)
    ended = [name for name, following in left.items() if not following]
    while ended:
        done = ended.pop()
        del left[done]
        for name in before.get(done, ()):
            left[name].discard(done)
            if not left[name]:
                ended.append(name)
    return set(left)


MOST_NAMED = 5
_LARGEST = 100_000
"""Bytes of a compiled pattern. An ordinary one has a few hundred; with this many, checking takes
about 10 microseconds for each character."""
_OPTIONS = jsonschema_rs.RegexOptions(size_limit=_LARGEST)
_CONDITIONS = {
    "not": ("not",),
    "oneOf": ("oneOf",),
    "if": ("if", "then", "else"),
    "contains": ("maxContains",),
}
"""Keywords that refuse a value because it *does* fit, and what has to go if that is uncertain."""


def compiled(schema: JsonObject) -> jsonschema_rs.Validator:
    """A validator that takes linear time for every pattern and fetches nothing.

    Raises:
        ValueError, TypeError, jsonschema_rs.ReferencingError: The schema is not valid.
    """
    return jsonschema_rs.validator_for(
        schema, offline=True, validate_formats=False, pattern_options=_OPTIONS
    )


def without_unchecked(schema: JsonObject) -> tuple[JsonObject, list[str]]:
    """The schema without patterns that cannot be checked in linear time; and these patterns."""
    patterns = list(_patterns(schema))
    unchecked = [pattern for pattern in dict.fromkeys(patterns) if not is_linear(pattern)]
    if not unchecked:
        return schema, []
    return _without(schema, frozenset(unchecked)), unchecked


@lru_cache(maxsize=4096)
def is_linear(pattern: str) -> bool:
    """Whether the linear engine takes a pattern."""
    try:
        compiled({"pattern": pattern})
    except ValueError:
        return False
    return True


def named(patterns: list[str]) -> str:
    """The patterns in one line, the first few of them."""
    shown = ", ".join(p if len(p) <= 60 else f"{p[:59]}…" for p in islice(patterns, MOST_NAMED))
    more = len(patterns) - MOST_NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def _patterns(schema: JsonObject) -> list[str]:
    found: list[str] = []
    pending: list[Json] = [schema]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            found += _own_patterns(node)
            pending += [child for _, child in children(node)]
    return found


def _own_patterns(node: JsonObject) -> list[str]:
    pattern, named_by = node.get("pattern"), node.get("patternProperties")
    own = [pattern] if isinstance(pattern, str) else []
    return [*own, *named_by] if isinstance(named_by, dict) else own


def _without(schema: JsonObject, unchecked: frozenset[str]) -> JsonObject:
    gone: set[str] = set()
    for path, child in children(schema):
        if path[0] in _CONDITIONS and _is_uncertain(child, unchecked):
            gone.update(_CONDITIONS[path[0]])
    if schema.get("pattern") in unchecked:
        gone.add("pattern")
    kept = {keyword: value for keyword, value in schema.items() if keyword not in gone}
    by_pattern = kept.get("patternProperties")
    if isinstance(by_pattern, dict) and not unchecked.isdisjoint(by_pattern):
        # Any member may be meant by the pattern, so none is one too many.
        known = {name: value for name, value in by_pattern.items() if name not in unchecked}
        kept["patternProperties"] = {**known, "": True}
    return map_children(
        kept, lambda child, _: _without(child, unchecked) if isinstance(child, dict) else child
    )


def _is_uncertain(schema: Json, unchecked: frozenset[str]) -> bool:
    """Whether such a pattern is inside, or may be where a reference leads."""
    pending = [schema]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            if "$ref" in node or "$dynamicRef" in node:
                return True
            if not unchecked.isdisjoint(_own_patterns(node)):
                return True
            pending += [child for _, child in children(node)]
    return False
