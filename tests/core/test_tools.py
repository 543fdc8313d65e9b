"""The records of the catalog: tools, summaries, risks, and the immutable catalog."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.tools import (
    SUMMARY_LIMIT,
    Catalog,
    Category,
    Schemas,
    Tool,
    check_summary,
    constant_definition,
    derive_summary,
    group_name,
    require_object_schema,
)
from pegboard.errors import ConfigError

OBJECT: dict[str, Any] = {"type": "object", "properties": {"text": {"type": "string"}}}


def tool(name: str = "a", **given: Any) -> Tool:
    return Tool(name, constant_definition(OBJECT), **given)


# Summaries ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("description", "summary"),
    [
        ("Create an issue.", "Create an issue"),
        ("Create an issue. It belongs to a project.", "Create an issue"),
        ("Create an issue\n\nwith details.", "Create an issue with details"),
        ("Really? Yes! Find tools: by task. More.", "Really? Yes"),
        ("", ""),
        ("   ", ""),
    ],
)
def test_a_summary_is_derived_from_the_first_sentence(description: str, summary: str) -> None:
    assert derive_summary(description) == summary


def test_a_long_sentence_is_cut_at_a_word() -> None:
    summary = derive_summary("word " * 40)
    assert len(summary) <= SUMMARY_LIMIT
    assert summary.endswith("word…")


@given(st.text(max_size=400))
def test_a_derived_summary_is_one_short_line(description: str) -> None:
    summary = derive_summary(description)
    assert len(summary) <= SUMMARY_LIMIT
    assert "\n" not in summary


def test_a_summary_of_ones_own_keeps_its_words() -> None:
    assert check_summary("Create  an\nissue", "create_issue") == "Create an issue"
    with pytest.raises(ConfigError, match="'create_issue' has 81 characters; at most 80"):
        check_summary("x" * 81, "create_issue")


# Tools -------------------------------------------------------------------------------------------


def test_an_id_is_given_or_made_of_server_and_name() -> None:
    assert tool("a").id == "a"
    assert tool("a", server="github").id == "github.a"
    assert tool("a", server="github", id="own").id == "own"


def test_a_tool_reads_its_schemas_only_when_they_are_needed() -> None:
    asked: list[int] = []

    def define() -> Schemas:
        asked.append(1)
        return Schemas(OBJECT)

    lazy = Tool("a", define, summary="A", category="x")
    catalog = Catalog([lazy])
    assert (catalog.groups, catalog.address(lazy), hash(lazy)) is not None
    assert asked == []
    assert lazy.input_schema == OBJECT
    assert asked == [1]


def test_the_digest_changes_exactly_when_what_a_client_is_shown_does() -> None:
    first = tool(description="Says hello.")
    assert first.digest == tool(description="Says hello.").digest
    assert first.digest == replace(first, enabled=False, tags=("x",)).digest
    reordered = Tool(
        "a", constant_definition(dict(reversed(OBJECT.items()))), description="Says hello."
    )
    assert first.digest == reordered.digest
    for other in (
        replace(first, description="Says bye."),
        replace(first, annotations={"readOnlyHint": True}),
        Tool("a", constant_definition(OBJECT, {"type": "object"}), description="Says hello."),
        Tool("b", constant_definition(OBJECT), description="Says hello."),
    ):
        assert other.digest != first.digest


def test_tools_are_equal_by_id_and_definition() -> None:
    assert tool() == tool()
    assert tool() != tool(description="Other")
    assert tool(id="x") != tool(id="y")
    assert tool() != "a"
    assert len({tool(), tool()}) == 1


def test_the_wire_entry_has_a_fixed_order_and_no_empty_keys() -> None:
    assert list(tool().wire()) == ["name", "inputSchema"]
    whole = Tool(
        "a",
        constant_definition(OBJECT, {"type": "object"}),
        title="A",
        description="d",
        annotations={"readOnlyHint": True},
        icons=({"src": "x"},),
        meta={"k": 1},
    )
    assert list(whole.wire()) == [
        "name",
        "title",
        "description",
        "inputSchema",
        "outputSchema",
        "annotations",
        "icons",
        "_meta",
    ]


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"properties": {}}, OBJECT])
def test_an_input_schema_is_an_object(schema: dict[str, Any]) -> None:
    assert require_object_schema(schema) is schema


@pytest.mark.parametrize("schema", [None, [], "object", {"type": "array"}, {"type": "string"}])
def test_anything_else_is_refused(schema: Any) -> None:
    with pytest.raises(ConfigError, match="type 'object'"):
        require_object_schema(schema)


# Catalogs --------------------------------------------------------------------------------------


def test_a_catalog_has_the_same_order_for_any_input_order() -> None:
    made = [tool("b", category="x"), tool("a", category="y"), tool("c")]
    assert [t.name for t in Catalog(made)] == [t.name for t in Catalog(reversed(made))]
    assert [t.name for t in Catalog(made)] == ["c", "b", "a"]


def test_two_tools_of_one_id_are_refused() -> None:
    with pytest.raises(ConfigError, match="Two tools have the id 'a'"):
        Catalog([tool(), tool(description="other")])


def test_equal_catalogs_have_equal_hashes() -> None:
    made = [tool("a"), tool("b", category="x")]
    assert Catalog(made).hash == Catalog(reversed(made)).hash
    for other in (
        [tool("a")],
        [tool("a"), tool("b", category="y")],
        [tool("a"), tool("b", category="x", enabled=False)],
        [tool("a", description="other"), tool("b", category="x")],
    ):
        assert Catalog(other).hash != Catalog(made).hash


def test_an_address_is_the_shortest_that_finds_one_tool() -> None:
    catalog = Catalog(
        [
            tool("alone", category="x"),
            tool("list", server="github", category="repos", id="1"),
            tool("list", server="gitlab", category="repos", id="2"),
            tool("find", category="issues", id="3"),
            tool("find", category="documents", id="4"),
            tool("same", server="s", category="c", id="5"),
            tool("same", server="s", category="c", id="6"),
        ]
    )
    addresses = {t.id: catalog.address(t) for t in catalog}
    assert addresses["alone"] == "alone"
    assert (addresses["1"], addresses["2"]) == ("github.list", "gitlab.list")
    assert (addresses["3"], addresses["4"]) == ("issues.find", "documents.find")
    assert (addresses["5"], addresses["6"]) == ("5", "6")


def test_categories_count_enabled_tools_and_keep_empty_ones() -> None:
    catalog = Catalog(
        [tool("a", category="x"), tool("b", category="x", enabled=False), tool("c")],
        [Category("x", "Letters"), Category("empty")],
    )
    assert catalog.categories == (Category("empty", "", 0), Category("x", "Letters", 1))


def test_every_enabled_tool_is_in_exactly_one_group() -> None:
    catalog = Catalog(
        [
            tool("a", category="x", server="s", id="1"),
            tool("b", server="s", id="2"),
            tool("c", id="3"),
            tool("d", enabled=False, id="4"),
        ]
    )
    assert {c.name: c.tool_count for c in catalog.groups} == {"general": 1, "s": 1, "x": 1}
    assert [t.name for t in catalog.group("general")] == ["c", "d"]
    assert sum(c.tool_count for c in catalog.groups) == len(catalog.enabled)
    assert {group_name(t) for t in catalog} == {"x", "s", "general"}


def test_a_filtered_catalog_has_no_empty_categories() -> None:
    catalog = Catalog([tool("a", category="x"), tool("b", category="y")])
    assert catalog.only(lambda t: True) is catalog
    seen = catalog.only(lambda t: t.name == "a")
    assert [t.name for t in seen] == ["a"]
    assert [c.name for c in seen.categories] == ["x"]
