"""Relays everything except tools to its server: resources, prompts, tasks, logging.

    lists                 answered from what is known of the servers; none is started for them
    reads, prompts, ...   `addresses` finds the one server that is meant; the relay carries it there
    subscriptions         recorded here for each subscriber, and combined for each connection

A caller sees and reaches only what the access control allows. Everything else looks as if it did
not exist.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

import anyio

from pegboard.core.caches import BoundedCache
from pegboard.core.calls import Caller
from pegboard.core.json import Json, JsonObject
from pegboard.core.policy import AccessControl
from pegboard.core.results.blob_links import uri_to_handle
from pegboard.core.sanitization import sanitize_value
from pegboard.errors import Busy, PegboardError, UpstreamError
from pegboard.upstream.addresses import Addresses, Location, build_resource_address
from pegboard.upstream.client_sdk import INVALID_PARAMS
from pegboard.upstream.downstream import Downstream, build_downstream
from pegboard.upstream.era_translation import translate_result
from pegboard.upstream.inbound_router import UpstreamEvent
from pegboard.upstream.listing import Listing
from pegboard.upstream.relay import Relay, UpstreamRequest
from pegboard.upstream.tasks import parse_task_address

_Handler: TypeAlias = Callable[[JsonObject, Downstream], Awaitable[JsonObject]]
_UPDATED = "notifications/resources/updated"
_MAX_CACHED_VIEWS = 256
MAX_SUBSCRIPTIONS = 200
"""Resources that one session, or one stream of a modern client, may subscribe to."""
_TASKS: JsonObject = {"cancel": {}, "requests": {"tools": {"call": {}}}}
"""Tasks of 2025-11-25 as they work here: no `list`, which would have to ask every server."""
_ALL_CAPABILITIES: JsonObject = {"resources": {}, "prompts": {}, "completions": {}, "logging": {}}
"""Capabilities that a server may have, before anything is known about it."""
_EXTENSIONS = ("io.modelcontextprotocol/tasks", "io.modelcontextprotocol/ui")
"""Extensions whose methods and `_meta` are relayed."""


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A subscriber to a resource: a legacy session, or one stream of a modern client.

    `notify` is given the URI that they used; `key` identifies the subscriber.
    """

    downstream: Downstream
    key: object
    notify: Callable[[str], Awaitable[None]]


