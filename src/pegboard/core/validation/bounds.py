"""How much work checking against a schema can cause, computed before anything is checked.

A small schema can unfold to an enormous one: a definition that uses the next one twice, which uses
the next one twice. And a recursive one is as deep as the arguments are, while a validator in native
code has a stack to overflow. These bounds follow from the graph of references alone, in time that
is linear in the size of the schema:

- `problem`: it unfolds to too much, or refers to itself endlessly: do not check at all;
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

MAX_PARTS = 20_000
"""Subschemas of a schema with every reference replaced by its target."""
MAX_DEPTH = 128
MAX_RECURSIVE = 200
MAX_FRAMES = 1_000
"""Nested steps of the validator that fit a thread's stack of 512 KiB with plenty to spare."""
MAX_EXPLAINED = 1_000
"""Errors that one value may cause before they are no longer listed."""

_INTO_ITEMS = frozenset({"items", "prefixItems", "additionalItems", "contains", "unevaluatedItems"})
_INTO_VALUES = frozenset({"additionalProperties", "patternProperties", "unevaluatedProperties"})
_ROOT = "#"
# Measured, relative to a plain keyword or pattern.
_COST_OF_REPETITION = 50
_COST_OF_DIVISION = 50
MAX_LISTED_PATTERNS = 5
_MAX_COMPILED_PATTERN = 100_000
"""Bytes of a compiled pattern. An ordinary one has a few hundred; with this many, checking takes
about 10 microseconds for each character."""
_REGEX_OPTIONS = jsonschema_rs.RegexOptions(size_limit=_MAX_COMPILED_PATTERN)
_CONDITIONS = {
    "not": ("not",),
    "oneOf": ("oneOf",),
    "if": ("if", "then", "else"),
    "contains": ("maxContains",),
}
"""Keywords that refuse a value because it *does* fit, and what is dropped if that is uncertain."""


class Bounds(NamedTuple):
    """What checking against a schema may cost; `None` if there is nothing to bound."""

    problem: str | None = None
    deepest: int | None = None
    explained: int | None = None
    per_value: int = 1
    per_character: int = 0


def compute_bounds(schema: JsonObject) -> Bounds:
    """How far arguments can be checked against the schema."""
    # The graph below is built by walking the schema, so that has to be affordable first.
    if not is_within_bounds(schema):
        return Bounds("the schema is too large or too deep")
    root, _ = localize_references(schema)
    graph = _Graph(root)
    # From cheap to expensive: each check relies on the ones before it to bound its own work.
    if graph.is_too_large():
        return Bounds("the schema unfolds to too many parts")
    if not graph.recursive:
        return Bounds(per_value=graph.per_value, per_character=graph.per_character)
    if len(graph.recursive) > MAX_RECURSIVE:
        return Bounds("the schema is recursive in too many ways")
    # A cycle of references to the *same* value never descends into the arguments, so it never ends.
    if _find_cyclic({name: body.in_place for name, body in graph.bodies.items()}):
        return Bounds("the schema refers to itself without end")
    return graph.recursion_bounds()


