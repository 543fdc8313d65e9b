"""Which server a prompt, a resource or a task belongs to: their addresses, and the way back.

| | address | at the server |
|---|---|---|
| prompt | `server.prompt`, as for tools | `prompt` |
| resource | its URI; `pegboard://server/` and the URI where two servers list the same | the URI |
| task | `server:id` | `id` |

Results and people name a resource by its URI, so it keeps it wherever that is unambiguous. Every
form is accepted at all times. A new set of listings makes a new `Addresses`. Names and URIs are
shown as `core.cleaning` spells them, and accepted in that spelling too; a server gets its own.

Servers also hand out resources that they do not list, in links of results. `ResourceLinks` records
them for each principal, so that nobody's results decide where somebody else's reads go. A link is
only a hint: `Addresses` prefers the servers that declare a resource.

Servers choose the ids of tasks, and some count: an id says nothing about who may use it. So the
store has a record of every task, under a key of principal, server and id together. Anybody who did
not start a task finds no record, exactly as with an id that never existed. Replicas with a shared
store share the records.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final
from urllib.parse import quote, unquote

from mcp.shared.uri_template import UriTemplate

from pegboard.core.json import Json, JsonObject, digest
from pegboard.core.sanitization import escape_name, escape_uri, sanitize_entry
from pegboard.errors import StoreError
from pegboard.ports import Store
from pegboard.upstream.listing import Listing

SCHEME: Final = "pegboard://"


@dataclass(frozen=True, slots=True)
class Location:
    """Where something is: a server, and what the server itself calls it."""

    server: str
    name: str


class Addresses:
    """All prompts, resources and templates of these listings; bare prompt names if told so."""

    def __init__(self, listings: Iterable[Listing], *, bare: bool = False) -> None:
        self.listings: Mapping[str, Listing] = {listing.server: listing for listing in listings}
        self._bare = bare

    @cached_property
    def prompts(self) -> tuple[JsonObject, ...]:
        """All prompts, named by address."""
        return tuple(
            {**sanitize_entry(entry), "name": address}
            for address, (_, entry) in sorted(self._prompts.items())
        )

    @cached_property
    def resources(self) -> tuple[JsonObject, ...]:
        """All resources; the URI is an address where several servers list it."""
        return self._unique("resources", "uri")

    @cached_property
    def templates(self) -> tuple[JsonObject, ...]:
        """All templates; an address where several servers list the same."""
        return self._unique("resource_templates", "uriTemplate")

    def prompt(self, address: str) -> Location | None:
        """The prompt of that address, or of that name if only one server has it."""
        if (found := self._prompts.get(address)) is not None:
            return Location(found[0], found[1]["name"])
        named = [
            Location(server, entry["name"])
            for server, entry in self._prompts.values()
            if address in (entry["name"], escape_name(entry["name"]))
        ]
        return named[0] if len(named) == 1 else None

    def argument_names(self, prompt: Location) -> Mapping[str, str]:
        """The arguments of a prompt that are shown in another spelling than the server's."""
        return self._argument_names.get(prompt, {})

    def resource(self, uri: str, linked: Collection[str] = ()) -> list[Location]:
        """The servers that may have a resource: none, one, or several where it is ambiguous.

        Who lists it comes first, then who has a template that it fits. `linked` are servers that
        gave a link to it. These decide among those, and count only where nobody declares it: no
        server's link leads away from another server's resource.
        """
        if (place := self.explicit(uri)) is not None:
            return [place]
        uri = self._spelled_uris.get(uri, uri)
        listed = [Location(server, uri) for server in self._holders.get(uri, ())]
        if declared := listed or self._matching(uri):
            return [place for place in declared if place.server in linked] or declared
        given = [server for server in self.listings if server in linked]
        return [Location(server, uri) for server in given or self._only_one()]

    def template(self, text: str) -> list[Location]:
        """The servers that have a template, by its text."""
        if (place := self.explicit(text)) is not None:
            return [place]
        text = self._spelled_uris.get(text, text)
        found = [
            Location(server, text)
            for server, entries in self.listings.items()
            if any(entry.get("uriTemplate") == text for entry in entries.resource_templates)
        ]
        return found or self.resource(text)

    def explicit(self, uri: str) -> Location | None:
        """The place that a `pegboard://` address names."""
        if not uri.startswith(SCHEME):
            return None
        server, slash, rest = uri.removeprefix(SCHEME).partition("/")
        if not slash or server not in self.listings:
            return None
        return Location(server, self._spelled_uris.get(rest, rest))

    def visible(self, server: str, uri: str) -> str:
        """What clients call a server's resource."""
        return escape_uri(f"{SCHEME}{server}/{uri}" if self._uses[uri] > 1 else uri)

    @cached_property
    def _prompts(self) -> dict[str, tuple[str, JsonObject]]:
        named = [
            (listing.server, entry)
            for listing in self.listings.values()
            for entry in listing.prompts
            if isinstance(entry.get("name"), str)
        ]
        uses = Counter(entry["name"] for _, entry in named)
        return {
            escape_name(
                entry["name"]
                if self._bare and uses[entry["name"]] == 1
                else f"{server}.{entry['name']}"
            ): (server, entry)
            for server, entry in named
        }

    @cached_property
    def _argument_names(self) -> dict[Location, dict[str, str]]:
        found: dict[Location, dict[str, str]] = {}
        for server, entry in self._prompts.values():
            arguments = entry.get("arguments")
            names = [
                argument["name"]
                for argument in (arguments if isinstance(arguments, list) else ())
                if isinstance(argument, dict) and isinstance(argument.get("name"), str)
            ]
            changed = {escape_name(name): name for name in names if escape_name(name) != name}
            if changed:
                found[Location(server, entry["name"])] = changed
        return found

    @cached_property
    def _spelled_uris(self) -> dict[str, str]:
        """What is shown of a URI, with the URI; for those that are not shown as they are."""
        spelled = {escape_uri(uri): uri for uri in self._uses}
        return {shown: uri for shown, uri in spelled.items() if shown not in self._uses}

    @cached_property
    def _holders(self) -> dict[str, list[str]]:
        """Which servers list a URI."""
        holders: dict[str, list[str]] = {}
        for server, listing in self.listings.items():
            for entry in listing.resources:
                found = holders.setdefault(str(entry.get("uri")), [])
                found += [] if server in found else [server]
        return holders

    @cached_property
    def _uses(self) -> Counter[str]:
        uses: Counter[str] = Counter()
        for listing in self.listings.values():
            uses.update({str(e.get("uri")) for e in listing.resources})
            uses.update({str(e.get("uriTemplate")) for e in listing.resource_templates})
        return uses

    def _unique(self, kind: str, key: str) -> tuple[JsonObject, ...]:
        return tuple(
            {**sanitize_entry(entry), key: self.visible(listing.server, str(entry.get(key)))}
            for listing in self.listings.values()
            for entry in getattr(listing, kind)
        )

    def _matching(self, uri: str) -> list[Location]:
        """The servers with a template that a URI fits, as it is or as it is shown; each once."""
        fitting: dict[str, Location] = {}
        for server, own, shown in self._parsed:
            if own.match(uri) is not None:
                fitting.setdefault(server, Location(server, uri))
            elif shown is not None and (values := shown.match(uri)) is not None:
                fitting.setdefault(server, Location(server, own.expand(values)))
        return list(fitting.values())

    @cached_property
    def _parsed(self) -> list[tuple[str, UriTemplate, UriTemplate | None]]:
        """Each template, and how clients see it where that differs."""
        parsed: list[tuple[str, UriTemplate, UriTemplate | None]] = []
        for listing in self.listings.values():
            for entry in listing.resource_templates:
                try:
                    text = str(entry["uriTemplate"])
                    shown = escape_uri(text)
                    other = UriTemplate.parse(shown) if shown != text else None
                    parsed.append((listing.server, UriTemplate.parse(text), other))
                except (KeyError, ValueError):
                    continue  # a template that nobody can expand matches nothing
        return parsed

    def _only_one(self) -> list[str]:
        """The one server with resources: servers hand out URIs that they do not list."""
        able = [s for s, listing in self.listings.items() if "resources" in listing.capabilities]
        return able if len(able) == 1 else []


