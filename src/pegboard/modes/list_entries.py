"""`tools/list` entries: of real tools, whole or as stubs, and of the meta-tools of a mode."""

from __future__ import annotations

from collections.abc import Callable

from pegboard.core.json import JsonObject
from pegboard.core.results.output_fields import resolve_field_descriptions
from pegboard.core.schemas import relax_output_schema, repair_schema
from pegboard.core.tool_parser import build_details
from pegboard.core.tools import Catalog, Tool, group_name
from pegboard.modes.mode import Mode, View, build_listed_meta_tools

_ANY_OBJECT: JsonObject = {"type": "object"}
_INCLUDE_FIELDS: JsonObject = {
    "type": "array",
    "items": {"type": "string"},
    "description": "Result fields to return",
}


def full_entry(catalog: Catalog, tool: Tool, *, with_fields: bool = False) -> JsonObject:
    """Everything about a tool, in a form that every client accepts.

    The output schema is relaxed to what a projected result still satisfies, because clients check
    results against what was advertised. `with_fields` also tells the model about `include_fields`.
    """
    entry = tool.wire()
    entry["name"] = catalog.address(tool)
    if tool.deprecated:
        entry["description"] = f"[deprecated: {tool.deprecated}] {tool.description}".rstrip()
    entry["inputSchema"] = repair_schema(entry["inputSchema"]).schema
    if "outputSchema" in entry:
        entry["outputSchema"] = relax_output_schema(entry["outputSchema"])
        if with_fields:
            entry["inputSchema"] = declare_include_fields(entry["inputSchema"])
    return entry


def stub_entry(catalog: Catalog, tool: Tool, *, bare: bool = False) -> JsonObject:
    """Name and summary; `bare` leaves out `inputSchema`, which SDK clients require."""
    text = f"[deprecated] {tool.summary}" if tool.deprecated else tool.summary
    entry: JsonObject = {"name": catalog.address(tool), "description": text}
    if bare:
        return entry
    entry["inputSchema"] = _ANY_OBJECT
    if tool.execution:  # read by clients, not by models: whether it can be called as a task
        entry["execution"] = dict(tool.execution)
    return entry


def list_full(view: View, *, with_fields: bool = False) -> list[JsonObject]:
    """All enabled tools, whole; computed once per catalog."""
    key = "full with fields" if with_fields else "full"
    return _memoize(
        view.catalog, key, lambda t: full_entry(view.catalog, t, with_fields=with_fields)
    )


def list_detailed(view: View) -> list[JsonObject]:
    """All enabled tools, whole, with what MCP has no field for in their `_meta`."""
    catalog = view.catalog
    entries: list[JsonObject] = []
    for tool in catalog.enabled:
        entry = full_entry(catalog, tool)
        category = group_name(tool) if tool.category or tool.server else None
        related = [catalog.address(other) for other in catalog.related(tool)]
        fields = resolve_field_descriptions(tool)
        if details := build_details(tool, category=category, related=related, fields=fields):
            entry["_meta"] = {**entry.get("_meta", {}), **details}
        entries.append(entry)
    return entries


def list_stubs(view: View, *, bare: bool = False) -> list[JsonObject]:
    """All enabled tools as stubs."""
    key = "bare" if bare else "stub"
    return _memoize(view.catalog, key, lambda t: stub_entry(view.catalog, t, bare=bare))


def list_pinned(view: View) -> list[JsonObject]:
    """The pinned tools, whole."""
    return [full_entry(view.catalog, tool, with_fields=True) for tool in view.pins]


def list_meta_tools_and_pins(mode: Mode, view: View) -> list[JsonObject]:
    """The list of a mode that shows its meta-tools and the pinned tools, and nothing else."""
    return [meta_tool.entry() for meta_tool in build_listed_meta_tools(mode, view)] + list_pinned(
        view
    )


def _memoize(catalog: Catalog, key: str, make: Callable[[Tool], JsonObject]) -> list[JsonObject]:
    if ("entries", key) not in catalog.memo:
        catalog.memo["entries", key] = [make(t) for t in catalog.enabled]
    return list(catalog.memo["entries", key])


def declare_include_fields(schema: JsonObject) -> JsonObject:
    """An input schema that declares `include_fields`, which every tool with a known result accepts.

    As one of its properties it is valid even where the schema allows no additional ones.
    """
    properties = schema.get("properties", {})
    if "include_fields" in properties:
        return schema
    return {**schema, "properties": {**properties, "include_fields": _INCLUDE_FIELDS}}
