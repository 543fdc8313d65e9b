"""Names are legal, all different, and depend on nothing but the tools and the settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.name_lookup import resolve
from pegboard.core.tools import Catalog, Tool, constant_definition
from pegboard.errors import AmbiguousName, ToolNotFound
from pegboard.upstream.namespaces import Namespaces, Naming, find_server_of_id

PROVIDER_SAFE = re.compile(r"[A-Za-z0-9_-]{1,64}")
BARE = Naming(style="bare")


def named(
    ids: Iterable[tuple[str, str]],
    naming: Naming | None = None,
    *,
    servers: Iterable[str] = (),
    prefixes: Mapping[str, str] | None = None,
    taken: Iterable[str] = (),
) -> Catalog:
    """A catalog of tools by server and own name, under the names that they get."""
    pairs = list(ids)
    known = dict.fromkeys([*servers, *(server for server, _ in pairs)])
    spaces = Namespaces(known, naming or Naming(), prefixes=prefixes, taken=taken)
    schema = constant_definition({"type": "object"})
    return Catalog(
        Tool(name, schema, id=f"{s}.{own}", server=s, bare=bare, is_shown_bare=shown)
        for s, own in pairs
        for name, bare, shown in [spaces.of(s, own)]
    )


def names(
    ids: Iterable[tuple[str, str]], naming: Naming | None = None, **more: Any
) -> dict[str, str]:
    """The name that clients see of each tool, by id."""
    catalog = named(ids, naming, **more)
    return {tool.id: catalog.address(tool) for tool in catalog}


def test_a_name_starts_with_its_server() -> None:
    assert names([("github", "create_issue")]) == {"github.create_issue": "github_create_issue"}


@pytest.mark.parametrize(
    ("separator", "name"), [("__", "a__b"), ("-", "a-b"), (".", "a.b"), ("_", "a_b")]
)
def test_the_separator_is_a_setting(separator: str, name: str) -> None:
    assert names([("a", "b")], Naming(separator=separator)) == {"a.b": name}


def test_bare_names_stay_bare_only_while_one_server_has_them() -> None:
    assert names([("a", "x"), ("b", "x"), ("b", "y")], BARE) == {
        "a.x": "a_x",
        "b.x": "b_x",
        "b.y": "y",
    }


def test_a_name_that_repeats_its_server_is_shown_without_the_repetition() -> None:
    found = names([("git", "git_branch"), ("git", "log"), ("github", "git_log")])
    assert found["git.git_branch"] == "git_branch"
    assert found["git.log"] == "git_log"
    assert found["github.git_log"] == "github_git_log", "another server's namespace"


def test_people_see_a_tool_and_its_signature_under_the_name_that_clients_see() -> None:
    catalog = named([("git", "git_branch")])
    shown = catalog.as_shown(next(iter(catalog)))
    assert shown.signature.startswith("git_branch(")


def test_a_repetition_stays_where_the_short_name_is_another_tool_s() -> None:
    catalog = named([("git", "branch"), ("git", "git_branch")])
    shown = {tool.id: catalog.address(tool) for tool in catalog}
    assert shown == {"git.branch": "git_branch", "git.git_branch": "git_git_branch"}
    assert [tool.id for tool in catalog.matching("git_branch")] == ["git.branch"]
    assert [tool.id for tool in catalog.matching("git_git_branch")] == ["git.git_branch"]


def test_a_short_name_is_never_in_the_longer_namespace_of_another_server() -> None:
    found = names([("git", "git_hub_push"), ("git_hub", "push")])
    assert found["git_hub.push"] == "git_hub_push"
    assert found["git.git_hub_push"] != "git_hub_push"


def test_a_prefix_replaces_the_servers_name_and_an_empty_one_leaves_it_out() -> None:
    tools = [("github-enterprise", "x"), ("files", "read")]
    prefixes = {"github-enterprise": "gh", "files": ""}
    assert names(tools, prefixes=prefixes) == {
        "github-enterprise.x": "gh_x",
        "files.read": "read",
    }


@pytest.mark.parametrize("naming", [Naming(), BARE])
def test_no_tool_is_called_like_a_meta_tool(naming: Naming) -> None:
    tools = [("search", "tools"), ("x", "search_tools"), ("call", "y")]
    settled = names(tools, naming, taken=["search_tools", "call_y"])
    assert not {"search_tools", "call_y"} & set(settled.values())
    assert len(set(settled.values())) == 3


def test_a_name_that_had_to_be_changed_ends_in_a_digest_whatever_else_there_is() -> None:
    settled = names([("s", "a b"), ("s", "a_b"), ("s", "a.b")])
    assert settled["s.a_b"] == "s_a_b"
    assert re.fullmatch(r"s_a_b_[0-9a-f]{6}", settled["s.a b"])
    assert names([("s", "a.b")])["s.a.b"] == settled["s.a.b"] != settled["s.a b"]


def test_dots_are_legal_where_they_are_the_separator() -> None:
    assert names([("s", "a.b")], Naming(separator=".")) == {"s.a.b": "s.a.b"}


def test_where_namespaces_overlap_the_longer_one_has_what_starts_with_it() -> None:
    settled = names([("a", "b_c"), ("a_b", "c")])
    assert settled["a_b.c"] == "a_b_c"
    assert re.fullmatch(r"a_[0-9a-f]{6}_b_c", settled["a.b_c"])


def test_no_server_can_make_names_in_the_namespace_of_another() -> None:
    """Not by its tools' names, nor by an empty prefix: globs such as `github_*` hold."""
    prefixes = {"evil": "", "git": "git"}
    own = ["github_create_pr", "hub_create_pr", "github.create_pr", "github_x_3fa2b1", "github_"]
    for style in (Naming(), BARE):
        servers = ["github", "evil", "git"]
        ids = [(server, name) for server in ("evil", "git") for name in own]
        settled = names(ids, style, servers=servers, prefixes=prefixes)
        assert not [name for name in settled.values() if name.startswith("github_")]


