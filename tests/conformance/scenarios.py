"""What every client plays against every mode of the office: steps by key, as data."""

from __future__ import annotations

from typing import Any

from tests.conformance.clients import Era, Scenario, Step

from pegboard.core.options import ModeName

LAZY = "io.github.pegboard/lazy"
STRUCTURED = "io.github.pegboard/structured"


def call(name: str, meta: dict[str, Any] | None = None, /, **arguments: Any) -> Step:
    return {"do": "call", "name": name, "arguments": arguments, "meta": meta}


def request(method: str, /, **params: Any) -> Step:
    return {"do": "request", "method": method, "params": params}


LISTING: Step = {"do": "list"}

_COMMON: dict[str, Step] = {
    "list": LISTING,
    # The extension's way to list, and the default again: no cache may have kept the other answer.
    "lazy": request("tools/list", lazy=True),
    "eager": request("tools/list", lazy=False),
    "lazy by meta": {"do": "list", "meta": {LAZY: True}},
    "eager by meta": {"do": "list", "meta": {LAZY: False}},
    "lazy nonsense": request("tools/list", lazy="maybe"),
    "wrong cursor": request("tools/list", cursor="nowhere"),
    "list again": LISTING,
    # The extension's methods.
    "describe": request("tools/describe", names=["issues.search", "get_issue"]),
    "describe one": request("tools/describe", name="issues/create_issue"),
    "describe tool_name": request("tools/describe", tool_name="create_issue"),
    "describe unknown": request("tools/describe", names=["get_issue", "get_isue"]),
    "describe partly": request("tools/describe", names=["get_isue", "echo"], partial=True),
    "describe nothing": request("tools/describe"),
    "batch": request("tools/describe_batch", tool_names=["echo", "get_isue", "search", "burndown"]),
    "batch of names": request("tools/describe_batch", names=["echo"]),
    "manifest": request("tools/manifest"),
    # Tools by their own names, whatever the mode lists.
    "direct": call("get_issue", id=1),
    "direct by category": call("documents.search", query="build"),
    "direct of a loader": call("velocity", weeks=3),
    "direct whoami": call("whoami"),
    "deprecated": call("archive_project", name="apollo"),
    # Errors: what a model can mend is a result, misuse is -32602.
    "unknown": call("get_isue", id=1),
    "ambiguous": call("search", query="x"),
    "disabled": call("shred_file", name="x"),
    "wrong type": call("get_issue", id="one"),
    "missing": call("create_issue", project="apollo"),
    "extra": call("echo", text="hi", loud=True),
    "value error": call("fail", how="value"),
    "tool error": call("fail", how="tool"),
    "crash": call("fail", how="crash"),
    # Names of other systems.
    "alias categories": call("list_tool_categories"),
    "alias schema": call("get_tool_schema", toolName="get_issue"),
    "alias invoke": call("invoke_tool", toolName="echo", args={"text": "hello"}),
    "alias parallel": call(
        "tools_dispatch_parallel",
        calls=[
            {"category": "general", "tool": "echo", "params": {"text": "one"}},
            {"category": "issues", "tool": "get_isue", "params": {"id": 1}},
            {"tool": "get_issue", "params": {"id": 1}},
        ],
    ),
}

_PROXY: dict[str, Step] = {
    "search": call("search_tools", query="create an issue", limit=3),
    "search structured": call("search_tools", {STRUCTURED: True}, query="create an issue", limit=3),
    "search by name": call("search_tools", query="echo", detail="name", limit=1),
    "search full": call("search_tools", query="create_event", detail="full", limit=1),
    "search category": call("search_tools", query="delete", category="storage"),
    "search nothing": call("search_tools", query="zebra quantum xylophone"),
    "search bad category": call("search_tools", query="x", category="isues"),
    "search without query": call("search_tools"),
    "describe_tools": call("describe_tools", names=["create_event", "get_isue"]),
    "describe_tools none": call("describe_tools", names=[]),
    "call_tool": call("call_tool", name="get_issue", arguments={"id": 1}),
    "call_tool as text": call("call_tool", name="get_issue", arguments='{"id": 1}'),
    "call_tool beside": call("call_tool", name="echo", text="hi"),
    "call_tool unknown": call("call_tool", name="get_isue", arguments={"id": 1}),
    "call_tool ambiguous": call("call_tool", name="search", arguments={"query": "x"}),
    "call_tool search": call("call_tool", name="search_tools", arguments={"query": "get_issue"}),
    "call_tool itself": call("call_tool", name="call_tool", arguments={"name": "get_issue"}),
    "call_tool invalid": call("call_tool", name="get_issue", arguments={"id": "one"}),
    "call_tool disabled": call("call_tool", name="shred_file", arguments={"name": "x"}),
    "call_tool loaded": call("call_tool", name="burndown", arguments={"project": "ab"}),
}

