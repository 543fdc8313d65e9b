"""Tools that a server lists only to clients that can be asked: by what the client declares."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as t
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from tests.conftest import missing_part
from tests.gateway.support import ROOT, client_of, running, said
from tests.upstream.support import script
from tests.upstream.test_http import serving

from pegboard.config.loader import Configuration
from pegboard.config.settings import Settings, TrustSettings
from pegboard.gateway.gateway import Gateway
from pegboard.gateway.http_app import build_gateway_app
from pegboard.upstream.catalog_entries import (
    capabilities_to_kind,
    get_listed_tools,
    is_kind_known,
    kind_to_capabilities,
    merge_variant,
)
from pegboard.upstream.spec import UpstreamSpec

pytestmark = pytest.mark.anyio

ERAS = ("legacy", "modern")
EAGER = Settings(mode="eager")


async def roots(context: Any) -> t.ListRootsResult:
    return t.ListRootsResult(roots=[])


async def sample(context: Any, params: Any) -> Any:
    return t.CreateMessageResult(role="assistant", content=t.TextContent(text="x"), model="m")


async def elicit(context: Any, params: Any) -> Any:
    return t.ElicitResult(action="decline")


EVERYTHING: dict[str, Any] = {
    "list_roots_callback": roots,
    "sampling_callback": sample,
    "elicitation_callback": elicit,
}


def asking(folder: Path, **more: Any) -> UpstreamSpec:
    return script("asking", str(folder / "starts"), server="a", **more)


def starts(folder: Path) -> int:
    return len((folder / "starts").read_text().splitlines())


async def names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.parametrize("era", ERAS)
async def test_what_is_listed_depends_on_what_the_client_declares_and_on_nobody_else(
    era: str, tmp_path: Path
) -> None:
    plain = {"a_plain", "a_only_plain"}
    able = {"a_plain", "a_needs_elicitation", "a_needs_roots", "a_needs_sampling"}
    async with running([asking(tmp_path)], tmp_path, settings=EAGER) as gateway:
        for _ in range(2):  # whoever called last does not decide
            async with client_of(gateway, era, **EVERYTHING) as client:
                assert await names(client) == able
                assert "roots" in said(await client.call_tool("a_needs_roots", {}))
                assert await names(client) == able
                with pytest.raises(MCPError, match="Unknown tool"):
                    await client.call_tool("a_only_plain", {})
            async with client_of(gateway, era) as client:
                assert await names(client) == plain
                await client.call_tool("a_plain", {})
                assert await names(client) == plain
                with pytest.raises(MCPError, match="Unknown tool"):
                    await client.call_tool("a_needs_roots", {})
            async with client_of(gateway, era, list_roots_callback=roots) as client:
                assert await names(client) == {"a_plain", "a_needs_roots"}


async def test_a_varying_list_is_for_its_client_alone(tmp_path: Path) -> None:
    async with running([asking(tmp_path)], tmp_path, settings=EAGER) as gateway:
        async with client_of(gateway, "modern") as client:
            assert (await client.list_tools()).cache_scope == "public"
        async with client_of(gateway, "modern", **EVERYTHING) as client:
            assert (await client.list_tools()).cache_scope == "private"
        async with client_of(gateway, "modern") as client:
            assert (await client.list_tools()).cache_scope == "private"


async def test_variants_are_taken_from_the_cache_at_the_next_start(tmp_path: Path) -> None:
    for _ in range(2):
        async with (
            running([asking(tmp_path)], tmp_path, settings=EAGER) as gateway,
            client_of(gateway, "legacy", **EVERYTHING) as client,
        ):
            assert len(await names(client)) == 4
        assert starts(tmp_path) == 2  # for a client that declares nothing, and for this one
    [kept] = (tmp_path / "catalogs").glob("a-*")
    assert b"elicitation.form+elicitation.url+roots+sampling" in kept.read_bytes()


async def test_a_server_that_lists_the_same_to_all_is_started_once_more_and_never_again(
    tmp_path: Path,
) -> None:
    spec = script("polite", str(tmp_path / "starts"))
    counts: list[int] = []
    for callbacks in ({}, EVERYTHING, EVERYTHING, {"list_roots_callback": roots}):
        async with (
            running([spec], tmp_path, settings=EAGER) as gateway,
            client_of(gateway, "legacy", **callbacks) as client,
        ):
            assert await names(client) == {"polite_echo"}
        counts.append(starts(tmp_path))
    assert counts == [1, 2, 2, 2]


async def test_the_list_of_the_proxy_mode_is_the_same_for_all(tmp_path: Path) -> None:
    settings = Settings(mode="proxy", risk="split")
    lists: list[str] = []
    async with running([asking(tmp_path)], tmp_path, settings=settings) as gateway:
        for callbacks in ({}, EVERYTHING, {}):
            async with client_of(gateway, "legacy", **callbacks) as client:
                lists.append((await client.list_tools()).model_dump_json())
                found = said(await client.call_tool("search_tools", {"query": "needs sampling"}))
                assert ("needs_sampling" in found) == bool(callbacks)
    assert lists[0] == lists[1] == lists[2]


async def test_the_lock_covers_the_tools_of_all_kinds_of_clients(tmp_path: Path) -> None:
    lock = tmp_path / "lock.json"
    settings = Settings(mode="eager", trust=TrustSettings(lock=str(lock)))
    async with (
        running([asking(tmp_path)], tmp_path, settings=settings) as gateway,
        client_of(gateway, "legacy", **EVERYTHING) as client,
    ):
        assert "a_needs_roots" in await names(client)
    assert "needs_roots" in lock.read_text()
    assert "only_plain" in lock.read_text()


async def test_a_shared_server_lists_the_same_to_all(tmp_path: Path) -> None:
    spec = asking(tmp_path, stateless=True)
    async with (
        running([spec], tmp_path, settings=EAGER) as gateway,
        client_of(gateway, "legacy", **EVERYTHING) as client,
    ):
        assert await names(client) == {"a_plain", "a_only_plain"}


@asynccontextmanager
async def over_http(specs: list[UpstreamSpec], folder: Path) -> AsyncGenerator[str]:
    configuration = Configuration(EAGER, upstreams=tuple(specs))
    gateway = Gateway(configuration, folder=folder, listing_wait=30)  # a busy machine starts slowly
    async with serving(build_gateway_app(gateway, "127.0.0.1")) as url:
        yield f"{url}/mcp"


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_real_server_lists_its_13_or_17_tools_to_whom_they_are_for(
    mode: str, tmp_path: Path
) -> None:
    package = "@modelcontextprotocol/server-everything/dist/index.js"
    program = ROOT / "tests" / "typescript" / "node_modules" / package
    node = next(ROOT.glob("tests/**/node_modules/node/bin/node"), None)
    if node is None or not program.exists():
        missing_part("the servers and Node.js of tests/typescript")
    spec = UpstreamSpec("every", command=str(node), args=(str(program),))
    counts: list[int] = []
    with anyio.fail_after(60):
        async with over_http([spec], tmp_path) as url:
            for callbacks in ({}, EVERYTHING, {}, EVERYTHING):
                async with Client(url, mode=mode, cache=None, **callbacks) as client:
                    counts.append(len(await names(client)))
    assert counts == [13, 17, 13, 17]


@pytest.mark.parametrize(
    ("capabilities", "kind"),
    [
        ({}, ""),
        ({"tools": {}, "tasks": {}}, ""),
        ({"roots": {"listChanged": True}, "sampling": {}}, "roots+sampling"),
        ({"elicitation": {}}, "elicitation.form"),
        ({"elicitation": {"url": {}, "form": {}}}, "elicitation.form+elicitation.url"),
        ({"elicitation": None, "roots": None}, ""),
    ],
)
def test_the_kind_of_a_client_is_the_input_it_can_give(
    capabilities: dict[str, Any], kind: str
) -> None:
    assert capabilities_to_kind(capabilities) == kind
    assert capabilities_to_kind(kind_to_capabilities(kind)) == kind


def test_a_kind_that_sees_no_more_tools_covers_kinds_with_fewer_capabilities() -> None:
    assert is_kind_known({"roots+sampling": None}, "roots")
    assert not is_kind_known({"roots": None}, "roots+sampling")
    assert not is_kind_known({"": ["a"], "roots+sampling": ["a", "b"]}, "roots")
    assert is_kind_known({}, "")


def test_a_tool_has_one_definition_for_all_kinds_of_clients() -> None:
    base: list[dict[str, Any]] = [{"name": "a", "description": "as approved"}]
    other = [{"name": "a", "description": "another"}, {"name": "b"}]
    entries, variants = merge_variant(base, {}, "roots", other)
    assert entries == [{"name": "a", "description": "as approved"}, {"name": "b"}]
    assert json.loads(json.dumps(variants)) == {"": ["a"], "roots": ["a", "b"]}
    assert get_listed_tools(variants, "sampling") == ["a"]
    assert get_listed_tools(variants, "roots") == ["a", "b"]
    assert merge_variant(entries, variants, "sampling", base)[1]["sampling"] is None


async def test_a_server_that_lists_something_new_lists_it_to_every_kind_of_client(
    tmp_path: Path,
) -> None:
    more = tmp_path / "more"
    spec = script("asking", str(tmp_path / "starts"), str(more), server="a", timeout=10)
    async with (
        running([spec], tmp_path, settings=EAGER) as gateway,
        client_of(gateway, "legacy", **EVERYTHING) as able,
        client_of(gateway, "legacy") as plain,
    ):
        before = await names(able)
        assert "a_needs_roots" in before
        more.write_text("new")
        await plain.call_tool("a_plain", {})  # a first call has the server looked at again
        with anyio.fail_after(20):
            while "a_new" not in await names(plain):  # noqa: ASYNC110 - a list has no event
                await anyio.sleep(0.05)
        assert await names(able) == {*before, "a_new"}
        assert await names(plain) == {"a_plain", "a_only_plain", "a_new"}


async def test_a_server_that_dies_while_listed_for_a_kind_keeps_its_tools(
    tmp_path: Path,
) -> None:
    more = tmp_path / "more"
    more.write_text("dies_if_asked")
    spec = script("asking", str(tmp_path / "starts"), str(more), server="a")
    counts: list[int] = []
    for _ in range(2):  # the second gateway leaves it alone for a while
        async with (
            running([spec], tmp_path, settings=EAGER) as gateway,
            client_of(gateway, "legacy", **EVERYTHING) as client,
        ):
            assert await names(client) == {"a_plain", "a_only_plain", "a_dies_if_asked"}
        counts.append(starts(tmp_path))
    assert counts[0] == counts[1] > 1


async def test_answers_wait_once_for_a_server_that_is_slow_to_be_listed_for_a_kind(
    tmp_path: Path,
) -> None:
    more = tmp_path / "more"
    more.write_text("sleeps_if_asked")
    spec = script("asking", str(tmp_path / "starts"), str(more), server="a")
    async with (
        running([spec], tmp_path, settings=EAGER, listing_wait=0.5) as gateway,
        client_of(gateway, "legacy", **EVERYTHING) as client,
    ):
        began = anyio.current_time()
        for _ in range(10):
            assert "a_plain" in await names(client)
        assert anyio.current_time() - began < 3
