"""Everything but tools, to the server it belongs to: resources, prompts, tasks, logging.

Lists are answered from what is known of the servers; nothing is started for them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

import anyio

from pegboard.core.calls import Caller
from pegboard.core.json import Json, JsonObject
from pegboard.core.policy import AccessControl
from pegboard.core.sanitization import sanitize_value
from pegboard.errors import Busy, PegboardError, UpstreamError
from pegboard.upstream import addresses, era_translation
from pegboard.upstream.addresses import SCHEME, Addresses, Location
from pegboard.upstream.client_sdk import INVALID_PARAMS
from pegboard.upstream.downstream import Downstream, build_downstream
from pegboard.upstream.inbound_router import UpstreamEvent
from pegboard.upstream.listing import Listing
from pegboard.upstream.relay import Relay, UpstreamRequest

_Handler: TypeAlias = Callable[[JsonObject, Downstream], Awaitable[JsonObject]]
_UPDATED = "notifications/resources/updated"
_MAX_CACHED_VIEWS = 256
MAX_SUBSCRIPTIONS = 200
"""Resources that one session, or one stream of a modern client, may subscribe to."""
_TASKS: JsonObject = {"cancel": {}, "requests": {"tools": {"call": {}}}}
"""Tasks of 2025-11-25 as they work here: no `list`, which would have to ask every server."""
_ALL_CAPABILITIES: JsonObject = {"resources": {}, "prompts": {}, "completions": {}, "logging": {}}
"""What a server that nothing is known of may turn out to have."""
_EXTENSIONS = ("io.modelcontextprotocol/tasks", "io.modelcontextprotocol/ui")
"""Extensions whose methods and `_meta` are relayed."""


@dataclass(frozen=True, slots=True)
class Subscriber:
    """Who wants to hear of a resource: a legacy session, or one stream of a modern client.

    `tell` is given the URI that they named; `key` tells subscribers apart.
    """

    front: Downstream
    key: object
    tell: Callable[[str], Awaitable[None]]


class Passthrough:
    """The methods of a gateway that are not about tools."""

    def __init__(self, relay: Relay, *, bare_prompts: bool = False) -> None:
        self._relay = relay
        self._bare = bare_prompts
        self.addresses = Addresses(())
        self.gate: Callable[[], AccessControl] = AccessControl
        """Who may use what a server offers; everything else is as if it were not there."""
        self.clean_results = False
        """Whether prompts and resources are relayed without invisible characters."""
        self._seen: OrderedDict[frozenset[str], Addresses] = OrderedDict()
        self._subscriptions: dict[tuple[Location, object], tuple[Subscriber, str]] = {}
        relay.when_session_ends(self.forget)
        self._handlers: dict[str, _Handler] = {
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            "prompts/list": self._list_prompts,
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
            "logging/setLevel": self._set_level,
            **{f"tasks/{verb}": self._task(verb) for verb in ("get", "result", "update", "cancel")},
        }

    def hold(self, listings: Iterable[Listing]) -> None:
        """Take what the servers offer."""
        self.addresses = Addresses(listings, bare=self._bare)
        self._seen.clear()

    def _addresses(self, front: Downstream) -> Addresses:
        """What this client may know of."""
        listings, gate = self.addresses.listings, self.gate()
        allowed = frozenset(name for name in listings if gate.can_use_resources(front.caller, name))
        if len(allowed) == len(listings):
            return self.addresses
        seen = self._seen.get(allowed)
        if seen is None:
            mine = [listing for name, listing in listings.items() if name in allowed]
            seen = self._seen[allowed] = Addresses(mine, bare=self._bare)
            if len(self._seen) > _MAX_CACHED_VIEWS:
                self._seen.popitem(last=False)
        return seen

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
        if extensions := _relayed_extensions(declared):
            offered["extensions"] = extensions
        return offered

    async def request(
        self, method: str, params: Mapping[str, Json], *, caller: Caller, request: object | None
    ) -> JsonObject:
        """The result of one of the methods that `handles` names.

        Raises:
            UpstreamError: the server's own error, or that no server has what was asked for; with
                `code` and `data` in the details.
        """
        front = build_downstream(caller, request, params)
        result = await self._handlers[method](dict(params), front)
        return era_translation.translate_result(front.era, result)

    async def notify(
        self, method: str, params: Mapping[str, Json], *, caller: Caller, request: object | None
    ) -> None:
        """Pass on what a legacy client announces (`notifications/roots/list_changed`)."""
        await self._relay.notify(method, dict(params), build_downstream(caller, request, params))

    # Subscriptions.

    def forget(self, subscriber: object) -> None:
        """Drop what is left of a subscriber that has gone, by its key."""
        for key in [key for key in self._subscriptions if key[1] == subscriber]:
            del self._subscriptions[key]

    async def on_event(self, event: UpstreamEvent) -> None:
        """Tell those who subscribed to a resource that it has changed; for `Pool.listen`."""
        if event.change != "resource" or event.uri is None:
            return
        place, gate = Location(event.server, event.uri), self.gate()
        for (subscribed, _), (subscriber, uri) in list(self._subscriptions.items()):
            front = subscriber.front
            if (
                subscribed == place
                and gate.can_use_resources(front.caller, place.server)
                and front.belongs_to(event.owner)
            ):
                with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                    await subscriber.tell(uri)

    async def subscribe(self, uri: str, subscriber: Subscriber) -> JsonObject:
        """Have a subscriber told of changes of a resource, by their own connection to its server.

        Raises:
            UpstreamError: there is no such resource for this caller, or its server refused.
        """
        place = self._resource(uri, subscriber.front)
        if sum(key == subscriber.key for _, key in self._subscriptions) >= MAX_SUBSCRIPTIONS:
            raise Busy(f"You have subscribed to {MAX_SUBSCRIPTIONS} resources already.")
        self._subscriptions[place, subscriber.key] = subscriber, uri
        try:
            return await self._watch(place, "resources/subscribe", subscriber.front)
        except PegboardError:
            self._subscriptions.pop((place, subscriber.key), None)
            raise

    async def unsubscribe(self, uri: str, subscriber: Subscriber) -> JsonObject:
        """Have a subscriber told no longer; the server is told if nobody else on it listens.

        Raises:
            UpstreamError: there is no such resource for this caller, or its server failed.
        """
        held = [
            place
            for (place, key), (_, named) in self._subscriptions.items()
            if (key, named) == (subscriber.key, uri)
        ]
        place = held[0] if held else self._resource(uri, subscriber.front)
        self._subscriptions.pop((place, subscriber.key), None)
        return await self._watch(place, "resources/unsubscribe", subscriber.front)

    async def _watch(self, place: Location, method: str, front: Downstream) -> JsonObject:
        """Have the server announce what is subscribed to on this connection now."""
        async with self._relay.pool.use(place.server, front) as connection:
            watched = frozenset(
                subscribed.name
                for (subscribed, _), (subscriber, _) in self._subscriptions.items()
                if subscribed.server == place.server
                and subscriber.front.belongs_to(connection.lane)
            )
            connection.watch(watched)
            is_wanted = method == "resources/subscribe"
            if connection.era == "legacy" and is_wanted == (place.name in watched):
                return await connection.request(method, {"uri": place.name}, front)
        return {}

    # Lists.

    async def _list_resources(self, params: JsonObject, front: Downstream) -> JsonObject:
        return _build_list_result("resources", self._addresses(front).resources, front)

    async def _list_templates(self, params: JsonObject, front: Downstream) -> JsonObject:
        return _build_list_result("resourceTemplates", self._addresses(front).templates, front)

    async def _list_prompts(self, params: JsonObject, front: Downstream) -> JsonObject:
        return _build_list_result("prompts", self._addresses(front).prompts, front)

    # What one server answers.

    async def _read(self, params: JsonObject, front: Downstream) -> JsonObject:
        place = self._resource(str(params.get("uri")), front)
        sent = {**params, "uri": place.name}
        result = await self._send(place, "resources/read", sent, front)
        return _restore_uri(result, place.name, str(params["uri"]))

    async def _subscribe(self, params: JsonObject, front: Downstream) -> JsonObject:
        return await self.subscribe(str(params.get("uri")), _session_subscriber(front))

    async def _unsubscribe(self, params: JsonObject, front: Downstream) -> JsonObject:
        return await self.unsubscribe(str(params.get("uri")), _session_subscriber(front))

    async def _get_prompt(self, params: JsonObject, front: Downstream) -> JsonObject:
        place = self._prompt(params.get("name"), front)
        sent = {**params, "name": place.name}
        if "arguments" in sent and (spelled := self._addresses(front).argument_names(place)):
            sent["arguments"] = _rename_arguments(sent["arguments"], spelled)
        return await self._send(place, "prompts/get", sent, front)

    async def _complete(self, params: JsonObject, front: Downstream) -> JsonObject:
        ref: JsonObject = params.get("ref") or {}
        if ref.get("type") == "ref/prompt":
            place, key = self._prompt(ref.get("name"), front), "name"
            if spelled := self._addresses(front).argument_names(place):
                params = _rename_completion(params, spelled)
        else:
            uri = str(ref.get("uri"))
            place, key = (
                _require_one("resource template", uri, self._addresses(front).template(uri)),
                "uri",
            )
        sent = {**params, "ref": {**ref, key: place.name}}
        return await self._send(place, "completion/complete", sent, front)

    async def _set_level(self, params: JsonObject, front: Downstream) -> JsonObject:
        await self._relay.set_level(str(params.get("level")), front)
        return {}

    def _task(self, verb: str) -> _Handler:
        async def handle(params: JsonObject, front: Downstream) -> JsonObject:
            place = await self._task_place(params.get("taskId"), front)
            return await self._send(place, f"tasks/{verb}", {**params, "taskId": place.name}, front)

        return handle

    async def _task_place(self, address: Json, front: Downstream) -> Location:
        """Where a task is, for whoever began it and still has the tool that they began it with."""
        caller, parsed = front.caller, addresses.parse_task_address(address)
        if parsed is not None and parsed[0] in {s.name for s in self._relay.pool.servers}:
            tool_id = await self._relay.task_owners.tool_of(caller.principal, *parsed)
            if tool_id is not None and self.gate().can_see_tool(caller, tool_id):
                return Location(*parsed)
        _raise_unknown("task", address)

    async def _send(
        self, place: Location, method: str, params: JsonObject, front: Downstream
    ) -> JsonObject:
        result = await self._relay.request(UpstreamRequest(place.server, method, params), front)
        return sanitize_value(result) if self.clean_results else result

    def _resource(self, uri: str, front: Downstream) -> Location:
        linked = self._relay.links.servers(front.caller.principal, uri)
        return _require_one("resource", uri, self._addresses(front).resource(uri, linked))

    def _prompt(self, name: Json, front: Downstream) -> Location:
        return self._addresses(front).prompt(str(name)) or _raise_unknown("prompt", name)


def _session_subscriber(front: Downstream) -> Subscriber:
    """A legacy client: one session, however often it subscribes."""
    return Subscriber(front, front.owner, lambda uri: front.announce(_UPDATED, {"uri": uri}))


def _require_one(what: str, uri: str, places: Sequence[Location]) -> Location:
    """The only place there is: a request is never sent to a server that was perhaps not meant."""
    if len(places) == 1:
        return places[0]
    if not places:
        _raise_unknown(what, uri)
    addresses = [f"{SCHEME}{place.server}/{place.name}" for place in places]
    raise UpstreamError(
        f"Several servers have the {what} {uri!r}. Say which one: {', '.join(addresses)}.",
        code=INVALID_PARAMS,
        data={what: uri, "addresses": addresses},
    )


def _relayed_extensions(declared: Iterable[Mapping[str, Json]]) -> JsonObject:
    """The extensions of these servers that work through a gateway, as the first server has them."""
    found: JsonObject = {}
    for capabilities in declared:
        extensions = capabilities.get("extensions")
        for name in _EXTENSIONS:
            settings = extensions.get(name) if isinstance(extensions, dict) else None
            if isinstance(settings, dict):
                found.setdefault(name, sanitize_value(settings))
    return found


def _raise_unknown(what: str, name: Json) -> NoReturn:
    # 2026-07-28 says -32602 for all of these; so did older revisions, except for resources.
    raise UpstreamError(
        f"No server has the {what} {name!r}.", code=INVALID_PARAMS, data={what: name}
    )


def _build_list_result(key: str, entries: tuple[JsonObject, ...], front: Downstream) -> JsonObject:
    result: JsonObject = {key: list(entries)}
    if front.era == "modern":
        result |= {"ttlMs": 0, "cacheScope": "private"}
    return result


def _rename_arguments(arguments: Json, spelled: Mapping[str, str]) -> Json:
    """The arguments under the server's own names."""
    if not isinstance(arguments, dict):
        return arguments
    return {spelled.get(name, name): value for name, value in arguments.items()}


def _rename_completion(params: JsonObject, spelled: Mapping[str, str]) -> JsonObject:
    """A request for completions under the server's own names of arguments."""
    argument, context = params.get("argument"), params.get("context")
    changed: JsonObject = {}
    if isinstance(argument, dict):
        name = argument.get("name")
        changed["argument"] = {**argument, "name": spelled.get(str(name), name)}
    if isinstance(context, dict):
        arguments = _rename_arguments(context.get("arguments"), spelled)
        changed["context"] = {**context, "arguments": arguments}
    return {**params, **changed}


def _restore_uri(result: JsonObject, name: str, uri: str) -> JsonObject:
    """The result with the URI that the client asked for, where it is another than the server's."""
    contents = result.get("contents")
    if name == uri or not isinstance(contents, list):
        return result
    renamed = [{**c, "uri": uri} if c.get("uri") == name else c for c in contents]
    return {**result, "contents": renamed}
