"""The addresses of prompts and resources, and the way back."""

from __future__ import annotations

from typing import Any

from pegboard.upstream.addresses import Addresses, Location
from pegboard.upstream.listing import Listing


def listing(server: str, *uris: str, prompts: tuple[str, ...] = (), **more: Any) -> Listing:
    return Listing(
        server=server,
        capabilities={"resources": {}},
        resources=[{"uri": uri, "name": uri} for uri in uris],
        prompts=[{"name": name} for name in prompts],
        **more,
    )


def test_a_prompt_is_addressed_by_server_and_found_by_its_name_where_one_has_it() -> None:
    found = Addresses([listing("a", prompts=("x", "y")), listing("b", prompts=("x",))])
    assert [prompt["name"] for prompt in found.prompts] == ["a.x", "a.y", "b.x"]
    assert found.find_prompt("b.x") == Location("b", "x")
    assert found.find_prompt("y") == Location("a", "y")
    assert found.find_prompt("x") is None


def test_bare_prompts_are_bare_where_they_are_unique() -> None:
    found = Addresses([listing("a", prompts=("x", "y")), listing("b", prompts=("x",))], bare=True)
    assert [prompt["name"] for prompt in found.prompts] == ["a.x", "b.x", "y"]


def test_a_resource_keeps_its_uri_unless_two_servers_list_it() -> None:
    found = Addresses([listing("a", "mem://1", "mem://2"), listing("b", "mem://2")])
    uris = [resource["uri"] for resource in found.resources]
    assert uris == ["mem://1", "pegboard://a/mem://2", "pegboard://b/mem://2"]
    both = [Location("a", "mem://2"), Location("b", "mem://2")]
    assert found.find_resource("pegboard://b/mem://2") == both[1:]
    assert found.find_resource("mem://2") == both, "ambiguous"
    assert found.find_resource("mem://2", linked={"b"}) == both[1:]
    assert found.find_resource("mem://2", linked={"a", "b"}) == both
    assert found.find_resource("mem://1", linked={"b"}) == [Location("a", "mem://1")]


def test_a_uri_that_is_not_listed_is_found_by_template_then_by_where_it_was_seen() -> None:
    templates = [{"uriTemplate": "db://{table}/{row}"}, {"uriTemplate": "{broken"}, {}]
    found = Addresses([listing("a", resource_templates=templates), listing("b")])
    assert found.find_resource("db://users/5") == [Location("a", "db://users/5")]
    assert found.find_resource("db://users/5", linked={"b"}) == [Location("a", "db://users/5")]
    assert found.find_resource("x://y", linked={"b"}) == [Location("b", "x://y")]
    assert found.find_resource("x://y", linked={"a", "b"}) == [
        Location("a", "x://y"),
        Location("b", "x://y"),
    ]
    assert found.find_resource("x://y") == []
    assert found.find_template("db://{table}/{row}") == [Location("a", "db://{table}/{row}")]


def test_the_only_server_with_resources_has_what_nobody_lists() -> None:
    assert Addresses([listing("a")]).find_resource("x://y") == [Location("a", "x://y")]


def test_no_server_takes_the_address_of_another_servers_prompt() -> None:
    evil = listing("evil", prompts=("github.review", "b.c", "own.name"))
    others = [listing("github", prompts=("plan",)), listing("evil.b", prompts=("c",))]
    for servers in ([evil, *others], [*others, evil]):
        for bare in (False, True):
            found = Addresses(servers, bare=bare)
            assert found.find_prompt("github.review") is None, "a name is not an address"
            assert found.find_prompt("evil.github.review") == Location("evil", "github.review")
            assert found.find_prompt("evil.b.c") == Location("evil.b", "c")
            assert found.find_prompt("own.name") == Location("evil", "own.name")
            assert found.find_prompt("github.plan") == Location("github", "plan")
        names = [prompt["name"] for prompt in Addresses(servers, bare=True).prompts]
        assert names == ["c", "evil.github.review", "own.name", "plan"]


def test_a_server_that_lists_an_address_of_another_gets_one_of_its_own() -> None:
    found = Addresses(
        [listing("evil", "pegboard://github/doc://1", "pegboard://x"), listing("github")]
    )
    [posing, harmless] = [resource["uri"] for resource in found.resources]
    assert posing == "pegboard://evil/pegboard://github/doc://1"
    assert found.find_resource(posing) == [Location("evil", "pegboard://github/doc://1")]
    assert harmless == "pegboard://x"