def test_a_prefix_that_two_servers_share_is_used_by_neither() -> None:
    ids = [("a", "x"), ("b", "y"), ("gh", "z")]
    assert names(ids, prefixes={"a": "p", "b": "p"}) == {"a.x": "a_x", "b.y": "b_y", "gh.z": "gh_z"}
    assert names(ids, prefixes={"a": "gh"})["a.x"] == "a_x"


def test_servers_whose_names_become_the_same_are_set_apart_by_configuration_alone() -> None:
    settled = names([("my server", "x"), ("my.server", "y")])
    assert all(re.fullmatch(r"my_server_[0-9a-f]{6}_[xy]", name) for name in settled.values())
    assert names([("my server", "x")]) == {"my server.x": "my_server_x"}


def test_a_name_without_a_single_letter_is_still_a_name() -> None:
    settled = names([("搜", "索")], Naming())
    assert re.fullmatch(r"tool_[0-9a-f]{6}", settled["搜.索"])


def test_long_names_are_cut_and_stay_different() -> None:
    tools = [("s", "x" * 200 + "1"), ("s", "x" * 200 + "2")]
    settled = names(tools)
    assert all(len(name) == 64 for name in settled.values())
    assert len(set(settled.values())) == 2


def test_the_servers_own_name_is_what_it_is_called_by_there() -> None:
    (settled,) = named([("my.server", "weird name!")])
    assert settled.own_name == "weird name!"
    assert Tool("plain", constant_definition({"type": "object"})).own_name == "plain"


def test_a_dotted_own_name_never_answers_for_another_server() -> None:
    """The tool `github.create_pr` of `evil` is no tool of `github`, there or not."""
    catalog = named(
        [("evil", "github.create_pr"), ("evil", "github/create_pr")], servers=["github"]
    )
    for name in ("github.create_pr", "github/create_pr"):
        with pytest.raises(ToolNotFound):
            resolve(catalog, name)
    assert resolve(catalog, "evil.github.create_pr").server == "evil"


def test_an_id_belongs_to_the_server_with_the_longest_name() -> None:
    assert find_server_of_id("a.b.c", ["a", "a.b"]) == "a.b"
    assert find_server_of_id("a.bc", ["a", "a.b"]) == "a"
    assert find_server_of_id("x.y", ["a"]) is None


@pytest.mark.parametrize("naming", [Naming(), BARE])
def test_a_hidden_tool_leaves_no_trace_in_the_names_that_others_see(naming: Naming) -> None:
    ids = [("a", "b_c"), ("a_b", "c"), ("s", "x.y"), ("s", "x_y"), ("t", "x_y"), ("t", "search")]
    whole = named(ids, naming)
    servers = [server for server, _ in ids]
    for hidden in whole:
        seen = whole.only(lambda tool, hidden=hidden: tool.id != hidden.id)
        without = names([i for i in ids if ".".join(i) != hidden.id], naming, servers=servers)
        assert {t.id: seen.address(t) for t in seen} == without


def test_a_bare_name_that_two_visible_tools_share_is_refused_with_both() -> None:
    catalog = named([("a", "x"), ("b", "x")], BARE)
    with pytest.raises(AmbiguousName, match="a_x, b_x"):
        resolve(catalog, "x")
    alone = catalog.only(lambda tool: tool.server == "a")
    assert alone.address(resolve(alone, "x")) == "x"


words = st.text(alphabet="ab_. é搜-", min_size=1, max_size=6) | st.text(min_size=1, max_size=150)
pairs = st.lists(st.tuples(words, words), unique_by=lambda p: f"{p[0]}.{p[1]}", max_size=25)
namings = st.builds(
    Naming,
    style=st.sampled_from(["qualified", "bare"]),
    separator=st.sampled_from(["_", "__", "-"]),
    max_length=st.sampled_from([24, 64]),
)


@given(pairs, namings, st.sets(words, max_size=3))
def test_any_names_become_legal_different_and_independent_of_other_tools(
    ids: list[tuple[str, str]], naming: Naming, taken: set[str]
) -> None:
    settled = {t.id: t.name for t in named(ids, naming, taken=taken)}
    assert len(set(settled.values())) == len(ids)
    assert all(PROVIDER_SAFE.fullmatch(name) for name in settled.values())
    assert all(len(name) <= naming.max_length for name in settled.values())
    assert not taken & set(settled.values())
    servers = [server for server, _ in reversed(ids)]
    for one in ids:
        (alone,) = named([one], naming, servers=servers, taken=taken)
        assert alone.name == settled[alone.id]


@given(pairs, namings)
def test_what_a_caller_sees_under_a_bare_name_is_found_by_it(
    ids: list[tuple[str, str]], naming: Naming
) -> None:
    catalog = named(ids, naming)
    shown = {catalog.address(tool): tool for tool in catalog}
    assert len(shown) == len(ids)
    assert all(resolve(catalog, name).id == tool.id for name, tool in shown.items())
