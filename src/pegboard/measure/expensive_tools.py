"""The most expensive tools, why they are expensive, and what to do about each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pegboard.core.json import Json, JsonObject, compact
from pegboard.core.tools import Tool

Kind: TypeAlias = Literal[
    "long description", "long parameters", "repeated enum", "deep schema", "output schema"
]

LONG_DESCRIPTION = 150
LONG_PARAMETERS = 200
LARGE_OUTPUT = 150
DEEP = 4
LONG_ENUM = 5
"""Enums with fewer values are not reported as repeated."""

_ADVICE: dict[Kind, str] = {
    "long description": "describe it in two sentences and move the rest into examples",
    "long parameters": "shorten the descriptions of parameters; a good name often needs none",
    "repeated enum": "define it once and refer to it, or accept text and check it in the server",
    "deep schema": "use flat arguments, or split it into tools with one purpose each",
    "output schema": "clients that send output schemas pay for it: declare only what callers use",
}

Count: TypeAlias = Callable[[str | Json], int]


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason for a tool's cost, its tokens, and advice."""

    kind: Kind
    tokens: int
    advice: str


@dataclass(frozen=True, slots=True)
class ExpensiveTool:
    """An expensive tool and the reasons, the most expensive first."""

    id: str
    server: str | None
    tokens: int
    reasons: tuple[Reason, ...]


def find_expensive_tools(
    tools: Sequence[Tool], cost: Callable[[Tool], int], count: Count, limit: int = 10
) -> list[ExpensiveTool]:
    """The most expensive tools of a catalog, with the reasons."""
    ranked = sorted(tools, key=lambda t: (-cost(t), t.id))[:limit]
    enums = Counter(enum for tool in tools for enum in _enums(tool.input_schema))
    return [
        ExpensiveTool(t.id, t.server, cost(t), tuple(_reasons(t, enums, count))) for t in ranked
    ]


def _reasons(tool: Tool, enums: Counter[str], count: Count) -> list[Reason]:
    nodes = list(_nodes(tool.input_schema))
    parameters = sum(
        count(node["description"])
        for node, depth in nodes
        if depth and isinstance(node.get("description"), str)
    )
    own_enums = Counter(_enums(tool.input_schema))
    found: list[tuple[Kind, int]] = [
        ("long description", _if_over(count(tool.description), LONG_DESCRIPTION)),
        ("long parameters", _if_over(parameters, LONG_PARAMETERS)),
        # An enum that the catalog has once cannot be shared; only repetitions are worth advice.
        ("repeated enum", sum(count(e) * n for e, n in own_enums.items() if enums[e] > 1)),
        # Callers rarely get arguments right that are nested deeper.
        ("deep schema", sum(count(node) for node, depth in nodes if depth == DEEP)),
        ("output schema", _if_over(count(tool.output_schema or ""), LARGE_OUTPUT)),
    ]
    reasons = [Reason(kind, tokens, _ADVICE[kind]) for kind, tokens in found if tokens]
    return sorted(reasons, key=lambda r: -r.tokens)


def _if_over(tokens: int, limit: int) -> int:
    return tokens if tokens > limit else 0


def _enums(schema: Json) -> Iterable[str]:
    for node, _ in _nodes(schema):
        values = node.get("enum")
        if isinstance(values, list) and len(values) >= LONG_ENUM:
            yield compact(values)


_MAPS = ("properties", "$defs", "definitions", "patternProperties")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_ONE = ("items", "additionalProperties", "not")


def _nodes(schema: Json, depth: int = 0) -> Iterator[tuple[JsonObject, int]]:
    """Every schema inside a schema, with its nesting depth."""
    # The limit keeps a hostile schema from exhausting the stack.
    if not isinstance(schema, dict) or depth > 64:
        return
    yield schema, depth
    for key in _MAPS:
        inside = schema.get(key)
        for part in inside.values() if isinstance(inside, dict) else ():
            yield from _nodes(part, depth + 1)
    # Alternatives lie as deep as what they are alternatives for.
    for key in _LISTS:
        inside = schema.get(key)
        for part in inside if isinstance(inside, list) else ():
            yield from _nodes(part, depth)
    for key in _ONE:
        yield from _nodes(schema.get(key), depth + 1)
