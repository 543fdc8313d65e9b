"""The tools that a program can call by name, as one caller sees the catalog.

    search shows    create_issue(...)    github.list_items(...)    page_get(...)
    a program       await create_issue(...), await github.list_items(...), await page_get(...)
                                                                   (`page-get` at its server)

Names come from the visible, enabled tools alone: a tool that is hidden from the caller has no name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping

from pegboard.core.code.stubs import (
    SCALARS,
    parameter_name,
    program_name,
    unwrap_result_schema,
)
from pegboard.core.json import Json, JsonObject
from pegboard.core.sanitization import sanitize_line
from pegboard.core.similar_names import nearest
from pegboard.core.tools import Catalog, Tool

_WORD = re.compile(r"[^\W\d]\w*(?:\s*\.\s*[^\W\d]\w*)?")
_TEXT_OR_COMMENT = re.compile(
    r"""#[^\n]*|(?P<prefix>\b[A-Za-z]{1,2})?(?:\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3}"""
    r"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
)
_MEMO_KEY = "program names"
_MAX_NEAREST = 3
_SUMMARY_LENGTH = 90


class ProgramTools:
    """Both directions of the mapping between tools and their names in programs."""

    def __init__(self, catalog: Catalog) -> None:
        self.by_name: dict[str, Tool] = {}
        self._names: dict[str, str] = {}
        addresses = {tool.id: catalog.address(tool) for tool in catalog.enabled}
        names = {key: program_name(address) for key, address in addresses.items()}
        plain = {name for name in names.values() if "." not in name}
        # A tool whose name needs no change comes first: the `get-page` of another server must not
        # take the place of a `get_page`.
        for tool in sorted(catalog.enabled, key=lambda tool: names[tool.id] != addresses[tool.id]):
            name = names[tool.id]
            owner, dot, member = name.partition(".")
            while dot and owner in plain:  # a server `search` beside a tool `search`
                owner += "_"
            name = base = f"{owner}{dot}{member}"
            number = 2
            while name in self.by_name:
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
        for match in _WORD.finditer(unicodedata.normalize("NFKC", program)):
            parts = [part.strip() for part in match[0].split(".")]
            words |= {parts[0], parts[-1], ".".join(parts)}
        return {name: self.by_name[name] for name in sorted(words & self.by_name.keys())}

    def used_in(self, program: str) -> set[str]:
        """The names of tools that a program uses, as far as this can be seen without parsing it.

        Unlike `named_in`, without comments and texts, attributes (`seen.add(1)` is no tool `add`),
        names that the program gives a value, and keyword arguments.
        """
        code = _TEXT_OR_COMMENT.sub(
            lambda found: found[0] if "f" in (found["prefix"] or "").lower() else "''", program
        )
        used: set[str] = set()
        for name in self.named_in(code):
            spelled = r"\s*\.\s*".join(map(re.escape, name.split(".")))
            if re.search(rf"(?<![\w.])(?<!def ){spelled}\b(?!\s*=(?!=))", code):
                used.add(name)
        return used

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
    if not shape and schema is not None and schema.get("type") == "array":
        items = schema.get("items")
        kind = items.get("type") if isinstance(items, dict) else None
        shape = f"[]{SCALARS.get(kind, '') if isinstance(kind, str) else ''}"
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
