"""Check every server of a configuration: the report of `pegboard doctor`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import anyio

from pegboard.adapters.openapi.document import OpenApiSpec
from pegboard.config.loader import Configuration
from pegboard.core.calls import LOCAL_CALLER, Era
from pegboard.core.json import JsonObject
from pegboard.core.validation.bounds import drop_unsafe_patterns, format_patterns
from pegboard.errors import LoginRequired
from pegboard.gateway.catalogs import (
    ServerCatalogs,
    build_profile,
    explain_unusable,
    without_filters,
)
from pegboard.gateway.from_settings import build_logins, close_store, open_store
from pegboard.gateway.sources import read_api
from pegboard.oauth.grants import LoginState
from pegboard.tokens import count_entry_tokens
from pegboard.upstream.catalog_cache import CachedCatalog, CatalogCache, ServerProfile
from pegboard.upstream.failures import prefix_server_name
from pegboard.upstream.listing import ListingProgress, ListingResult, stream_listings
from pegboard.upstream.pool import ConnectionPool

CheckState: TypeAlias = Literal[
    "reachable", "failed", "sign in", "sign in again", "left out", "disabled"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCheck:
    """The state of one server or API."""

    server: str
    transport: str
    label: str
    reachable: bool
    era: Era | None = None
    version: str | None = None
    tools: int = 0
    tokens: int = 0
    """Tokens of all its definitions, as a model would read them."""
    latency: float | None = None
    """Seconds until the first answer: its start, and the handshake."""
    seconds: float = 0.0
    """Seconds until everything was listed."""
    problems: tuple[str, ...] = ()
    state: CheckState = "reachable"
    login: LoginState | None = None
    """Whether the operator is logged in to it; `None` if no login is known or needed."""


async def check_servers(
    configuration: Configuration,
    folder: Path,
    progress: ListingProgress = lambda done, total, found: None,
) -> list[ServerCheck]:
    """List every server again, several at a time; what they list is cached."""
    catalogs = ServerCatalogs(configuration, CatalogCache(folder / "catalogs"))
    checks: dict[str, ServerCheck] = {}
    bound = configuration.settings.upstreams.start_concurrency
    # A store of its own: no gateway runs in this process whose store could be used.
    store = open_store(configuration.settings, None)
    logins = build_logins(configuration.settings, store)
    async with (
        ConnectionPool(configuration.upstreams, logs=folder / "logs", logins=logins) as pool,
        stream_listings(pool, bound=bound, progress=progress) as results,
    ):
        async for result in results:
            latency = next(s.latency for s in pool.status() if s.server == result.server)
            is_refused = isinstance(result.error, LoginRequired)
            login = await logins.state(
                catalogs.specs[result.server], LOCAL_CALLER.principal, is_refused=is_refused
            )
            checks[result.server] = _check_server(result, latency, catalogs, login)
    await close_store(store)
    for api in configuration.sources:
        checks[api.name] = await _check_api(api, catalogs)
    report = [checks[name] for name in catalogs.specs]  # in the order of the configuration
    # Servers that were not checked are in the report too, or a missing one would look like a
    # misspelled name.
    for name, reason in explain_unusable(configuration).items():
        report.append(
            ServerCheck(
                server=name,
                transport="-",
                label="",
                reachable=False,
                problems=(reason,),
                state="left out",
            )
        )
    report.extend(
        ServerCheck(
            server=spec.name,
            transport=spec.transport,
            label=spec.label,
            reachable=False,
            state="disabled",
        )
        for spec in configuration.disabled
    )
    return report


def _check_server(
    result: ListingResult,
    latency: float | None,
    catalogs: ServerCatalogs,
    login: LoginState | None,
) -> ServerCheck:
    spec = catalogs.specs[result.server]
    listing = result.listing
    if listing is None:
        reason = result.failure
        # A gateway that starts next does not wait for this server.
        catalogs.save_failure(spec.name, reason, needs_login=login in ("sign in", "sign in again"))
        return ServerCheck(
            server=spec.name,
            transport=spec.transport,
            label=spec.label,
            reachable=False,
            seconds=result.seconds,
            problems=(reason,),
            state="failed" if login in (None, "signed in") else login,
            login=login,
        )
    before = catalogs.read_cached(spec.name)
    # A list that failed this time must not remove what is known of it.
    known = before.about if before is not None else None
    catalog = catalogs.save(spec, build_profile(listing, known), listing.tools)
    entries = _visible_entries(catalog, catalogs, spec.name)
    return ServerCheck(
        server=spec.name,
        transport=spec.transport,
        label=spec.label,
        reachable=True,
        era=listing.era,
        version=listing.protocol_version,
        tools=len(entries),
        tokens=count_entry_tokens(entries),
        latency=latency,
        login=login,
        seconds=result.seconds,
        problems=(
            *listing.failures.values(),
            *(str(problem) for problem in catalog.problems),
            *_unverified_patterns(spec.name, entries),
        ),
    )


async def _check_api(api: OpenApiSpec, catalogs: ServerCatalogs) -> ServerCheck:
    from pegboard.adapters.openapi.openapi_source import OpenApiSource

    source = OpenApiSource(without_filters(api))
    began = anyio.current_time()
    try:
        read = await read_api(source)
    finally:
        await source.aclose()
    entries: list[JsonObject] = []
    if read.error is None:
        entries = _visible_entries(
            catalogs.save(catalogs.specs[api.name], ServerProfile(), read.entries),
            catalogs,
            api.name,
        )
    problems = read.problems
    if read.error is not None:
        problems = (prefix_server_name(api.name, read.error.message),)
    return ServerCheck(
        server=api.name,
        transport="openapi",
        label=catalogs.specs[api.name].label,
        reachable=read.error is None,
        tools=len(entries),
        tokens=count_entry_tokens(entries),
        seconds=anyio.current_time() - began,
        problems=problems,
        state="failed" if read.error else "reachable",
    )


def _visible_entries(
    catalog: CachedCatalog, catalogs: ServerCatalogs, name: str
) -> list[JsonObject]:
    return [tool.wire() for tool in catalog.tools(catalogs.specs[name])]


def _unverified_patterns(server: str, entries: Iterable[JsonObject]) -> Iterator[str]:
    """The patterns in schemas that arguments are not checked against, one line for each tool."""
    for entry in entries:
        _, patterns = drop_unsafe_patterns(entry["inputSchema"])
        if patterns:
            yield (
                f"{server}: {entry['name']}: these patterns cannot be checked in linear time and "
                f"are left to the server: {format_patterns(patterns)}"
            )
