"""JSON Schemas of the configuration files, for editors: made from the records of `settings.py`.

`python -m pegboard.config.schema FOLDER` writes both; a test holds the committed ones equal to
these.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from pegboard.config import settings
from pegboard.config import settings as records
from pegboard.config.settings import ServerEntry, Settings
from pegboard.config.validation import type_adapter
from pegboard.core.json import JsonObject

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_IN_JSON = {"env_file": "envFile", "start_timeout": "startTimeout", "idle_stop": "idleStop"}


def settings_schema() -> JsonObject:
    """The schema of `pegboard.toml`."""
    schema = type_adapter(Settings).json_schema()
    for name, definition in schema.get("$defs", {}).items():
        _add_descriptions(definition, getattr(records, name, None) or getattr(settings, name))
    _add_descriptions(schema, Settings)
    return {"$schema": DRAFT, **schema, "title": "pegboard.toml"}


def servers_schema() -> JsonObject:
    """The schema of an `mcpServers` file with what Pegboard reads in it; other keys are free."""
    entry = type_adapter(ServerEntry).json_schema()
    _add_descriptions(entry, ServerEntry)
    entry["properties"] = {_IN_JSON.get(k, k): v for k, v in entry["properties"].items()}
    transport = entry["properties"].pop("transport")
    kinds = ["stdio", "http", "streamable-http", "sse"]
    entry["properties"]["type"] = {"enum": kinds, "description": transport["description"]}
    entry["additionalProperties"] = True
    entry["anyOf"] = [{"required": ["command"]}, {"required": ["url"]}]
    return {
        "$schema": DRAFT,
        "title": "mcpServers",
        "description": "The MCP servers of a client, with what Pegboard reads beyond it.",
        "type": "object",
        "properties": {"mcpServers": {"type": "object", "additionalProperties": entry}},
        "required": ["mcpServers"],
    }


def _add_descriptions(schema: JsonObject, record: type) -> None:
    """Take over what the record's source says of it and of its fields."""
    from docstring_parser import parse_from_object

    parsed = parse_from_object(record)
    schema["description"] = parsed.short_description
    schema.pop("title", None)
    said = {p.arg_name: " ".join((p.description or "").split()) for p in parsed.params}
    for key, value in schema["properties"].items():
        value.pop("title", None)
        if text := said.get("imports" if key == "import" else key):
            value["description"] = text


FILES: dict[str, Callable[[], JsonObject]] = {
    "pegboard.schema.json": settings_schema,
    "mcp.schema.json": servers_schema,
}


def render_schema(name: str) -> str:
    """The text of one schema file."""
    return json.dumps(FILES[name](), indent=2, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> None:
    """Write both schemas into a folder."""
    folder = Path(arguments[0] if arguments else "docs/reference")
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        (folder / name).write_text(render_schema(name), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
