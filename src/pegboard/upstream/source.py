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
    """Tools that a server carries out; which ones is set by `hold`, from its catalogue.

    The server's own name of a tool is its id without the server: `github.create_issue` is called
    `create_issue` there, whatever name clients see.
    """

    def __init__(self, spec: UpstreamSpec, relay: Relay, tools: Iterable[Tool] = ()) -> None:
        self._spec = spec
        self._relay = relay
        self.hold(tools)

    def hold(self, tools: Iterable[Tool]) -> None:
        """Take these tools in place of those held before."""
        self._tools = tuple(tools)
        self._mirrored: dict[str, tuple[Tool, HeaderMap]] = {}

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
                "name": tool.own_name,
                "arguments": call.arguments,
            },
            timeout=tool.timeout,
            mirrored=self._headers(tool) if self._spec.transport == "http" else None,
            tool=tool.id,
        )
        front = front_of(call.caller, call.request, call.params)
        try:
            return CallResult(await self._relay.request(outgoing, front))
        except UpstreamError as exc:
            exc.details.setdefault("tool", tool.name)
            raise

    def _headers(self, tool: Tool) -> HeaderMap:
        """The arguments that this tool wants repeated as HTTP headers."""
        kept = self._mirrored.get(tool.id)
        if kept is None or kept[0] is not tool:  # a new listing makes new tools
            schemas = tool.definition()
            mirrored = {
                tuple(schemas.originals.get(part, part) for part in path): header
                for path, header in header_map(schemas.input).items()
            }
            kept = self._mirrored[tool.id] = (tool, mirrored)
        return kept[1]
