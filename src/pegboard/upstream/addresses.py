"""Which server a prompt or a resource belongs to: names for clients, mapped back to servers.

| | address | at the server |
|---|---|---|
| prompt | `server.prompt`, as for tools | `prompt` |
| resource | its URI; `pegboard://server/` and the URI where two servers list the same | the URI |

Results and people refer to a resource by its URI, so the URI is unchanged wherever it is
unambiguous. Every form is accepted at all times. A new set of listings makes a new `Addresses`.
Hidden characters in names and URIs are shown escaped (`core.sanitization`) and accepted that way
too; a server gets its own spelling.

Servers also hand out resources that they do not list, in links of results. `ResourceLinks` records
them for each principal, so that nobody's results decide where somebody else's reads go. A link is
only a hint: `Addresses` prefers the servers that declare a resource. If a read would go to a server
other than the one that gave the link, the client gets the link with its address instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from mcp.shared.uri_template import UriTemplate

from pegboard.core.caches import BoundedCache
from pegboard.core.json import JsonObject
from pegboard.core.sanitization import escape_name, escape_uri, sanitize_entry
from pegboard.upstream.listing import Listing
from pegboard.upstream.namespaces import find_server_of_id

SCHEME: Final = "pegboard://"
MAX_LINKS: Final = 500
"""Links that are recorded for one principal."""
MAX_PRINCIPALS: Final = 500
MAX_TEMPLATES: Final = 1_000
"""Templates of one server that a URI is compared with."""
_MAX_URI_LENGTH: Final = 1_000


@dataclass(frozen=True, slots=True)
class Location:
    """Where something is: a server, and what the server itself calls it."""

    server: str
    name: str


def build_resource_address(server: str, uri: str) -> str:
    """The address of a resource that leads to this server whatever others list."""
    return f"{SCHEME}{server}/{uri}"


class Addresses:
    """All prompts, resources and templates of these listings, and where each of them is.

    Args:
        listings: What the servers list.
        bare: Whether a prompt that no other server has is shown without its server's name.
    """

    def __init__(self, listings: Iterable[Listing], *, bare: bool = False) -> None:
        self.listings: Mapping[str, Listing] = {listing.server: listing for listing in listings}
        self._bare = bare

    # What clients see. All of it is computed on first use: many clients never ask for resources.

    @cached_property
    def prompts(self) -> tuple[JsonObject, ...]:
        """All prompts, named by address."""
        uses = Counter(entry["name"] for _, entry in self._prompts.values())

        def is_bare(name: str) -> bool:
            return self._bare and uses[name] == 1 and self._owner(name) is None

        shown = {
            escape_name(entry["name"]) if is_bare(entry["name"]) else address: entry
            for address, (_, entry) in self._prompts.items()
        }
        return tuple({**sanitize_entry(shown[name]), "name": name} for name in sorted(shown))

    @cached_property
    def resources(self) -> tuple[JsonObject, ...]:
        """All resources; the URI is an address where several servers list it."""
        return tuple(
            self._show(listing.server, entry, "uri")
            for listing in self.listings.values()
            for entry in listing.resources
        )

    @cached_property
    def templates(self) -> tuple[JsonObject, ...]:
        """All templates; an address where several servers list the same."""
        return tuple(
            self._show(listing.server, entry, "uriTemplate")
            for listing in self.listings.values()
            for entry in listing.resource_templates
        )

    def _show(self, server: str, entry: JsonObject, key: str) -> JsonObject:
        uri = str(entry.get(key))
        # If a server lists `pegboard://github/...`, that is not a resource of `github`.
        is_own = self._uses[uri] == 1 and self._parse_address(uri) is None
        address = uri if is_own else build_resource_address(server, uri)
        return {**sanitize_entry(entry), key: escape_uri(address)}

    def argument_names(self, prompt: Location) -> Mapping[str, str]:
        """The arguments of a prompt that are shown in another spelling than the server's."""
        return self._argument_names.get(prompt, {})

    # The way back.

    def find_prompt(self, address: str) -> Location | None:
        """The prompt of that address, or of that name if only one server has it.

        A name that looks like an address is treated only as an address: another server's prompt
        named `github.review` cannot stand in for one of `github`.
        """
        if self._owner(address) is None:
            named = [
                Location(server, entry["name"])
                for server, entry in self._prompts.values()
                if address in (entry["name"], escape_name(entry["name"]))
            ]
            return named[0] if len(named) == 1 else None
        found = self._prompts.get(address)
        return None if found is None else Location(found[0], found[1]["name"])

    def find_resource(self, uri: str, linked: Collection[str] = ()) -> list[Location]:
        """The servers that may have a resource: none, one, or several where it is ambiguous.

        Servers that list it come first, then those with a template that it fits. `linked` are
        servers that gave a link to it. A link decides among several servers that declare the
        resource, and counts alone only where none does: no server's link leads away from another
        server's resource.
        """
        if (location := self._parse_address(uri)) is not None:
            return [location]
        uri = self._originals.get(uri, uri)
        declared = [Location(server, uri) for server in self._servers_by_uri.get(uri, ())]
        if not declared:
            # By a template that it fits, as it is or as it is shown; each server once.
            fitting: dict[str, Location] = {}
            for server, own, shown in self._parsed_templates:
                if own.match(uri) is not None:
                    fitting.setdefault(server, Location(server, uri))
                elif shown is not None and (values := shown.match(uri)) is not None:
                    fitting.setdefault(server, Location(server, own.expand(values)))
            declared = list(fitting.values())
        if declared:
            return [location for location in declared if location.server in linked] or declared
        servers = [server for server in self.listings if server in linked]
        if not servers:
            # Servers hand out URIs that they do not list: the only one with resources is meant.
            able = [s for s, known in self.listings.items() if "resources" in known.capabilities]
            servers = able if len(able) == 1 else []
        return [Location(server, uri) for server in servers]

    def find_template(self, text: str) -> list[Location]:
        """The servers that have a template, by its text."""
        if (location := self._parse_address(text)) is not None:
            return [location]
        text = self._originals.get(text, text)
        found = [
            Location(server, text)
            for server, entries in self.listings.items()
            if any(entry.get("uriTemplate") == text for entry in entries.resource_templates)
        ]
        return found or self.find_resource(text)

    def _parse_address(self, uri: str) -> Location | None:
        """The location that a `pegboard://` address names."""
        if not uri.startswith(SCHEME):
            return None
        server, slash, rest = uri.removeprefix(SCHEME).partition("/")
        if not slash or server not in self.listings:
            return None
        return Location(server, self._originals.get(rest, rest))

    # Indexes over the listings.

    @cached_property
    def _prompts(self) -> dict[str, tuple[str, JsonObject]]:
        """Each prompt with its server, by address."""
        return {
            escape_name(f"{server}.{entry['name']}"): (server, entry)
            for server, listing in self.listings.items()
            for entry in listing.prompts
            # Of `a` and `a.b`, the latter has `a.b.c`: a server cannot take another's address.
            if isinstance(entry.get("name"), str)
            and self._owner(f"{server}.{entry['name']}") == server
        }

    def _owner(self, address: str) -> str | None:
        """The server whose prompt an address would be."""
        return find_server_of_id(address, self.listings)

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
    def _originals(self) -> dict[str, str]:
        """URIs that are shown in another spelling, by that spelling."""
        shown = {escape_uri(uri): uri for uri in self._uses}
        # A spelling that is itself the URI of a resource means that resource.
        return {spelling: uri for spelling, uri in shown.items() if spelling not in self._uses}

    @cached_property
    def _servers_by_uri(self) -> dict[str, list[str]]:
        servers: dict[str, list[str]] = {}
        for server, listing in self.listings.items():
            for uri in dict.fromkeys(str(entry.get("uri")) for entry in listing.resources):
                servers.setdefault(uri, []).append(server)
        return servers

    @cached_property
    def _uses(self) -> Counter[str]:
        """How many servers list a URI or template."""
        uses: Counter[str] = Counter()
        for listing in self.listings.values():
            uses.update({str(e.get("uri")) for e in listing.resources})
            uses.update({str(e.get("uriTemplate")) for e in listing.resource_templates})
        return uses

    @cached_property
    def _parsed_templates(self) -> list[tuple[str, UriTemplate, UriTemplate | None]]:
        """Each template, and how clients see it where that differs."""
        parsed: list[tuple[str, UriTemplate, UriTemplate | None]] = []
        for listing in self.listings.values():
            for entry in listing.resource_templates[:MAX_TEMPLATES]:
                try:
                    text = str(entry["uriTemplate"])
                    shown = escape_uri(text)
                    other = UriTemplate.parse(shown) if shown != text else None
                    parsed.append((listing.server, UriTemplate.parse(text), other))
                except (KeyError, ValueError):
                    continue  # a template that nobody can expand matches nothing
        return parsed


# Links to resources.


class ResourceLinks:
    """The links that servers have given, by principal; the oldest make room for new ones."""

    def __init__(self) -> None:
        # By principal, then by URI: which servers gave a link to it.
        self._links: BoundedCache[str, BoundedCache[str, frozenset[str]]]
        self._links = BoundedCache(MAX_PRINCIPALS)

    def record(self, principal: str, server: str, uri: str) -> None:
        """Record that a server gave this principal a link."""
        if len(uri) <= _MAX_URI_LENGTH:
            links = self._links.get(principal) or BoundedCache(MAX_LINKS)
            links.put(uri, (links.get(uri) or frozenset()) | {server})
            self._links.put(principal, links)

    def find_servers(self, principal: str, uri: str) -> frozenset[str]:
        """The servers that gave this principal a link to a URI."""
        links = self._links.get(principal)
        return (links.get(uri) if links is not None else None) or frozenset()