@dataclass(slots=True)
class _Body:
    """One schema that references lead to: its size, and the references inside it.

    The key of `references` is the reference and the path from the value that the body describes to
    the value that the reference is applied to: empty for the same value, `[]` for an item, `*` for
    any member.
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
        return {name for name, path in self.references if not path}


class _Graph:
    """The bodies of a schema by the references that lead to them."""

    def __init__(self, root: JsonObject) -> None:
        self.bodies: dict[str, _Body] = {}
        pending: list[tuple[str, Json]] = [(_ROOT, root)]
        while pending:
            name, schema = pending.pop()
            if name not in self.bodies:
                body = self.bodies[name] = _read_body(schema)
                pending += [(one, lookup(root, one)) for one in body.names]
        self.recursive = _find_cyclic({name: body.names for name, body in self.bodies.items()})

    def is_too_large(self) -> bool:
        """Whether a body has too many parts or levels with its references replaced by targets."""
        # A recursive body counts as one part here: how deep it goes depends on the arguments.
        sizes, levels = dict.fromkeys(self.recursive, 1), dict.fromkeys(self.recursive, 1)
        for name in self._referenced_first():
            body = self.bodies[name]
            size = body.parts + sum(n * sizes[one] for (one, _), n in body.references.items())
            level = body.levels + max((levels[one] for one in body.names), default=0)
            if size > MAX_PARTS or level > MAX_FRAMES:
                return True
            if name not in self.recursive:
                sizes[name], levels[name] = size, level
        return False

    @property
    def per_value(self) -> int:
        """The work that one value can cause, with references followed."""
        return self._sum_unfolded({name: body.per_value for name, body in self.bodies.items()})

    @property
    def per_character(self) -> int:
        """The work that one character of a text can cause, with references followed."""
        return self._sum_unfolded({name: body.per_character for name, body in self.bodies.items()})

    def _sum_unfolded(self, own: Mapping[str, int]) -> int:
        """The sum over all parts, with references followed.

        A recursive body counts once, because each further level of it checks other values.
        """
        sums: dict[str, int] = {name: own[name] for name in self.recursive}
        for name in self._referenced_first():
            if name not in self.recursive:
                references = self.bodies[name].references.items()
                sums[name] = own[name] + sum(n * sums[one] for (one, _), n in references)
        return sum(sums[name] for name in self.recursive | {_ROOT})

    def _referenced_first(self) -> Iterator[str]:
        """All bodies, each after the ones that it refers to and that are not recursive."""
        # A depth-first walk with a stack of its own: a chain of references may be deeper than ours.
        done: set[str] = set()
        for start in self.bodies:
            stack = [(start, iter(self.bodies[start].names - self.recursive))]
            while stack:
                name, rest = stack[-1]
                following = next((one for one in rest if one not in done), None)
                if following is not None:
                    stack.append((following, iter(self.bodies[following].names - self.recursive)))
                    continue
                stack.pop()
                if name not in done:
                    done.add(name)
                    yield name

    def recursion_bounds(self) -> Bounds:
        """Bounds for a schema that is as deep as the arguments are."""
        visits: dict[str, Counter[Path]] = {}
        frames: dict[str, int] = {}
        for name in self.recursive:
            self._count_visits(name, visits, frames)
        # A body that visits a place below it `times` times lists up to `times ** levels` errors.
        explained = (
            int(len(path) * math.log(MAX_EXPLAINED, times))
            for found in visits.values()
            for path, times in found.items()
            if times > 1
        )
        # Each level of the arguments takes as many frames as the deepest recursive body has levels.
        deepest = max(1, min(MAX_DEPTH, MAX_FRAMES // max(frames.values())))
        return Bounds(
            None,
            deepest,
            max(1, min(explained, default=deepest)),
            self.per_value,
            self.per_character,
        )

    def _count_visits(
        self, name: str, visits: dict[str, Counter[Path]], frames: dict[str, int]
    ) -> Counter[Path]:
        """How often a body visits each place below its value, in-place references included."""
        if name in visits:
            return visits[name]
        body, found, deepest = self.bodies[name], Counter[Path](), 0
        for (one, path), count in body.references.items():
            if one not in self.recursive:
                continue
            if path:
                found[path] += count
                continue
            for inner, times in self._count_visits(one, visits, frames).items():
                found[inner] += count * times
            deepest = max(deepest, frames[one])
        visits[name], frames[name] = found, body.levels + deepest
        return found


def _read_body(schema: Json) -> _Body:
    body = _Body()
    pending: list[tuple[Json, Path, int]] = [(schema, (), 1)]
    while pending:
        node, path, level = pending.pop()
        body.parts += 1
        body.levels = max(body.levels, level)
        body.per_value += 1
        if not isinstance(node, dict):
            continue
        if "multipleOf" in node:
            body.per_value += _COST_OF_DIVISION
            body.per_character += _COST_OF_DIVISION  # the digits of a number are characters too
        for keyword in ("enum", "required"):
            if isinstance(node.get(keyword), list):
                body.per_value += len(node[keyword])
        # A pattern costs by how large it may be once compiled: a number in braces repeats a part.
        body.per_character += sum(
            _COST_OF_REPETITION if "{" in pattern else 1 + len(pattern) // 100
            for pattern in _own_patterns(node)
        )
        reference = node.get("$ref")
        if isinstance(reference, str):
            body.references[reference, path] += 1
        for step, child in children(node):
            if step[0] in DEFINITIONS:  # these count where a reference leads to them
                continue
            # From a value to the one that the subschema applies to.
            if step[0] in _INTO_ITEMS:
                inner = ("[]",)
            elif step[0] in _INTO_VALUES:
                inner = ("*",)
            else:
                inner = step[1:2] if step[0] == "properties" else ()
            pending.append((child, (*path, *inner), level + 1))
    return body


def _find_cyclic(graph: Mapping[str, set[str]]) -> set[str]:
    """The nodes from which a cycle can be reached: what is left after removing all others."""
    left = {name: set(successors) for name, successors in graph.items()}
    predecessors: dict[str, list[str]] = {}
    for name, successors in graph.items():
        for one in successors:
            predecessors.setdefault(one, []).append(name)
    leaves = [name for name, successors in left.items() if not successors]
    while leaves:
        done = leaves.pop()
        del left[done]
        for name in predecessors.get(done, ()):
            left[name].discard(done)
            if not left[name]:
                leaves.append(name)
    return set(left)


def compile_validator(schema: JsonObject) -> jsonschema_rs.Validator:
    """A validator that takes linear time for every pattern and fetches nothing.

    Raises:
        ValueError, TypeError, jsonschema_rs.ReferencingError: The schema is not valid.
    """
    return jsonschema_rs.validator_for(
        schema, offline=True, validate_formats=False, pattern_options=_REGEX_OPTIONS
    )


def drop_unsafe_patterns(schema: JsonObject) -> tuple[JsonObject, list[str]]:
    """The schema without patterns that cannot be checked in linear time, and those patterns."""
    patterns: dict[str, None] = {}
    pending: list[Json] = [schema]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            patterns.update(dict.fromkeys(_own_patterns(node)))
            pending += [child for _, child in children(node)]
    unsafe = [pattern for pattern in patterns if not is_linear(pattern)]
    if not unsafe:
        return schema, []
    return _drop_patterns(schema, frozenset(unsafe)), unsafe


@lru_cache(maxsize=4096)
def is_linear(pattern: str) -> bool:
    """Whether the linear-time engine can compile a pattern."""
    try:  # the engine itself knows best, and says so when it compiles
        compile_validator({"pattern": pattern})
    except ValueError:
        return False
    return True


def format_patterns(patterns: list[str]) -> str:
    """The first few patterns on one line."""
    first = patterns[:MAX_LISTED_PATTERNS]
    shown = ", ".join(p if len(p) <= 60 else f"{p[:59]}…" for p in first)
    more = len(patterns) - MAX_LISTED_PATTERNS
    return f"{shown} and {more} more" if more > 0 else shown


def _own_patterns(node: JsonObject) -> list[str]:
    """The patterns of one schema, without those of its subschemas."""
    pattern, by_pattern = node.get("pattern"), node.get("patternProperties")
    own = [pattern] if isinstance(pattern, str) else []
    return [*own, *by_pattern] if isinstance(by_pattern, dict) else own


def _drop_patterns(schema: JsonObject, unsafe: frozenset[str]) -> JsonObject:
    dropped: set[str] = set()
    for path, child in children(schema):
        if path[0] in _CONDITIONS and _may_contain(child, unsafe):
            dropped.update(_CONDITIONS[path[0]])
    if schema.get("pattern") in unsafe:
        dropped.add("pattern")
    rest = {keyword: value for keyword, value in schema.items() if keyword not in dropped}
    by_pattern = rest.get("patternProperties")
    if isinstance(by_pattern, dict) and not unsafe.isdisjoint(by_pattern):
        # Any member may match the dropped pattern, so no member may be refused as unknown: the
        # empty pattern matches every name.
        known = {name: value for name, value in by_pattern.items() if name not in unsafe}
        rest["patternProperties"] = {**known, "": True}
    return map_children(
        rest, lambda child, _: _drop_patterns(child, unsafe) if isinstance(child, dict) else child
    )


def _may_contain(schema: Json, patterns: frozenset[str]) -> bool:
    """Whether one of the patterns is inside, or may be where a reference leads."""
    pending = [schema]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            if "$ref" in node or "$dynamicRef" in node:  # not followed: a guess costs nothing here
                return True
            if not patterns.isdisjoint(_own_patterns(node)):
                return True
            pending += [child for _, child in children(node)]
    return False
