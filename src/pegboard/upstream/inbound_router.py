"""What a server sends by itself, and the front that it is for.

Progress names its request by a token of ours. Nothing else does: a question, a log message or a
custom notification on a stream belongs to whichever request is in flight. A connection that
serves one owner has only that owner's requests to choose from, so the newest is right. On a
connection that several share, a message is delivered when all who could be meant are the same,
and dropped otherwise: better lost than shown to a stranger.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import anyio

from pegboard.core.json import Json, JsonObject
from pegboard.core.sanitization import sanitize_prose, sanitize_value
from pegboard.ports import progress_callback
from pegboard.upstream.client_sdk import INVALID_REQUEST, METHOD_NOT_FOUND, MCPError
from pegboard.upstream.downstream import Downstream, Owner
from pegboard.upstream.era_translation import CLIENT_REQUESTS

ANSWER_TIMEOUT = 600.0
"""Seconds that a person has to answer a server's question; the call's own clock stands still."""
CARRIER_TIMEOUT = 5.0
"""Seconds that a question waits for a modern request that can carry it."""

UpstreamChange: TypeAlias = Literal["tools", "prompts", "resources", "resource"]

_CHANGES: dict[str, UpstreamChange] = {
    "notifications/tools/list_changed": "tools",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/list_changed": "resources",
    "notifications/resources/updated": "resource",
}
_LEGACY_ONLY = frozenset({"notifications/elicitation/complete", "notifications/tasks/status"})
"""Of the older protocol; about a question or task whose request may have ended long ago."""


@dataclass(frozen=True, slots=True)
class UpstreamEvent:
    """A server announced a change: of a list, or of one resource (`uri`).

    `owner` is whom the connection serves that brought it, `None` when it is shared.
    """

    server: str
    change: UpstreamChange
    uri: str | None = None
    owner: Owner | None = None


UpstreamListener: TypeAlias = Callable[[UpstreamEvent], Awaitable[None]]


class ResumableCall(Protocol):
    """A call that a modern client can take up again with answers; `front` is its latest request."""

    front: Downstream

    async def ask(self, method: str, params: Mapping[str, Json] | None) -> JsonObject: ...


class InFlightRequest:
    """One request on its way: whose it is, and the clock that bounds it."""

    __slots__ = (
        "_budget", "_extend", "_front", "_pauses", "_timeout",
        "asked", "carrier", "number", "scope", "token",
    )  # fmt: skip

    def __init__(
        self, number: int, front: Downstream, timeout: float, carrier: ResumableCall | None
    ) -> None:
        self.number = number
        self.carrier = carrier
        self.token = None if front.progress_token is None else f"pegboard-{number}"
        self._front = front
        self._extend = progress_callback()
        self.asked = False
        self.scope = anyio.CancelScope(deadline=anyio.current_time() + timeout)
        self._budget = self._timeout = timeout
        self._pauses = 0

    @property
    def front(self) -> Downstream:
        return self.carrier.front if self.carrier is not None else self._front

    def progress(self) -> None:
        """Start the time of this request afresh, and that of the call that it is made for."""
        self._extend()
        if not self._pauses:
            self.scope.deadline = anyio.current_time() + self._timeout

    def pause(self) -> None:
        if not self._pauses:
            now = anyio.current_time()
            self._budget = self.scope.deadline - now
            self.scope.deadline = now + ANSWER_TIMEOUT
            self.asked = True
        self._pauses += 1

    def resume(self) -> None:
        self._pauses -= 1
        if not self._pauses:
            self.scope.deadline = anyio.current_time() + self._budget
            self.asked = False


class InboundRouter:
    """The inbox of one connection.

    `patron` is the front for whose sake the connection was opened: it is asked when a server has a
    question while nothing is in flight. A shared connection has none and asks nobody. `owner` is
    whom the connection serves, `None` for everybody.
    """

    def __init__(
        self,
        server: str,
        patron: Downstream | None,
        listener: UpstreamListener,
        owner: Owner | None = None,
    ) -> None:
        self.flights: dict[int, InFlightRequest] = {}
        self.owner = owner
        self._server = server
        self._patron = patron
        self._listener = listener
        self._number = 0
        self._arrival = anyio.Event()

    def release(self) -> None:
        """Ask nobody from now on: a modern server asks in its results."""
        self._patron = None

    @contextmanager
    def flight(
        self, front: Downstream, timeout: float = math.inf, carrier: ResumableCall | None = None
    ) -> Generator[InFlightRequest]:
        """A request in flight, for as long as the block runs."""
        self._number += 1
        flight = InFlightRequest(self._number, front, timeout, carrier)
        self.flights[flight.number] = flight
        if carrier is not None:
            self._arrival.set()
        try:
            yield flight
        finally:
            del self.flights[flight.number]

    async def on_request(self, method: str, params: Mapping[str, Json] | None) -> JsonObject:
        """Answer a server's request: by asking the client it concerns."""
        if method == "ping":
            return {}
        patron = self._patron
        if patron is None or (patron.era == "modern" and not patron.can_be_asked):
            raise MCPError(METHOD_NOT_FOUND, f"No client can be asked here for {method}.")
        if method == "elicitation/create":
            params = sanitize_prose(params)  # a person reads it and decides
        with self._clocks_stopped():
            if patron.era == "modern":
                return await self._ask_modern(method, params)
            newest = self._only_owner(self.flights.values())
            return await (newest.front if newest else patron).ask(method, params)

    async def _ask_modern(self, method: str, params: Mapping[str, Json] | None) -> JsonObject:
        if method not in CLIENT_REQUESTS:
            raise MCPError(METHOD_NOT_FOUND, f"A modern client cannot be asked for {method}.")
        carrier = await self._carrier()
        if carrier is None:
            raise MCPError(INVALID_REQUEST, f"No request of the client is open to carry {method}.")
        return await carrier.ask(method, params)

    async def _carrier(self) -> ResumableCall | None:
        """The newest call that can be taken up again; one may be about to start."""
        with anyio.move_on_after(CARRIER_TIMEOUT):
            while True:
                for flight in reversed(self.flights.values()):
                    if flight.carrier is not None:
                        return flight.carrier
                self._arrival = anyio.Event()
                await self._arrival.wait()
        return None

    @contextmanager
    def _clocks_stopped(self) -> Generator[None]:
        """Whoever waits for the server waits for a person now, and any flight may be the one."""
        paused = list(self.flights.values())
        for flight in paused:
            flight.pause()
        try:
            yield
        finally:
            for flight in paused:
                flight.resume()

    async def on_notify(self, method: str, params: Mapping[str, Json] | None) -> None:
        """Pass a server's notification on to whom it concerns."""
        if method == "notifications/progress":
            await self._progress(params or {})
        elif method == "notifications/message":
            await self._log(params or {})
        elif (change := _CHANGES.get(method)) is not None:
            uri = (params or {}).get("uri")
            await self._listener(UpstreamEvent(self._server, change, uri, self.owner))
        elif method != "notifications/cancelled":  # the dispatcher applied it
            await self._forward(method, params)

    async def _progress(self, params: Mapping[str, Json]) -> None:
        token = params.get("progressToken")
        for flight in self.flights.values():
            if token is not None and token == flight.token:
                told = {**sanitize_prose(params), "progressToken": flight.front.progress_token}
                flight.progress()
                await flight.front.tell("notifications/progress", told)
                return

    async def _log(self, params: Mapping[str, Json]) -> None:
        level = params.get("level")
        params = sanitize_value(params)
        wanting = [f for f in self.flights.values() if f.front.admits_log(level)]
        if (flight := self._only_owner(wanting)) is not None:
            await flight.front.tell("notifications/message", params)
        elif self._patron is not None and not self.flights:
            await self._patron.announce("notifications/message", params)

    async def _forward(self, method: str, params: Mapping[str, Json] | None) -> None:
        if not self.owner and method in _LEGACY_ONLY:
            return  # of a connection that several share: whoever is in flight may be a stranger
        flight = self._only_owner(self.flights.values())
        if flight is None:
            if self._patron is not None and not self.flights:
                await self._patron.announce(method, params)
        elif flight.front.era == "legacy" or method not in _LEGACY_ONLY:
            await flight.front.tell(method, params)

    @staticmethod
    def _only_owner(flights: Iterable[InFlightRequest]) -> InFlightRequest | None:
        """The newest of these flights, if they are all one owner's."""
        candidates = list(flights)
        owners = {flight.front.owner for flight in candidates}
        return candidates[-1] if len(owners) == 1 else None