class Passthrough:
    """The methods of a gateway that are not about tools."""

    def __init__(self, relay: Relay, *, bare_prompts: bool = False) -> None:
        self._relay = relay
        self._bare_prompts = bare_prompts
        self.addresses = Addresses(())
        self.access: Callable[[], AccessControl] = AccessControl
        """Who may use what a server offers; called each time, since a reload replaces it."""
        self.clean_results = False
        """Whether prompts and resources are relayed without invisible characters."""
        self._allowed_addresses: BoundedCache[frozenset[str], Addresses]
        self._allowed_addresses = BoundedCache(_MAX_CACHED_VIEWS)
        self._subscriptions: dict[tuple[Location, object], tuple[Subscriber, str]] = {}
        relay.on_session_end(self.forget_subscriber)
        relay.address_link = self._address_link
        self._handlers: dict[str, _Handler] = {
            "resources/list": self._build_list_handler(
                "resources", lambda addresses: addresses.resources
            ),
            "resources/templates/list": self._build_list_handler(
                "resourceTemplates", lambda addresses: addresses.templates
            ),
            "resources/read": self._read_resource,
            "resources/subscribe": lambda params, downstream: self.subscribe(
                str(params.get("uri")), _build_session_subscriber(downstream)
            ),
            "resources/unsubscribe": lambda params, downstream: self.unsubscribe(
                str(params.get("uri")), _build_session_subscriber(downstream)
            ),
            "prompts/list": self._build_list_handler(
                "prompts", lambda addresses: addresses.prompts
            ),
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
            "logging/setLevel": self._set_log_level,
            **{
                f"tasks/{verb}": self._build_task_handler(verb)
                for verb in ("get", "result", "update", "cancel")
            },
        }

    def set_listings(self, listings: Iterable[Listing]) -> None:
        """Take what the servers list, in place of what they listed before."""
        self.addresses = Addresses(listings, bare=self._bare_prompts)
        self._allowed_addresses.clear()

    def handles(self, method: str) -> bool:
        return method in self._handlers

    def capabilities(self, *, complete: bool = True) -> JsonObject:
        """What a gateway in front of these servers can offer beside tools.

        Until all servers are known (`complete`), everything is announced that one of them may turn
        out to have: clients read this once and never ask for what was not announced.
        """
        declared = [listing.capabilities for listing in self.addresses.listings.values()]
        if not complete:
            declared.append(_ALL_CAPABILITIES)
        offered: JsonObject = {}
        if any("resources" in c for c in declared):
            offered["resources"] = {"subscribe": True, "listChanged": True}
        if any("prompts" in c for c in declared):
            offered["prompts"] = {"listChanged": True}
        for name in ("completions", "logging"):
            if any(name in c for c in declared):
                offered[name] = {}
        if any(isinstance(c.get("tasks"), dict) for c in declared):
            offered["tasks"] = _TASKS
        # Extensions that work through a gateway, as the first server that has them declares them.
        relayed: JsonObject = {}
        for capabilities in declared:
            extensions = capabilities.get("extensions")
            for name in _EXTENSIONS:
                settings = extensions.get(name) if isinstance(extensions, dict) else None
                if isinstance(settings, dict):
                    relayed.setdefault(name, sanitize_value(settings))
        if relayed:
            offered["extensions"] = relayed
        return offered

    async def request(
        self, method: str, params: Mapping[str, Json], *, caller: Caller, request: object | None
    ) -> JsonObject:
        """The result of one of the methods that `handles` knows.

        Raises:
            UpstreamError: The server's own error, or no server has what was asked for; with `code`
                and `data` in the details.
        """
        downstream = build_downstream(caller, request, params)
        result = await self._handlers[method](dict(params), downstream)
        return translate_result(downstream.era, result)

    async def notify(
        self, method: str, params: Mapping[str, Json], *, caller: Caller, request: object | None
    ) -> None:
        """Pass on what a legacy client announces (`notifications/roots/list_changed`)."""
        await self._relay.notify(method, dict(params), build_downstream(caller, request, params))

    # Subscriptions.

    def forget_subscriber(self, subscriber: object) -> None:
        """Remove a subscriber that has disconnected, by its key."""
        for key in [key for key in self._subscriptions if key[1] == subscriber]:
            del self._subscriptions[key]

    async def on_event(self, event: UpstreamEvent) -> None:
        """Notify the subscribers of a resource that has changed; for `add_listener` of a pool."""
        if event.change != "resource" or event.uri is None:
            return
        location, access = Location(event.server, event.uri), self.access()
        # A copy: a subscriber may unsubscribe while another is being notified.
        for (subscribed, _), (subscriber, uri) in list(self._subscriptions.items()):
            downstream = subscriber.downstream
            if (
                subscribed == location
                # Both may have changed since they subscribed: what a caller may use, and whose
                # connection it was that brought this.
                and access.can_use_resources(downstream.caller, location.server)
                and downstream.is_served_by(event.owner)
            ):
                with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                    await subscriber.notify(uri)

    async def subscribe(self, uri: str, subscriber: Subscriber) -> JsonObject:
        """Notify a subscriber of changes of a resource, through their own connection to its server.

        Raises:
            UpstreamError: There is no such resource for this caller, or its server refused.
        """
        location = self._find_resource(uri, subscriber.downstream)
        if sum(key == subscriber.key for _, key in self._subscriptions) >= MAX_SUBSCRIPTIONS:
            raise Busy(f"You have subscribed to {MAX_SUBSCRIPTIONS} resources already.")
        # Recorded before the request is sent: the first change may come before its answer.
        self._subscriptions[location, subscriber.key] = subscriber, uri
        try:
            return await self._update_server(location, "resources/subscribe", subscriber.downstream)
        except PegboardError:
            self._subscriptions.pop((location, subscriber.key), None)
            raise

    async def unsubscribe(self, uri: str, subscriber: Subscriber) -> JsonObject:
        """Stop notifying a subscriber; if it was the last one there, unsubscribe at the server.

        Raises:
            UpstreamError: There is no such resource for this caller, or its server failed.
        """
        # The URI may lead elsewhere by now: what counts is where it led when they subscribed.
        held = [
            location
            for (location, key), (_, named) in self._subscriptions.items()
            if (key, named) == (subscriber.key, uri)
        ]
        location = held[0] if held else self._find_resource(uri, subscriber.downstream)
        self._subscriptions.pop((location, subscriber.key), None)
        return await self._update_server(location, "resources/unsubscribe", subscriber.downstream)

    async def _update_server(
        self, location: Location, method: str, downstream: Downstream
    ) -> JsonObject:
        """Have the server announce what is subscribed to on this connection now."""
        async with self._relay.pool.use(location.server, downstream) as connection:
            # Several subscribers may share the connection, so it gets the union of their wishes.
            wanted = frozenset(
                subscribed.name
                for (subscribed, _), (subscriber, _) in self._subscriptions.items()
                if subscribed.server == location.server
                and subscriber.downstream.is_served_by(connection.owner)
            )
            # A modern server is sent the whole set (`subscriptions/listen`), a legacy one a request
            # for each resource; a resource that somebody else still wants is not unsubscribed.
            connection.set_subscriptions(wanted)
            is_subscribing = method == "resources/subscribe"
            if connection.era == "legacy" and is_subscribing == (location.name in wanted):
                return await connection.request(method, {"uri": location.name}, downstream)
        return {}

    # Lists.

    def _build_list_handler(
        self, key: str, get_entries: Callable[[Addresses], Iterable[JsonObject]]
    ) -> _Handler:
        async def handle(params: JsonObject, downstream: Downstream) -> JsonObject:
            result: JsonObject = {key: list(get_entries(self._get_addresses(downstream)))}
            if downstream.era == "modern":
                # What a caller sees depends on who they are and changes with the servers.
                result |= {"ttlMs": 0, "cacheScope": "private"}
            return result

        return handle

    def _get_addresses(self, downstream: Downstream) -> Addresses:
        """The addresses of the servers that this client may know of."""
        listings, access = self.addresses.listings, self.access()
        allowed = frozenset(
            name for name in listings if access.can_use_resources(downstream.caller, name)
        )
        if len(allowed) == len(listings):
            return self.addresses
        # Not a filter over all addresses: whether a URI is ambiguous, and so how it is shown,
        # depends on the other servers, and would reveal servers that a caller may not see.
        found = self._allowed_addresses.get(allowed)
        if found is None:
            visible = [listing for name, listing in listings.items() if name in allowed]
            found = Addresses(visible, bare=self._bare_prompts)
            self._allowed_addresses.put(allowed, found)
        return found

    # Requests that one server answers.

    async def _read_resource(self, params: JsonObject, downstream: Downstream) -> JsonObject:
        uri = str(params.get("uri"))
        location = self._find_resource(uri, downstream)
        sent = {**params, "uri": location.name}
        result = await self._send(location, "resources/read", sent, downstream)
        contents = result.get("contents")
        if location.name == uri or not isinstance(contents, list):
            return result
        # The client knows the resource by the address that it asked for.
        renamed = [{**c, "uri": uri} if c.get("uri") == location.name else c for c in contents]
        return {**result, "contents": renamed}

    async def _get_prompt(self, params: JsonObject, downstream: Downstream) -> JsonObject:
        location = self._find_prompt(params.get("name"), downstream)
        sent = {**params, "name": location.name}
        names = self._get_addresses(downstream).argument_names(location)
        if "arguments" in sent and names:
            sent["arguments"] = _rename_arguments(sent["arguments"], names)
        return await self._send(location, "prompts/get", sent, downstream)

    async def _complete(self, params: JsonObject, downstream: Downstream) -> JsonObject:
        addresses = self._get_addresses(downstream)
        given = params.get("ref")
        ref: JsonObject = given if isinstance(given, dict) else {}
        if ref.get("type") == "ref/prompt":
            key, location = "name", self._find_prompt(ref.get("name"), downstream)
            if names := addresses.argument_names(location):
                # The server knows its arguments only by its own names.
                argument, context = params.get("argument"), params.get("context")
                if isinstance(argument, dict):
                    name = argument.get("name")
                    renamed = {**argument, "name": names.get(str(name), name)}
                    params = {**params, "argument": renamed}
                if isinstance(context, dict):
                    arguments = _rename_arguments(context.get("arguments"), names)
                    params = {**params, "context": {**context, "arguments": arguments}}
        else:
            uri = str(ref.get("uri"))
            found = addresses.find_template(uri)
            key, location = "uri", _require_one("resource template", uri, found)
        sent = {**params, "ref": {**ref, key: location.name}}
        return await self._send(location, "completion/complete", sent, downstream)

    async def _set_log_level(self, params: JsonObject, downstream: Downstream) -> JsonObject:
        await self._relay.set_log_level(str(params.get("level")), downstream)
        return {}

    def _build_task_handler(self, verb: str) -> _Handler:
        async def handle(params: JsonObject, downstream: Downstream) -> JsonObject:
            address, caller = params.get("taskId"), downstream.caller
            location = parse_task_address(address)
            servers = {spec.name for spec in self._relay.pool.servers}
            if location is None or location.server not in servers:
                _raise_unknown("task", address)
            # Only the principal who started a task may follow it, and only while they still have
            # the tool that they started it with.
            tool_id = await self._relay.task_owners.find_tool(caller.principal, location)
            if tool_id is None or not self.access().can_see_tool(caller, tool_id):
                _raise_unknown("task", address)
            sent = {**params, "taskId": location.name}
            return await self._send(location, f"tasks/{verb}", sent, downstream)

        return handle

    async def _send(
        self, location: Location, method: str, params: JsonObject, downstream: Downstream
    ) -> JsonObject:
        request = UpstreamRequest(location.server, method, params)
        result = await self._relay.request(request, downstream)
        return sanitize_value(result) if self.clean_results else result

    def _find_resource(self, uri: str, downstream: Downstream) -> Location:
        linked = self._relay.links.find_servers(downstream.caller.principal, uri)
        found = self._get_addresses(downstream).find_resource(uri, linked)
        return _require_one("resource", uri, found)

    def _address_link(self, server: str, uri: str, downstream: Downstream) -> str:
        """The URI of a server's link, as an address where a read of it would go to another server.

        Otherwise a server could declare a template such as `{+any}`, and be sent the reads of
        everything that other servers link to.
        """
        found = self._get_addresses(downstream).find_resource(uri, {server})
        is_own = not found or [location.server for location in found] == [server]
        # The URI of a stored result would be looked up here, and is that of another gateway.
        if is_own and uri_to_handle(uri) is None:
            return uri
        return build_resource_address(server, uri)

    def _find_prompt(self, name: Json, downstream: Downstream) -> Location:
        found = self._get_addresses(downstream).find_prompt(str(name))
        return found or _raise_unknown("prompt", name)


