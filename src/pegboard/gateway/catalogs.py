"""The catalogs of all servers and APIs of a configuration: what each one last listed, and as tools.

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
from typing import TYPE_CHECKING, Literal, TypeAlias

from pegboard.adapters.openapi.document import OpenApiSpec
from pegboard.config import Configuration
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
from pegboard.modes.mode import META_TOOL_NAMES
from pegboard.upstream.catalog_cache import (
    CachedCatalog,
    CatalogCache,
    ListingFailure,
    ServerProfile,
    build_namespaces,
    compute_identity,
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
"""Characters of them that are looked at for signs of an attack; what is shown is far less."""
_BY_KIND = "by kind of client"


class ServerCatalogs:
    """The catalogues of all servers and APIs; functions that touch the disk block."""

    def __init__(
        self,
        configuration: Configuration,
        folder: CatalogCache,
        judged: Callable[[Tool, CachedCatalog], Tool] = lambda tool, catalogue: tool,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._judged = judged
        self._kept: dict[str, CachedCatalog] = {}
        self._shown: dict[str, list[Tool]] = {}
        self._left_out: set[tuple[str, str]] = set()
        self.specs: Mapping[str, UpstreamSpec] = {}
        self.apis: Mapping[str, OpenApiSpec] = {}
        self.configure(configuration)

    def configure(self, configuration: Configuration) -> None:
        """Take a configuration; what is kept of servers that are still the same stays."""
        before = self.specs
        self._configuration = configuration
        self.apis = {api.name: api for api in configuration.sources}
        self.specs = {
            **{spec.name: spec for spec in configuration.upstreams},
            **{name: api_to_server_spec(api) for name, api in self.apis.items()},
        }
        naming = build_naming(configuration.settings)
        self._names = build_namespaces(self.specs.values(), naming, taken=META_TOOL_NAMES)
        self._shown.clear()
        same = {n for n, s in self.specs.items() if n in before and _is_same_server(before[n], s)}
        self._kept = {name: kept for name, kept in self._kept.items() if name in same}

    def restore(self) -> set[str]:
        """Read what is on disk of servers that nothing is known of; names those it has not."""
        unknown: set[str] = set()
        for name, spec in self.specs.items():
            if name in self._kept:
                continue
            kept = self._folder.load(spec)
            if kept is None:
                unknown.add(name)
            else:
                self._kept[name] = kept
        return unknown

    def kept_anew(self, name: str) -> CachedCatalog | None:
        """What is on disk of a server now; another gateway may have written it."""
        return self._folder.load(self.specs[name])

    def save(
        self, spec: UpstreamSpec, about: ServerProfile, entries: Iterable[Json]
    ) -> CachedCatalog:
        """Write what a server lists; `take` makes it count."""
        return self._folder.save(spec, about, entries)

    def remember_failure(self, name: str, reason: str) -> None:
        """Note why a server could not be listed, for this and for later processes."""
        if name in self.specs:
            self._folder.mark_failed(self.specs[name], reason, now=self._clock())

    def last_failure(self, name: str) -> ListingFailure | None:
        """Why it could not be listed when it was last tried; `None` when it could."""
        return self._folder.last_failure(self.specs[name])

    def pause(self, name: str) -> float:
        """Seconds for which a server that failed is left alone by those who only read."""
        failure = self.last_failure(name)
        return failure.wait(self._clock()) if failure else 0.0

    def take(self, name: str, kept: CachedCatalog) -> bool:
        """Replace what is known of a server; whether that is something new."""
        before = self._kept.get(name)
        self._kept[name] = kept
        self._shown.pop(name, None)
        return before is None or (before.hash, _announced_facts(before)) != (
            kept.hash,
            _announced_facts(kept),
        )

    @property
    def varies(self) -> bool:
        """Whether some server lists other tools to clients that can be asked."""
        return any(find_varying_kinds(kept.about.variants) for kept in self._kept.values())

    def unread(self, kind: ClientKind) -> list[str]:
        """The servers to ask what they list to clients of a kind: it is not known of them."""
        return [
            name
            for name, kept in self._kept.items()
            if name not in self.apis
            and self.specs[name].may_send_requests
            and not is_kind_known(kept.about.variants, kind)
            and self.pause(name) == 0
        ]

    def seen_by(self, kind: ClientKind, catalog: Catalog) -> Catalog:
        """The catalog as clients of a kind see it."""
        memo: dict[ClientKind, Catalog] = catalog.memo.setdefault(_BY_KIND, {})
        if kind not in memo:
            shown = {
                name: frozenset(listed)
                for name, kept in self._kept.items()
                if (listed := get_listed_tools(kept.about.variants, kind)) is not None
            }
            tools = [t for t in catalog if t.server not in shown or t.own_name in shown[t.server]]
            is_whole = len(tools) == len(catalog)
            memo[kind] = catalog if is_whole else Catalog(tools, catalog.categories)
        return memo[kind]

    def plain_entries(self, name: str) -> tuple[list[JsonObject], list[JsonObject]]:
        """What a server lists to clients that declare nothing, and what to others besides."""
        kept = self._kept[name]
        entries = kept.entries()
        plain = get_listed_tools(kept.about.variants, PLAIN_CLIENT)
        names = {str(entry["name"]) for entry in entries} if plain is None else set(plain)
        return (
            [entry for entry in entries if entry["name"] in names],
            [entry for entry in entries if entry["name"] not in names],
        )

    def __contains__(self, name: str) -> bool:
        return name in self._kept

    def __getitem__(self, name: str) -> CachedCatalog:
        return self._kept[name]

    def listings(self) -> list[Listing]:
        """What the servers said of themselves, without their tools."""
        from pegboard.upstream.listing import Listing  # brings the SDK, which readers do without

        return [
            Listing(server=name, **asdict(self._kept[name].about))
            for name in self.specs
            if name in self._kept
        ]

    def instructions(self) -> dict[str, str]:
        """What servers say of how their tools are used, as models are shown it, by server.

        A lock records the definitions of tools and nothing else: where there is one, nobody has
        approved these texts, and a server could change them at any time. A text that looks like an
        attack is left out too.
        """
        if self._configuration.settings.trust.lock is not None:
            return {}
        said = {name: self._kept[name].about.instructions for name in self.specs if name in self}
        return {
            name: sanitize_line(text, INSTRUCTIONS_LIMIT)
            for name, text in said.items()
            if isinstance(text, str) and text.strip() and self._is_harmless(name, text)
        }

    def _is_harmless(self, server: str, instructions: str) -> bool:
        flags = find_suspicious_phrases(sanitize_text(instructions[:_INSTRUCTIONS_READ]))
        if flags:
            self._leave_out(server, "instructions", ConfigError(f"the text {', '.join(flags)}"))
        return not flags

    @property
    def hash(self) -> str:
        """Names what all servers listed, from what is kept of each."""
        return digest([[name, self._kept[name].hash] for name in self.specs if name in self._kept])

    def tools(self) -> list[Tool]:
        """The tools of all servers that are shown, under names that are legal and all different."""
        known = [name for name in self.specs if name in self._kept]
        listed = [tool for name in known for tool in self._of(name)]
        return self._usable(listed, lambda tool: self._judged(tool, self._kept[tool.server or ""]))

    def _of(self, name: str) -> list[Tool]:
        if name not in self._shown:
            found = self._kept[name].tools(self.specs[name], self._names, self._leave_out)
            self._shown[name] = self._usable(self._owned(name, found), sanitize_tool)
        return self._shown[name]

    def _usable(self, tools: Iterable[Tool], change: Callable[[Tool], Tool]) -> list[Tool]:
        """The tools as changed; one that cannot be costs itself alone."""
        changed: list[Tool] = []
        for tool in tools:
            try:
                changed.append(change(tool))
            except Exception as exc:
                self._leave_out(tool.server or "", tool.own_name, exc)
        return changed

    def _owned(self, server: str, tools: Iterable[Tool]) -> list[Tool]:
        """Each id once, and none that belongs to a server `a.b`, where this one is `a`."""
        inner = [name for name in self.specs if name.startswith(f"{server}.")]
        owned: dict[str, Tool] = {}
        for tool in tools:
            if (owner := find_server_of_id(tool.id, inner)) is not None:
                clash = ConfigError(f"its id is one of the server {owner}")
                self._leave_out(server, tool.own_name, clash)
            elif tool.id in owned:
                self._leave_out(server, tool.own_name, ConfigError("it is listed twice"))
            else:
                owned[tool.id] = tool
        return list(owned.values())

    def _leave_out(self, server: str, tool: str, exc: Exception) -> None:
        """Warn, once, of a tool that is not shown because something in it cannot be used."""
        if (server, tool) not in self._left_out and len(self._left_out) < _MAX_WARNINGS:
            self._left_out.add((server, tool))
            logger.warning("%s: %s is left out: %s", server, ascii(tool)[1:-1][:200], exc)

    @property
    def has_pins(self) -> bool:
        """Whether tools are to be listed as themselves, so that a list needs their servers."""
        pinned = any(spec.pins for spec in self.specs.values())
        return bool(
            self._configuration.settings.pins or pinned or eager_servers(self._configuration)
        )

    def pins(self, tools: Iterable[Tool]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The ids of the pinned tools, in the configured order; and pins that no tool fits."""
        listed = list(tools)
        eager = eager_servers(self._configuration)
        found: dict[str, None] = {}
        unfit: list[str] = []
        for pattern in self._configuration.settings.pins:
            fitting = [t.id for t in listed if _matches_pin(t, pattern)]
            found |= dict.fromkeys(fitting)
            if not fitting:
                unfit.append(pattern)
        for tool in listed:
            spec = self.specs[tool.server or ""]
            if spec.name in eager or any(fnmatchcase(tool.own_name, p) for p in spec.pins):
                found[tool.id] = None
        return tuple(found), tuple(unfit)


