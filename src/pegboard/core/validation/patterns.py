"""Regular expressions of schemas: those that take linear time are checked, the rest are not.

A schema of somebody else's making may hold any pattern, and a caller may send any text. Look-around
and back-references need backtracking, whose time can grow with the square of a text and faster. The
`regex` engine has neither, takes time proportional to pattern times text, and bounds the pattern's
size. So a pattern that it cannot compile is taken out of the schema that we check with: the server
that wrote it decides, and the tool stays callable.

Taking a pattern out must never make a schema refuse more than before. Under `not`, `if` and the
like it would, so there the whole keyword goes.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import islice

import jsonschema_rs

from pegboard.core.json import Json, JsonObject
from pegboard.core.schemas.keywords import children, with_children

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
    return with_children(
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
