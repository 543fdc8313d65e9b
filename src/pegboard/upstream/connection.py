r"""One live connection to one server: opened, used by many requests at once, over.

A connection lives in one task (`run`), since the SDK's scopes must be left by the task that entered
them; everybody else only sends requests through it and waits for its events.

    cold -> starting -> ready -> stopping -> cold
                  \-> failed <-/   (over, with a cause)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Literal, TypeAlias

import anyio
from anyio.abc import TaskGroup
from httpx2 import HTTPError

from pegboard.core.calls import LOCAL_CALLER, Caller, Era
from pegboard.core.json import JsonObject
from pegboard.core.redaction import Redactor, secret_values
from pegboard.credentials import Credentials
from pegboard.errors import UpstreamError, UpstreamUnavailable
from pegboard.upstream import era_translation
from pegboard.upstream.channels import RequestChannel
from pegboard.upstream.client_sdk import (
    CLIENT_INFO,
    PROBE_TIMEOUT,
    ClientSession,
    HeaderMap,
    MCPError,
    RelayDispatcher,
    build_headers,
    follow_changes,
    is_connection_closed,
    is_http_error,
    is_session_expired,
    negotiate,
    open_session,
)
from pegboard.upstream.downstream import Downstream, Owner
from pegboard.upstream.failures import (
    MAX_CAUSE_LENGTH,
    StartTimeout,
    build_server_error,
    build_timeout_error,
    describe_failure,
    sanitize_message,
)
from pegboard.upstream.inbound_router import (
    InboundRouter,
    ResumableCall,
    UpstreamEvent,
    UpstreamListener,
)
from pegboard.upstream.server_log import BoundedLog
from pegboard.upstream.spec import UpstreamSpec
from pegboard.upstream.transports import OpenTransport, UpstreamTransport
from pegboard.wire.response_filters import find_oversize_message

ConnectionState: TypeAlias = Literal["cold", "starting", "ready", "failed", "stopping"]

CREDENTIALS = Credentials()
CAUSE_TIMEOUT = 2.0
"""Seconds to wait for the reason why a connection broke, before saying only that it did."""
CLOSE_TIMEOUT = 10.0
"""Seconds for taking leave, of which a server over HTTP is told by a request."""
MAX_RELISTEN_DELAY = 60.0
"""The longest pause before a lost change stream is opened again."""


class StaleConnection(UpstreamUnavailable):
    """The server no longer knows this connection, and has not looked at the request."""


class Connection:
    """One connection.

    Args:
        spec: The server.
        front: The request that it is opened for; `None` for the gateway itself.
        lane: Whom it may serve; empty for everybody.
        open_wire: Opens the way to the server.
        log: Where to write what the server prints.
        listener: Notified of what the server announces.
        declared: What a legacy server is told that its client can do; that of `front`, unless
            given.
        hint: The server's era, where it is known.
        on_ready: Called once the server has answered.

    Raises:
        NotPermitted: the server needs a credential of this caller, and there is none.
    """

    def __init__(
        self,
        spec: UpstreamSpec,
        front: Downstream | None,
        lane: Owner,
        *,
        open_wire: OpenTransport,
        log: BoundedLog,
        listener: UpstreamListener,
        declared: JsonObject | None = None,
        hint: Era | None = None,
        on_ready: Callable[[Connection], None] = lambda _: None,
    ) -> None:
        self.spec = spec
        self.lane = lane
        self.caller = front.caller if front is not None and lane else None
        """Whose connection it is; `None` when it is shared, or the gateway's own."""
        self._reached = _with_credentials(spec, self.caller)
        self.state: ConnectionState = "cold"
        self.era: Era = hint or "legacy"
        self.version = ""
        self.greeting: JsonObject = {}
        self.cause: str | None = None
        self.latency: float | None = None
        self.users = 0
        self.used_at = 0.0
        self.settled = anyio.Event()
        self.over = anyio.Event()
        self._open_wire = open_wire
        self._log = log
        self._listener = listener
        self._patron = front if front is not None and lane == front.owner else None
        if declared is None and self._patron is not None:
            declared = era_translation.to_legacy_capabilities(
                self._patron.capabilities, self._patron.era
            )
        self.declared = declared or {}
        self._hint: Era | None = hint
        self._on_ready = on_ready
        owner = lane if self.caller is not None else None
        self._switchboard = InboundRouter(spec.name, self._patron, listener, owner)
        self._life = anyio.CancelScope()
        self._deadline = math.inf
        self._closing = anyio.Event()
        self._explained = anyio.Event()
        self._wire: UpstreamTransport | None = None
        self._dispatcher: RelayDispatcher | None = None
        self._exchange: RequestChannel | None = None
        self._tasks: TaskGroup | None = None
        self._level: str | None = None
        self._watched: frozenset[str] = frozenset()
        self._listening = anyio.CancelScope()

    # What is known of it.

    @property
    def pid(self) -> int | None:
        return self._wire.child.pid if self._wire and self._wire.child else None

    @property
    def capabilities(self) -> JsonObject:
        """What the server offers, as it said."""
        return self.greeting.get("capabilities") or {}

    @property
    def is_personal(self) -> bool:
        """Whether it carries the credential of one caller, or what one of several people did."""
        return self.caller is not None and not self.caller.is_local_user

    @property
    def is_idle(self) -> bool:
        """Whether it can be stopped without anybody noticing at once."""
        return self.state == "ready" and self.users == 0 and not self._watched

    @property
    def is_usable(self) -> bool:
        child = self._wire.child if self._wire else None
        return self.state == "ready" and (child is None or child.exit_code is None)

    @property
    def in_flight(self) -> int:
        return len(self._switchboard.flights)

    # Its life.

    async def run(self) -> None:
        """Open it and keep it until it is closed or breaks; `cause` is what broke it."""
        self.state = "starting"
        # A net below the bound of the handshake: opening the wire takes time too.
        self._deadline = anyio.current_time() + self.spec.start_timeout
        self._life.deadline = self._deadline + CAUSE_TIMEOUT
        try:
            with self._life:
                await self._live()
            if self._life.cancelled_caught and not self._closing.is_set():
                self._explain(describe_failure(self._too_slow(), self._wire))
        except Exception as exc:  # the outermost frame of this connection's task
            self._explain(describe_failure(exc, self._wire))
        finally:
            self.state = "failed" if self.cause else "cold"
            self._explained.set()
            self.settled.set()
            self.over.set()

    def close(self) -> None:
        """Have it end; `over` tells when."""
        if self.state == "starting":
            self._life.cancel()
        elif self.state == "ready":
            self.state = "stopping"
        self._closing.set()

    def move(self, lane: Owner) -> None:
        """Serve another lane, the right one now that the server's era is known."""
        self.lane = lane
        if not lane:
            self.caller = None
        self._switchboard.owner = lane or None

    async def _live(self) -> None:
        """Connect; a server that dies of being asked for its era gets the old handshake at once."""
        died = await self._attempt(self._hint)
        if died and self._hint != "legacy" and self.pid is not None:
            died = await self._attempt("legacy")
        if died:
            self._explain(died)

    async def _attempt(self, hint: Era | None) -> str | None:
        """Serve over one wire; what it died of if it never came up, else `None`."""
        began = anyio.current_time()
        async with self._open_wire(self._reached, self._log) as wire:
            self._wire = wire
            dispatcher = RelayDispatcher(
                wire.dispatcher(),
                self._switchboard,
                self.declared,
                silence=None if wire.endpoint is not None else PROBE_TIMEOUT,
            )
            async with open_session(dispatcher) as session:
                broke = await self._greet(session, hint)
                if broke is None:
                    self._opened(wire, dispatcher, anyio.current_time() - began)
                    await self._serve(session, dispatcher)
            if self._closing.is_set():
                return None
            # The cause is told before the process is ended, which may take a while and would make
            # its exit code our doing.
            lost = isinstance(broke, MCPError) and is_connection_closed(broke)
            if wire.child is not None and (broke is None or lost):
                await wire.child.last_words()
            cause = describe_failure(broke, wire)
            if lost:
                return cause
            self._explain(cause)
        return None

    async def _greet(self, session: ClientSession, hint: Era | None) -> Exception | None:
        """Agree with the server on a version; what went wrong, if it did."""
        with anyio.CancelScope(deadline=self._deadline):
            try:
                self.version = await negotiate(session, hint)
                return None
            except (MCPError, ValueError, RuntimeError) as exc:
                return exc
        return self._too_slow()

    def _too_slow(self) -> StartTimeout:
        return StartTimeout(f"did not answer within {self.spec.start_timeout:g} s of its start")

    def _opened(self, wire: UpstreamTransport, dispatcher: RelayDispatcher, latency: float) -> None:
        self._life.deadline = math.inf
        self._dispatcher = dispatcher
        if wire.faults is not None:
            wire.faults.status = None  # a legacy server may refuse the modern question so
        self.greeting = dispatcher.greeting
        self.era = era_translation.era_for_version(self.version)
        self._exchange = wire.exchange(self.era, dispatcher, self._switchboard)
        self.latency = latency
        self.state = "ready"
        if self.era == "modern":
            self._switchboard.release()
        self._on_ready(self)
        if self.era == "modern" and self.caller is None and wire.endpoint is not None:
            wire.endpoint.refuse_cookies()
        self.settled.set()

    async def _serve(self, session: ClientSession, dispatcher: RelayDispatcher) -> None:
        """Hold the connection until somebody closes it or the server does."""
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                if self.era == "modern":
                    tasks.start_soon(self._follow, session)
                tasks.start_soon(_cancel_after, dispatcher.ended, tasks)
                tasks.start_soon(_cancel_after, self._closing, tasks)
        finally:
            self._tasks = None
            if self._exchange is not None:
                self._exchange.end()
        self.state = "stopping"
        self._life.deadline = anyio.current_time() + CLOSE_TIMEOUT

    def _explain(self, cause: str) -> None:
        if self.cause is None:
            self.cause = sanitize_message(cause, self._log.redactor, MAX_CAUSE_LENGTH)
            self._log.note(self.cause)
        if self.state == "starting":
            self.state = "stopping"
        self._explained.set()
        self.settled.set()

    def start_soon(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        """Run something for as long as this connection lives.

        Raises:
            UpstreamUnavailable: it does not live any more.
        """
        if self._tasks is None:
            raise self._unavailable()
        self._tasks.start_soon(work)

    # Its requests.

    async def request(
        self,
        method: str,
        params: JsonObject,
        front: Downstream,
        *,
        timeout: float | None = None,
        log_level: str | None = None,
        mirrored: HeaderMap | None = None,
        carrier: ResumableCall | None = None,
    ) -> JsonObject:
        """The server's result, raw.

        Raises:
            UpstreamTimeout: it did not answer in time; it has been told that nobody waits any
            more. ConnectionGone: it has forgotten this connection, and the request may be sent on
            another. UpstreamUnavailable: the connection broke. UpstreamError: the server's own
            error, with its `code` and `data` in the details.
        """
        if self._exchange is None:
            raise self._unavailable()
        limit = self.spec.timeout if timeout is None else timeout
        with self._switchboard.flight(front, limit, carrier) as flight:
            sent, headers = self._prepare(method, params, front, flight.token, log_level, mirrored)
            try:
                with flight.scope:
                    return await self._exchange.send(method, sent, headers)
            except MCPError as exc:
                raise await self._translated(exc, method, front) from exc
            except HTTPError as exc:
                self._explain(describe_failure(exc, self._wire))
                self.close()
                raise self._unavailable() from exc
            raise build_timeout_error(self.spec.name, method, limit, asked=flight.asked)

    def _prepare(
        self,
        method: str,
        params: JsonObject,
        front: Downstream,
        token: str | None,
        log_level: str | None,
        mirrored: HeaderMap | None,
    ) -> tuple[JsonObject, dict[str, str] | None]:
        if self.era == "modern":
            declared = era_translation.to_modern_capabilities(
                front.capabilities, can_be_asked=front.can_be_asked
            )
            envelope = era_translation.build_envelope(
                self.version, CLIENT_INFO, declared, log_level
            )
            sent = era_translation.to_modern_params(params, token, envelope)
        else:
            sent = era_translation.to_legacy_params(params, token)
        if self.spec.transport == "stdio":
            return sent, None
        headers = build_headers(self.version, self.era, method, sent, mirrored)
        credentials = self._credentials(front)
        if (
            self.spec.transport == "sse"
            and not credentials.items() <= self._reached.headers.items()
        ):
            # SSE sends the headers that the connection was opened with.
            self.close()
            raise StaleConnection(
                f"The credential for {self.spec.name} has changed.", server=self.spec.name
            )
        return sent, {**headers, **credentials}

    def _credentials(self, front: Downstream) -> dict[str, str]:
        """The headers by which this caller is known to the server, where it asks for any."""
        principal = front.caller.principal
        if principal == LOCAL_CALLER.principal:
            return {}  # the connection has those of nobody in particular
        return CREDENTIALS.headers(self.spec.headers, principal, server=self.spec.name)

    def _redactor(self, front: Downstream) -> Redactor:
        """What removes the secrets of the server, and the credential of this caller."""
        if self.spec.transport == "stdio":
            return self._log.redactor
        own = self._credentials(front)
        sent = own or CREDENTIALS.for_everybody(self.spec.headers, server=self.spec.name)
        return Redactor({*self.spec.secrets, *secret_values(headers=sent)})

    async def _translated(self, exc: MCPError, method: str, front: Downstream) -> UpstreamError:
        """The SDK's error as ours: the server's own word, or the end of the connection."""
        if is_session_expired(exc):
            self.close()
            return StaleConnection(f"{self.spec.name} ended our session.", server=self.spec.name)
        if is_http_error(exc):
            status = self._wire.faults.status if self._wire and self._wire.faults else None
            return UpstreamUnavailable(
                f"{self.spec.name} answered {method} with HTTP status {status}.",
                server=self.spec.name,
            )
        if (reason := find_oversize_message(exc.message)) is not None:
            return UpstreamError(f"{self.spec.name} {reason}", server=self.spec.name)
        if not is_connection_closed(exc):
            return build_server_error(exc, self.spec.name, self._redactor(front))
        with anyio.move_on_after(CAUSE_TIMEOUT):
            await self._explained.wait()
        return self._unavailable(
            sanitize_message(exc.message, self._log.redactor, MAX_CAUSE_LENGTH)
        )

    def _unavailable(self, fallback: str = "is not connected") -> UpstreamUnavailable:
        error = UpstreamUnavailable(
            f"{self.spec.name} {self.cause or fallback}. Whether the call took effect is not "
            f"known; the next call connects to it again.",
            server=self.spec.name,
        )
        error.only_caller = self.is_personal and self.spec.transport == "stdio"
        return error

    async def want_level(self, level: str | None, front: Downstream) -> None:
        """Have a legacy server log from this level on, if it logs and was told otherwise before."""
        if self.era == "modern" or level is None or level == self._level:
            return
        if "logging" in self.capabilities:
            await self.request("logging/setLevel", {"level": level}, front)
        self._level = level

    async def notify(self, method: str, params: JsonObject) -> None:
        """Tell the server something that needs no answer."""
        if self._dispatcher is not None:
            await self._dispatcher.inner.notify(method, params)

    # Changes that a modern server announces.

    @property
    def watched(self) -> frozenset[str]:
        """The resources whose changes a client wants to hear of."""
        return self._watched

    def watch(self, uris: frozenset[str]) -> None:
        """Have a modern server announce changes of these resources, and no longer of others."""
        if uris != self._watched:
            self._watched = uris
            self._listening.cancel()

    async def _follow(self, session: ClientSession) -> None:
        """Keep the change stream open for what the server announces and what is watched."""
        pause = 1.0
        while True:
            with anyio.CancelScope() as self._listening:
                if not await self._listen(session):
                    await anyio.sleep_forever()  # until something is watched
                await anyio.sleep(pause)
                pause = min(pause * 2, MAX_RELISTEN_DELAY)
                await self._listener(UpstreamEvent(self.spec.name, "tools"))  # one may be missed

    async def _listen(self, session: ClientSession) -> bool:
        """Follow the stream to its end; false when the server has none to offer."""
        lists = {
            kind: bool((self.capabilities.get(kind) or {}).get("listChanged"))
            for kind in ("tools", "prompts", "resources")
        }
        if not any(lists.values()) and not self._watched:
            return False
        try:
            await follow_changes(session, lists, tuple(sorted(self._watched)))
        except MCPError as exc:
            self._log.note(f"announces no changes: {exc.message}")
            return is_connection_closed(exc)
        return True


def _with_credentials(spec: UpstreamSpec, caller: Caller | None) -> UpstreamSpec:
    """The server as this caller reaches it: a session there belongs to them from its first request.

    Raises:
        NotPermitted: there is no credential for them.
    """
    if caller is None or caller.principal == LOCAL_CALLER.principal or not spec.has_caller_headers:
        return spec
    filled = CREDENTIALS.headers(spec.headers, caller.principal, server=spec.name)
    return replace(spec, headers={**spec.headers, **filled})


async def _cancel_after(event: anyio.Event, tasks: TaskGroup) -> None:
    await event.wait()
    tasks.cancel_scope.cancel()
