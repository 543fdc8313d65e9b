"""Addresses of tools, and what was perhaps meant."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.name_lookup import nearest_tools, resolve
from pegboard.core.similar_names import nearest
from pegboard.core.tools import Catalog, Tool, constant_definition
from pegboard.errors import AmbiguousName, ToolNotFound


def tool(name: str, *, category: str | None = None, server: str | None = None) -> Tool:
    groups = [group for group in (server, category) if group]
    return Tool(
        name,
        constant_definition({"type": "object"}),
        id=".".join([*groups, name]),
        category=category,
        server=server,
    )


CATALOG = Catalog(
    [
        tool("create_issue", category="issues"),
        tool("search", category="issues"),
        tool("search", category="documents"),
        tool("list", server="github"),
        tool("list", server="gitlab"),
        tool("a.b", category="dotted.group"),
        tool("echo"),
    ]
)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("create_issue", "issues.create_issue"),
        ("issues.create_issue", "issues.create_issue"),
        ("issues/create_issue", "issues.create_issue"),
        ("documents.search", "documents.search"),
        ("documents/search", "documents.search"),
        ("github.list", "github.list"),
        ("echo", "echo"),
        ("a.b", "dotted.group.a.b"),
        ("dotted.group.a.b", "dotted.group.a.b"),
        ("dotted.group/a.b", "dotted.group.a.b"),
    ],
)
def test_a_name_finds_its_tool(name: str, found: str) -> None:
    assert resolve(CATALOG, name).id == found


def test_the_pair_of_category_and_tool_finds_it() -> None:
    assert resolve(CATALOG, "search", "documents").id == "documents.search"
    assert resolve(CATALOG, "list", "gitlab").id == "gitlab.list"


def behind(server: str, own: str, name: str, category: str | None = None) -> Tool:
    """A tool as a gateway shows it: under another name than its server has for it."""
    return replace(tool(own, server=server), name=name, category=category)


PREFIXED = Catalog(
    [
        behind("fetch", "fetch", "fetch_fetch"),
        behind("git", "log", "git_log", category="code"),
        behind("git", "show", "git_show"),
        behind("hg", "log", "hg_log"),
    ]
)


@pytest.mark.parametrize(
    ("name", "group", "found"),
    [
        ("fetch", None, "fetch.fetch"),
        ("fetch", "fetch", "fetch.fetch"),
        ("fetch_fetch", "fetch", "fetch.fetch"),
        ("fetch.fetch", "fetch", "fetch.fetch"),
        ("fetch/fetch", None, "fetch.fetch"),
        ("log", "code", "git.log"),
        ("code.log", None, "git.log"),
        ("code/git_log", None, "git.log"),
        ("log", "hg", "hg.log"),
        ("show", None, "git.show"),
    ],
)
def test_a_tool_is_also_found_by_what_its_own_server_calls_it(
    name: str, group: str | None, found: str
) -> None:
    assert resolve(PREFIXED, name, group).id == found


def test_a_servers_name_that_two_servers_have_is_ambiguous() -> None:
    with pytest.raises(AmbiguousName) as caught:
        resolve(PREFIXED, "log")
    assert caught.value.candidates == ("git_log", "hg_log")


def test_a_name_that_clients_see_wins_over_one_that_a_server_has() -> None:
    catalog = Catalog([behind("a", "search", "a_search"), behind("b", "x", "search")])
    assert resolve(catalog, "search").id == "b.x"
    assert resolve(catalog, "search", "a").id == "a.search"


def test_an_ambiguous_name_lists_an_address_that_finds_each() -> None:
    with pytest.raises(AmbiguousName) as caught:
        resolve(CATALOG, "search")
    assert caught.value.candidates == ("documents.search", "issues.search")
    assert {resolve(CATALOG, c).category for c in caught.value.candidates} == {
        "documents",
        "issues",
    }


@pytest.mark.parametrize("name", ["", ".", "/", "issues.", ".echo", "issues.echo", "nothing"])
def test_a_name_that_fits_nothing_is_not_found(name: str) -> None:
    with pytest.raises(ToolNotFound):
        resolve(CATALOG, name)


def test_a_tool_of_another_category_is_not_found_in_this_one() -> None:
    with pytest.raises(ToolNotFound) as caught:
        resolve(CATALOG, "create_isue", "issues")
    assert caught.value.nearest[0] == "create_issue"


def test_nearest_names_are_addresses_of_enabled_tools() -> None:
    off = Tool("serch", constant_definition({"type": "object"}), enabled=False)
    catalog = Catalog([*CATALOG, off])
    found = nearest_tools(catalog, "serch")
    assert found[:2] == ["documents.search", "issues.search"]
    assert "serch" not in found


@pytest.mark.parametrize("spelt", ["createIssue", "create-issue", "CREATE_ISSUE", "issue_create"])
def test_misspelled_names_get_suggestions(spelt: str) -> None:
    assert "create_issue" in nearest(spelt, ["create_issue", "delete_file", "echo"])


def test_what_is_unlike_everything_is_near_nothing() -> None:
    assert nearest("zzzzqqqq", ["create_issue", "delete_file"]) == []


def test_a_dict_compares_its_values_and_gives_its_keys() -> None:
    assert nearest("serch", {"a.search": "search", "b.list": "list"}) == ["a.search"]


def _made(name: str, category: str | None, server: str) -> Tool:
    return tool(name, category=category, server=server)


words = st.text("abcdefg_", min_size=1, max_size=8)
tools = st.lists(
    st.builds(_made, words, words | st.none(), words),
    unique_by=lambda t: t.id,
    min_size=1,
    max_size=12,
)


@given(tools)
def test_every_tool_is_found_by_its_id_and_by_its_address(made: list[Tool]) -> None:
    catalog = Catalog(made)
    for each in catalog:
        assert resolve(catalog, each.id) is each
        assert resolve(catalog, catalog.address(each)) is each


@given(tools)
def test_addresses_are_distinct(made: list[Tool]) -> None:
    catalog = Catalog(made)
    assert len({catalog.address(each) for each in catalog}) == len(catalog)