def eager_servers(configuration: Configuration) -> frozenset[str]:
    """The servers whose tools are all listed as themselves, whatever the mode of the rest."""
    lazy = lazy_mode(configuration)
    without_filters = configuration.settings.mode == "eager" and lazy is not None
    return frozenset(
        spec.name
        for spec in configuration.upstreams
        if spec.mode == "eager" or (without_filters and spec.mode in (None, "auto"))
    )


def lazy_mode(configuration: Configuration) -> str | None:
    """The mode of the servers that are not to be listed whole, where some are to be."""
    return next(
        (s.mode for s in configuration.upstreams if s.mode not in (None, "auto", "eager")), None
    )


def build_options(configuration: Configuration) -> Options:
    """How the board of a configuration is shown; a lazy server among eager ones needs its mode."""
    options = settings_to_options(configuration.settings)
    if options["mode"] in ("auto", "eager"):
        options["mode"] = lazy_mode(configuration) or options["mode"]
    return make_options(**options)


def tool_to_entry(tool: Tool) -> JsonObject:
    """A tool of an API as a catalogue keeps it."""
    return {**tool.wire(), "_meta": build_details(tool, category=tool.section)}


def api_to_server_spec(api: OpenApiSpec) -> UpstreamSpec:
    """An API as a server, for what servers and APIs have in common."""
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
    """The API without what is decided when its tools are shown."""
    return replace(api, include=(), exclude=(), category=None)