def _build_session_subscriber(downstream: Downstream) -> Subscriber:
    """A legacy client: one session, however often it subscribes."""

    async def notify(uri: str) -> None:
        await downstream.notify_session(_UPDATED, {"uri": uri})

    return Subscriber(downstream, downstream.owner, notify)


def _require_one(what: str, uri: str, locations: Sequence[Location]) -> Location:
    """The only location; if there are several, the request is refused instead of guessing."""
    if len(locations) == 1:
        return locations[0]
    if not locations:
        _raise_unknown(what, uri)
    addresses = [build_resource_address(location.server, location.name) for location in locations]
    raise UpstreamError(
        f"Several servers have the {what} {uri!r}. Say which one: {', '.join(addresses)}.",
        code=INVALID_PARAMS,
        data={what: uri, "addresses": addresses},
    )


def _raise_unknown(what: str, name: Json) -> NoReturn:
    # 2026-07-28 says -32602 for all of these; so did older revisions, except for resources.
    raise UpstreamError(
        f"No server has the {what} {name!r}.", code=INVALID_PARAMS, data={what: name}
    )


def _rename_arguments(arguments: Json, names: Mapping[str, str]) -> Json:
    """The arguments under the server's own names."""
    if not isinstance(arguments, dict):
        return arguments
    return {names.get(name, name): value for name, value in arguments.items()}
