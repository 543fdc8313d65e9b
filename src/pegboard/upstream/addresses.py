"""Prompts and resources of many servers under one roof: their addresses, and the way back.

A prompt is `server.prompt`, as a tool is. A resource keeps its URI, which is what tool results and
people name it by; only where two servers list the same one, it is `pegboard://server/` and the URI.
Every form is understood at all times. A new set of listings makes a new `Addresses`.

Names and URIs are shown as `core.cleaning` spells them, and understood in that spelling too; a
server gets its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from mcp.shared.uri_template import UriTemplate

from pegboard.core.cleaning import clean_entry, spelled_name, spelled_uri
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
            {**clean_entry(entry), "name": address}
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

    def prompt(self, address: str) -> Place | None:
        """The prompt of that address, or of that name if only one server has it."""
        if (found := self._prompts.get(address)) is not None:
            return Place(found[0], found[1]["name"])
        named = [
            Place(server, entry["name"])
            for server, entry in self._prompts.values()
            if address in (entry["name"], spelled_name(entry["name"]))
        ]
        return named[0] if len(named) == 1 else None

    def argument_names(self, prompt: Place) -> Mapping[str, str]:
        """The arguments of a prompt that are shown in another spelling than the server's."""
        return self._argument_names.get(prompt, {})

    def resource(self, uri: str, linked: Collection[str] = ()) -> list[Place]:
        """The servers that may have a resource: none, one, or several where it is ambiguous.

        Who lists it comes first, then who has a template that it fits. `linked` are servers that
        gave a link to it. These decide among those, and count only where nobody declares it: no
        server's link leads away from another server's resource.
        """
        if (place := self.explicit(uri)) is not None:
            return [place]
        uri = self._spelled_uris.get(uri, uri)
        listed = [Place(server, uri) for server in self._holders.get(uri, ())]
        if declared := listed or self._matching(uri):
            return [place for place in declared if place.server in linked] or declared
        given = [server for server in self.listings if server in linked]
        return [Place(server, uri) for server in given or self._only_one()]

    def template(self, text: str) -> list[Place]:
        """The servers that have a template, by its text."""
        if (place := self.explicit(text)) is not None:
            return [place]
        text = self._spelled_uris.get(text, text)
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
        if not slash or server not in self.listings:
            return None
        return Place(server, self._spelled_uris.get(rest, rest))

    def visible(self, server: str, uri: str) -> str:
        """What clients call a server's resource."""
        return spelled_uri(f"{SCHEME}{server}/{uri}" if self._uses[uri] > 1 else uri)

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
            spelled_name(
                entry["name"]
                if self._bare and uses[entry["name"]] == 1
                else f"{server}.{entry['name']}"
            ): (server, entry)
            for server, entry in named
        }

    @cached_property
    def _argument_names(self) -> dict[Place, dict[str, str]]:
        found: dict[Place, dict[str, str]] = {}
        for server, entry in self._prompts.values():
            arguments = entry.get("arguments")
            names = [
                argument["name"]
                for argument in (arguments if isinstance(arguments, list) else ())
                if isinstance(argument, dict) and isinstance(argument.get("name"), str)
            ]
            changed = {spelled_name(name): name for name in names if spelled_name(name) != name}
            if changed:
                found[Place(server, entry["name"])] = changed
        return found

    @cached_property
    def _spelled_uris(self) -> dict[str, str]:
        """What is shown of a URI, with the URI; for those that are not shown as they are."""
        spelled = {spelled_uri(uri): uri for uri in self._uses}
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
            {**clean_entry(entry), key: self.visible(listing.server, str(entry.get(key)))}
            for listing in self.listings.values()
            for entry in getattr(listing, kind)
        )

    def _matching(self, uri: str) -> list[Place]:
        """The servers with a template that a URI fits, as it is or as it is shown; each once."""
        fitting: dict[str, Place] = {}
        for server, own, shown in self._parsed:
            if own.match(uri) is not None:
                fitting.setdefault(server, Place(server, uri))
            elif shown is not None and (values := shown.match(uri)) is not None:
                fitting.setdefault(server, Place(server, own.expand(values)))
        return list(fitting.values())

    @cached_property
    def _parsed(self) -> list[tuple[str, UriTemplate, UriTemplate | None]]:
        """Each template, and how clients see it where that differs."""
        parsed: list[tuple[str, UriTemplate, UriTemplate | None]] = []
        for listing in self.listings.values():
            for entry in listing.resource_templates:
                try:
                    text = str(entry["uriTemplate"])
                    shown = spelled_uri(text)
                    other = UriTemplate.parse(shown) if shown != text else None
                    parsed.append((listing.server, UriTemplate.parse(text), other))
                except (KeyError, ValueError):
                    continue  # a template that nobody can expand matches nothing
        return parsed

    def _only_one(self) -> list[str]:
        """The one server with resources: servers hand out URIs that they do not list."""
        able = [s for s, listing in self.listings.items() if "resources" in listing.capabilities]
        return able if len(able) == 1 else []
