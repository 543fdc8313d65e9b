"""How every server of a configuration is: what `pegboard doctor` tells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from pegboard.adapters.openapi.document import OpenApiSpec
from pegboard.config import Configuration
from pegboard.core.calls import Era
from pegboard.core.json import JsonObject
from pegboard.core.validation.bounds import drop_unsafe_patterns, format_patterns
from pegboard.gateway.catalogs import ServerCatalogs, build_about, explain_unusable
from pegboard.gateway.sources import read_api
from pegboard.tokens import count_tokens
from pegboard.upstream.catalog_cache import CachedCatalog, CatalogCache, ServerProfile
from pegboard.upstream.failures import prefix_server_name
from pegboard.upstream.listing import ListingProgress, ListingResult, discover
from pegboard.upstream.pool import ConnectionPool

CheckState: TypeAlias = Literal["reachable", "failed", "left out", "disabled"]
_READ_BY_MODELS = ("name", "description", "inputSchema")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCheck:
    """What was found out about one server or API."""

    server: str
    transport: str
    label: str
    reachable: bool
    era: Era | None = None
    version: str | None = None
    tools: int = 0
    tokens: int = 0
    """Of all its definitions as a model would read them."""
    latency: float | None = None
    """Seconds from nothing to the first answer: its start, and the handshake."""
    seconds: float = 0.0
    """Until everything it offers was listed."""
    problems: tuple[str, ...] = ()
    state: CheckState = "reachable"


async def check_servers(
    configuration: Configuration,
    folder: Path,
    progress: ListingProgress = lambda done, total, found: None,
) -> list[ServerCheck]:
    """Look at every server afresh, as far as possible at once; what they list is kept."""
    offers = ServerCatalogs(configuration, CatalogCache(folder / "catalogues"))
    found: dict[str, ServerCheck] = {}
    bound = configuration.settings.upstreams.start_concurrency
    async with (
        ConnectionPool(configuration.upstreams, logs=folder / "logs") as pool,
        discover(pool, bound=bound, progress=progress) as arriving,
    ):
        async for one in arriving:
            latency = next(s.latency for s in pool.status() if s.server == one.server)
            found[one.server] = _check_server(one, latency, offers)
    for api in configuration.sources:
        found[api.name] = await _check_api(api, offers)
    return [found[name] for name in offers.specs] + _skipped_servers(configuration)


def _skipped_servers(configuration: Configuration) -> list[ServerCheck]:
    """The servers that a configuration names and does not use."""
    left_out = [
        ServerCheck(
            server=n, transport="-", label="", reachable=False, problems=(why,), state="left out"
        )
        for n, why in explain_unusable(configuration).items()
    ]
    return left_out + [
        ServerCheck(
            server=spec.name,
            transport=spec.transport,
            label=spec.label,
            reachable=False,
            state="disabled",
        )
        for spec in configuration.disabled
    ]


def _check_server(
    found: ListingResult, latency: float | None, offers: ServerCatalogs
) -> ServerCheck:
    spec = offers.specs[found.server]
    listing = found.listing
    if listing is None:
        reason = found.error.message if found.error else "no answer"
        offers.remember_failure(spec.name, reason)
        return ServerCheck(
            server=spec.name,
            transport=spec.transport,
            label=spec.label,
            reachable=False,
            seconds=found.seconds,
            problems=(reason,),
            state="failed",
        )
    before = offers.kept_anew(spec.name)
    known = before.about if before is not None else None
    kept = offers.save(spec, build_about(listing, known), listing.tools)
    entries = _visible_entries(kept, offers, spec.name)
    return ServerCheck(
        server=spec.name,
        transport=spec.transport,
        label=spec.label,
        reachable=True,
        era=listing.era,
        version=listing.protocol_version,
        tools=len(entries),
        tokens=_count_entry_tokens(entries),
        latency=latency,
        seconds=found.seconds,
        problems=(
            *listing.failures.values(),
            *(str(problem) for problem in kept.problems),
            *_unverified_patterns(spec.name, entries),
        ),
    )


async def _check_api(api: OpenApiSpec, offers: ServerCatalogs) -> ServerCheck:
    import anyio

    from pegboard.adapters.openapi.openapi_source import OpenApiSource
    from pegboard.gateway.catalogs import without_filters

    source = OpenApiSource(without_filters(api))
    began = anyio.current_time()
    try:
        read = await read_api(source)
    finally:
        await source.aclose()
    entries: list[JsonObject] = []
    if read.error is None:
        entries = _visible_entries(
            offers.save(offers.specs[api.name], ServerProfile(), read.entries), offers, api.name
        )
    failed = (prefix_server_name(api.name, read.error.message),) if read.error else ()
    problems = failed or tuple(read.problems)
    return ServerCheck(
        server=api.name,
        transport="openapi",
        label=offers.specs[api.name].label,
        reachable=read.error is None,
        tools=len(entries),
        tokens=_count_entry_tokens(entries),
        seconds=anyio.current_time() - began,
        problems=problems,
        state="failed" if read.error else "reachable",
    )


def _visible_entries(kept: CachedCatalog, offers: ServerCatalogs, name: str) -> list[JsonObject]:
    return [tool.wire() for tool in kept.tools(offers.specs[name])]


def _unverified_patterns(server: str, entries: Iterable[JsonObject]) -> Iterator[str]:
    """The patterns in the tools' schemas that calls are not checked against, one line a tool."""
    for entry in entries:
        _, patterns = drop_unsafe_patterns(entry["inputSchema"])
        if patterns:
            yield (
                f"{server}: {entry['name']}: these patterns cannot be checked in linear time and "
                f"are left to the server: {format_patterns(patterns)}"
            )


def _count_entry_tokens(entries: Iterable[JsonObject]) -> int:
    return sum(
        count_tokens({key: entry[key] for key in _READ_BY_MODELS if key in entry})
        for entry in entries
    )
