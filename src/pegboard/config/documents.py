"""Configuration files as values that know the lines of their keys: JSON with comments, TOML, YAML.

Files are read by the fastest parsers (`json`, `tomllib`), because that happens at every start. The
line of a key is looked up only when an error has to name it, and may then be slow:

    read(path) -> Document(value) -> document.error("...", key=("mcpServers", "github", "env"))
                                     "mcp.json:7: mcpServers.github.env: ..."

JSON written by editors has comments and trailing commas. They are replaced by spaces, so that the
rest is plain JSON of the same length, and positions in syntax errors stay correct.
"""

from __future__ import annotations

import json
import re
import tomllib
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pegboard.core.json import Json, JsonObject
from pegboard.errors import ConfigError

KeyPath: TypeAlias = tuple[str | int, ...]
Syntax: TypeAlias = Literal["json", "toml", "yaml"]

_PROGRAMS = (".py", ".js", ".ts", ".mjs")
_ENTRY = '{"mcpServers": {"NAME": {"command": "python", "args": ["FILE"]}}}'
_SUFFIXES: dict[str, Syntax] = {".toml": "toml", ".yaml": "yaml", ".yml": "yaml"}


@dataclass(frozen=True, eq=False)
class Document:
    """One configuration file: its value, and the line of each key."""

    path: Path
    text: str = field(repr=False)
    value: JsonObject = field(repr=False)
    syntax: Syntax
    repeats: bool = False
    """Whether some JSON object has a key twice; in JSON the last one applies."""

    def line(self, key: KeyPath) -> int | None:
        """The line of a key, or of the nearest enclosing key that is in the text."""
        while key:
            if key in self._lines:
                return self._lines[key][-1]
            if self.syntax == "toml" and (found := _toml_line(self.text, key)):
                return found
            key = key[:-1]
        return None

    def repeated(self, table: KeyPath) -> dict[str, list[int]]:
        """The keys that appear more than once in the object at `table`, with their lines."""
        if not self.repeats:
            return {}
        depth = len(table) + 1
        return {
            str(key[-1]): lines
            for key, lines in self._lines.items()
            if len(lines) > 1 and len(key) == depth and key[:-1] == table
        }

    def error(self, message: str, key: KeyPath = (), **details: Json) -> ConfigError:
        """An error that names file, line and key."""
        return located_error(self.path, message, line=self.line(key), key=key, **details)

    @cached_property
    def _lines(self) -> dict[KeyPath, list[int]]:
        if self.syntax == "toml":
            return {}
        pairs = (
            _json_keys(blank_comments(self.text))
            if self.syntax == "json"
            else _yaml_keys(self.text)
        )
        lines: dict[KeyPath, list[int]] = {}
        for key, line in pairs:
            lines.setdefault(key, []).append(line)
        return lines


def located_error(
    path: Path, message: str, *, line: int | None = None, key: KeyPath = (), **details: Json
) -> ConfigError:
    """A `ConfigError` whose message starts with the location, which is in its details too."""
    place = f"{path}:{line}" if line else f"{path}"
    dotted = ".".join(str(part) for part in key)
    text = f"{place}: {dotted}: {message}" if dotted else f"{place}: {message}"
    return ConfigError(text, file=str(path), line=line, key=dotted or None, **details)


def message_without_location(error: ConfigError) -> str:
    """The message of an error from `located_error`, without file, line and key."""
    file, line, key = (error.details.get(name) for name in ("file", "line", "key"))
    place = f"{file}:{line}: " if line else f"{file}: "
    return error.message.removeprefix(place).removeprefix(f"{key}: ")


