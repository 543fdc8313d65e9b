"""The client behind a relayed request: what it can do, how to reach it, what it may share.

Only this module and `sdk` look into a `Call.request`; everything else of the relay speaks of a
`Front`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from mcp.server.context import ServerRequestContext
from mcp_types import CLIENT_CAPABILITIES_META_KEY, LOG_LEVEL_META_KEY

from pegboard.core.calls import Caller, Era
from pegboard.core.json import Json, JsonObject
from pegboard.upstream.client_sdk import METHOD_NOT_FOUND, DownstreamChannel, MCPError
from pegboard.upstream.era_translation import get_meta, is_level_enabled, list_client_requests

Owner: TypeAlias = tuple[str, ...]
"""Whom a connection may serve: one legacy session, or one principal's modern requests."""


def principal_owner(caller: Caller) -> Owner:
    """The owner of a connection that all sessions and requests of one principal share."""
    return ("principal", caller.principal)


class Downstream:
    """One front request as the relay sees it; without a channel, a call from within the process."""

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
        self.era: Era = caller.era if channel is not None else "legacy"
        self.progress_token: Json = meta.get("progressToken") if channel is not None else None
        level = meta.get(LOG_LEVEL_META_KEY) if self.era == "modern" else None
        self.log_level: str | None = level if isinstance(level, str) else None
        self._capabilities: JsonObject | None = (
            meta.get(CLIENT_CAPABILITIES_META_KEY) or {} if self.era == "modern" else None
        )
        self._owner: Owner | None = None

    @property
    def capabilities(self) -> JsonObject:
        """What the client declared, as it said it."""
        if self._capabilities is None:
            self._capabilities = self.channel.capabilities() if self.channel else {}
        return self._capabilities

    @property
    def owner(self) -> Owner:
        """Whom this request belongs to.

        A modern client has no session, so its requests are told apart by principal and by what the
        client can be asked: a legacy server hears that once, when it is connected to.
        """
        if self._owner is None:
            caller = self.caller
            if caller.session is not None and self.era == "legacy":
                self._owner = ("session", caller.session)
            else:
                self._owner = (
                    "principal",
                    caller.principal,
                    *list_client_requests(self.capabilities),
                )
        return self._owner

    def belongs_to(self, owner: Owner | None) -> bool:
        """Whether a connection of this owner serves this request; everybody's has none."""
        return not owner or owner in (self.owner, principal_owner(self.caller))

    @property
    def can_be_asked(self) -> bool:
        """Whether the client can answer a server's questions: by request, or by calling again."""
        if self.channel is None:
            return False
        return (
            bool(list_client_requests(self.capabilities))
            if self.era == "modern"
            else self.channel.can_ask
        )

    async def ask(self, method: str, params: Mapping[str, Json] | None) -> JsonObject:
        """The client's answer to a server's request. Raises `MCPError`, the client's own error."""
        if self.channel is None:
            raise MCPError(METHOD_NOT_FOUND, f"There is no client here to answer {method}.")
        return await self.channel.ask(method, params)

    async def tell(self, method: str, params: Mapping[str, Json] | None) -> None:
        if self.channel is not None:
            await self.channel.tell(method, params)

    async def announce(self, method: str, params: Mapping[str, Json] | None) -> None:
        if self.channel is not None and self.era == "legacy":
            await self.channel.announce(method, params)

    def admits_log(self, level: Json) -> bool:
        """Whether the client wants a log message of this level beside this request."""
        if self.channel is None:
            return False
        return self.era == "legacy" or is_level_enabled(self.log_level, level)


def build_downstream(
    caller: Caller, request: object | None, params: Mapping[str, Json]
) -> Downstream:
    """The front of a call; `request` is the SDK's context of it, or `None` within the process."""
    if not isinstance(request, ServerRequestContext):
        return Downstream(caller, None, {})
    return Downstream(
        caller, DownstreamChannel(request), get_meta(params) or get_meta(request.params)
    )
