"""The client behind a relayed request: what it can do, how to reach it, which connections serve it.

Pegboard stands between clients, which are *downstream*, and servers, which are *upstream*. Only
this module and `client_sdk` look into a `ToolCall.request`; the rest of the relay sees a
`Downstream`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from mcp.server.context import ServerRequestContext
from mcp_types import CLIENT_CAPABILITIES_META_KEY, LOG_LEVEL_META_KEY

from pegboard.core.calls import Caller, Era
from pegboard.core.json import Json, JsonObject
from pegboard.upstream.client_sdk import METHOD_NOT_FOUND, DownstreamChannel, MCPError
from pegboard.upstream.era_translation import (
    get_meta,
    is_level_enabled,
    list_input_kinds,
)

Owner: TypeAlias = tuple[str, ...]
"""The callers that a connection serves: a legacy session, or a principal; empty for all."""


def principal_owner(caller: Caller) -> Owner:
    """The owner of a connection that all sessions and requests of one principal share."""
    return ("principal", caller.principal)


class Downstream:
    """The client of one request; without a channel, the call came from within the process."""

    __slots__ = (
        "_capabilities",
        "_owner",
        "caller",
        "channel",
        "era",
        "log_level",
        "progress_token",
    )

    def __init__(
        self, caller: Caller, channel: DownstreamChannel | None, meta: Mapping[str, Json]
    ) -> None:
        self.caller = caller
        self.channel = channel
        # A call from within the process has nobody to resume it, so it counts as legacy.
        self.era: Era = caller.era if channel is not None else "legacy"
        self.progress_token: Json = meta.get("progressToken") if channel is not None else None
        level = meta.get(LOG_LEVEL_META_KEY) if self.era == "modern" else None
        self.log_level: str | None = level if isinstance(level, str) else None
        # A modern request carries the capabilities of its client. Those of a legacy client are a
        # model on its session: they are dumped only when somebody needs them.
        self._capabilities: JsonObject | None = (
            meta.get(CLIENT_CAPABILITIES_META_KEY) or {} if self.era == "modern" else None
        )
        self._owner: Owner | None = None

    @property
    def capabilities(self) -> JsonObject:
        """What the client declared, unchanged."""
        if self._capabilities is None:
            self._capabilities = self.channel.capabilities() if self.channel else {}
        return self._capabilities

    @property
    def owner(self) -> Owner:
        """The owner of the connections that serve this client and nobody else.

        A modern client has no session, so its requests are separated by principal and by the input
        that the client can give: a legacy server learns that once, when it is connected to.
        """
        if self._owner is None:
            caller = self.caller
            if caller.session is not None and self.era == "legacy":
                self._owner = ("session", caller.session)
            else:
                self._owner = ("principal", caller.principal, *list_input_kinds(self.capabilities))
        return self._owner

    def is_served_by(self, owner: Owner | None) -> bool:
        """Whether a connection of this owner serves this client; a shared one serves everybody."""
        return not owner or owner in (self.owner, principal_owner(self.caller))

    @property
    def can_give_input(self) -> bool:
        """Whether the client can answer a server's requests: at once, or by calling again."""
        if self.channel is None:
            return False
        if self.era == "modern":
            return bool(list_input_kinds(self.capabilities))
        return self.channel.can_send_request

    async def send_request(self, method: str, params: Mapping[str, Json] | None) -> JsonObject:
        """The client's answer to a server's request. Raises `MCPError`, the client's own error."""
        if self.channel is None:
            raise MCPError(METHOD_NOT_FOUND, f"There is no client here to answer {method}.")
        return await self.channel.send_request(method, params)

    async def notify(self, method: str, params: Mapping[str, Json] | None) -> None:
        """Notify the client on the stream of its request."""
        if self.channel is not None:
            await self.channel.notify(method, params)

    async def notify_session(self, method: str, params: Mapping[str, Json] | None) -> None:
        """Notify the client outside of any request, which only a legacy session allows."""
        if self.channel is not None and self.era == "legacy":
            await self.channel.notify_session(method, params)

    def wants_log(self, level: Json) -> bool:
        """Whether the client wants log messages of this level for this request."""
        if self.channel is None:
            return False
        # A legacy client sets the level at the server (`logging/setLevel`), which filters.
        return self.era == "legacy" or is_level_enabled(self.log_level, level)


def build_downstream(
    caller: Caller, request: object | None, params: Mapping[str, Json]
) -> Downstream:
    """The client of a call; `request` is the SDK's context of it, or `None` within the process."""
    if not isinstance(request, ServerRequestContext):
        return Downstream(caller, None, {})
    meta = get_meta(params) or get_meta(request.params)
    return Downstream(caller, DownstreamChannel(request), meta)
