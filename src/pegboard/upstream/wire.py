"""Entries of an upstream's `tools/list` as `Tool`s: the good ones kept, the bad ones reported.

An upstream may list anything. One entry that is no tool must not cost the others, as it does in SDK
clients, which refuse the whole list. So each entry is judged alone, and what is wrong with it is a
`ToolProblem` that a person can act on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pegboard.core.details import details_in, foreign
from pegboard.core.json import Json, JsonObject
from pegboard.core.risk import assessed
from pegboard.core.schemas.keywords import fits
from pegboard.core.tools import (
    Definition,
    Schemas,
    Tool,
    constant,
    derive_summary,
    execution_of,
    root_object,
)
from pegboard.errors import ConfigError
from pegboard.upstream.names import DEFAULT_NAMING, Namespaces, Naming

MOST_LEVELS = 200
MOST_PARTS = 200_000
_SPEC_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_SHAPES: dict[str, type] = {
    "title": str,
    "description": str,
    "annotations": dict,
    "icons": list,
    "execution": dict,
    "_meta": dict,
    "outputSchema": dict,
}


@dataclass(frozen=True, slots=True)
class ToolProblem:
    """What is wrong with one entry; `left_out` when it could not be made a tool."""

    server: str
    tool: str
    message: str
    left_out: bool = True

    def __str__(self) -> str:
        return f"{self.server}: {self.tool}: {self.message}"


@dataclass(frozen=True, slots=True)
class Treatment:
    """What the configuration says about the tools of one server."""

    server: str
    names: Namespaces
    category: str | None = None
    shows: Callable[[str], bool] | None = None
    timeout: float | None = None

    def tool(self, entry: JsonObject, definition: Definition) -> Tool:
        """One checked entry as a tool.

        Its id, names and category come from the configuration and the server's name for it. What
        the server says beyond that is there to be shown.
        """
        own = entry["name"]
        annotations = entry.get("annotations") or {}
        meta = entry.get("_meta") or {}
        description = entry.get("description") or ""
        details = details_in(meta, self.server)
        name, bare, is_shown_bare = self.names.of(self.server, own)
        risk, risk_source = assessed(own, annotations, self.server)
        return Tool(
            name=name,
            definition=definition,
            id=f"{self.server}.{own}",
            server=self.server,
            category=self.category or self.server,
            section=details.section,
            bare=bare,
            is_shown_bare=is_shown_bare,
            summary=details.summary or derive_summary(description),
            description=description,
            title=entry.get("title"),
            examples=details.examples,
            related=details.related,
            aliases=details.aliases,
            tags=details.tags,
            deprecated=details.deprecated,
            annotations=annotations,
            icons=tuple(entry.get("icons") or ()),
            execution=execution_of(entry),
            meta=foreign(meta),
            risk=risk,
            risk_source=risk_source,
            timeout=self.timeout,
        )

    def wants(self, name: str) -> bool:
        """Whether the configuration shows this tool."""
        return self.shows is None or self.shows(name)


def tools_from_wire(
    entries: Iterable[Json],
    *,
    server: str,
    category: str | None = None,
    prefix: str | None = None,
    naming: Naming | None = None,
    shows: Callable[[str], bool] | None = None,
    timeout: float | None = None,
) -> tuple[list[Tool], list[ToolProblem]]:
    """The tools among the entries, and what is wrong with the others.

    Args:
        entries: The `tools` of a `tools/list` result, as they came.
        server: The server's name in the configuration.
        category: One category for all of them; else the server's name.
        prefix: What their names start with, where it is not the server's name.
        naming: How names are made.
        shows: Which tools to show, by the server's own names.
        timeout: Seconds for a call.
    """
    good, problems = checked_entries(entries, server)
    prefixes = {} if prefix is None else {server: prefix}
    names = Namespaces([server], naming or DEFAULT_NAMING, prefixes=prefixes)
    treatment = Treatment(server, names, category, shows, timeout)
    tools = [
        treatment.tool(entry, constant(*schemas_of(entry)[:2]))
        for entry in good
        if treatment.wants(entry["name"])
    ]
    return tools, problems


def checked_entries(
    entries: Iterable[Json], server: str
) -> tuple[list[JsonObject], list[ToolProblem]]:
    """The entries that are tools, each once and without malformed parts, and what was wrong."""
    good: dict[str, JsonObject] = {}
    problems: list[ToolProblem] = []
    for number, entry in enumerate(entries):
        name = _name(entry)
        label = name or f"entry {number}"
        if reason := _unusable(entry, name) or ("it is listed twice" if name in good else None):
            problems.append(ToolProblem(server, label, f"{reason}; it is left out."))
            continue
        if not _SPEC_NAME.fullmatch(label):
            message = "its name is not legal in MCP; it gets another one here."
            problems.append(ToolProblem(server, label, message, left_out=False))
        malformed = [key for key, shape in _SHAPES.items() if _malformed(entry, key, shape)]
        for key in malformed:
            message = f"its `{key}` is malformed and is not used."
            problems.append(ToolProblem(server, label, message, left_out=False))
        good[label] = {k: v for k, v in entry.items() if k not in malformed}
    return list(good.values()), problems


def schemas_of(entry: Mapping[str, Json]) -> Schemas:
    """Both schemas of a checked entry; the input's always says that it is an object."""
    schema: JsonObject = entry["inputSchema"]
    if "type" not in schema and "$ref" not in schema:
        schema = {"type": "object", **schema}
    return Schemas(schema, entry.get("outputSchema"))


def _name(entry: Json) -> str | None:
    name = entry.get("name") if isinstance(entry, dict) else None
    return name if isinstance(name, str) and name.strip() else None


def _unusable(entry: Json, name: str | None) -> str | None:
    if not isinstance(entry, dict):
        return f"it is no object but {type(entry).__name__}"
    if name is None:
        return "it has no name"
    if not isinstance(entry.get("inputSchema"), dict):
        return "it has no `inputSchema` object"
    if not fits(entry, depth=MOST_LEVELS, nodes=MOST_PARTS):
        return f"it has more than {MOST_LEVELS} levels or {MOST_PARTS:,} parts"
    try:
        root_object(entry["inputSchema"])
    except ConfigError:
        return f"its `inputSchema` is of type {entry['inputSchema'].get('type')!r}, not 'object'"
    return None


def _malformed(entry: JsonObject, key: str, shape: type) -> bool:
    value: Any = entry.get(key)
    if value is None:
        return False
    if key == "icons" and isinstance(value, Sequence):
        return not all(isinstance(icon, dict) for icon in value)
    return not isinstance(value, shape)
