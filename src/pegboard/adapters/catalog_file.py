"""A catalogue in a file: tools that can be listed, searched and described, but not called.

Reads a `tools/list` result (`{"tools": [...]}`), a JSON list of tools, or JSON lines; each tool may
carry `id`, `server` and `category` beside what MCP defines.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pegboard.core.json import Json
from pegboard.core.sanitization import sanitize_tool
from pegboard.core.tool_parser import tool_from_wire
from pegboard.core.tools import Tool
from pegboard.errors import ConfigError


class CatalogFile(NamedTuple):
    """What a file holds: its tools, and the hash of its content."""

    tools: list[Tool]
    hash: str

    @classmethod
    def read(cls, path: str | Path) -> CatalogFile:
        """The tools of a catalogue file.

        Raises:
            ConfigError: The file cannot be read, or an entry is not a tool; says which and why.
        """
        try:
            data = Path(path).read_bytes()
            text = data.decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as exc:
            raise ConfigError(f"Cannot read the catalogue {path}: {exc}") from exc
        return cls(list(_tools(text, str(path)).values()), hashlib.sha256(data).hexdigest())


def read_catalog(path: str | Path) -> list[Tool]:
    """The tools of a catalogue file; see `CatalogFile.read`."""
    return CatalogFile.read(path).tools


def _tools(text: str, path: str) -> dict[str, Tool]:
    tools: dict[str, Tool] = {}
    for place, entry in _entries(text, path):
        try:
            tool = sanitize_tool(tool_from_wire(entry))
        except ConfigError as exc:
            raise ConfigError(f"{place}: {exc.message}.") from exc
        if tool.id in tools:
            raise ConfigError(
                f"{place}: a tool {tool.id!r} is there already; give one its own `id`."
            )
        tools[tool.id] = tool
    return tools


def _entries(text: str, path: str) -> Iterator[tuple[str, Json]]:
    if not text.strip():
        raise ConfigError(f"{path} is empty: expected tools as JSON.")
    try:
        whole = json.loads(text)
    except ValueError:
        yield from _lines(text, path)
        return
    if isinstance(whole, dict) and "tools" in whole:
        whole = whole["tools"]
    elif isinstance(whole, dict) and "name" in whole:  # JSON lines of one line
        whole = [whole]
    if not isinstance(whole, list):
        raise ConfigError(
            f"{path} holds no tools: expected a tools/list result, a JSON list or JSON lines."
        )
    for number, entry in enumerate(whole, 1):
        yield f"{path}, tool {number}", entry


def _lines(text: str, path: str) -> Iterator[tuple[str, Json]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield f"{path}, line {number}", json.loads(line)
        except ValueError as exc:
            raise ConfigError(f"{path}, line {number}: not JSON ({exc}).") from exc
