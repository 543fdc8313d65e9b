"""Who carries out the calls of each server's tools: made when they are first needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard.adapters.openapi.document import OpenApiSpec
from pegboard.core.calls import CallResult, ToolCall
from pegboard.core.json import JsonObject
from pegboard.core.tools import Tool
from pegboard.errors import PegboardError
from pegboard.gateway.catalogs import ServerCatalogs, tool_to_entry, without_filters
from pegboard.ports import Source
from pegboard.store.memory import MemoryStore
from pegboard.upstream.pool import ConnectionPool
from pegboard.upstream.relay import Relay, UpstreamSource
from pegboard.upstream.spec import UpstreamSpec

if TYPE_CHECKING:
    from pegboard.adapters.openapi.openapi_source import OpenApiSource


class ServerSources:
    """The sources of a gateway, by server; what did not change is kept."""

    def __init__(self, relay: Relay, used: Callable[[str], None]) -> None:
        self._relay = relay
        self._used = used
        self._servers: dict[str, _NotifyingSource] = {}
        self._apis: dict[str, OpenApiSource] = {}
        self._left: list[OpenApiSource] = []

    def of(
        self, specs: Iterable[UpstreamSpec], apis: Mapping[str, OpenApiSpec]
    ) -> dict[str, Source]:
        """The source of each of these; a spec of an API is its stand-in."""
        return {
            spec.name: self.api(apis[spec.name]) if spec.name in apis else self._server(spec)
            for spec in specs
        }

    def _server(self, spec: UpstreamSpec) -> Source:
        known = self._servers.get(spec.name)
        if known is None or known.spec is not spec:
            known = self._servers[spec.name] = _NotifyingSource(spec, self._relay, self._used)
        return known

    def api(self, api: OpenApiSpec) -> OpenApiSource:
        """The source of one API."""
        from pegboard.adapters.openapi.openapi_source import OpenApiSource

        wanted = without_filters(api)
        known = self._apis.get(api.name)
        if known is None or known.spec != wanted:
            if known is not None:
                self._left.append(known)
            known = self._apis[api.name] = OpenApiSource(wanted)
        return known

    async def aclose(self) -> None:
        """Close the connections of APIs; those of servers are the pool's."""
        for source in (*self._apis.values(), *self._left):
            await source.aclose()


class _NotifyingSource:
    """A server's source that tells when it has answered."""

    def __init__(self, spec: UpstreamSpec, relay: Relay, used: Callable[[str], None]) -> None:
        self.spec = spec
        self._source = UpstreamSource(spec, relay)
        self._used = used

    async def tools(self) -> tuple[Tool, ...]:
        return await self._source.tools()

    async def call(self, call: ToolCall) -> CallResult:
        result = await self._source.call(call)
        self._used(self.spec.name)
        return result


@dataclass(frozen=True, slots=True)
class ApiListing:
    """What an OpenAPI document gave: entries as a catalogue keeps them, or an error."""

    entries: list[JsonObject]
    problems: tuple[str, ...] = ()
    error: PegboardError | None = None


async def read_api(source: OpenApiSource) -> ApiListing:
    """Read the document of a source, whatever comes of it."""
    try:
        tools = await source.tools()
    except PegboardError as exc:
        return ApiListing([], error=exc)
    return ApiListing([tool_to_entry(t) for t in tools], tuple(str(p) for p in source.problems))


async def call_once(call: ToolCall, offers: ServerCatalogs, logs: Path) -> CallResult:
    """Make one call of a tool whose server nobody holds: it is started for this call, and ended.

    Raises:
        UpstreamError: The call could not be made.
    """
    name = call.tool.server or ""
    if name in offers.apis:
        from pegboard.adapters.openapi.openapi_source import OpenApiSource

        source = OpenApiSource(without_filters(offers.apis[name]))
        try:
            return await source.call(call)
        finally:
            await source.aclose()
    spec = offers.specs[name]
    async with ConnectionPool([spec], logs=logs) as pool:
        pool.set_known_era(name, offers[name].about.era)
        return await UpstreamSource(spec, Relay(pool, MemoryStore())).call(call)
