"""A catalog in a file: tools that can be listed, searched and described, but not called.

The file is a `tools/list` result (`{"tools": [...]}`), a JSON list of tools, or JSON lines. Each
tool may have `id`, `server` and `category` in addition to what MCP defines.
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
    """The contents of a file: its tools, and the hash of its bytes."""

    tools: list[Tool]
    hash: str

    @classmethod
    def read(cls, path: str | Path) -> CatalogFile:
        """The tools of a catalog file.

        Raises:
            ConfigError: The file cannot be read, or an entry is not a tool; says which and why.
        """
        try:
            data = Path(path).read_bytes()
            text = data.decode("utf-8-sig")  # Windows editors write a byte order mark
        except (OSError, UnicodeDecodeError) as exc:
            raise ConfigError(f"Cannot read the catalog {path}: {exc}") from exc
        tools: dict[str, Tool] = {}
        for place, entry in _parse_entries(text, str(path)):
            try:
                tool = sanitize_tool(tool_from_wire(entry))
            except ConfigError as exc:
                raise ConfigError(f"{place}: {exc.message}.") from exc
            if tool.id in tools:
                raise ConfigError(
                    f"{place}: there is already a tool {tool.id!r}; give one of them its own `id`."
                )
            tools[tool.id] = tool
        return cls(list(tools.values()), hashlib.sha256(data).hexdigest())


def _parse_entries(text: str, path: str) -> Iterator[tuple[str, Json]]:
    """Each entry of the file, with its place in words."""
    if not text.strip():
        raise ConfigError(f"{path} is empty: expected tools as JSON.")
    try:
        whole = json.loads(text)
    except ValueError:  # several JSON values: one per line
        for number, line in enumerate(text.split("\n"), 1):
            if not line.strip():
                continue
            try:
                yield f"{path}, line {number}", json.loads(line)
            except ValueError as exc:
                raise ConfigError(f"{path}, line {number}: not JSON ({exc}).") from exc
        return
    if isinstance(whole, dict) and "tools" in whole:
        whole = whole["tools"]
    elif isinstance(whole, dict) and "name" in whole:  # JSON lines with a single line
        whole = [whole]
    if not isinstance(whole, list):
        raise ConfigError(
            f"{path} has no tools: expected a tools/list result, a JSON list or JSON lines."
        )
    for number, entry in enumerate(whole, 1):
        yield f"{path}, tool {number}", entry
