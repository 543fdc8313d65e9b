"""Edits the table of servers in a client's file: changed as text, checked as data.

An editor for the file's syntax changes the text, so that comments, order and layout survive. The
result is parsed again and compared with what the change means for the data: a mistake of an editor
never reaches a file.

    text --editor--> changed text --parse--> value
      |                                        |  must be equal
      +--parse--> value --same change--> expected value
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, Protocol

from pegboard.config.documents import located_error, parse_document
from pegboard.core.json import JsonObject
from pegboard.errors import ConfigError


class Editor(Protocol):
    """Changes the members of a table in a text of one syntax."""

    def put(self, text: str, table: str, name: str, value: JsonObject) -> str:
        """The text with one more member of the table, which is created where it is missing."""
        ...

    def drop(self, text: str, table: str, names: Iterable[str]) -> str:
        """The text without these members of the table."""
        ...

    def copy(self, text: str, table: str, source: str, names: Sequence[str]) -> str:
        """The text with members of the table in `source`, as they are written there."""
        ...


def editor_for(path: Path) -> Editor:
    """The editor for a file's syntax."""
    from pegboard.install import json_editor, yaml_editor

    match path.suffix.lower():
        case ".toml":
            return TomlEditor()
        case ".yaml" | ".yml":
            return yaml_editor
        case _:
            return json_editor


def empty_document(path: Path, table: str) -> str:
    """The text of a file of this syntax with an empty table of servers."""
    match path.suffix.lower():
        case ".toml":
            return f"[{table}]\n"
        case ".yaml" | ".yml":
            return f"{table}: {{}}\n"
        case _:
            return f'{{\n  "{table}": {{}}\n}}\n'


def parse_server_table(text: str, path: Path, table: str) -> dict[str, JsonObject]:
    """The table of servers; empty if the file has none.

    Raises:
        ConfigError: The text is malformed, or the table does not hold servers.
    """
    document = parse_document(text, path)
    value = document.value.get(table)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise document.error("expected a table of servers; this layout is not supported.", (table,))
    for name, entry in value.items():
        if not isinstance(entry, dict):
            raise document.error("expected a table for this server.", (table, name))
    # The parser has only the last of them: moving the server would lose the others.
    if repeated := document.repeated((table,)):
        name = next(iter(repeated))
        raise document.error("two servers have this name: remove one.", (table, name))
    return {str(name): entry for name, entry in value.items()}


def remove_servers(text: str, path: Path, table: str, names: Sequence[str]) -> str:
    """The text without some servers."""
    if not names:
        return text
    return _edit(text, path, table, lambda e: e.drop(text, table, names), removed=names)


def add_server(text: str, path: Path, table: str, name: str, entry: JsonObject) -> str:
    """The text with one more server."""
    new = {name: entry}
    return _edit(text, path, table, lambda e: e.put(text, table, name, entry), new=new)


def copy_servers(text: str, path: Path, table: str, source: str, names: Sequence[str]) -> str:
    """The text with some servers of another text of the same syntax."""
    if not names:
        return text
    servers = parse_server_table(source, path, table)
    new = {name: entry for name, entry in servers.items() if name in names}
    return _edit(text, path, table, lambda e: e.copy(text, table, source, names), new=new)


def _edit(
    text: str,
    path: Path,
    table: str,
    change: Callable[[Editor], str],
    *,
    removed: Iterable[str] = (),
    new: Mapping[str, JsonObject] | None = None,
) -> str:
    """The changed text, checked.

    Raises:
        ConfigError: The editor refuses the text, or did something other than intended.
    """
    try:
        changed = change(editor_for(path))
    except ConfigError as exc:
        if "file" in exc.details:  # it already says where
            raise
        raise located_error(path, exc.message) from exc
    # The editors work on text and could be wrong: what they return must parse to what was meant, or
    # the file is not touched.
    expected: JsonObject = deepcopy(parse_document(text, path).value)
    servers: JsonObject = dict(expected.get(table) or {})
    for name in removed:
        servers.pop(name, None)
    expected[table] = {**servers, **(new or {})}
    try:
        found = parse_document(changed, path).value
    except ConfigError:
        found = None
    if found is None or _without_empty(found, table) != _without_empty(expected, table):
        raise located_error(
            path, "it is written in a way that cannot be changed safely; change it by hand."
        )
    return changed


def _without_empty(value: JsonObject, table: str) -> JsonObject:
    """The value without the table if that is empty: an empty table and a missing one are equal."""
    return {k: v for k, v in value.items() if k != table or v}


class TomlEditor:
    """TOML: `tomlkit` removes members and preserves the rest; new members go to the end."""

    def put(self, text: str, table: str, name: str, value: JsonObject) -> str:
        return self._append(text, {table: {name: value}})

    def drop(self, text: str, table: str, names: Iterable[str]) -> str:
        import tomlkit
        from tomlkit.exceptions import TOMLKitError

        document: Any = tomlkit.parse(text)
        try:
            for name in names:
                if name in document.get(table, {}):
                    del document[table][name]
            return tomlkit.dumps(document)
        except (TOMLKitError, ValueError, TypeError) as exc:
            raise ConfigError(
                f"It is written in a way that cannot be changed safely ({exc})."
            ) from exc

    def copy(self, text: str, table: str, source: str, names: Sequence[str]) -> str:
        import tomlkit

        there: Any = tomlkit.parse(source).get(table, {})
        # A super table writes no header of its own, only those of its members.
        members = tomlkit.table(is_super_table=True)
        for name in there:
            if name in names:
                members[name] = there[name]
        return self._append(text, {table: members}) if members else text

    def _append(self, text: str, part: JsonObject) -> str:
        """The part at the end of the text: TOML allows a table to be continued anywhere."""
        import tomlkit

        document = tomlkit.document()
        for key, value in part.items():
            document[key] = value
        before = text.rstrip("\r\n") + "\n\n" if text.strip() else ""
        after = before + tomlkit.dumps(document).strip("\n") + "\n"
        return re.sub(r"(?<!\r)\n", "\r\n", after) if "\r\n" in text else after
