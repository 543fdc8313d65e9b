"""The catalogs of all servers and APIs of a configuration: what each last listed, and its tools.

    disk  -->  catalog of each server  -->  tools with unique, legal names; which of them are pinned

An OpenAPI source is stored like a server, under a stand-in spec: its tools are available at once,
and its document is read when one of them is called, or in the background.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from fnmatch import fnmatchcase
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeAlias

from pegboard.adapters.openapi.document import OpenApiSpec
from pegboard.config.loader import Configuration
from pegboard.core.json import Json, JsonObject, digest
from pegboard.core.options import Options, make_options
from pegboard.core.sanitization import (
    find_suspicious_phrases,
    sanitize_line,
    sanitize_text,
    sanitize_tool,
)
from pegboard.core.tool_parser import build_details
from pegboard.core.tools import Catalog, Tool
from pegboard.errors import ConfigError
from pegboard.gateway.from_settings import build_naming, settings_to_options
from pegboard.modes.instructions import remove_mode_instructions
from pegboard.modes.mode import META_TOOL_NAMES
from pegboard.upstream.catalog_cache import (
    CachedCatalog,
    CatalogCache,
    ListingFailure,
    ServerProfile,
    build_namespaces,
    compute_identity,
    parse_entries,
)
from pegboard.upstream.catalog_entries import (
    PLAIN_CLIENT,
    ClientKind,
    find_varying_kinds,
    get_listed_tools,
    is_kind_known,
)
from pegboard.upstream.namespaces import find_server_of_id
from pegboard.upstream.spec import UpstreamSpec

if TYPE_CHECKING:
    from pegboard.upstream.listing import Listing


logger = logging.getLogger(__name__)

_MAX_WARNINGS = 1_000
INSTRUCTIONS_LIMIT = 400
"""Characters of a server's instructions that a model is shown with a tool's description."""
_INSTRUCTIONS_READ = 20_000
"""Characters of them that are checked for signs of an attack; far more than is shown."""
_MAX_REASON = 200
"""Characters of the reason why a server is missing that a model is shown."""
_MAX_SECTIONS = 100
"""How many categories a server can define; tools in any others get the server's category."""
_BY_KIND = "by kind of client"

ListKind: TypeAlias = Literal["prompts", "resources"]
"""A list that a server has in addition to its tools."""


