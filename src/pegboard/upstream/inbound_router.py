"""Routes messages that a server sends on its own to the right client.

Progress names its request by a token of ours. Nothing else does: an input request, a log message or
a custom notification on a stream belongs to one of the requests in flight, and does not say which.

    connection of one owner   every request in flight is that owner's, so the newest is right
    shared connection         delivered if all requests in flight are one client's, else dropped:
                              better lost than shown to a stranger

While a server waits for a person's answer, the timeouts of the requests in flight are paused.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

import anyio

from pegboard.core.json import Json, JsonObject
from pegboard.core.sanitization import sanitize_prose, sanitize_value
from pegboard.ports import progress_callback
from pegboard.upstream.client_sdk import INVALID_REQUEST, METHOD_NOT_FOUND, MCPError
from pegboard.upstream.downstream import Downstream, Owner
from pegboard.upstream.era_translation import INPUT_METHODS, attribute_elicitation

ANSWER_TIMEOUT = 600.0
"""Seconds that a person has to answer a server's input request."""
CARRIER_TIMEOUT = 5.0
"""Seconds that an input request waits for a modern client's call that can carry it."""

UpstreamChange: TypeAlias = Literal["tools", "prompts", "resources", "resource"]

_CHANGES: dict[str, UpstreamChange] = {
    "notifications/tools/list_changed": "tools",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/list_changed": "resources",
    "notifications/resources/updated": "resource",
}
_LEGACY_ONLY = frozenset({"notifications/elicitation/complete", "notifications/tasks/status"})
"""From the older protocol; about an elicitation or task whose request may have ended long ago."""


@dataclass(frozen=True, slots=True)
class UpstreamEvent:
    """A server announced a change: of a list, or of one resource (`uri`).

    `owner` is that of the connection that brought it, `None` when it is shared.
    """

    server: str
    change: UpstreamChange
    uri: str | None = None
    owner: Owner | None = None


MAX_OPEN_REQUESTS: Final = 50
"""Requests of one server that may wait for a client's answers; a person is asked about some."""

UpstreamListener: TypeAlias = Callable[[UpstreamEvent], Awaitable[None]]


class ResumableCall(Protocol):
    """A modern client's call that can end with input requests and be resumed with the answers."""

    downstream: Downstream
    """The client's latest request."""

    async def request_input(self, method: str, params: Mapping[str, Json] | None) -> JsonObject: ...


class InFlightRequest:
    """One request that waits for its answer: whose it is, and the clock that bounds it."""

    __slots__ = (
        "_downstream", "_on_progress", "_pauses", "_time_left", "_timeout",
        "number", "resumable", "scope", "token", "waits_for_input",
    )  # fmt: skip

    def __init__(
        self,
        number: int,
        downstream: Downstream,
        timeout: float,
        resumable: ResumableCall | None,
    ) -> None:
        self.number = number
        self.resumable = resumable
        # The client's own token means nothing here: two clients may use the same one.
        self.token = None if downstream.progress_token is None else f"pegboard-{number}"
        self.waits_for_input = False
        self.scope = anyio.CancelScope(deadline=anyio.current_time() + timeout)
        self._downstream = downstream
        self._on_progress = progress_callback()
        self._time_left = self._timeout = timeout
        self._pauses = 0

    @property
    def downstream(self) -> Downstream:
        # A resumed call is served by the request that resumed it; the first one has ended.
        return self.resumable.downstream if self.resumable is not None else self._downstream

    def progress(self) -> None:
        """Restart the timeout of this request, and that of the call that it belongs to."""
        self._on_progress()
        if not self._pauses:
            self.scope.deadline = anyio.current_time() + self._timeout

    def pause(self) -> None:
        """Stop the clock, up to the time that a person has to answer."""
        # Several input requests may be open at once: the first pause and the last resume count.
        if not self._pauses:
            now = anyio.current_time()
            self._time_left = self.scope.deadline - now
            self.scope.deadline = now + ANSWER_TIMEOUT
            self.waits_for_input = True
        self._pauses += 1

    def resume(self) -> None:
        """Resume the clock."""
        self._pauses -= 1
        if not self._pauses:
            self.scope.deadline = anyio.current_time() + self._time_left
            self.waits_for_input = False