def read_document(path: Path) -> Document:
    """Read a file; by its suffix as TOML, YAML or else JSON with comments."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # editors on Windows write a byte order mark
    except FileNotFoundError as exc:
        raise located_error(path, "there is no such file.") from exc
    except UnicodeDecodeError as exc:
        raise located_error(
            path, f"this is not UTF-8 text ({exc.reason} at byte {exc.start})."
        ) from exc
    except OSError as exc:
        raise located_error(path, f"it cannot be read: {exc.strerror or exc}.") from exc
    return parse_document(text, path)


_MAX_PARTS = 200_000
"""Parts of a YAML file, each repeated for every reference to it."""


def parse_document(text: str, path: Path) -> Document:
    """Parse the text of a file."""
    if path.suffix.lower() in _PROGRAMS:
        raise located_error(path, f"this is a program; name it in a file of servers: {_ENTRY}")
    syntax = _SUFFIXES.get(path.suffix.lower(), "json")
    value: Json
    repeats = False  # TOML and YAML forbid a key that is there twice
    try:
        match syntax:
            case "json":
                value, repeats = _parse_json(text, path)
            case "toml":
                value = tomllib.loads(text)
            case "yaml":
                value = _parse_yaml(text, path)
                _check_aliases(value, path)
    except RecursionError as exc:
        raise located_error(path, "it is nested too deeply to be a configuration.") from exc
    except tomllib.TOMLDecodeError as exc:
        # Python 3.14 has attributes for this; before, the place is only in the message.
        match = _TOML_PLACE.fullmatch(str(exc))
        reason, line = (match[1], int(match[2])) if match else (str(exc), text.count("\n") + 1)
        raise located_error(path, f"this is not valid TOML: {reason}.", line=line) from exc
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise located_error(
            path, f"an object is expected at the top, not {type(value).__name__}.", line=1
        )
    return Document(path, text, value, syntax, repeats)


def _check_aliases(value: Json, path: Path) -> None:
    """Refuse aliases that expand a small file into an enormous value."""
    parts: list[Json] = [value]
    for part in parts:
        if isinstance(part, (dict, list)):
            parts += part.values() if isinstance(part, dict) else part
        if len(parts) > _MAX_PARTS:
            raise located_error(path, "it unfolds to too many parts to be a configuration.")


# --- JSON -----------------------------------------------------------------------------------------

_COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r'("(?:[^"\\\n]|\\.)*")|,(?=\s*[}\]])')
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def _parse_json(text: str, path: Path) -> tuple[Json, bool]:
    repeats = False

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeats
        value = dict(items)
        repeats = repeats or len(value) != len(items)
        return value

    # Plain JSON first: most files have no comments, and blanking them costs time.
    try:
        return json.loads(text, object_pairs_hook=pairs), repeats
    except json.JSONDecodeError:
        pass
    if not text.strip():
        return {}, False
    try:
        return json.loads(blank_comments(text), object_pairs_hook=pairs), repeats
    except json.JSONDecodeError as exc:
        where = f"column {exc.colno}: {exc.msg[0].lower()}{exc.msg[1:]}."
        raise located_error(path, f"this is not valid JSON at {where}", line=exc.lineno) from exc


def blank_comments(text: str) -> str:
    """The JSON with spaces for comments and trailing commas; other characters stay in place."""

    def blank(match: re.Match[str]) -> str:
        return match[1] or re.sub(r"[^\n]", " ", match[0])

    return _TRAILING_COMMA.sub(blank, _COMMENT.sub(blank, text))


def _json_keys(text: str) -> Iterator[tuple[KeyPath, int]]:
    """Every key and array element of valid JSON, with its line, in the order of the text."""
    # For each open bracket: the current key, the current index, or `None` if a key is expected.
    path: list[str | int | None] = []
    line, seen = 1, 0
    for token in _TOKEN.finditer(text):
        line += text.count("\n", seen, token.start())
        seen = token.start()
        mark = token[0]
        if mark in "}]":
            path.pop()
        elif mark == ",":
            path[-1] = path[-1] + 1 if isinstance(path[-1], int) else None
        elif path and path[-1] is None:
            path[-1] = json.loads(mark)
            yield tuple(part for part in path if part is not None), line
        elif mark != ":" and path and isinstance(path[-1], int):
            yield tuple(part for part in path if part is not None), line
        if mark in "{[":
            path.append(None if mark == "{" else 0)


# --- TOML -----------------------------------------------------------------------------------------

_TOML_PLACE = re.compile(r"(.*) \(at line (\d+), column \d+\)")


def _toml_line(text: str, key: KeyPath) -> int | None:
    """The line on which a key of valid TOML is written.

    The standard parser reports no positions. But parsing longer and longer prefixes of the text
    finds them: the key is written on the last line of the shortest prefix that has it. A prefix
    that ends in the middle of a value is not valid TOML and is extended until it is, so the result
    is the line on which the value starts.
    """
    lines = text.splitlines(keepends=True)

    def has_key(count: int) -> bool:
        """Whether the shortest valid prefix of at least `count` lines has the key."""
        value: Json = {}
        for end in range(count, len(lines) + 1):
            with suppress(tomllib.TOMLDecodeError):
                value = tomllib.loads("".join(lines[:end]))
                break
        for part in key:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return False
        return True

    found = bisect_left(range(len(lines) + 1), True, key=has_key)
    return found if 0 < found <= len(lines) else None


# --- YAML -----------------------------------------------------------------------------------------


def _parse_yaml(text: str, path: Path) -> Json:
    # Imported late: few files are YAML, and its parser is slow to import.
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        return YAML(typ="safe", pure=True).load(text)
    except MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        line = mark.line + 1 if mark else None
        raise located_error(path, f"this is not valid YAML: {exc.problem}.", line=line) from exc
    except YAMLError as exc:
        raise located_error(path, f"this is not valid YAML: {exc}.") from exc


def _yaml_keys(text: str) -> Iterator[tuple[KeyPath, int]]:
    """Every key and list element of valid YAML, with its line."""
    from ruamel.yaml import YAML
    from ruamel.yaml.nodes import MappingNode, SequenceNode

    # An alias is walked once: a few lines of nested aliases could mean millions of keys.
    seen: set[int] = set()

    def walk(node: Any, path: KeyPath) -> Iterator[tuple[KeyPath, int]]:
        if id(node) in seen:
            return
        seen.add(id(node))
        if isinstance(node, MappingNode):
            for name, child in node.value:
                yield (*path, name.value), name.start_mark.line + 1
                yield from walk(child, (*path, name.value))
        elif isinstance(node, SequenceNode):
            for index, child in enumerate(node.value):
                yield (*path, index), child.start_mark.line + 1
                yield from walk(child, (*path, index))

    yield from walk(YAML(typ="safe", pure=True).compose(text), ())
