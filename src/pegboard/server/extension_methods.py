"""The methods of the extension: `tools/describe`, `tools/describe_batch`, `tools/manifest`.

The first two give whole definitions by name, for clients of the `stub` mode. With the third, a
client that caches definitions finds out which of them have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pegboard.core.json import Json, JsonObject, compact, whole_number
from pegboard.core.name_lookup import nearest_tools
from pegboard.core.tool_registry import LoadTarget
from pegboard.core.tools import Tool
from pegboard.errors import PegboardError
from pegboard.modes.list_entries import full_entry
from pegboard.modes.mode import View, find_tool
from pegboard.modes.search_tools import MAX_NAMES
from pegboard.server.replies import InvalidParams

_MAX_SUGGESTED = 20
"""Unknown names of one request for which similar ones are looked up, which takes a while."""
MANIFEST_PAGE = 500


def answer_describe(view: View, params: Mapping[str, Json]) -> JsonObject:
    """Full definitions by name: `name`, `names`, or `tool_name` as in an earlier system.

    `names` takes at most 200 names; more are refused with `data.maxNames`.
    """
    if "tool_name" in params:
        name = _check_name(params["tool_name"], "tool_name")
        tool = _find_all(view, [name])[0]
        return {"tool_name": name, "schema": _schema(view, tool)}
    if "name" in params:
        return {"tool": _entry(view, _find_all(view, [_check_name(params["name"], "name")])[0])}
    names = _check_names(params, "names")
    if params.get("partial") is True:
        found, missing = _find_some(view, names)
        return {"tools": [_entry(view, t) for _, t in found], "missing": missing}
    return {"tools": [_entry(view, t) for t in _find_all(view, names)]}


def answer_describe_batch(view: View, params: Mapping[str, Json]) -> JsonObject:
    """Full definitions of the tools that exist, in order, and the names that do not.

    It takes at most 200 names; more are refused with `data.maxNames`.
    """
    names = _check_names(params, "tool_names" if "tool_names" in params else "names")
    found, missing = _find_some(view, names)
    return {
        "tools": [{"tool_name": name, "schema": _schema(view, tool)} for name, tool in found],
        "missing": missing,
    }


def answer_manifest(view: View, params: Mapping[str, Json]) -> JsonObject:
    """Name, digest and size of every tool, from which a client can tell what has changed."""
    cursor = params.get("cursor") or "0"
    start = whole_number(cursor)
    if start is None:
        raise InvalidParams("Unknown cursor: start again without one.", {"cursor": cursor})
    tools = view.catalog.enabled[start : start + MANIFEST_PAGE]
    entries = [
        {
            "name": view.catalog.address(tool),
            "digest": tool.digest,
            "size": len(compact(tool.wire()).encode()),
            "annotations": dict(tool.annotations),
        }
        for tool in tools
    ]
    result: JsonObject = {"entries": entries}
    if start + MANIFEST_PAGE < len(view.catalog.enabled):
        result["nextCursor"] = str(start + MANIFEST_PAGE)
    return result


METHODS: dict[str, Callable[[View, Mapping[str, Json]], JsonObject]] = {
    "tools/describe": answer_describe,
    "tools/describe_batch": answer_describe_batch,
    "tools/manifest": answer_manifest,
}


def needed_tools(params: Mapping[str, Json]) -> list[LoadTarget] | None:
    """The tools that a request names, for which loaders may have to run; `None` for all of them."""
    given = [params[key] for key in ("tool_name", "name", "tool_names", "names") if key in params]
    if not given:
        return None
    names = [name for one in given for name in (one if isinstance(one, list) else [one])]
    # Bounded here too: loaders run before the number of names is checked.
    return [LoadTarget(name) for name in names[:MAX_NAMES] if isinstance(name, str)]


def _find_all(view: View, names: list[str]) -> list[Tool]:
    found, missing = _find_some(view, names)
    if missing:
        raise InvalidParams(
            f"Unknown tools: {', '.join(m['name'] for m in missing)}.",
            {
                "unknownNames": [m["name"] for m in missing],
                "nearest": {m["name"]: m["nearest"] for m in missing},
            },
        )
    return [tool for _, tool in found]


def _find_some(view: View, names: list[str]) -> tuple[list[tuple[str, Tool]], list[JsonObject]]:
    found: list[tuple[str, Tool]] = []
    missing: list[JsonObject] = []
    for name in names:
        if len(missing) >= _MAX_SUGGESTED and not view.catalog.matching(name):
            missing.append({"name": name, "nearest": []})
            continue
        try:
            found.append((name, find_tool(view, name)))
        except PegboardError as exc:
            # The error for the name of a meta-tool has no nearest ones.
            near = exc.details.get("nearest") or nearest_tools(view.catalog, name)
            missing.append({"name": name, "nearest": near})
    return found, missing


def _entry(view: View, tool: Tool) -> JsonObject:
    return full_entry(view.catalog, tool, with_fields=True)


def _schema(view: View, tool: Tool) -> JsonObject:
    entry = _entry(view, tool)
    return {
        "name": entry["name"],
        "description": tool.description or tool.summary,
        "inputSchema": entry["inputSchema"],
        "outputSchema": entry.get("outputSchema"),
    }


def _check_name(given: Json, key: str) -> str:
    if isinstance(given, str) and given:
        return given
    raise InvalidParams(f"`{key}` must be the name of a tool.")


def _check_names(params: Mapping[str, Json], key: str) -> list[str]:
    given = params.get(key)
    if not isinstance(given, list) or not given or not all(isinstance(n, str) for n in given):
        raise InvalidParams(f"`{key}` must be a list of one or more tool names.")
    if len(given) > MAX_NAMES:
        raise InvalidParams(f"At most {MAX_NAMES} names at once.", {"maxNames": MAX_NAMES})
    return given
