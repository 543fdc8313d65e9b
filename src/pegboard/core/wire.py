"""`tools/list` entries, as servers and files have them, made into `Tool` records."""

from __future__ import annotations

from collections.abc import Mapping

from pegboard.core.json import Json, JsonObject
from pegboard.core.risk import assessed
from pegboard.core.tools import Tool, constant, derive_summary, execution_of
from pegboard.errors import ConfigError

CATEGORY_KEY = "io.github.pegboard/category"


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
    description = _text(entry, "description") or ""
    annotations = _mapping(entry, "annotations")
    meta = _mapping(entry, "_meta")
    given, output_schema = entry.get("inputSchema"), entry.get("outputSchema")
    risk, risk_source = assessed(entry["name"], annotations, _text(entry, "server") or server)
    return Tool(
        name=entry["name"],
        definition=constant(
            {"type": "object"} if given is None else given,
            output_schema if isinstance(output_schema, dict) else None,
        ),
        id=_text(entry, "id") or tool_id or "",
        server=_text(entry, "server") or server,
        category=_text(entry, "category") or _category(meta) or category,
        summary=derive_summary(
            _text(entry, "summary") or description or _text(entry, "title") or ""
        ),
        description=description,
        title=_text(entry, "title"),
        annotations=annotations,
        icons=tuple(entry.get("icons") or ()),
        execution=execution_of(entry),
        meta=meta,
        risk=risk,
        risk_source=risk_source,
    )


def _category(meta: Mapping[str, Json]) -> str | None:
    value = meta.get(CATEGORY_KEY)
    return value if isinstance(value, str) else None


def _text(entry: JsonObject, key: str) -> str | None:
    value = entry.get(key)
    if value is None or isinstance(value, str):
        return value or None
    raise ConfigError(f"`{key}` must be text, not {type(value).__name__}")


def _mapping(entry: JsonObject, key: str) -> JsonObject:
    value = entry.get(key)
    if value is None or isinstance(value, dict):
        return value or {}
    raise ConfigError(f"`{key}` must be an object, not {type(value).__name__}")
