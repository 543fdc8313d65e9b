"""Validation of untrusted values against the records of `settings.py`, and their JSON Schemas.

    validate_record(Settings, value, document)  -->  the record, or errors that name the line
    python -m pegboard.config.schema FOLDER     -->  the JSON Schemas of both files, for editors

This is the one place where configuration meets pydantic. It validates the frozen dataclasses
themselves, so there is no second model beside them, and it is imported only when there is something
to validate. A test compares the committed JSON Schemas with the generated ones.
"""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

from pegboard.config import settings, source_settings
from pegboard.config.documents import Document, KeyPath
from pegboard.config.settings import ServerEntry, Settings
from pegboard.core.json import JsonObject
from pegboard.core.similar_names import nearest
from pegboard.errors import ConfigError

T = TypeVar("T")

_TYPE_NAMES = {
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "a table",
    type(None): "null",
}


# Building a validator takes longer than using it, and each server of a file needs the same one.
@lru_cache
def type_adapter(kind: type[T]) -> TypeAdapter[T]:
    """The validator of one record."""
    return TypeAdapter(kind)


def validate_record(
    kind: type[T],
    value: JsonObject,
    document: Document,
    at: KeyPath = (),
    written_as: Mapping[str, str] | None = None,
) -> tuple[T | None, list[ConfigError]]:
    """The record, or all errors in the value.

    Args:
        kind: The record.
        value: The untrusted value.
        document: The document that it was read from.
        at: Its place in the document.
        written_as: A client's own word for each of our keys, so that errors name what was written.
    """
    try:
        # As JSON: strict mode then allows a list for a tuple, and an integer for a float.
        text = json.dumps(value, default=str)
        return type_adapter(kind).validate_json(text, strict=True), []
    except ValidationError as exc:
        words = written_as or {}
        problems: list[ConfigError] = []
        for error in exc.errors(include_url=False, include_context=False):
            where: KeyPath = tuple(error["loc"])
            place = where if not where else (words.get(str(where[0]), where[0]), *where[1:])
            message = _describe_error(kind, error, where)
            problems.append(document.error(message, (*at, *place)))
        return None, problems


def raise_all(problems: Sequence[ConfigError]) -> None:
    """Raise all problems as one error, with one line for each; do nothing without any."""
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise ConfigError(
            "\n".join(p.message for p in problems), problems=[p.details for p in problems]
        )


def nearest_word(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant."""
    return next(iter(nearest(word, known, limit=1)), None)


def _describe_error(kind: type, error: Any, where: KeyPath) -> str:
    match error["type"]:
        case "unexpected_keyword_argument":
            known = _known_keys(kind, where[:-1])
            near = nearest_word(str(where[-1]), known)
            hint = f" Did you mean {near!r}?" if near else f" Known: {', '.join(known)}."
            return f"there is no such setting.{hint}"
        case "missing":
            return "this is required."
        case "literal_error":
            return f"{_plain_words(error['msg'])}, not {error['input']!r}."
        case _:
            # The value itself is not quoted: it may be a secret in the wrong place.
            given = _TYPE_NAMES.get(type(error["input"]), "not")
            return f"{_plain_words(error['msg'])}; this is {given}."


_WORDS = {
    "Input should be": "this should be",
    "a valid string": "text",
    "a valid array": "a list",
    "a valid number": "a number",
    "a valid integer": "a whole number",
    "a valid boolean": "true or false",
    "an object": "a table",
}


def _plain_words(message: str) -> str:
    for theirs, ours in _WORDS.items():
        message = message.replace(theirs, ours)
    return message.rstrip(".")


def _known_keys(kind: Any, where: KeyPath) -> list[str]:
    """The keys of the record at a place inside `kind`."""
    for part in where:
        if isinstance(kind, type) and is_dataclass(kind):
            kind = get_type_hints(kind).get(str(part))
        elif get_args(kind):  # a table by name, or a list
            kind = get_args(kind)[-1 if isinstance(part, str) else 0]
        if get_origin(kind) in (Union, types.UnionType):  # an optional record
            kind = next((k for k in get_args(kind) if k is not type(None)), kind)
    if not (isinstance(kind, type) and is_dataclass(kind)):
        return []
    return ["import" if f.name == "imports" else f.name for f in fields(kind)]


# JSON Schemas ----------------------------------------------------------------------------------

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_IN_JSON = {"env_file": "envFile", "start_timeout": "startTimeout", "idle_stop": "idleStop"}


def settings_schema() -> JsonObject:
    """The schema of `pegboard.toml`."""
    schema = type_adapter(Settings).json_schema()
    for name, definition in schema.get("$defs", {}).items():
        records = source_settings if hasattr(source_settings, name) else settings
        _add_descriptions(definition, getattr(records, name))
    _add_descriptions(schema, Settings)
    return {"$schema": DRAFT, **schema, "title": "pegboard.toml"}


def servers_schema() -> JsonObject:
    """The schema of an `mcpServers` file with Pegboard's own keys; other keys are allowed."""
    entry = type_adapter(ServerEntry).json_schema()
    _add_descriptions(entry, ServerEntry)
    entry["properties"] = {_IN_JSON.get(k, k): v for k, v in entry["properties"].items()}
    # Clients call the transport `type`, and so do their files.
    transport = entry["properties"].pop("transport")
    kinds = ["stdio", "http", "streamable-http", "sse"]
    entry["properties"]["type"] = {"enum": kinds, "description": transport["description"]}
    entry["additionalProperties"] = True
    entry["anyOf"] = [{"required": ["command"]}, {"required": ["url"]}]
    definitions: JsonObject = entry.pop("$defs", {})
    for name, definition in definitions.items():
        _add_descriptions(definition, getattr(settings, name))
        definition["additionalProperties"] = True
    return {
        "$schema": DRAFT,
        "title": "mcpServers",
        "description": "The MCP servers of a client, with the additional keys of Pegboard.",
        "type": "object",
        "properties": {"mcpServers": {"type": "object", "additionalProperties": entry}},
        "required": ["mcpServers"],
        "$defs": definitions,
    }


def _add_descriptions(schema: JsonObject, record: type) -> None:
    """Add the docstrings of a record and its fields, which pydantic does not read."""
    from docstring_parser import parse_from_object

    parsed = parse_from_object(record)
    schema["description"] = parsed.short_description
    schema.pop("title", None)
    documented = {p.arg_name: " ".join((p.description or "").split()) for p in parsed.params}
    for key, value in schema["properties"].items():
        value.pop("title", None)
        if text := documented.get("imports" if key == "import" else key):
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
