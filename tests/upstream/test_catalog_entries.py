"""A list of tools as an upstream sent it: good entries become tools, bad ones are reported."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.json import JsonObject
from pegboard.core.tools import Tool, constant_definition, group_name
from pegboard.upstream.catalog_entries import (
    ToolFactory,
    ToolProblem,
    check_entries,
    get_schemas,
)
from pegboard.upstream.namespaces import DEFAULT_NAMING, Namespaces

OBJECT: JsonObject = {"type": "object"}


def entry(name: Any = "get_thing", **rest: Any) -> JsonObject:
    return {"name": name, "inputSchema": OBJECT, **rest}


def build_tools(
    entries: list[Any], *, server: str, prefix: str | None = None, **settings: Any
) -> tuple[list[Tool], list[ToolProblem]]:
    """The tools among the entries of one server, and what is wrong with the others."""
    good, problems = check_entries(entries, server)
    prefixes = {} if prefix is None else {server: prefix}
    factory = ToolFactory(
        server, Namespaces([server], DEFAULT_NAMING, prefixes=prefixes), **settings
    )
    tools = [
        factory.build(entry, constant_definition(*get_schemas(entry)[:2]))
        for entry in good
        if factory.wants(entry["name"])
    ]
    return tools, problems


def test_everything_that_a_client_may_see_is_preserved() -> None:
    raw = entry(
        title="Get a thing",
        description="Gets one thing by id. Fast.",
        inputSchema={"type": "object", "properties": {"id": {"type": "string"}}},
        outputSchema={"type": "object", "properties": {"n": {"type": "integer"}}},
        annotations={"readOnlyHint": True},
        icons=[{"src": "https://h/i.png"}],
        _meta={"x": 1},
    )
    (tool,), problems = build_tools([raw], server="s")
    assert problems == []
    assert (tool.id, tool.name, tool.server) == ("s.get_thing", "s_get_thing", "s")
    assert (tool.summary, tool.risk, tool.category) == ("Gets one thing by id", "read", "s")
    assert tool.wire() == {**raw, "name": "s_get_thing"}
    assert tool.own_name == "get_thing"


def test_the_configuration_decides_category_prefix_and_what_is_shown() -> None:
    tools, _ = build_tools(
        [entry("a"), entry("b")],
        server="s",
        category="c",
        prefix="",
        shows="b".__ne__,
    )
    assert [(t.name, t.bare, t.category) for t in tools] == [("s_a", "a", "c")]
    assert tools[0].is_shown_bare


def test_a_servers_own_category_is_a_section_of_the_configured_one() -> None:
    meta = {"io.github.pegboard/category": "issues/../github.x", "x": 1}
    (tool,), _ = build_tools([entry(_meta=meta)], server="s", category="c")
    assert (tool.category, tool.section, group_name(tool)) == (
        "c",
        "issues-github-x",
        "c/issues-github-x",
    )
    assert tool.meta == {"x": 1}


def test_a_server_cannot_mark_its_tools_as_we_do() -> None:
    meta = {"io.github.pegboard/held": "because", "io.github.pegboard/flags": ["x"]}
    (tool,), _ = build_tools([entry(_meta=meta)], server="s")
    assert not tool.meta


@pytest.mark.parametrize(
    ("annotations", "risk"),
    [
        ({}, "write"),
        ({"readOnlyHint": True}, "read"),
        ({"destructiveHint": True}, "destructive"),
        ({"destructiveHint": False}, "write"),
    ],
)
def test_risk_comes_from_annotations(annotations: Any, risk: str) -> None:
    (tool,), _ = build_tools([entry("handle_it", annotations=annotations)], server="s")
    assert tool.risk == risk
    assert tool.risk_source == ("annotated" if annotations else "inferred")


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (None, "entry 1: it is not an object but NoneType"),
        ("get", "entry 1: it is not an object but str"),
        ({"inputSchema": OBJECT}, "entry 1: it has no name"),
        (entry(5), "entry 1: it has no name"),
        (entry("  "), "entry 1: it has no name"),
        ({"name": "x"}, "x: it has no `inputSchema` object"),
        (entry("x", inputSchema=None), "x: it has no `inputSchema` object"),
        (entry("x", inputSchema=True), "x: it has no `inputSchema` object"),
        (entry("x", inputSchema={"type": "string"}), "x: its `inputSchema` is of type 'string'"),
        (entry("good"), "good: it is listed twice"),
    ],
)
def test_an_entry_that_is_no_tool_is_left_out_and_the_others_stay(bad: Any, says: str) -> None:
    tools, problems = build_tools([entry("good"), bad, entry("too")], server="s")
    assert [t.name for t in tools] == ["s_good", "s_too"]
    (problem,) = problems
    assert problem.left_out
    assert str(problem).startswith(f"s: {says}")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("description", 5),
        ("title", ["x"]),
        ("annotations", "read"),
        ("icons", "url"),
        ("icons", ["url"]),
        ("_meta", 1),
        ("outputSchema", "x"),
    ],
)
def test_a_malformed_part_is_not_used_and_the_tool_stays(key: str, value: Any) -> None:
    (tool,), (problem,) = build_tools([entry(**{key: value})], server="s")
    assert key not in tool.wire()
    assert not problem.left_out
    assert f"`{key}` is malformed" in problem.message


@pytest.mark.parametrize("name", ["has space", "ünï", "x" * 129, "a/b"])
def test_a_name_that_mcp_does_not_allow_gets_a_legal_one(name: str) -> None:
    (tool,), (problem,) = build_tools([entry(name)], server="s")
    assert not problem.left_out
    assert tool.own_name == name
    assert len(tool.name) <= 64
    assert tool.name.replace("_", "").replace("-", "").isalnum()


def test_an_input_schema_without_a_type_says_object() -> None:
    (tool,), _ = build_tools([entry(inputSchema={"properties": {"a": {}}})], server="s")
    assert tool.input_schema == {"type": "object", "properties": {"a": {}}}


@pytest.mark.parametrize("fields", [None, [], "text", {"id": 5}, {"": "empty"}, {"id": "\u200b"}])
def test_malformed_descriptions_of_fields_are_not_used(fields: Any) -> None:
    ((tool,), _) = build_tools([entry(_meta={"io.github.pegboard/fields": fields})], server="s")
    assert tool.field_descriptions == {}


def test_descriptions_of_fields_are_sanitized_and_bounded() -> None:
    fields = {f"f{n}": "one\nline\u200b " + "x" * 1_000 for n in range(1_000)}
    ((tool,), _) = build_tools([entry(_meta={"io.github.pegboard/fields": fields})], server="s")
    assert len(tool.field_descriptions) == 200
    for text in tool.field_descriptions.values():
        assert text.startswith("one line")
        assert "\u200b" not in text
        assert len(text) <= 300


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "inputSchema", "type", "annotations", "title"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(junk, max_size=6))
def test_no_list_however_wrong_costs_a_good_tool(entries: list[Any]) -> None:
    tools, _ = build_tools([entry("good"), *entries], server="s")
    assert tools[0].name == "s_good"
    assert len({t.id for t in tools}) == len(tools)
    good, _ = check_entries(entries, "s")
    assert check_entries(good, "s")[0] == good
