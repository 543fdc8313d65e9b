"""One change of a client's table of servers: made in the text, and checked against the value.

The text is edited by the module of its syntax. What comes out is read again and compared with what
the change means for the value, so that no slip of an editor ever reaches a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Protocol

from pegboard.config.documents import located_error, parse_document
from pegboard.core.json import Json, JsonObject
from pegboard.errors import ConfigError


class Editor(Protocol):
    """Changes the members of a table in a text of one syntax."""

    def put(self, text: str, table: str, name: str, value: JsonObject) -> str: ...

    def drop(self, text: str, table: str, names: Iterable[str]) -> str: ...

    def copied(self, text: str, table: str, source: str, names: Sequence[str]) -> str: ...


def editor_for(path: Path) -> Editor:
    """The editor of a file's syntax."""
    from pegboard.install import json_editor, toml_editor, yaml_editor

    by_suffix: dict[str, Editor] = {".toml": toml_editor, ".yaml": yaml_editor, ".yml": yaml_editor}
    return by_suffix.get(path.suffix.lower(), json_editor)


def empty_document(path: Path, table: str) -> str:
    """A file of this syntax whose table of servers is there and empty."""
    match path.suffix.lower():
        case ".toml":
            return f"[{table}]\n"
        case ".yaml" | ".yml":
            return f"{table}: {{}}\n"
        case _:
            return f'{{\n  "{table}": {{}}\n}}\n'


def parse_servers(text: str, path: Path, table: str) -> dict[str, JsonObject]:
    """The table of servers; empty when there is none.

    Raises:
        ConfigError: The text is broken, or the table is not one of servers.
    """
    document = parse_document(text, path)
    value = document.value.get(table)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise document.error("a table of servers is expected; this is of no known shape.", (table,))
    for name, entry in value.items():
        if not isinstance(entry, dict):
            raise document.error("a table is expected for a server.", (table, name))
    if repeated := document.repeated((table,)):
        name = next(iter(repeated))
        raise document.error("two servers have this name: remove one.", (table, name))
    return {str(name): entry for name, entry in value.items()}


def remove_servers(text: str, path: Path, table: str, names: Sequence[str]) -> str:
    """The text without some servers."""
    if not names:
        return text
    after = _attempt(path, lambda: editor_for(path).drop(text, table, names))
    return _checked(path, table, text, after, gone=names, new={})


def add_server(text: str, path: Path, table: str, name: str, entry: JsonObject) -> str:
    """The text with one more server."""
    after = _attempt(path, lambda: editor_for(path).put(text, table, name, entry))
    return _checked(path, table, text, after, gone=(), new={name: entry})


def copy_servers(text: str, path: Path, table: str, source: str, names: Sequence[str]) -> str:
    """The text with some servers of another text of the same syntax."""
    if not names:
        return text
    there = parse_servers(source, path, table)
    after = _attempt(path, lambda: editor_for(path).copied(text, table, source, names))
    new = {name: entry for name, entry in there.items() if name in names}
    return _checked(path, table, text, after, gone=(), new=new)


def _attempt(path: Path, edit: Edit) -> str:
    try:
        return edit()
    except ConfigError as exc:
        if "file" in exc.details:
            raise
        raise located_error(path, exc.message) from exc


class Edit(Protocol):
    """Makes a changed text."""

    def __call__(self) -> str: ...


def _checked(
    path: Path,
    table: str,
    before: str,
    after: str,
    *,
    gone: Iterable[str],
    new: Mapping[str, JsonObject],
) -> str:
    expected: JsonObject = deepcopy(parse_document(before, path).value)
    servers: JsonObject = dict(expected.get(table) or {})
    for name in gone:
        servers.pop(name, None)
    expected[table] = {**servers, **new}
    try:
        is_right = _plain(parse_document(after, path).value, table) == _plain(expected, table)
    except ConfigError:
        is_right = False
    if not is_right:
        raise located_error(
            path, "it is written in a way that cannot be changed safely; change it by hand."
        )
    return after


def _plain(value: JsonObject, table: str) -> Json:
    """An empty table and none are the same."""
    return {k: v for k, v in value.items() if k != table or v}
