"""Prompts and resources of many servers under one roof: their addresses, and the way back.

A prompt is `server.prompt`, as a tool is. A resource keeps its URI, which is what tool results and
people name it by; only where two servers list the same one, it is `pegboard://server/` and the URI.
Every form is understood at all times. A new set of listings makes a new `Addresses`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from mcp.shared.uri_template import UriTemplate

from pegboard.core.json import JsonObject
from pegboard.upstream.listing import Listing

SCHEME: Final = "pegboard://"


@dataclass(frozen=True, slots=True)
class Place:
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
            {**entry, "name": address} for address, (_, entry) in sorted(self._prompts.items())
        )

    @cached_property
    def resources(self) -> tuple[JsonObject, ...]:
        """All resources; the URI is an address where several servers list it."""
        return self._unique("resources", "uri")

    @cached_property
    def templates(self) -> tuple[JsonObject, ...]:
        """All templates; an address where several servers list the same."""
        return self._unique("resource_templates", "uriTemplate")

    def prompt(self, address: str) -> Place | None:
        """The prompt of that address, or of that name if only one server has it."""
        if (found := self._prompts.get(address)) is not None:
            return Place(found[0], found[1]["name"])
        named = [
            Place(server, entry["name"])
            for server, entry in self._prompts.values()
            if entry["name"] == address
        ]
        return named[0] if len(named) == 1 else None

    def resource(self, uri: str, linked: Collection[str] = ()) -> list[Place]:
        """The servers that may have a resource: none, one, or several where it is ambiguous.

        Who lists it comes first, then who has a template that it fits. `linked` are servers that
        gave a link to it. These decide among those, and count only where nobody declares it: no
        server's link leads away from another server's resource.
        """
        if (place := self.explicit(uri)) is not None:
            return [place]
        listed = [Place(server, uri) for server in self._holders.get(uri, ())]
        if declared := listed or self._matching(uri):
            return [place for place in declared if place.server in linked] or declared
        given = [server for server in self.listings if server in linked]
        return [Place(server, uri) for server in given or self._only_one()]

    def template(self, text: str) -> list[Place]:
        """The servers that have a template, by its text."""
        if (place := self.explicit(text)) is not None:
            return [place]
        found = [
            Place(server, text)
            for server, entries in self.listings.items()
            if any(entry.get("uriTemplate") == text for entry in entries.resource_templates)
        ]
        return found or self.resource(text)

    def explicit(self, uri: str) -> Place | None:
        """The place that a `pegboard://` address names."""
        if not uri.startswith(SCHEME):
            return None
        server, slash, rest = uri.removeprefix(SCHEME).partition("/")
        return Place(server, rest) if slash and server in self.listings else None

    def visible(self, server: str, uri: str) -> str:
        """What clients call a server's resource."""
        return f"{SCHEME}{server}/{uri}" if self._uses[uri] > 1 else uri

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
            entry["name"]
            if self._bare and uses[entry["name"]] == 1
            else f"{server}.{entry['name']}": (server, entry)
            for server, entry in named
        }

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
            {**entry, key: self.visible(listing.server, str(entry.get(key)))}
            for listing in self.listings.values()
            for entry in getattr(listing, kind)
        )

    def _matching(self, uri: str) -> list[Place]:
        """The servers with a template that a URI fits, each once."""
        fitting = (Place(s, uri) for s, parsed in self._parsed if parsed.match(uri) is not None)
        return list(dict.fromkeys(fitting))

    @cached_property
    def _parsed(self) -> list[tuple[str, UriTemplate]]:
        parsed: list[tuple[str, UriTemplate]] = []
        for listing in self.listings.values():
            for entry in listing.resource_templates:
                try:
                    parsed.append((listing.server, UriTemplate.parse(str(entry["uriTemplate"]))))
                except (KeyError, ValueError):
                    continue  # a template that nobody can expand matches nothing
        return parsed

    def _only_one(self) -> list[str]:
        """The one server with resources: servers hand out URIs that they do not list."""
        able = [s for s, listing in self.listings.items() if "resources" in listing.capabilities]
        return able if len(able) == 1 else []
