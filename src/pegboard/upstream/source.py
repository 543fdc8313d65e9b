"""The tools of one upstream, as a `Source`."""

from __future__ import annotations

from collections.abc import Iterable

from pegboard.core.calls import Call, CallResult
from pegboard.core.tools import Tool
from pegboard.errors import UpstreamError
from pegboard.upstream.fronts import front_of
from pegboard.upstream.relay import Outgoing, Relay
from pegboard.upstream.sdk import HeaderMap, header_map
from pegboard.upstream.spec import UpstreamSpec


class UpstreamSource:
    """Tools that a server carries out; which ones is set by `hold`, from its catalogue."""

    def __init__(
        self, spec: UpstreamSpec, relay: Relay, entries: Iterable[tuple[Tool, str]] = ()
    ) -> None:
        self._spec = spec
        self._relay = relay
        self.hold(entries)

    def hold(self, entries: Iterable[tuple[Tool, str]]) -> None:
        """Take these tools, each with the name that the server itself gave it."""
        pairs = list(entries)
        self._tools = tuple(tool for tool, _ in pairs)
        self._names = {tool.id: name for tool, name in pairs}
        self._mirrored: dict[str, HeaderMap] = {}

    async def tools(self) -> tuple[Tool, ...]:
        return self._tools

    async def call(self, call: Call) -> CallResult:
        """Run one call at the server.

        Raises:
            UpstreamError: it could not be run; a JSON-RPC error of the server has its `code` and
                `data` in the details.
        """
        tool = call.tool
        outgoing = Outgoing(
            server=self._spec.name,
            method="tools/call",
            params={
                **call.params,
                "name": self._names.get(tool.id, tool.name),
                "arguments": call.arguments,
            },
            timeout=tool.timeout,
            mirrored=self._headers(tool) if self._spec.transport == "http" else None,
        )
        front = front_of(call.caller, call.request, call.params)
        try:
            return CallResult(await self._relay.request(outgoing, front))
        except UpstreamError as exc:
            exc.details.setdefault("tool", tool.name)
            raise

    def _headers(self, tool: Tool) -> HeaderMap:
        """The arguments that this tool wants repeated as HTTP headers."""
        found = self._mirrored.get(tool.id)
        if found is None:
            found = self._mirrored[tool.id] = header_map(tool.input_schema)
        return found
