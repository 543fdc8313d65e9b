r"""One live connection to one server: opened, used by many requests at once, ended.

A connection lives in one task (`run`), since the SDK's scopes must be left by the task that entered
them. All other tasks only send requests through it and wait for its events.

    cold -> starting -> ready -> stopping -> cold
                  \-> failed <-/   (ended, with a cause)

Two events mark its life: `settled` once it is ready or will never be, `ended` once its process and
streams are gone. A connection that has ended is not used again; the pool opens a new one.
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
from pegboard.errors import (
    LoginRequired,
    NotPermitted,
    PegboardError,
    UpstreamError,
    UpstreamUnavailable,
)
from pegboard.oauth.access_tokens import (
    PRINCIPAL_HEADER,
    Bearer,
    ServerTokens,
    encode_principal,
)
from pegboard.upstream.channels import RequestChannel
from pegboard.upstream.client_sdk import (
    CLIENT_INFO,
    ClientSession,
    HeaderMap,
    HttpStatusError,
    MCPError,
    build_headers,
    follow_changes,
    is_connection_closed,
    is_http_error,
    is_session_expired,
)
from pegboard.upstream.downstream import Downstream, Owner
from pegboard.upstream.era_translation import (
    build_envelope,
    era_for_version,
    to_legacy_capabilities,
    to_legacy_params,
    to_modern_capabilities,
    to_modern_params,
)
from pegboard.upstream.failures import (
    MAX_CAUSE_LENGTH,
    StartTimeout,
    build_refusal,
    build_server_error,
    build_timeout_error,
    describe_failure,
    find_http_error,
    sanitize_message,
)
from pegboard.upstream.handshake import PROBE_TIMEOUT, RelayDispatcher, negotiate, open_session
from pegboard.upstream.inbound_router import (
    InboundRouter,
    ResumableCall,
    UpstreamEvent,
    UpstreamListener,
)
from pegboard.upstream.server_log import BoundedLog
from pegboard.upstream.spec import UpstreamSpec
from pegboard.upstream.transports import OpenTransport, UpstreamTransport
from pegboard.wire.message_filters import find_discard_reason

ConnectionState: TypeAlias = Literal["cold", "starting", "ready", "failed", "stopping"]

CREDENTIALS = Credentials()
CAUSE_TIMEOUT = 2.0
"""Seconds to wait for the reason why a connection broke, before reporting only that it did."""
CLOSE_TIMEOUT = 10.0
"""Seconds for closing, which takes a request to a legacy server over HTTP."""
MAX_RELISTEN_DELAY = 60.0
"""The longest pause before a lost change stream is opened again."""


class StaleConnection(UpstreamUnavailable):
    """The server no longer knows this connection, and has not looked at the request."""


class Connection:
    """One connection.

    Args:
        spec: The server.
        downstream: The client that it is opened for; `None` for the gateway itself.
        owner: The callers that it may serve; empty for everybody.
        open_transport: Opens the way to the server.
        log: Where to write what the server prints.
        listener: Notified of what the server announces.
        declared_capabilities: The client capabilities that a legacy server is given in the
            handshake; by default, those of `downstream`.
        era_hint: The server's era, where it is known.
        on_ready: Called once the server has answered.
        tokens: Those of callers who have logged in to the server, where that is possible.

    Raises:
        NotPermitted: The server needs a credential of this caller, and there is none.
    """

    def __init__(
        self,
        spec: UpstreamSpec,
        downstream: Downstream | None,
        owner: Owner,
        *,
        open_transport: OpenTransport,
        log: BoundedLog,
        listener: UpstreamListener,
        declared_capabilities: JsonObject | None = None,
        era_hint: Era | None = None,
        on_ready: Callable[[Connection], None] = lambda _: None,
        tokens: ServerTokens | None = None,
    ) -> None:
        self.spec = spec
        self.owner = owner
        self.caller = downstream.caller if downstream is not None and owner else None
        """Whose connection it is; `None` when it is shared, or the gateway's own."""
        self.state: ConnectionState = "cold"
        self.era: Era = era_hint or "legacy"
        self.version = ""
        self.handshake_result: JsonObject = {}
        self.cause: str | None = None
        """Why it broke; `None` if it did not."""
        self._http_error: tuple[int | None, str | None] = (None, None)
        self.latency: float | None = None
        self.users = 0
        self.used_at = 0.0
        self.settled = anyio.Event()
        self.ended = anyio.Event()
        # Only a connection of this client alone may send it requests. One that is shared, or that
        # the sessions of a principal share, could not know which client the server means.
        opener = downstream if downstream is not None and owner == downstream.owner else None
        if declared_capabilities is None and opener is not None:
            declared_capabilities = to_legacy_capabilities(opener.capabilities, opener.era)
        self.declared_capabilities = declared_capabilities or {}
        self._spec_with_credentials = _add_credentials(spec, self.caller)
        self._tokens = tokens
        caller = downstream.caller if downstream else LOCAL_CALLER
        self._principal = tokens.identify(caller) if tokens is not None else caller.principal
        """Whose token goes with requests that name nobody, such as those of the handshake."""
        self._open_transport = open_transport
        self._log = log
        self._listener = listener
        self._era_hint: Era | None = era_hint
        self._on_ready = on_ready
        router_owner = owner if self.caller is not None else None
        self._router = InboundRouter(spec.name, opener, listener, router_owner)
        self._life = anyio.CancelScope()
        self._start_deadline = math.inf
        self._closing = anyio.Event()
        self._cause_known = anyio.Event()
        self._transport: UpstreamTransport | None = None
        self._dispatcher: RelayDispatcher | None = None
        self._channel: RequestChannel | None = None
        self._tasks: TaskGroup | None = None
        self._log_level: str | None = None
        self._subscriptions: frozenset[str] = frozenset()
        self._listening = anyio.CancelScope()

    @property
    def pid(self) -> int | None:
        return self._transport.process.pid if self._transport and self._transport.process else None

    @property
    def capabilities(self) -> JsonObject:
        """What the server declared in the handshake."""
        return self.handshake_result.get("capabilities") or {}

    @property
    def is_personal(self) -> bool:
        """Whether it carries the credential or the state of one of several people."""
        return self.caller is not None and not self.caller.is_local_user

    @property
    def is_idle(self) -> bool:
        """Whether it can be stopped without interrupting anybody."""
        return self.state == "ready" and self.users == 0 and not self._subscriptions

    @property
    def is_usable(self) -> bool:
        # A process can be gone before its streams show it.
        process = self._transport.process if self._transport else None
        return self.state == "ready" and (process is None or process.exit_code is None)

    @property
    def in_flight(self) -> int:
        return len(self._router.in_flight)

    # Its life.

    async def run(self) -> None:
        """Open it and serve until it is closed or breaks; then `cause` says what broke it."""
        self.state = "starting"
        self._start_deadline = anyio.current_time() + self.spec.start_timeout
        # The handshake has its own deadline and explains itself. This one is for everything else
        # that takes time at the start, such as opening the transport.
        self._life.deadline = self._start_deadline + CAUSE_TIMEOUT
        try:
            with self._life:
                failure = await self._connect_and_serve(self._era_hint)
                if failure and self._era_hint != "legacy" and self.pid is not None:
                    # Some old servers exit when they get a request before `initialize`. Started
                    # again with the legacy handshake, they work.
                    failure = await self._connect_and_serve("legacy")
                if failure:
                    self._record_cause(failure)
            if self._life.cancelled_caught and not self._closing.is_set():
                self._record_failure(self._start_timeout())
        except Exception as exc:  # the outermost frame of this connection's task
            self._record_failure(exc)
        finally:
            self.state = "failed" if self.cause else "cold"
            # In any case, nobody may wait for this connection any longer.
            self._cause_known.set()
            self.settled.set()
            self.ended.set()

    def close(self) -> None:
        """Have it end; `ended` is set when it has."""
        if self.state == "starting":
            # No call is in flight yet, so no graceful shutdown is needed.
            self._life.cancel()
        elif self.state == "ready":
            self.state = "stopping"
        self._closing.set()

    def change_owner(self, owner: Owner) -> None:
        """Serve another owner, the right one now that the server's era is known."""
        self.owner = owner
        if not owner:
            self.caller = None
        self._router.owner = owner or None

    async def _connect_and_serve(self, hint: Era | None) -> str | None:
        """Serve over one transport; the cause if it closed before the handshake, else `None`."""
        began = anyio.current_time()
        auth = None if self._tokens is None else Bearer(self._tokens, self._principal)
        async with self._open_transport(self._spec_with_credentials, self._log, auth) as transport:
            self._transport = transport
            # Over HTTP each request has its own response, so a silent server keeps nobody waiting.
            probe_timeout = None if transport.endpoint is not None else PROBE_TIMEOUT
            dispatcher = RelayDispatcher(
                transport.build_dispatcher(),
                self._router,
                self.declared_capabilities,
                probe_timeout=probe_timeout,
            )
            async with open_session(dispatcher) as session:
                error = await self._negotiate(session, hint)
                if error is None:
                    self._become_ready(transport, dispatcher, anyio.current_time() - began)
                    await self._serve(session, dispatcher)
            if self._closing.is_set():
                return None
            # The cause is recorded before the process is ended: ending it may take a while, and
            # would change its exit code.
            is_closed = isinstance(error, MCPError) and is_connection_closed(error)
            if transport.process is not None and (error is None or is_closed):
                await transport.process.wait_for_last_output()
            if is_closed:
                return describe_failure(error, transport)
            self._record_failure(error)
        return None

    async def _negotiate(self, session: ClientSession, hint: Era | None) -> Exception | None:
        """Agree with the server on a version; what went wrong, if something did."""
        with anyio.CancelScope(deadline=self._start_deadline):
            try:
                self.version = await negotiate(session, hint)
                return None
            except (MCPError, ValueError, RuntimeError) as exc:
                return exc
        return self._start_timeout()

    def _start_timeout(self) -> StartTimeout:
        return StartTimeout(f"did not answer within {self.spec.start_timeout:g} s of its start")

    def _become_ready(
        self, transport: UpstreamTransport, dispatcher: RelayDispatcher, latency: float
    ) -> None:
        self._life.deadline = math.inf
        self._dispatcher = dispatcher
        if transport.http_error is not None:
            # A legacy server may have refused `server/discover` with a status, which is not a
            # failure.
            transport.http_error.take()
        self.handshake_result = dispatcher.handshake_result
        self.era = era_for_version(self.version)
        self._channel = transport.build_channel(self.era, dispatcher, self._router)
        self.latency = latency
        self.state = "ready"
        if self.era == "modern":
            self._router.stop_input_requests()
        # The pool may give the connection another owner here, now that the era is known.
        self._on_ready(self)
        if self.era == "modern" and self.caller is None and transport.endpoint is not None:
            transport.endpoint.disable_cookies()
        self.settled.set()

    async def _serve(self, session: ClientSession, dispatcher: RelayDispatcher) -> None:
        """Hold the connection until we close it or the server does."""

        async def stop_after(event: anyio.Event) -> None:
            await event.wait()
            tasks.cancel_scope.cancel()

        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                if self.era == "modern":
                    tasks.start_soon(self._follow_changes, session)
                tasks.start_soon(stop_after, dispatcher.ended)
                tasks.start_soon(stop_after, self._closing)
        finally:
            self._tasks = None
            if self._channel is not None:
                # Requests past the SDK's dispatcher are not failed by it when the streams end.
                self._channel.end()
        self.state = "stopping"
        self._life.deadline = anyio.current_time() + CLOSE_TIMEOUT

    def _record_failure(self, exc: BaseException | None) -> None:
        if self.cause is None:
            self._http_error = find_http_error(exc, self._transport)
        self._record_cause(describe_failure(exc, self._transport))

    def _record_cause(self, cause: str) -> None:
        # The first cause is the real one; what follows it (a closed pipe, a canceled task) is not.
        if self.cause is None:
            if self._tokens is not None:
                self._log.redactor.learn(self._tokens.secrets())
            self.cause = sanitize_message(cause, self._log.redactor, MAX_CAUSE_LENGTH)
            self._log.note(self.cause)
        if self.state == "starting":
            self.state = "stopping"
        self._cause_known.set()
        self.settled.set()

    def start_soon(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        """Run a task for as long as this connection lives.

        Raises:
            UpstreamUnavailable: It has ended.
        """
        if self._tasks is None:
            raise self._build_unavailable()
        self._tasks.start_soon(work)

    # Its requests.

    async def request(
        self,
        method: str,
        params: JsonObject,
        downstream: Downstream,
        *,
        timeout: float | None = None,
        log_level: str | None = None,
        mirrored: HeaderMap | None = None,
        resumable: ResumableCall | None = None,
    ) -> JsonObject:
        """The server's result, raw.

        Raises:
            UpstreamTimeout: It did not answer in time; the request was canceled at the server.
            StaleConnection: It has forgotten this connection; the request may be sent on another.
            UpstreamUnavailable: The connection broke.
            LoginRequired: It does not accept the caller's credential.
            NotPermitted: It does not permit this caller the request.
            UpstreamError: The server's own error, with its `code` and `data` in the details.
        """
        if self._channel is None:
            raise self._build_unavailable()
        limit = self.spec.timeout if timeout is None else timeout
        with self._router.track(downstream, limit, resumable) as tracked:
            if self.era == "modern":
                envelope = build_envelope(
                    self.version,
                    CLIENT_INFO,
                    to_modern_capabilities(
                        downstream.capabilities, can_give_input=downstream.can_give_input
                    ),
                    log_level,
                )
                sent = to_modern_params(params, tracked.token, envelope)
            else:
                sent = to_legacy_params(params, tracked.token)
            headers = self._build_headers(method, sent, downstream, mirrored)
            try:
                with tracked.scope:
                    return await self._channel.send(method, sent, headers)
            except MCPError as exc:
                # Without its cause: a traceback would show the server's own words, which may quote
                # a credential.
                raise await self._translate_error(exc, method, downstream) from None
            except HTTPError as exc:
                self._record_failure(exc)
                self.close()
                raise self._build_unavailable() from exc
            # Only the deadline of the scope leads here.
            raise build_timeout_error(
                self.spec.name, method, limit, waits_for_input=tracked.waits_for_input
            )

    def _build_headers(
        self,
        method: str,
        params: JsonObject,
        downstream: Downstream,
        mirrored: HeaderMap | None,
    ) -> dict[str, str] | None:
        """The HTTP headers of a request; `None` if there are none, on stdio."""
        if self.spec.transport == "stdio":
            return None
        headers = build_headers(self.version, self.era, method, params, mirrored)
        credentials = self._get_credentials(downstream)
        opened_with = self._spec_with_credentials.headers
        if self.spec.transport == "sse" and not credentials.items() <= opened_with.items():
            # SSE sends the headers that the connection was opened with, so a credential that was
            # renewed since takes a new connection.
            self.close()
            raise StaleConnection(
                f"The credential for {self.spec.name} has changed.", server=self.spec.name
            )
        if self._tokens is not None:
            principal = self._tokens.identify(downstream.caller)
            if principal != self._principal:
                headers[PRINCIPAL_HEADER] = encode_principal(principal)
        return {**headers, **credentials}

    def _get_credentials(self, downstream: Downstream) -> dict[str, str]:
        """The headers by which this caller is known to the server, where it wants any."""
        principal = downstream.caller.principal
        if principal == LOCAL_CALLER.principal:
            return {}  # anonymous callers use the headers of the connection
        return CREDENTIALS.headers(self.spec.headers, principal, server=self.spec.name)

    async def _translate_error(
        self, exc: MCPError, method: str, downstream: Downstream
    ) -> PegboardError:
        """The SDK's error as ours: the server's own, or the end of the connection."""
        name = self.spec.name
        if is_session_expired(exc):
            self.close()
            return StaleConnection(f"{name} ended our session.", server=name)
        if is_http_error(exc):
            status, challenge = self._get_http_error(exc)
            return self._build_refusal(status, challenge) or UpstreamUnavailable(
                f"{name} answered {method} with HTTP status {status}.", server=name
            )
        if (reason := find_discard_reason(exc.message)) is not None:
            return UpstreamError(f"{name} {reason}", server=name)
        if is_connection_closed(exc):
            if self.spec.transport == "sse":
                # A POST that is refused looks like this to the SDK; the event stream stays open.
                refusal = self._build_refusal(*self._get_http_error(exc))
                if refusal is not None:
                    return refusal
            # `run` finds out why while this request already knows that. A moment's patience makes
            # the difference between "closed the connection" and "exited with code 3; last on ...".
            with anyio.move_on_after(CAUSE_TIMEOUT):
                await self._cause_known.wait()
            message = sanitize_message(exc.message, self._log.redactor, MAX_CAUSE_LENGTH)
            return self.build_refusal() or self._build_unavailable(message)
        redactor = self._log.redactor
        if self.spec.transport != "stdio":
            # A server may quote the credential that came with this request.
            own = self._get_credentials(downstream)
            sent = own or CREDENTIALS.for_everybody(self.spec.headers, server=name)
            redactor = Redactor({*self.spec.secrets, *secret_values(headers=sent)})
            redactor.learn(self._tokens.secrets() if self._tokens else ())
        return build_server_error(exc, name, redactor)

    def _get_http_error(self, exc: MCPError) -> tuple[int | None, str | None]:
        if isinstance(exc, HttpStatusError):
            return exc.status, exc.challenge
        http_error = self._transport.http_error if self._transport else None
        return http_error.take() if http_error else (None, None)

    def build_refusal(self) -> LoginRequired | NotPermitted | None:
        """The error for callers if it ended because the server refused the credential."""
        return self._build_refusal(*self._http_error)

    def _build_refusal(
        self, status: int | None, challenge: str | None
    ) -> LoginRequired | NotPermitted | None:
        can_log_in = self._tokens is not None
        return build_refusal(self.spec.name, status, challenge, can_log_in=can_log_in)

    def _build_unavailable(self, fallback: str = "is not connected") -> UpstreamUnavailable:
        error = UpstreamUnavailable(
            f"{self.spec.name} {self.cause or fallback}. Whether the call took effect is not "
            f"known; the next call connects to it again.",
            server=self.spec.name,
        )
        # One user's process that crashes must not open the breaker for everybody else's.
        error.only_caller = self.is_personal and self.spec.transport == "stdio"
        return error

    async def set_log_level(self, level: str | None, downstream: Downstream) -> None:
        """Have a legacy server log from this level on, unless it does already or does not log."""
        if self.era == "modern" or level is None or level == self._log_level:
            return
        if "logging" in self.capabilities:
            await self.request("logging/setLevel", {"level": level}, downstream)
        self._log_level = level

    async def notify(self, method: str, params: JsonObject) -> None:
        """Send the server a notification."""
        if self._dispatcher is not None:
            await self._dispatcher.inner.notify(method, params)

    # Changes that a modern server announces.

    def set_subscriptions(self, uris: frozenset[str]) -> None:
        """Have a modern server announce changes of these resources, and no longer of others."""
        if uris != self._subscriptions:
            self._subscriptions = uris
            # The set is fixed when the stream is opened: `_follow_changes` opens another one.
            self._listening.cancel()

    async def _follow_changes(self, session: ClientSession) -> None:
        """Hold the change stream open: for changed lists and for subscribed resources."""
        delay = 1.0
        while True:
            lists = {
                kind: bool((self.capabilities.get(kind) or {}).get("listChanged"))
                for kind in ("tools", "prompts", "resources")
            }
            with anyio.CancelScope() as self._listening:
                is_offered = any(lists.values()) or bool(self._subscriptions)
                try:
                    if is_offered:
                        await follow_changes(session, lists, tuple(sorted(self._subscriptions)))
                except MCPError as exc:
                    self._log.note(f"sends no change notifications: {exc.message}")
                    is_offered = is_connection_closed(exc)
                if not is_offered:
                    await anyio.sleep_forever()  # until the subscriptions change
                await anyio.sleep(delay)
                delay = min(delay * 2, MAX_RELISTEN_DELAY)
                # A change may have happened while nobody listened.
                await self._listener(UpstreamEvent(self.spec.name, "tools"))


def _add_credentials(spec: UpstreamSpec, caller: Caller | None) -> UpstreamSpec:
    """The server as this caller reaches it: a session there belongs to them from its first request.

    Raises:
        NotPermitted: There is no credential for them.
    """
    if caller is None or caller.principal == LOCAL_CALLER.principal or not spec.has_caller_headers:
        return spec
    filled = CREDENTIALS.headers(spec.headers, caller.principal, server=spec.name)
    return replace(spec, headers={**spec.headers, **filled})
