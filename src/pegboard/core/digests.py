"""Digests of tool definitions: equal exactly when two definitions mean the same.

Before hashing, object keys and the keywords of JSON Schema that hold sets (`required`, `enum`,
`type`, `dependentRequired`) are sorted, because some servers build these from unordered sets and
list them in another order after every start. Data inside a schema (`default`, `const`, `examples`)
is hashed as it is, where order can matter.

`words_digest` also ignores the order of words in texts. Another order can change what a sentence
means, so that digest only describes a difference; it never stands in for the real one unless an
operator allowed it for a server.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TypeAlias

from pegboard.core.json import Json, JsonObject

DIGEST_VERSION = 2
"""1 was the plain canonical JSON (RFC 8785) of the entry, `pegboard.core.json.digest`."""

_SETS = frozenset({"required", "enum", "type"})
_DATA = frozenset({"default", "const", "examples"})
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose keys are names that an author chose, not keywords."""
_TEXTS = frozenset({"title", "description"})
_WORDS = re.compile(r"\w+|[^\w\s]")

_Text: TypeAlias = Callable[[Json], Json]


def definition_digest(entry: JsonObject) -> str:
    """SHA-256 over a `tools/list` entry in normal form.

    Empty for an entry nested too deeply to be hashed: an empty digest matches no approval.
    """
    return _hash(normal_form(entry))


def words_digest(entry: JsonObject) -> str:
    """The same for all entries whose titles, descriptions and defaults differ in order alone."""
    return _hash(normal_form(entry, _sorted_words))


def normal_form(entry: JsonObject, text: _Text | None = None) -> JsonObject:
    """The entry with set-like keywords sorted; with `text`, its texts changed by that.

    An entry nested too deeply to be walked comes back as it is.
    """
    try:
        return {key: _member(key, value, text) for key, value in entry.items()}
    except RecursionError:
        return entry


def _hash(value: Json) -> str:
    import hashlib  # here, because most processes that import this never need it

    try:
        encoded = json.dumps(value, sort_keys=True, separators=(",", ":"))
    except RecursionError:
        return ""
    return hashlib.sha256(encoded.encode()).hexdigest()


def _member(key: str, value: Json, text: _Text | None) -> Json:
    if key in ("inputSchema", "outputSchema"):
        return _schema(value, text)
    if text is not None and key in _TEXTS:
        return text(value)
    if text is not None and key == "annotations" and isinstance(value, dict):
        return {k: text(v) if k in _TEXTS else v for k, v in value.items()}
    return value


def _schema(value: Json, text: _Text | None) -> Json:
    if isinstance(value, list):
        return [_schema(part, text) for part in value]
    if not isinstance(value, dict):
        return value
    return {key: _keyword(key, part, text) for key, part in value.items()}


def _keyword(key: str, value: Json, text: _Text | None) -> Json:
    if isinstance(value, str):
        return text(value) if text is not None and (key in _TEXTS or key == "default") else value
    if key in _SETS and isinstance(value, list):
        return _sorted(value)
    if key in _DATA:
        return text(value) if text is not None and key == "default" else value
    if isinstance(value, dict) and key == "dependentRequired":
        return {k: _sorted(v) if isinstance(v, list) else v for k, v in value.items()}
    if isinstance(value, dict) and key in _NAMED:
        return {name: _schema(part, text) for name, part in value.items()}
    return _schema(value, text)


def _sorted(values: list[Json]) -> list[Json]:
    if all(isinstance(value, str) for value in values):
        return sorted(values)
    return sorted(values, key=lambda value: json.dumps(value, sort_keys=True))


def _sorted_words(value: Json) -> Json:
    if isinstance(value, str):
        return sorted(_WORDS.findall(value))
    if isinstance(value, list):
        return _sorted([_sorted_words(part) for part in value])
    return value