def may_own_tool(spec: UpstreamSpec, tool: str) -> bool:
    """Whether a tool's name, as clients write it, starts as those of this server do."""
    starts = [spec.name] if spec.prefix is None else [spec.name, spec.prefix]
    return any(
        not start or _normalize_name(tool).startswith(f"{_normalize_name(start)}_")
        for start in starts
    )


def _normalize_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", name)


def _announced_facts(kept: CachedCatalog) -> ServerProfile:
    """What a server said of itself, without the kinds of clients that are listed nothing else."""
    variants = {kind: listed for kind, listed in kept.about.variants.items() if listed is not None}
    return replace(kept.about, variants=variants)


def _is_same_server(one: UpstreamSpec, other: UpstreamSpec) -> bool:
    return one == other or compute_identity(one) == compute_identity(other)


def _matches_pin(tool: Tool, pattern: str) -> bool:
    return any(fnmatchcase(name, pattern) for name in (tool.id, tool.name, tool.bare or tool.id))


ListKind: TypeAlias = Literal["prompts", "resources"]


def build_about(listing: Listing, before: ServerProfile | None = None) -> ServerProfile:
    """What a server said of itself, as it is stored; a list that failed stays as it was before."""
    known = before or ServerProfile()
    unread = {name: getattr(known, name) for name in listing.failures}
    said = ServerProfile(
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
    return replace(said, **unread)


def find_changed_lists(before: ServerProfile, after: ServerProfile) -> list[ListKind]:
    """Which lists beside that of the tools are others now."""
    kinds: list[ListKind] = []
    if before.prompts != after.prompts:
        kinds.append("prompts")
    if _all_resources(before) != _all_resources(after):
        kinds.append("resources")
    return kinds


def _all_resources(said: ServerProfile) -> list[JsonObject]:
    return [*said.resources, *said.resource_templates]


def explain_unusable(configuration: Configuration) -> dict[str, str]:
    """What to say of the servers that a configuration names and cannot use."""
    return {name: f"{name} is left out: {why}" for name, why in configuration.unusable.items()}


_REASON_LENGTH = 200


def describe_missing_servers(starting: Sequence[str], reasons: Sequence[str]) -> list[str]:
    """What a model should know of servers whose tools are not there yet, or not at all."""
    notes = [f"Still starting: {', '.join(starting)}. Search again soon."] if starting else []
    return notes + [f"Not available: {why[:_REASON_LENGTH]}" for why in reasons]
