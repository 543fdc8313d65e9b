"""Everything but tools, to the server it belongs to: resources, prompts, tasks, logging.

Lists are answered from what is known of the servers; nothing is started for them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NoReturn, TypeAlias

from pegboard.core.calls import Caller
from pegboard.core.cleaning import clean_value
from pegboard.core.json import Json, JsonObject
from pegboard.errors import UpstreamError
from pegboard.upstream import eras, tasks
from pegboard.upstream.addresses import Addresses, Place
from pegboard.upstream.fronts import Front, Owner, front_of
from pegboard.upstream.listing import Listing
from pegboard.upstream.relay import Outgoing, Relay
from pegboard.upstream.sdk import INVALID_PARAMS
from pegboard.upstream.switchboard import UpstreamEvent

_Handler: TypeAlias = Callable[[JsonObject, Front], Awaitable[JsonObject]]
_UPDATED = "notifications/resources/updated"
_MOST_SIGHTS = 256

Permits: TypeAlias = Callable[[Caller, str, bool], bool]
"""Whether a caller may use a server: all that it offers, or at least some of its tools."""


class Passthrough:
    """The methods of a gateway that are not about tools."""

    def __init__(self, relay: Relay, *, bare_prompts: bool = False) -> None:
        self._relay = relay
        self._bare = bare_prompts
        self.addresses = Addresses(())
        self.permits: Permits = lambda caller, server, whole: True
        """Who may use what a server offers; everything else is as if it were not there."""
        self.clean_results = False
        """Whether prompts and resources are relayed without invisible characters."""
        self._seen: OrderedDict[frozenset[str], Addresses] = OrderedDict()
        self._subscribers: dict[tuple[Place, Owner], Front] = {}
        relay.when_session_ends(self._forget)
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

    def _addresses(self, front: Front) -> Addresses:
        """What this client may know of."""
        listings = self.addresses.listings
        allowed = frozenset(name for name in listings if self.permits(front.caller, name, True))
        if len(allowed) == len(listings):
            return self.addresses
        seen = self._seen.get(allowed)
        if seen is None:
            mine = [listing for name, listing in listings.items() if name in allowed]
            seen = self._seen[allowed] = Addresses(mine, bare=self._bare)
            if len(self._seen) > _MOST_SIGHTS:
                self._seen.popitem(last=False)
        return seen

    def handles(self, method: str) -> bool:
        return method in self._handlers

    def capabilities(self) -> JsonObject:
        """What a gateway in front of these servers can offer beside tools."""
        declared = [listing.capabilities for listing in self.addresses.listings.values()]
        offered: JsonObject = {}
        if any("resources" in c for c in declared):
            offered["resources"] = {"subscribe": True, "listChanged": True}
        if any("prompts" in c for c in declared):
            offered["prompts"] = {"listChanged": True}
        for name in ("completions", "logging"):
            if any(name in c for c in declared):
                offered[name] = {}
        return offered

    async def request(
        self, method: str, params: Mapping[str, Json], *, caller: Caller, request: object | None
    ) -> JsonObject:
        """The result of one of the methods that `handles` names.

        Raises:
            UpstreamError: the server's own error, or that no server has what was asked for; with
                `code` and `data` in the details.
        """
        front = front_of(caller, request, params)
        result = await self._handlers[method](dict(params), front)
        return eras.result_for(front.era, result)

    async def notify(
        self, method: str, params: Mapping[str, Json], *, caller: Caller, request: object | None
    ) -> None:
        """Pass on what a legacy client announces (`notifications/roots/list_changed`)."""
        await self._relay.notify(method, dict(params), front_of(caller, request, params))

    def _forget(self, owner: Owner) -> None:
        for key in [key for key in self._subscribers if key[1] == owner]:
            del self._subscribers[key]

    async def on_event(self, event: UpstreamEvent) -> None:
        """Tell legacy clients that a resource they subscribed to has changed; for `Pool.listen`."""
        if event.change != "resource" or event.uri is None:
            return
        told = {"uri": self.addresses.visible(event.server, event.uri)}
        place = Place(event.server, event.uri)
        for (subscribed, _), front in list(self._subscribers.items()):
            if subscribed == place and front.belongs_to(event.owner):
                await front.announce(_UPDATED, told)

    # Lists.

    async def _list_resources(self, params: JsonObject, front: Front) -> JsonObject:
        return _listed("resources", self._addresses(front).resources, front)

    async def _list_templates(self, params: JsonObject, front: Front) -> JsonObject:
        return _listed("resourceTemplates", self._addresses(front).templates, front)

    async def _list_prompts(self, params: JsonObject, front: Front) -> JsonObject:
        return _listed("prompts", self._addresses(front).prompts, front)

    # What one server answers.

    async def _read(self, params: JsonObject, front: Front) -> JsonObject:
        place = self._resource(params, front)
        sent = {**params, "uri": place.name}
        result = await self._send(place, "resources/read", sent, front)
        return _renamed(result, place.name, str(params["uri"]))

    async def _subscribe(self, params: JsonObject, front: Front) -> JsonObject:
        place = self._resource(params, front)
        self._subscribers[(place, front.owner)] = front
        return await self._watch(place, "resources/subscribe", front)

    async def _unsubscribe(self, params: JsonObject, front: Front) -> JsonObject:
        place = self._resource(params, front)
        self._subscribers.pop((place, front.owner), None)
        return await self._watch(place, "resources/unsubscribe", front)

    async def _watch(self, place: Place, method: str, front: Front) -> JsonObject:
        """Have the server announce what its clients watch now: asked once, or listened to."""
        async with self._relay.pool.use(place.server, front) as connection:
            mine = {
                p.name
                for (p, _), subscriber in self._subscribers.items()
                if p.server == place.server and subscriber.belongs_to(connection.lane)
            }
            connection.watch(frozenset(mine))
            if connection.era == "legacy":
                return await connection.request(method, {"uri": place.name}, front)
        return {}

    async def _get_prompt(self, params: JsonObject, front: Front) -> JsonObject:
        place = self._prompt(params.get("name"), front)
        sent = {**params, "name": place.name}
        if "arguments" in sent and (spelled := self._addresses(front).argument_names(place)):
            sent["arguments"] = _with_names(sent["arguments"], spelled)
        return await self._send(place, "prompts/get", sent, front)

    async def _complete(self, params: JsonObject, front: Front) -> JsonObject:
        ref: JsonObject = params.get("ref") or {}
        if ref.get("type") == "ref/prompt":
            place, key = self._prompt(ref.get("name"), front), "name"
            if spelled := self._addresses(front).argument_names(place):
                params = _completed_with_names(params, spelled)
        else:
            found = self._addresses(front).template(str(ref.get("uri")))
            place, key = found or _unknown("resource template", ref.get("uri")), "uri"
        sent = {**params, "ref": {**ref, key: place.name}}
        return await self._send(place, "completion/complete", sent, front)

    async def _set_level(self, params: JsonObject, front: Front) -> JsonObject:
        await self._relay.set_level(str(params.get("level")), front)
        return {}

    def _task(self, verb: str) -> _Handler:
        async def handle(params: JsonObject, front: Front) -> JsonObject:
            parsed = tasks.parse(params.get("taskId"))
            known = {s.name for s in self._relay.pool.servers}
            if (
                parsed is None
                or parsed[0] not in known
                or not self.permits(front.caller, parsed[0], False)
            ):
                _unknown("task", params.get("taskId"))
            place = Place(*parsed)
            return await self._send(place, f"tasks/{verb}", {**params, "taskId": place.name}, front)

        return handle

    async def _send(
        self, place: Place, method: str, params: JsonObject, front: Front
    ) -> JsonObject:
        result = await self._relay.request(Outgoing(place.server, method, params), front)
        return clean_value(result) if self.clean_results else result

    def _resource(self, params: JsonObject, front: Front) -> Place:
        uri = str(params.get("uri"))
        seen_at = self._relay.links.get(uri)
        if seen_at is not None and not self.permits(front.caller, seen_at, True):
            seen_at = None
        return self._addresses(front).resource(uri, seen_at) or _unknown("resource", uri)

    def _prompt(self, name: Json, front: Front) -> Place:
        return self._addresses(front).prompt(str(name)) or _unknown("prompt", name)


def _unknown(what: str, name: Json) -> NoReturn:
    # 2026-07-28 says -32602 for all of these; so did older revisions, except for resources.
    raise UpstreamError(
        f"No server has the {what} {name!r}.", code=INVALID_PARAMS, data={what: name}
    )


def _listed(key: str, entries: tuple[JsonObject, ...], front: Front) -> JsonObject:
    result: JsonObject = {key: list(entries)}
    if front.era == "modern":
        result |= {"ttlMs": 0, "cacheScope": "private"}
    return result


def _with_names(arguments: Json, spelled: Mapping[str, str]) -> Json:
    """The arguments under the server's own names."""
    if not isinstance(arguments, dict):
        return arguments
    return {spelled.get(name, name): value for name, value in arguments.items()}


def _completed_with_names(params: JsonObject, spelled: Mapping[str, str]) -> JsonObject:
    """A request for completions under the server's own names of arguments."""
    argument, context = params.get("argument"), params.get("context")
    changed: JsonObject = {}
    if isinstance(argument, dict):
        name = argument.get("name")
        changed["argument"] = {**argument, "name": spelled.get(str(name), name)}
    if isinstance(context, dict):
        arguments = _with_names(context.get("arguments"), spelled)
        changed["context"] = {**context, "arguments": arguments}
    return {**params, **changed}


def _renamed(result: JsonObject, name: str, uri: str) -> JsonObject:
    """The result with the URI that the client asked for, where it is another than the server's."""
    contents = result.get("contents")
    if name == uri or not isinstance(contents, list):
        return result
    renamed = [{**c, "uri": uri} if c.get("uri") == name else c for c in contents]
    return {**result, "contents": renamed}
