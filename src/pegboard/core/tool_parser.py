"""`tools/list` entries: parsing them into `Tool` records, and the details that we add to them.

    entry of a server or file   --tool_from_wire-->  Tool
    Tool                        --build_details-->   `_meta` of the entry that we list
    `_meta` of another Pegboard --parse_details-->   Details

MCP has no place for a category, a summary, examples or related tools. Pegboard puts them into the
`_meta` of an entry, under its own prefix, when the request asks for them (`DETAILS_KEY`). Such
details from a server are text like its descriptions: sanitized, bounded, then shown or searched.
Nothing is decided by them. A category is shown within its server, and related tools are tools of
the same server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from pegboard.core.json import Json, JsonObject, compact
from pegboard.core.risk import assess_risk
from pegboard.core.sanitization import sanitize_text
from pegboard.core.tools import Example, Tool, constant_definition, derive_summary, parse_execution
from pegboard.errors import ConfigError

PREFIX = "io.github.pegboard/"
EXTENSION_ID = f"{PREFIX}lazy-tools"
LAZY_KEY = f"{PREFIX}lazy"
DETAILS_KEY = f"{PREFIX}details"
CATEGORY_KEY = f"{PREFIX}category"
PROMPT_KEYS = ("name", "description", "inputSchema")
"""The keys of an entry that clients pass on to the model; only these cost tokens."""

MAX_NAMES = 20
MAX_EXAMPLES = 5
MAX_FIELDS = 200
_MAX_NAME = 128
_MAX_SECTION = 64
_MAX_EXAMPLE = 2_000
_MAX_TEXT = 300
_NOT_IN_SECTIONS = re.compile(r"[^\w-]+")


def tool_from_wire(
    entry: Json,
    *,
    tool_id: str | None = None,
    server: str | None = None,
    category: str | None = None,
) -> Tool:
    """The tool that an entry defines.

    Args:
        entry: A `tools/list` entry; it may carry our `id`, `server`, `category` and `summary`.
        tool_id: Its id, where the entry gives none.
        server: The server it belongs to, where the entry gives none.
        category: Its category, where the entry gives none.

    Raises:
        ConfigError: The entry is not a tool; says what is wrong with it.
    """
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not entry["name"]:
        raise ConfigError("a tool is an object with a `name`")
    description = _optional_text(entry, "description") or ""
    annotations = _optional_mapping(entry, "annotations")
    meta = _optional_mapping(entry, "_meta")
    own_category = meta.get(CATEGORY_KEY)
    input_schema, output_schema = entry.get("inputSchema"), entry.get("outputSchema")
    server = _optional_text(entry, "server") or server
    risk, risk_source = assess_risk(entry["name"], annotations, server)
    return Tool(
        name=entry["name"],
        definition=constant_definition(
            {"type": "object"} if input_schema is None else input_schema,
            output_schema if isinstance(output_schema, dict) else None,
        ),
        id=_optional_text(entry, "id") or tool_id or "",
        server=server,
        category=_optional_text(entry, "category")
        or (own_category if isinstance(own_category, str) else None)
        or category,
        summary=derive_summary(
            _optional_text(entry, "summary") or description or _optional_text(entry, "title") or ""
        ),
        description=description,
        title=_optional_text(entry, "title"),
        annotations=annotations,
        icons=tuple(entry.get("icons") or ()),
        execution=parse_execution(entry),
        meta=meta,
        risk=risk,
        risk_source=risk_source,
    )


def _optional_text(entry: JsonObject, key: str) -> str | None:
    value = entry.get(key)
    if value is None or isinstance(value, str):
        return value or None
    raise ConfigError(f"`{key}` must be text, not {type(value).__name__}")


def _optional_mapping(entry: JsonObject, key: str) -> JsonObject:
    value = entry.get(key)
    if value is None or isinstance(value, dict):
        return value or {}
    raise ConfigError(f"`{key}` must be an object, not {type(value).__name__}")


@dataclass(frozen=True, slots=True)
class Details:
    """The details of a tool that MCP has no place for, as its server gave them."""

    section: str | None = None
    summary: str = ""
    examples: tuple[Example, ...] = ()
    related: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    deprecated: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    """Descriptions of result fields, by path."""


NO_DETAILS = Details()


def build_details(
    tool: Tool,
    *,
    category: str | None = None,
    related: Sequence[str] = (),
    fields: Mapping[str, str] | None = None,
) -> JsonObject:
    """The details of a tool for the `_meta` of its entry.

    Args:
        tool: The tool.
        category: The category under which it is shown.
        related: Its related tools, by the names that they have in the same list.
        fields: Descriptions of its result fields that are not in its schema, by path.
    """
    given: JsonObject = {
        "category": category,
        "summary": tool.summary,
        "examples": [
            {"description": e.description, "invocation": dict(e.invocation)} for e in tool.examples
        ],
        "related": list(related),
        "aliases": list(tool.aliases),
        "tags": list(tool.tags),
        "deprecated": tool.deprecated,
        "fields": dict(fields or {}),
    }
    return {f"{PREFIX}{key}": value for key, value in given.items() if value}


def parse_details(meta: Mapping[str, Json], server: str) -> Details:
    """The details in the `_meta` of an entry of this server; malformed ones are ignored."""
    if not any(key.startswith(PREFIX) for key in meta):  # not a Pegboard: the usual case
        return NO_DETAILS
    summary, deprecated = meta.get(f"{PREFIX}summary"), meta.get(f"{PREFIX}deprecated")
    fields = meta.get(f"{PREFIX}fields")
    described = {
        _parse_line(path, _MAX_NAME): _parse_line(text, _MAX_TEXT)
        for path, text in islice(fields.items() if isinstance(fields, dict) else (), MAX_FIELDS)
    }
    return Details(
        section=normalize_section(meta.get(f"{PREFIX}category")),
        summary=derive_summary(sanitize_text(summary)) if isinstance(summary, str) else "",
        examples=_parse_examples(meta.get(f"{PREFIX}examples")),
        # With the server's name in front, they cannot point to tools of another server.
        related=tuple(f"{server}.{name}" for name in _parse_texts(meta.get(f"{PREFIX}related"))),
        aliases=_parse_texts(meta.get(f"{PREFIX}aliases")),
        tags=_parse_texts(meta.get(f"{PREFIX}tags")),
        deprecated=_parse_line(deprecated, _MAX_TEXT) or None,
        fields={path: text for path, text in described.items() if path and text},
    )


def without_own_keys(meta: Mapping[str, Json]) -> JsonObject:
    """The `_meta` of an entry without our own keys, which a server must not set."""
    return {key: value for key, value in meta.items() if not key.startswith(PREFIX)}


def normalize_section(value: Json) -> str | None:
    """A category as a part of a group's name, without the separators of such names."""
    # Cut before and after: separators that are removed should not cost it letters.
    text = _parse_line(value, 4 * _MAX_SECTION)
    return _NOT_IN_SECTIONS.sub("-", text).strip("-")[:_MAX_SECTION] or None


def _parse_examples(value: Json) -> tuple[Example, ...]:
    examples: list[Example] = []
    # Some may be dropped, so more are read than are used; but not all of a long list.
    for one in value[: 2 * MAX_EXAMPLES] if isinstance(value, list) else ():
        match one:
            case {"description": str(text), "invocation": dict(invocation)}:
                call = compact(invocation)
                # Arguments cannot be sanitized: they would mean something else then.
                if len(call) <= _MAX_EXAMPLE and sanitize_text(call) == call:
                    examples.append(Example(_parse_line(text, _MAX_TEXT), invocation))
            case _:
                continue
    return tuple(examples[:MAX_EXAMPLES])


def _parse_texts(value: Json) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    found = [_parse_line(one, _MAX_NAME) for one in value[:MAX_NAMES]]
    return tuple(dict.fromkeys(text for text in found if text))


def _parse_line(value: Json, max_length: int) -> str:
    return " ".join(sanitize_text(value[:max_length]).split()) if isinstance(value, str) else ""