class ServerCatalogs:
    """The catalogs of all servers and APIs; functions that touch the disk block.

    Args:
        configuration: The servers and APIs.
        cache: Catalogs on disk.
        apply_decisions: Changes a tool as operators decided: switched off, or held back.
        clock: Seconds since the epoch.
    """

    def __init__(
        self,
        configuration: Configuration,
        cache: CatalogCache,
        apply_decisions: Callable[[Tool, CachedCatalog], Tool] = lambda tool, catalog: tool,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._cache = cache
        self._clock = clock
        self._apply_decisions = apply_decisions
        self._catalogs: dict[str, CachedCatalog] = {}
        self._tools: dict[str, list[Tool]] = {}
        """Tools of each server before decisions are applied: those change without a new listing."""
        self._warned: set[tuple[str, str]] = set()
        self.specs: Mapping[str, UpstreamSpec] = {}
        self.apis: Mapping[str, OpenApiSpec] = {}
        self.configure(configuration)

    def configure(self, configuration: Configuration) -> None:
        """Take a configuration; the catalogs of servers that did not change stay."""
        before = self.specs
        self._configuration = configuration
        self.apis = {api.name: api for api in configuration.sources}
        self.specs = {
            **{spec.name: spec for spec in configuration.upstreams},
            **{name: api_to_server_spec(api) for name, api in self.apis.items()},
        }
        naming = build_naming(configuration.settings)
        self._names = build_namespaces(self.specs.values(), naming, taken=META_TOOL_NAMES)
        self._tools.clear()
        # A server whose identity changed, such as its command or URL, is listed again; one whose
        # timeouts or filters changed is not.
        same = {
            name
            for name, spec in self.specs.items()
            if (old := before.get(name)) is not None
            and (old == spec or compute_identity(old) == compute_identity(spec))
        }
        self._catalogs = {name: one for name, one in self._catalogs.items() if name in same}

    # On disk -----------------------------------------------------------------------------------

    def restore(self) -> set[str]:
        """Read the catalogs on disk; returns the servers that have none."""
        unknown: set[str] = set()
        for name, spec in self.specs.items():
            if name in self._catalogs:
                continue
            catalog = self._cache.load(spec)
            if catalog is None:
                unknown.add(name)
            else:
                self._catalogs[name] = catalog
        return unknown

    def read_cached(self, name: str) -> CachedCatalog | None:
        """The catalog of a server that is on disk now; another gateway may have written it."""
        return self._cache.load(self.specs[name])

    def save(
        self, spec: UpstreamSpec, profile: ServerProfile, entries: Iterable[Json]
    ) -> CachedCatalog:
        """Write what a server lists to disk; `update` puts it into use."""
        return self._cache.save(spec, profile, entries)

    def save_failure(self, name: str, reason: str, *, needs_login: bool = False) -> None:
        """Save why a server could not be listed, for this and for later processes."""
        if name in self.specs:
            now = self._clock()
            self._cache.mark_failed(self.specs[name], reason, now=now, needs_login=needs_login)

    def last_failure(self, name: str) -> ListingFailure | None:
        """Why a server could not be listed when it was last tried; `None` when it could."""
        return self._cache.last_failure(self.specs[name])

    def retry_pause(self, name: str) -> float:
        """Seconds for which commands that only read do not try a server again that failed."""
        failure = self.last_failure(name)
        return failure.wait(self._clock()) if failure else 0.0

    def update(self, name: str, catalog: CachedCatalog) -> bool:
        """Replace the catalog of a server; returns whether anything in it is new."""
        before = self._catalogs.get(name)
        self._catalogs[name] = catalog
        # Parsed again when they are next needed.
        self._tools.pop(name, None)
        return before is None or (before.hash, _visible_profile(before)) != (
            catalog.hash,
            _visible_profile(catalog),
        )

    # By kind of client -------------------------------------------------------------------------

    @property
    def vary_by_client(self) -> bool:
        """Whether some server lists different tools to different kinds of clients."""
        return any(find_varying_kinds(one.about.variants) for one in self._catalogs.values())

    def servers_unlisted_for(self, kind: ClientKind) -> list[str]:
        """The servers of which it is not known yet what they list to clients of a kind."""
        return [
            name
            for name, catalog in self._catalogs.items()
            if name not in self.apis
            and self.specs[name].may_send_requests
            and not is_kind_known(catalog.about.variants, kind)
            # A server that has just failed must not be started by every call of such a client.
            and self.retry_pause(name) == 0
        ]

    def filter_for_kind(self, kind: ClientKind, catalog: Catalog) -> Catalog:
        """The tools of a catalog that clients of a kind see."""
        memo: dict[ClientKind, Catalog] = catalog.memo.setdefault(_BY_KIND, {})
        if kind not in memo:
            listed = {
                name: frozenset(names)
                for name, one in self._catalogs.items()
                if (names := get_listed_tools(one.about.variants, kind)) is not None
            }
            tools = [t for t in catalog if t.server not in listed or t.own_name in listed[t.server]]
            # The same object if nothing is left out, so that its cached lists and index are reused.
            is_whole = len(tools) == len(catalog)
            memo[kind] = catalog if is_whole else Catalog(tools, catalog.categories)
        return memo[kind]

    def plain_entries(self, name: str) -> tuple[list[JsonObject], list[JsonObject]]:
        """The entries that a server lists to clients without capabilities, and all others."""
        catalog = self._catalogs[name]
        entries = catalog.entries()
        plain = get_listed_tools(catalog.about.variants, PLAIN_CLIENT)
        names = {str(entry["name"]) for entry in entries} if plain is None else set(plain)
        return (
            [entry for entry in entries if entry["name"] in names],
            [entry for entry in entries if entry["name"] not in names],
        )

    # What servers list -------------------------------------------------------------------------

    def __contains__(self, name: str) -> bool:
        return name in self._catalogs

    def __getitem__(self, name: str) -> CachedCatalog:
        return self._catalogs[name]

    def listings(self) -> list[Listing]:
        """The profiles of all servers (resources, prompts, capabilities), without their tools."""
        from pegboard.upstream.listing import (
            Listing,
        )  # imports the SDK, which commands that only read do not need

        return [
            Listing(server=name, **asdict(self._catalogs[name].about))
            for name in self.specs
            if name in self._catalogs
        ]

    def instructions(self) -> dict[str, str]:
        """The instructions of each server on how to use its tools, as models are shown them.

        With a lock there are none: it records the definitions of tools only, so nobody has
        approved these texts, and a server could change them at any time. A text that looks like an
        attack is left out too.
        """
        if self._configuration.settings.trust.lock is not None:
            return {}
        shown: dict[str, str] = {}
        for name in self.specs:
            given = self._catalogs[name].about.instructions if name in self else None
            text = remove_mode_instructions(given) if isinstance(given, str) else ""
            if not text.strip():
                continue
            if flags := find_suspicious_phrases(sanitize_text(text[:_INSTRUCTIONS_READ])):
                self._warn(name, "instructions", ConfigError(f"the text {', '.join(flags)}"))
            else:
                shown[name] = sanitize_line(text, INSTRUCTIONS_LIMIT)
        return shown

    @property
    def hash(self) -> str:
        """A digest of what all servers list, made of the digests of their catalogs."""
        known = [name for name in self.specs if name in self._catalogs]
        return digest([[name, self._catalogs[name].hash] for name in known])

    def tools(self) -> list[Tool]:
        """The visible tools of all servers, with legal and unique names."""
        known = [name for name in self.specs if name in self._catalogs]
        for name in known:
            if name not in self._tools:
                self._tools[name] = self._read_tools(name, self._catalogs[name])
        listed = [tool for name in known for tool in self._tools[name]]
        return self._map_tools(
            listed, lambda tool: self._apply_decisions(tool, self._catalogs[tool.server or ""])
        )

    def _read_tools(self, name: str, catalog: CachedCatalog) -> list[Tool]:
        found = self._drop_conflicts(name, catalog.tools(self.specs[name], self._names, self._warn))
        # Lists of categories name all of them, so one server must not fill them with its own.
        sections = dict.fromkeys(tool.section for tool in found)
        if len(sections) > _MAX_SECTIONS:
            shown = set(islice(sections, _MAX_SECTIONS))
            found = [t if t.section in shown else replace(t, section=None) for t in found]
        return self._map_tools(found, sanitize_tool)

    # For one caller ----------------------------------------------------------------------------

    def parse_entries(self, name: str, entries: Iterable[Json]) -> CachedCatalog:
        """What a server lists to one caller; it is neither saved nor put into use for others."""
        return parse_entries(self.specs[name], ServerProfile(), entries)

    def build_tools(self, name: str, catalog: CachedCatalog) -> list[Tool]:
        """The tools of such a catalog, with names and decisions like those of all others."""
        tools = self._read_tools(name, catalog)
        return self._map_tools(tools, lambda tool: self._apply_decisions(tool, catalog))

    def _map_tools(self, tools: Iterable[Tool], change: Callable[[Tool], Tool]) -> list[Tool]:
        """The changed tools; only a tool that cannot be changed is left out."""
        changed: list[Tool] = []
        for tool in tools:
            try:
                changed.append(change(tool))
            # One tool of one server: whatever is wrong with it, the rest of the catalog is served.
            except Exception as exc:
                self._warn(tool.server or "", tool.own_name, exc)
        return changed

    def _drop_conflicts(self, server: str, tools: Iterable[Tool]) -> list[Tool]:
        """Each id once, and none that belongs to a server `a.b`, where this one is `a`."""
        inner = [name for name in self.specs if name.startswith(f"{server}.")]
        unique: dict[str, Tool] = {}
        for tool in tools:
            if (owner := find_server_of_id(tool.id, inner)) is not None:
                conflict = ConfigError(f"its id belongs to the server {owner}")
                self._warn(server, tool.own_name, conflict)
            elif tool.id in unique:
                self._warn(server, tool.own_name, ConfigError("it is listed twice"))
            else:
                unique[tool.id] = tool
        return list(unique.values())

    def _warn(self, server: str, tool: str, exc: Exception) -> None:
        """Warn, once, that a tool is left out because something in it cannot be used."""
        if (server, tool) not in self._warned and len(self._warned) < _MAX_WARNINGS:
            self._warned.add((server, tool))
            # The name comes from the server: escaped and cut, it cannot forge lines of the log.
            logger.warning("%s: %s is left out: %s", server, ascii(tool)[1:-1][:200], exc)

    @property
    def has_pins(self) -> bool:
        """Whether some tools are listed as themselves, so that a list has to wait for servers."""
        pinned = any(spec.pins for spec in self.specs.values())
        return bool(
            self._configuration.settings.pins or pinned or eager_servers(self._configuration)
        )

    def pins(self, tools: Iterable[Tool]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The ids of the pinned tools, in the configured order; and pins that match no tool."""
        listed = list(tools)
        eager = eager_servers(self._configuration)
        pinned: dict[str, None] = {}
        unmatched: list[str] = []
        for pattern in self._configuration.settings.pins:
            matching = [
                tool.id
                for tool in listed
                if any(fnmatchcase(n, pattern) for n in (tool.id, tool.name, tool.bare or tool.id))
            ]
            pinned |= dict.fromkeys(matching)
            if not matching:
                unmatched.append(pattern)
        for tool in listed:
            spec = self.specs[tool.server or ""]
            if spec.name in eager or any(fnmatchcase(tool.own_name, p) for p in spec.pins):
                pinned[tool.id] = None
        return tuple(pinned), tuple(unmatched)


# Modes of single servers -----------------------------------------------------------------------


def eager_servers(configuration: Configuration) -> frozenset[str]:
    """The servers whose tools are all listed directly, regardless of the mode of the others."""
    # Where some server is lazy, the board takes that mode: `eager` is then up to each other server.
    by_default = configuration.settings.mode == "eager" and lazy_mode(configuration) is not None
    return frozenset(
        spec.name
        for spec in configuration.upstreams
        if spec.mode == "eager" or (by_default and spec.mode in (None, "auto"))
    )


def lazy_mode(configuration: Configuration) -> str | None:
    """The mode of the servers that set a lazy mode of their own, if there are any."""
    return next(
        (s.mode for s in configuration.upstreams if s.mode not in (None, "auto", "eager")), None
    )


def build_options(configuration: Configuration) -> Options:
    """The options of the board; a lazy server among eager ones decides its mode."""
    options = settings_to_options(configuration.settings)
    if options["mode"] in ("auto", "eager"):
        options["mode"] = lazy_mode(configuration) or options["mode"]
    return make_options(**options)


def name_place(configuration: Configuration) -> str:
    """What distinguishes the board of a configuration from others in the same data folder."""
    return str(configuration.files[0].absolute()) if configuration.files else ""


# APIs as servers -------------------------------------------------------------------------------


def tool_to_entry(tool: Tool) -> JsonObject:
    """The `tools/list` entry of an API's tool, as a catalog stores it."""
    return {**tool.wire(), "_meta": build_details(tool, category=tool.section)}


def api_to_server_spec(api: OpenApiSpec) -> UpstreamSpec:
    """A stand-in spec, for what servers and APIs have in common."""
    return UpstreamSpec(
        api.name,
        transport="http",
        url=api.document,
        headers=api.headers,
        include=api.include,
        exclude=api.exclude,
        category=api.category,
        prefix=api.prefix,
        timeout=api.timeout,
    )


def without_filters(api: OpenApiSpec) -> OpenApiSpec:
    """The API with all its operations: filters are applied when its tools are shown."""
    return replace(api, include=(), exclude=(), category=None)


# Profiles and notes ----------------------------------------------------------------------------


def may_own_tool(spec: UpstreamSpec, tool: str) -> bool:
    """Whether a tool's name, as clients write it, starts like those of this server."""
    prefixes = [spec.name] if spec.prefix is None else [spec.name, spec.prefix]
    return any(
        not prefix or _normalize_name(tool).startswith(f"{_normalize_name(prefix)}_")
        for prefix in prefixes
    )


def _normalize_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", name)


def build_profile(listing: Listing, before: ServerProfile | None = None) -> ServerProfile:
    """The profile of a server that was just listed; a list that failed stays as it was before."""
    profile = ServerProfile(
        server_info=listing.server_info,
        capabilities=listing.capabilities,
        instructions=listing.instructions,
        era=listing.era,
        protocol_version=listing.protocol_version,
        resources=list(listing.resources),
        resource_templates=list(listing.resource_templates),
        prompts=list(listing.prompts),
        variants=dict(listing.variants),
    )
    known = before or ServerProfile()
    return replace(profile, **{name: getattr(known, name) for name in listing.failures})


def _visible_profile(catalog: CachedCatalog) -> ServerProfile:
    """The parts of a profile that clients notice: kinds that see the same tools do not matter."""
    variants = {kind: names for kind, names in catalog.about.variants.items() if names is not None}
    return replace(catalog.about, variants=variants)


def find_changed_lists(before: ServerProfile, after: ServerProfile) -> list[ListKind]:
    """Which lists have changed, other than the list of tools."""
    kinds: list[ListKind] = []
    if before.prompts != after.prompts:
        kinds.append("prompts")
    if (before.resources, before.resource_templates) != (after.resources, after.resource_templates):
        kinds.append("resources")
    return kinds


def explain_unusable(configuration: Configuration) -> dict[str, str]:
    """Why each server that the configuration names cannot be used."""
    return {name: f"{name} is left out: {why}" for name, why in configuration.unusable.items()}


def describe_missing_servers(starting: Sequence[str], reasons: Sequence[str]) -> list[str]:
    """Notes for a model about servers whose tools are missing: not yet listed, or failed."""
    notes = [f"Still starting: {', '.join(starting)}. Search again soon."] if starting else []
    # One line each: the reason may quote the server, which could forge further lines.
    return notes + [f"Not available: {sanitize_line(why, _MAX_REASON)}" for why in reasons]