MAX_LINKS: Final = 500
"""Links that are remembered of one principal."""
MAX_PRINCIPALS: Final = 500
_MAX_URI_LENGTH: Final = 1_000


class ResourceLinks:
    """The links that servers have given, the oldest making room for new ones."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, OrderedDict[str, frozenset[str]]] = OrderedDict()

    def note(self, principal: str, server: str, content: Json) -> None:
        """Remember the links among the content blocks of a result."""
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") == "resource_link":
                self._remember(principal, server, str(block.get("uri")))

    def servers(self, principal: str, uri: str) -> frozenset[str]:
        """The servers that gave this principal a link to a URI."""
        return self._known.get(principal, {}).get(uri, frozenset())

    def _remember(self, principal: str, server: str, uri: str) -> None:
        if len(uri) > _MAX_URI_LENGTH:
            return
        links = self._known.setdefault(principal, OrderedDict())
        self._known.move_to_end(principal)
        links[uri] = links.get(uri, frozenset()) | {server}
        links.move_to_end(uri)
        if len(links) > MAX_LINKS:
            links.popitem(last=False)
        if len(self._known) > MAX_PRINCIPALS:
            self._known.popitem(last=False)


logger = logging.getLogger(__name__)

TASK_RECORD_TTL: Final = 7 * 86_400.0
"""Seconds for which a task can be followed."""
RELATED_TASK = "io.modelcontextprotocol/related-task"


def build_task_address(server: str, task_id: str) -> str:
    """The id that a client sees."""
    return f"{quote(server, safe='')}:{task_id}"


def parse_task_address(task_address: Json) -> tuple[str, str] | None:
    """Server and id of what a client sent; `None` when it is no address of ours."""
    if not isinstance(task_address, str):
        return None
    server, colon, task_id = task_address.partition(":")
    return (unquote(server), task_id) if colon and server and task_id else None


def add_task_addresses(server: str, message: JsonObject) -> JsonObject:
    """A result or params from a server, with task ids as its clients see them."""
    changed = message
    for key in ("taskId", "task", "tasks"):
        if key in message:
            changed = {**changed, key: _address_tasks(server, key, message[key])}
    meta = message.get("_meta")
    if isinstance(meta, dict) and isinstance(meta.get(RELATED_TASK), dict):
        related = add_task_addresses(server, meta[RELATED_TASK])
        changed = {**changed, "_meta": {**meta, RELATED_TASK: related}}
    return changed


def _address_tasks(server: str, key: str, value: Json) -> Json:
    if key == "taskId":
        return build_task_address(server, value) if isinstance(value, str) else value
    if isinstance(value, dict):
        return add_task_addresses(server, value)
    if isinstance(value, list):
        return [
            add_task_addresses(server, entry) if isinstance(entry, dict) else entry
            for entry in value
        ]
    return value


class TaskOwners:
    """Who began which task, by which tool."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def record(self, principal: str, server: str, tool_id: str, result: JsonObject) -> None:
        """Bind the tasks that a call's result tells of to the caller and the tool."""
        for task_id in _started_tasks(result):
            owner = {"tool": tool_id}
            key = _task_key(principal, server, task_id)
            try:
                await self._store.update(key, lambda _, owner=owner: owner, ttl=TASK_RECORD_TTL)
            except StoreError as exc:
                logger.warning("A task of %s cannot be followed: %s", server, exc)

    async def tool_of(self, principal: str, server: str, task_id: str) -> str | None:
        """The id of the tool by which this principal began a task; `None` if they did not."""
        record = await self._store.get(_task_key(principal, server, task_id))
        return record.get("tool") if isinstance(record, dict) else None


def _started_tasks(result: JsonObject) -> Iterator[str]:
    for part in (result, result.get("task")):
        if isinstance(part, dict) and isinstance(part.get("taskId"), str):
            yield part["taskId"]


def _task_key(principal: str, server: str, task_id: str) -> str:
    return f"task:{digest([principal, server, task_id])}"