_FAN_OUT: Step = call(
    "call_tools",
    calls=[
        {"name": "get_issue", "arguments": {"id": 1}},
        {"name": "get_isue", "arguments": {"id": 1}},
        {"name": "cancel_event", "arguments": {"title": "x"}},
        {"name": "echo", "arguments": {"text": "last"}},
        "nonsense",
    ],
)

_BY_RISK: dict[str, Step] = {
    "read calls write": call(
        "call_tool", name="upload_file", arguments={"name": "a", "content": "b"}
    ),
    "read calls destructive": call("call_tool", name="cancel_event", arguments={"title": "x"}),
    "write calls destructive": call(
        "call_write_tool", name="cancel_event", arguments={"title": "x"}
    ),
    "write": call("call_write_tool", name="create_project", arguments={"name": "mercury"}),
    "write calls read": call("call_write_tool", name="echo", arguments={"text": "hi"}),
    "destructive": call("call_destructive_tool", name="cancel_event", arguments={"title": "x"}),
    "fan out": _FAN_OUT,
    "fan out of nothing": call("call_tools", calls=[]),
    "read nothing": call("read_result", handle="no-such-handle"),
    "call_tool disabled": call("call_destructive_tool", name="shred_file", arguments={"name": "x"}),
    "call_tool loaded": call("call_write_tool", name="burndown", arguments={"project": "ab"}),
}

_INDEX: dict[str, Step] = {
    "available": call("list_available_tools"),
    "available in category": call("list_available_tools", category="storage"),
    "available with disabled": call(
        "list_available_tools", category="storage", include_disabled=True
    ),
    "available in bad category": call("list_available_tools", category="storag"),
    "description": call("get_tool_description", tool_name="create_issue"),
    "description short": call(
        "get_tool_description", tool_name="create_issue", include_examples=False
    ),
    "description unknown": call("get_tool_description", tool_name="get_isue"),
    "description of meta": call("get_tool_description", tool_name="list_available_tools"),
}

_HIERARCHY: dict[str, Step] = {
    "categories": call("tools_list_categories"),
    "tools": call("tools_list_tools", category="documents"),
    "tools of a loader": call("tools_list_tools", category="reports"),
    "tools of bad category": call("tools_list_tools", category="documets"),
    "schema": call("tools_get_schema", category="documents", tool="search"),
    "schema unknown": call("tools_get_schema", category="documents", tool="reed_document"),
    "dispatch": call(
        "tools_dispatch", category="documents", tool="search", params={"query": "build"}
    ),
    "dispatch as text": call(
        "tools_dispatch", category="documents", tool="search", params='{"query": "build"}'
    ),
    "dispatch loose": call(
        "tools_dispatch", category="general", tool="echo", params={"text": "hi"}
    ),
    "dispatch in wrong category": call("tools_dispatch", category="issues", tool="list_files"),
    "dispatch meta": call("tools_dispatch", tool="tools_get_schema", params={}),
    "dispatch invalid": call(
        "tools_dispatch", category="issues", tool="get_issue", params={"id": []}
    ),
}

_DYNAMIC: dict[str, Step] = {
    "found": call("search_tools", query="get one issue", limit=2),
    "list after search": LISTING,
    "found again": call("search_tools", query="get one issue", limit=2),
    "call found": call("get_issue", id=1),
    "found category": call("search_tools", query="everything about the calendar", limit=1),
    "list after category": LISTING,
}

_OF_MODE: dict[ModeName, dict[str, Step]] = {
    "eager": {},
    "stub": {},
    "index": _INDEX,
    "hierarchy": _HIERARCHY,
    "proxy": {**_PROXY, **_BY_RISK},
    "dynamic": {**_DYNAMIC, **_PROXY},
}


def shown_mode(mode: ModeName, era: Era) -> ModeName:
    """The mode that a client really gets: `dynamic` is for the session era only."""
    return "proxy" if (mode, era) == ("dynamic", "modern") else mode


def scenario(mode: ModeName, era: Era) -> Scenario:
    """Everything that is asked of one mode in one era."""
    return {**_COMMON, **_OF_MODE[shown_mode(mode, era)]}