class InboundRouter:
    """The inbound handler of one connection.

    Args:
        server: The name of the server.
        opener: The client that the connection was opened for. It is sent the requests that a
            server makes while nothing is in flight. A shared connection has none, and no request
            of its server is answered.
        listener: Notified of announced changes.
        owner: The owner of the connection; `None` when it is shared.
    """

    def __init__(
        self,
        server: str,
        opener: Downstream | None,
        listener: UpstreamListener,
        owner: Owner | None = None,
    ) -> None:
        self.in_flight: dict[int, InFlightRequest] = {}
        self.owner = owner
        self._server = server
        self._opener = opener
        self._listener = listener
        self._last_number = 0
        self._open_requests = 0
        self._resumable_arrived = anyio.Event()

    def stop_input_requests(self) -> None:
        """Answer no requests from now on: a modern server requests input in its results."""
        self._opener = None

    @contextmanager
    def track(
        self,
        downstream: Downstream,
        timeout: float = math.inf,
        resumable: ResumableCall | None = None,
    ) -> Generator[InFlightRequest]:
        """A request in flight, for as long as the block runs."""
        self._last_number += 1
        request = InFlightRequest(self._last_number, downstream, timeout, resumable)
        self.in_flight[request.number] = request
        if resumable is not None:
            self._resumable_arrived.set()
        try:
            yield request
        finally:
            del self.in_flight[request.number]

    # Requests of the server.

    async def on_request(self, method: str, params: Mapping[str, Json] | None) -> JsonObject:
        """Answer a server's request, by forwarding it to the client that it concerns."""
        if method == "ping":
            return {}
        opener = self._opener
        if opener is None or (opener.era == "modern" and not opener.can_give_input):
            raise MCPError(METHOD_NOT_FOUND, f"No client here can answer {method}.")
        if method == "elicitation/create":
            # A person reads it and decides by it, so it must not hide anything from them.
            params = attribute_elicitation(self._server, params)
        if self._open_requests >= MAX_OPEN_REQUESTS:
            raise MCPError(
                INVALID_REQUEST,
                f"{self._open_requests} requests of this server are open: wait for an answer.",
            )
        # The server does not say which call it needs this for, so every timeout is paused.
        paused = list(self.in_flight.values())
        for request in paused:
            request.pause()
        self._open_requests += 1
        try:
            if opener.era == "modern":
                return await self._request_modern_input(method, params)
            newest = next(reversed(self.in_flight.values()), None)
            return await (newest.downstream if newest else opener).send_request(method, params)
        finally:
            self._open_requests -= 1
            for request in paused:
                request.resume()

    async def _request_modern_input(
        self, method: str, params: Mapping[str, Json] | None
    ) -> JsonObject:
        """A modern client's answer, which it can only give by calling again."""
        if method not in INPUT_METHODS:
            raise MCPError(METHOD_NOT_FOUND, f"A modern client cannot answer {method}.")
        carrier: ResumableCall | None = None
        with anyio.move_on_after(CARRIER_TIMEOUT):
            # Between two calls nothing can carry it, but the next call may be about to start.
            while True:
                newest_first = (r.resumable for r in reversed(self.in_flight.values()))
                carrier = next((call for call in newest_first if call is not None), None)
                if carrier is not None:
                    break
                self._resumable_arrived = anyio.Event()
                await self._resumable_arrived.wait()
        if carrier is None:
            raise MCPError(INVALID_REQUEST, f"No request of the client is open to carry {method}.")
        return await carrier.request_input(method, params)

    # Notifications of the server.

    async def on_notify(self, method: str, params: Mapping[str, Json] | None) -> None:
        """Pass a server's notification on to the client that it concerns."""
        if method == "notifications/progress":
            await self._on_progress(params or {})
        elif method == "notifications/message":
            message = sanitize_value(params or {})
            level = message.get("level")
            wanting = [r for r in self.in_flight.values() if r.downstream.wants_log(level)]
            await self._deliver(method, message, wanting)
        elif (change := _CHANGES.get(method)) is not None:
            uri = (params or {}).get("uri")
            await self._listener(UpstreamEvent(self._server, change, uri, self.owner))
        elif method != "notifications/cancelled":  # the dispatcher applied it
            await self._deliver(method, params, self.in_flight.values())

    async def _on_progress(self, params: Mapping[str, Json]) -> None:
        token = params.get("progressToken")
        for request in self.in_flight.values():
            if token is not None and token == request.token:
                client_token = request.downstream.progress_token
                sent = {**sanitize_prose(params), "progressToken": client_token}
                request.progress()
                await request.downstream.notify("notifications/progress", sent)
                return

    async def _deliver(
        self,
        method: str,
        params: Mapping[str, Json] | None,
        candidates: Iterable[InFlightRequest],
    ) -> None:
        """Notify the only client that can be meant; nobody, where there are several."""
        is_legacy_only = method in _LEGACY_ONLY
        if is_legacy_only and not self.owner:
            return  # on a shared connection it may concern a client that is not in flight
        requests = list(candidates)
        if len({request.downstream.owner for request in requests}) == 1:
            client = requests[-1].downstream
            if client.era == "legacy" or not is_legacy_only:
                await client.notify(method, params)
        elif self._opener is not None and not self.in_flight:
            await self._opener.notify_session(method, params)
