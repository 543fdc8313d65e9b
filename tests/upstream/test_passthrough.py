"""Everything but tools: logging, resources, prompts, completions, subscriptions, tasks."""

from __future__ import annotations

from typing import Any

import anyio
import mcp_types as t
import pytest
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from tests.upstream.servers.everything import Everything
from tests.upstream.support import (
    SDK_MODES,
    Gateway,
    everything_behind,
    gateway,
    in_memory,
    memory,
    said,
    script,
)
from tests.upstream.test_eras import PAIRS, list_roots

from pegboard.upstream.listing import keep_valid_entries, stream_listings

pytestmark = pytest.mark.anyio


async def learn(through: Gateway) -> None:
    """Discover all servers and take what they offer, as a gateway does when it starts."""
    async with stream_listings(through.pool) as found:
        through.passthrough.set_listings([one.listing async for one in found if one.listing])


async def raw(session: ClientSession, method: str, **params: Any) -> dict[str, Any]:
    """Any request, any result: the session itself refuses what it cannot type."""
    dispatcher = session._dispatcher  # pyright: ignore[reportPrivateUsage]
    return await dispatcher.send_raw_request(method, params)


class Log:
    """A client's log: what it was told, by level."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []

    async def __call__(self, params: t.LoggingMessageNotificationParams) -> None:
        self.heard.append((params.level, params.data))


@pytest.mark.parametrize("server", ["legacy", "modern"])
async def test_a_modern_client_gets_the_log_levels_it_requested(server: str) -> None:
    log = Log()
    async with everything_behind(server, "modern", logging_callback=log) as (it, client, _g):
        await client.call_tool("e.log", {})
        assert log.heard == []
        meta: Any = {"io.modelcontextprotocol/logLevel": "error"}
        await client.call_tool("e.log", {}, meta=meta)
        assert log.heard == [("error", {"at": ["error"]})]
        assert it.level == ("error" if server == "legacy" else None)


@pytest.mark.parametrize("server", ["legacy", "modern"])
async def test_a_legacy_client_sets_the_level_for_servers_yet_to_start(server: str) -> None:
    log = Log()
    async with everything_behind(server, "legacy", logging_callback=log) as (it, client, _g):
        await raw(client.session, "logging/setLevel", level="error")
        meta: Any = {"x/y": 1}
        seen: Any = (await client.call_tool("e.echo", {}, meta=meta)).structured_content
        asked = seen["meta"].get("io.modelcontextprotocol/logLevel")
        assert (asked, it.level) == (("error", None) if server == "modern" else (None, "error"))
        await client.call_tool("e.log", {})
        assert ("error", {"at": ["error"]}) in log.heard


@PAIRS
async def test_resources_and_prompts_of_a_server_are_reached_by_their_addresses(
    client_era: str, server: str
) -> None:
    async with everything_behind(server, client_era) as (_, client, through):
        await learn(through)
        assert through.pool.status()[0].connections == 0, "lists start nothing"
        assert [r.uri for r in (await client.list_resources()).resources] == ["mem://a"]
        templates = (await client.list_resource_templates()).resource_templates
        assert [template.uri_template for template in templates] == ["mem://{server}/things/{id}"]
        assert [p.name for p in (await client.list_prompts()).prompts] == ["e.greet"]
        assert through.pool.status()[0].connections == 0

        contents: Any = (await client.read_resource("mem://x/things/5")).contents
        assert contents[0].text == "read mem://x/things/5"
        prompt: Any = (await client.get_prompt("e.greet", {"who": "you"})).messages[0].content
        assert prompt.text == "greet {'who': 'you'}"
        reference = t.PromptReference(type="ref/prompt", name="e.greet")
        found = await client.complete(reference, {"name": "who", "value": "y"})
        assert found.completion.values == ["greet y"]
        place = t.ResourceTemplateReference(type="ref/resource", uri="mem://{server}/things/{id}")
        found = await client.complete(place, {"name": "id", "value": "5"})
        assert found.completion.values == ["mem://{server}/things/{id} 5"]


async def test_one_uri_of_two_servers_is_two_resources() -> None:
    servers = {"a": (Everything(), "legacy"), "b": (Everything(), "modern")}
    async with gateway(in_memory("a"), in_memory("b"), open_transport=memory(servers)) as through:
        await learn(through)
        async with through.client("auto") as client:
            uris = [r.uri for r in (await client.list_resources()).resources]
            assert sorted(uris) == ["pegboard://a/mem://a", "pegboard://b/mem://a"]
            [content] = (await client.read_resource("pegboard://b/mem://a")).contents
            assert isinstance(content, t.TextResourceContents)
            assert (content.uri, content.text) == ("pegboard://b/mem://a", "read mem://a")


async def test_a_link_in_a_result_leads_to_the_server_that_gave_it() -> None:
    servers = {"a": (Everything(), "modern"), "b": (Everything(), "modern")}
    async with gateway(in_memory("a"), in_memory("b"), open_transport=memory(servers)) as through:
        await learn(through)
        async with through.client("auto") as client:
            with pytest.raises(MCPError, match="No server has the resource 'mem://linked'"):
                await client.read_resource("mem://linked")
            await client.call_tool("b.rich", {})
            contents: Any = (await client.read_resource("mem://linked")).contents
            assert contents[0].text == "read mem://linked"
            assert through.pool.status()[0].connections == 0


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("prompts/get", {"name": "nope"}),
        ("resources/read", {"uri": "no://where"}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "nope"}, "argument": {}}),
        ("tasks/get", {"taskId": "nope"}),
        ("tasks/get", {"taskId": "nobody:5"}),
    ],
)
async def test_what_no_server_has_is_invalid_params(method: str, params: dict[str, Any]) -> None:
    async with everything_behind("modern", "legacy") as (_, client, _g):
        with pytest.raises(MCPError, match="No server has the") as caught:
            await raw(client.session, method, **params)
        assert caught.value.code == t.INVALID_PARAMS


async def test_a_subscribed_resource_is_announced_to_its_client() -> None:
    heard: list[str] = []
    told = anyio.Event()

    async def hear(message: Any) -> None:
        if isinstance(message, t.ResourceUpdatedNotification):
            heard.append(message.params.uri)
            told.set()

    async with everything_behind("legacy", "legacy", message_handler=hear) as (_, client, through):
        await learn(through)
        await raw(client.session, "resources/subscribe", uri="mem://a")
        await told.wait()
    assert heard == ["mem://a"]


async def test_a_task_is_followed_at_the_server_that_began_it() -> None:
    specs = [script("misbehaving", "tasks", server=name) for name in ("one", "two:x")]
    async with gateway(*specs) as through, through.client("legacy") as client:
        began = await raw(client.session, "tools/call", name="two:x.go", arguments={}, task={})
        task = began["task"]["taskId"]
        assert task == "two%3Ax:42"
        seen = await raw(client.session, "tasks/get", taskId=task)
        assert (seen["taskId"], seen["status"]) == (task, "tasks/get")
        related = seen["_meta"]["io.modelcontextprotocol/related-task"]
        assert related == {"taskId": task}
        assert through.pool.status()[0].connections == 0


@pytest.mark.parametrize("client_era", ["legacy", "modern"])
async def test_roots_that_a_legacy_server_wants_at_once_are_requested_from_the_first_caller(
    client_era: str,
) -> None:
    asking = script("misbehaving", "asks", server="asks")
    async with (
        gateway(asking) as through,
        through.client(SDK_MODES[client_era], list_roots_callback=list_roots) as client,
    ):
        assert "file:///work" in said(await client.call_tool("asks.go", {}))


async def test_changed_roots_are_announced_to_the_legacy_servers_of_the_session() -> None:
    async with everything_behind("legacy", "legacy", list_roots_callback=list_roots) as (
        it,
        client,
        _gateway,
    ):
        await client.call_tool("e.echo", {})
        await client.session.send_notification(t.RootsListChangedNotification())
        with anyio.move_on_after(5):
            await it.roots_changed.wait()
        assert it.roots_changed.is_set()


@pytest.mark.parametrize("server", ["legacy", "modern"])
async def test_listeners_are_notified_of_changed_tools(server: str) -> None:
    events: list[tuple[str, str]] = []
    told = anyio.Event()

    async def listen(event: Any) -> None:
        events.append((event.server, event.change))
        told.set()

    async with everything_behind(server, "legacy") as (_, client, through):
        through.pool.add_listener(listen)
        await client.call_tool("e.echo", {})
        if server == "modern":
            await anyio.wait_all_tasks_blocked()  # until its change stream is open
        await client.call_tool("e.change_tools", {})
        await told.wait()
    assert events == [("e", "tools")]


async def test_what_a_gateway_can_offer_is_what_its_servers_do() -> None:
    async with everything_behind("modern", "modern") as (_, _client, through):
        assert through.passthrough.capabilities() == {}
        await learn(through)
        assert set(through.passthrough.capabilities()) == {
            "resources",
            "prompts",
            "completions",
            "logging",
        }


GOOD: dict[str, dict[str, Any]] = {
    "resources": {"uri": "a://1", "name": "ok", "size": 5, "vendor": {"kept": True}},
    "resource_templates": {"uriTemplate": "a://{x}", "name": "ok"},
    "prompts": {"name": "ok", "arguments": [{"name": "a", "required": True}]},
}


@pytest.mark.parametrize("kind", GOOD)
def test_a_malformed_prompt_or_resource_costs_no_other(kind: str) -> None:
    """Clients refuse a whole list because of one, and the list has those of all servers."""
    good = GOOD[kind]
    odd: dict[str, Any] = {"description": 5, "icons": {}, "_meta": [], "title": {}}
    repaired = [{**good, key: value} for key, value in odd.items()]
    lost = [{}, {"name": 5}, {"description": "x"}, {**good, "name": None}]
    kept = keep_valid_entries("evil", kind, [*repaired, *lost, good])
    assert kept == (good,) * (len(odd) + 1)
    model = {"resources": t.Resource, "resource_templates": t.ResourceTemplate, "prompts": t.Prompt}
    for entry in kept:
        model[kind].model_validate(entry)
