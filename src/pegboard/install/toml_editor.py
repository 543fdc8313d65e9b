"""TOML: `tomlkit` takes members out and keeps the rest as it is; new ones are put at the end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from pegboard.core.json import JsonObject
from pegboard.errors import ConfigError


def put(text: str, table: str, name: str, value: JsonObject) -> str:
    """The text with one more member of the table."""
    return _appended(text, {table: {name: value}})


def drop(text: str, table: str, names: Iterable[str]) -> str:
    """The text without these members of the table."""
    document: Any = tomlkit.parse(text)
    try:
        for name in names:
            if name in document.get(table, {}):
                del document[table][name]
        return tomlkit.dumps(document)
    except (TOMLKitError, ValueError, TypeError) as exc:
        raise ConfigError(f"It is written in a way that cannot be changed safely ({exc}).") from exc


def copied(text: str, table: str, source: str, names: Sequence[str]) -> str:
    """The text with members of another text's table, as they are written there."""
    there: Any = tomlkit.parse(source).get(table, {})
    members = tomlkit.table(is_super_table=True)
    for name in there:
        if name in names:
            members[name] = there[name]
    return _appended(text, {table: members}) if members else text


def _appended(text: str, part: JsonObject) -> str:
    """The part at the end of the text: TOML lets a table be gone on with anywhere."""
    document = tomlkit.document()
    for key, value in part.items():
        document[key] = value
    before = text.rstrip("\r\n") + "\n\n" if text.strip() else ""
    after = before + tomlkit.dumps(document).strip("\n") + "\n"
    return re.sub(r"(?<!\r)\n", "\r\n", after) if "\r\n" in text else after
