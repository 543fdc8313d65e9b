"""Names are legal, all different, and depend on nothing but the tools and the settings."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.tools import Tool, constant
from pegboard.upstream.names import Naming, settle

PROVIDER_SAFE = re.compile(r"[A-Za-z0-9_-]{1,64}")
BARE = Naming(style="bare")


def tool(server: str, name: str) -> Tool:
    return Tool(name, constant({"type": "object"}), id=f"{server}.{name}", server=server)


def names(tools: list[Tool], naming: Naming | None = None, **options: object) -> dict[str, str]:
    settled = settle(tools, naming or Naming(), **options)  # pyright: ignore[reportArgumentType]
    return {t.id: t.name for t in settled}


def test_a_name_starts_with_its_server() -> None:
    assert names([tool("github", "create_issue")]) == {"github.create_issue": "github_create_issue"}


@pytest.mark.parametrize(
    ("separator", "name"), [("__", "a__b"), ("-", "a-b"), (".", "a.b"), ("_", "a_b")]
)
def test_the_separator_is_a_setting(separator: str, name: str) -> None:
    assert names([tool("a", "b")], Naming(separator=separator)) == {"a.b": name}


def test_bare_names_stay_bare_only_while_one_server_has_them() -> None:
    assert names([tool("a", "x"), tool("b", "x"), tool("b", "y")], BARE) == {
        "a.x": "a_x",
        "b.x": "b_x",
        "b.y": "y",
    }


def test_a_prefix_replaces_the_servers_name_and_an_empty_one_leaves_it_out() -> None:
    tools = [tool("github-enterprise", "x"), tool("files", "read")]
    prefixes = {"github-enterprise": "gh", "files": ""}
    assert names(tools, prefixes=prefixes) == {
        "github-enterprise.x": "gh_x",
        "files.read": "read",
    }


@pytest.mark.parametrize("naming", [Naming(), BARE])
def test_no_tool_is_called_like_a_meta_tool(naming: Naming) -> None:
    tools = [tool("search", "tools"), tool("x", "search_tools"), tool("call", "y")]
    settled = names(tools, naming, taken=["search_tools", "call_y"])
    assert not {"search_tools", "call_y"} & set(settled.values())
    assert len(set(settled.values())) == 3


def test_illegal_characters_are_replaced_and_the_exact_name_wins() -> None:
    settled = names([tool("s", "a b"), tool("s", "a_b"), tool("s", "a.b")])
    assert settled["s.a_b"] == "s_a_b"
    assert re.fullmatch(r"s_a_b_[0-9a-f]{6}", settled["s.a b"])
    assert re.fullmatch(r"s_a_b_[0-9a-f]{6}", settled["s.a.b"])


def test_dots_are_legal_where_they_are_the_separator() -> None:
    assert names([tool("s", "a.b")], Naming(separator=".")) == {"s.a.b": "s.a.b"}


def test_two_names_that_meet_in_the_middle_are_both_set_apart() -> None:
    settled = names([tool("a", "b_c"), tool("a_b", "c")])
    assert len(set(settled.values())) == 2
    assert all(re.fullmatch(r"a_b_c_[0-9a-f]{6}", name) for name in settled.values())


def test_a_name_without_a_single_letter_is_still_a_name() -> None:
    settled = names([tool("搜", "索")], Naming())
    assert re.fullmatch(r"tool_[0-9a-f]{6}", settled["搜.索"])


def test_long_names_are_cut_and_stay_different() -> None:
    tools = [tool("s", "x" * 200 + "1"), tool("s", "x" * 200 + "2")]
    settled = names(tools)
    assert all(len(name) == 64 for name in settled.values())
    assert len(set(settled.values())) == 2


def test_the_servers_own_name_is_what_it_is_called_by_there() -> None:
    (settled,) = settle([tool("my.server", "weird name!")], Naming())
    assert settled.own_name == "weird name!"
    assert Tool("plain", constant({"type": "object"})).own_name == "plain"


def test_a_tool_that_keeps_its_name_is_the_same_object() -> None:
    named = Tool("s_x", constant({"type": "object"}), id="s.x", server="s")
    assert settle([named], Naming())[0] is named


words = st.text(alphabet="ab_. é搜-", min_size=1, max_size=6) | st.text(min_size=1, max_size=150)
pairs = st.lists(st.tuples(words, words), unique_by=lambda p: f"{p[0]}.{p[1]}", max_size=25)
namings = st.builds(
    Naming,
    style=st.sampled_from(["qualified", "bare"]),
    separator=st.sampled_from(["_", "__", "-"]),
    max_length=st.sampled_from([24, 64]),
)


@given(pairs, namings, st.sets(words, max_size=3), st.randoms(use_true_random=False))
def test_any_names_become_legal_different_and_independent_of_order(
    ids: list[tuple[str, str]], naming: Naming, taken: set[str], rnd: random.Random
) -> None:
    tools = [tool(server, name) for server, name in ids]
    settled = names(tools, naming, taken=taken)
    assert len(set(settled.values())) == len(tools)
    assert all(PROVIDER_SAFE.fullmatch(name) for name in settled.values())
    assert all(len(name) <= naming.max_length for name in settled.values())
    assert not taken & set(settled.values())
    rnd.shuffle(tools)
    assert names(tools, naming, taken=taken) == settled


@given(pairs)
def test_more_servers_leave_qualified_names_alone_unless_they_meet(
    ids: list[tuple[str, str]],
) -> None:
    before = names([tool("github", "create_issue")])
    others = [tool(f"{server}!", name) for server, name in ids]
    after = names([tool("github", "create_issue"), *others])
    assert after["github.create_issue"] == before["github.create_issue"]
