"""The sources that run the calls of each server's tools; created when they are first needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard.adapters.openapi.document import OpenApiSpec
from pegboard.core.calls import CallResult, ToolCall
from pegboard.core.json import JsonObject
from pegboard.errors import PegboardError
from pegboard.gateway.background_tasks import log_failure
from pegboard.gateway.catalogs import ServerCatalogs, tool_to_entry, without_filters
from pegboard.oauth.logins import Logins
from pegboard.ports import Source
from pegboard.store.memory import MemoryStore
from pegboard.upstream.pool import ConnectionPool
from pegboard.upstream.relay import Relay, UpstreamSource
from pegboard.upstream.spec import UpstreamSpec

if TYPE_CHECKING:
    from pegboard.adapters.openapi.openapi_source import OpenApiSource
    from pegboard.upstream.listing import Listing
    from pegboard.upstream.passthrough import Passthrough


class ServerSources:
    """The sources of a gateway, by server; unchanged ones are reused.

    Args:
        relay: Connections to the servers.
        on_first_answer: Called with the name of a server after it has answered its first call.
    """

    def __init__(self, relay: Relay, on_first_answer: Callable[[str], None]) -> None:
        self._relay = relay
        self._on_first_answer = on_first_answer
        self._servers: dict[str, UpstreamSource] = {}
        self._apis: dict[str, OpenApiSource] = {}
        self._replaced: list[OpenApiSource] = []
        """Sources of earlier configurations: calls in progress may still use their connections."""

    def get_all(
        self, specs: Iterable[UpstreamSpec], apis: Mapping[str, OpenApiSpec]
    ) -> dict[str, Source]:
        """The source of each of these servers; the spec of an API is a stand-in for it."""
        sources: dict[str, Source] = {}
        for spec in specs:
            if spec.name in apis:
                sources[spec.name] = self.get_api(apis[spec.name])
                continue
            known = self._servers.get(spec.name)
            if known is None or known.spec is not spec:
                known = UpstreamSource(spec, self._relay, on_first_answer=self._on_first_answer)
                self._servers[spec.name] = known
            sources[spec.name] = known
        return sources

    def get_api(self, api: OpenApiSpec) -> OpenApiSource:
        """The source of one API."""
        from pegboard.adapters.openapi.openapi_source import OpenApiSource

        # Without filters, since those are applied to the catalog: changing one needs no new source.
        wanted = without_filters(api)
        known = self._apis.get(api.name)
        if known is None or known.spec != wanted:
            if known is not None:
                self._replaced.append(known)
            known = self._apis[api.name] = OpenApiSource(wanted)
        return known

    async def aclose(self) -> None:
        """Close the connections of APIs; the pool owns those of servers."""
        for source in (*self._apis.values(), *self._replaced):
            await source.aclose()


@dataclass(frozen=True, slots=True)
class ApiListing:
    """The tools of an OpenAPI document as entries of a catalog, or an error."""

    entries: list[JsonObject]
    problems: tuple[str, ...] = ()
    error: PegboardError | None = None


async def read_api(source: OpenApiSource) -> ApiListing:
    """Read the document of a source; an error is part of the result."""
    try:
        tools = await source.tools()
    except PegboardError as exc:
        return ApiListing([], error=exc)
    return ApiListing([tool_to_entry(t) for t in tools], tuple(str(p) for p in source.problems))


async def call_once(
    call: ToolCall, catalogs: ServerCatalogs, logs: Path, logins: Logins
) -> CallResult:
    """Make one call without a running gateway: the server is started for it, and stopped after it.

    Raises:
        UpstreamError: The call could not be made.
        LoginRequired: The server needs a login first.
    """
    name = call.tool.server or ""
    if name in catalogs.apis:
        from pegboard.adapters.openapi.openapi_source import OpenApiSource

        source = OpenApiSource(without_filters(catalogs.apis[name]))
        try:
            return await source.call(call)
        finally:
            await source.aclose()
    spec = catalogs.specs[name]
    async with ConnectionPool([spec], logs=logs, logins=logins) as pool:
        pool.set_known_era(name, catalogs[name].about.era)
        return await UpstreamSource(spec, Relay(pool, MemoryStore())).call(call)


def route_resources(passthrough: Passthrough, listings: Sequence[Listing]) -> None:
    """Route the resources and prompts of all servers whose lists can be used."""
    try:
        passthrough.set_listings(listings)
        return
    except Exception as exc:
        log_failure("The resources and prompts of some server cannot be used", exc)
    # One of them is unusable: add them one by one to leave out that one only.
    good: list[Listing] = []
    for listing in listings:
        try:
            passthrough.set_listings([*good, listing])
            good.append(listing)
        except Exception as exc:
            log_failure(f"The resources and prompts of {listing.server} are left out", exc)
    passthrough.set_listings(good)
