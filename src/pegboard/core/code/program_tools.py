"""The tools that a program can call by name, as one caller sees the catalog.

    search shows    create_issue(...)    github.list_items(...)    page_get(...)
    a program       await create_issue(...), await github.list_items(...), await page_get(...)
                                                                   (`page-get` at its server)

Names come from the visible, enabled tools alone: a tool that is hidden from the caller has no name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pegboard.core.code.stubs import parameter_name, program_name, unwrap_result_schema
from pegboard.core.json import Json, JsonObject
from pegboard.core.name_lookup import nearest
from pegboard.core.sanitization import sanitize_line
from pegboard.core.tools import Catalog, Tool

_WORD = re.compile(r"[A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)?")
_MEMO_KEY = "program names"
_MAX_NEAREST = 3
_SUMMARY_LENGTH = 90


class ProgramTools:
    """Both directions of the mapping between tools and their names in programs."""

    def __init__(self, catalog: Catalog) -> None:
        self.by_name: dict[str, Tool] = {}
        self._names: dict[str, str] = {}
        for tool in catalog.enabled:
            name = base = program_name(catalog.address(tool))
            number = 2
            while name in self.by_name:  # `get-page` and `get_page`
                name, number = f"{base}_{number}", number + 1
            self.by_name[name] = tool
            self._names[tool.id] = name

    @classmethod
    def of(cls, catalog: Catalog) -> ProgramTools:
        """The names of a catalog, computed once for as long as it is current."""
        if _MEMO_KEY not in catalog.memo:
            catalog.memo[_MEMO_KEY] = cls(catalog)
        return catalog.memo[_MEMO_KEY]

    def name_of(self, tool: Tool) -> str:
        """The name of a tool in programs; that of a disabled tool is its own."""
        return self._names.get(tool.id, tool.name)

    def named_in(self, program: str) -> dict[str, Tool]:
        """The tools whose names occur in a program, in a fixed order.

        Words in comments and texts count too: that costs a line in the stubs and nothing else.
        """
        words: set[str] = set()
        for match in _WORD.finditer(program):
            parts = [part.strip() for part in match[0].split(".")]
            words |= {parts[0], parts[-1], ".".join(parts)}
        return {name: self.by_name[name] for name in sorted(words & self.by_name.keys())}

    def nearest(self, name: str) -> dict[str, Tool]:
        """The tools whose names are most similar to one that does not exist."""
        found = nearest(name, list(self.by_name))[:_MAX_NEAREST]
        return {name: self.by_name[name] for name in found}


def original_arguments(tool: Tool, arguments: Mapping[str, Json]) -> dict[str, Json]:
    """The arguments under the names that the tool itself uses: `from`, where Python has `from_`."""
    known = tool.input_schema.get("properties", {})
    renamed = {made: name for name in known if (made := parameter_name(name)) != name}
    return {renamed.get(key, key): value for key, value in arguments.items()}


def describe_tool(
    name: str, tool: Tool, result: JsonObject | None, is_learned: bool = False
) -> str:
    """A tool on one line, as programs call it; `~` marks a result that was learned."""
    from pegboard.core.schemas import format_result_shape

    schema = unwrap_result_schema(result)
    shape = format_result_shape(schema) if schema else ""
    returns = f" -> {'~' if is_learned else ''}{shape}" if shape else ""
    mark = "" if tool.risk == "read" else f" [{tool.risk}]"
    summary = sanitize_line(tool.summary or "", _SUMMARY_LENGTH)
    tail = f" - {summary}" if summary else ""
    return f"{name}{tool.signature[len(tool.name) :]}{returns}{mark}{tail}"


def without_dots(names: Iterable[str]) -> dict[str, list[str]]:
    """The dotted names by the object that they belong to: `{"github": ["list_items"]}`."""
    owners: dict[str, list[str]] = {}
    for name in names:
        owner, dot, member = name.partition(".")
        if dot:
            owners.setdefault(owner, []).append(member)
    return owners
