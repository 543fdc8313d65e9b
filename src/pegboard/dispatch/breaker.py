"""The circuit breaker: stops calling what keeps failing.

There is one breaker per tool and one per upstream, shared by all replicas through the store. A
failure counts for its tool. For the upstream it counts when the upstream itself was unavailable, or
when it is the first failure in a run of its tool: so one bad tool does not shut out its neighbors,
and an upstream on which one tool after the other fails is recognized.

A healthy breaker has no entry in the store, so a call to a healthy tool writes nothing. A success
that meets no failures is not written either: it cannot shorten a run that began while it ran.
While the store is unavailable calls go through unguarded: a guard must not be the outage.

What the end of a call says about the backend:

| the call ended with | verdict |
|---|---|
| a result, also one of `input_required` or a task | answered |
| `UpstreamUnavailable` of a process that serves this caller alone | unknown: others have own ones |
| any other `UpstreamUnavailable`; a bare `ConnectionError` | the upstream is unavailable |
| `UpstreamTimeout`, any other `UpstreamError`; a bare `TimeoutError` | the tool failed |
| `UpstreamError` that relays a JSON-RPC error about the request (-32600 to -32602) | answered |
| `isError` or `ToolError` that says that the backend is unavailable | the tool failed |
| any other `isError` or `ToolError`: bad input, not found, no permission | answered |
| `LoginRequired`, `NotPermitted` | unknown: it is about this caller, and others may have access |
| cancellation, `Busy`, any other error | unknown: the backend was not called, or did not answer |

Whether a text says so is decided narrowly: a mistaken "unavailable" takes a good tool away from
everybody. Only the beginning of the first text is read, only for phrases of the transport, and not
at all when the caller chose where to connect: fetching a dead page is no outage of the fetcher.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from typing import Literal, TypeAlias

import anyio

from pegboard.core.calls import CallResult, ToolCall
from pegboard.core.circuit_breaker import CLOSED, Breaker, BreakerPolicy
from pegboard.core.events import BreakerChanged
from pegboard.core.json import Json
from pegboard.core.tools import Tool
from pegboard.errors import (
    CircuitOpen,
    PegboardError,
    StoreError,
    ToolError,
    UpstreamError,
    UpstreamUnavailable,
)
from pegboard.ports import Handler, Layer, Observer, Store, record_event

logger = logging.getLogger(__name__)

Alternatives: TypeAlias = Callable[[ToolCall], Iterable[Tool]]
"""Tools that the caller of a call may use instead, best first."""

_MAX_ALTERNATIVES = 5
_RELEASE_TIMEOUT = 2.0
"""Seconds that a canceled call may spend on releasing its probe."""


# --- verdicts -------------------------------------------------------------------------------------


class BackendVerdict(Enum):
    """What the end of one call says about its backend."""

    ANSWERED = "answered"
    TOOL_FAILED = "tool failed"
    UPSTREAM_UNAVAILABLE = "upstream unavailable"
    UNKNOWN = "unknown"


_REQUEST_ERRORS = (-32600, -32601, -32602)
_MESSAGE_LENGTH = 300
"""Characters of a message that are read: an outage is stated first, quoted logs come later."""

_UNAVAILABLE_KINDS = frozenset(
    {"unavailable", "service_unavailable", "bad_gateway", "gateway_timeout", "circuit_open"}
)
_UNAVAILABLE_STATUSES = frozenset({502, 503, 504})

_UNAVAILABLE_PHRASES = re.compile(
    r"""
      \b(ECONNREFUSED|ECONNRESET|ECONNABORTED|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|EAI_AGAIN)\b
    | \bconnection\ (was\ )?(refused|reset|aborted|timed\ out)\b
    | \b(could\ not|cannot|can't|failed\ to|unable\ to)\ connect\ to\b
    | \bno\ route\ to\ host\b | \bnetwork\ is\ unreachable\b
    | \btemporary\ failure\ in\ name\ resolution\b
    | \b(service|server|backend|database|upstream)\ (is\ )?(currently\ |temporarily\ )*
      (unavailable|unreachable|offline|down)\b
    | \b(http|status|status\ code|error)[:\ ]+50[234]\b
    | \b50[234]:?\ (bad\ gateway|service\ (temporarily\ )?unavailable|gateway\ time-?out)\b
    | \bbad\ gateway\b | \bgateway\ time-?out\b
    """,
    re.IGNORECASE | re.VERBOSE,
)

_ADDRESS_NAMES = re.compile(
    r"(^|_)(url|uri|host|hostname|endpoint|address|domain|ip|server)s?$", re.IGNORECASE
)


def classify_outcome(call: ToolCall, ended: CallResult | BaseException) -> BackendVerdict:
    """The verdict on the end of one call; the table above has the reasons."""
    match ended:
        case CallResult():
            texts = (b["text"] for b in ended.content if isinstance(b.get("text"), str))
            down = ended.is_error and _says_unavailable(call, next(texts, ""), ended.structured)
            return BackendVerdict.TOOL_FAILED if down else BackendVerdict.ANSWERED
        case ToolError():
            down = _says_unavailable(call, ended.message, None)
            return BackendVerdict.TOOL_FAILED if down else BackendVerdict.ANSWERED
        case UpstreamUnavailable(only_caller=True):
            return BackendVerdict.UNKNOWN
        case UpstreamUnavailable() | ConnectionError():
            return BackendVerdict.UPSTREAM_UNAVAILABLE
        case UpstreamError() if ended.details.get("code") in _REQUEST_ERRORS:
            return BackendVerdict.ANSWERED
        case UpstreamError() | TimeoutError():
            return BackendVerdict.TOOL_FAILED
        case _:
            return BackendVerdict.UNKNOWN


def _says_unavailable(call: ToolCall, text: str, structured: Json) -> bool:
    arguments: Json = call.arguments
    if isinstance(arguments, Mapping) and any(
        _ADDRESS_NAMES.search(str(name)) is not None or (isinstance(value, str) and "://" in value)
        for name, value in arguments.items()
    ):
        return False  # the caller chose where to connect: the failure is about that place
    match structured:
        case {"error": {"kind": str(kind)} | {"code": str(kind)}}:
            if kind.lower() in _UNAVAILABLE_KINDS:
                return True
        case {"error": {"status": int(status)}} | {"status": int(status)}:
            if status in _UNAVAILABLE_STATUSES:
                return True
        case _:
            pass
    return _UNAVAILABLE_PHRASES.search(text[:_MESSAGE_LENGTH]) is not None


# --- the layer ------------------------------------------------------------------------------------


def breaker(
    *,
    store: Store,
    policy: BreakerPolicy | None = None,
    clock: Callable[[], float] = time.time,
    observer: Observer | None = None,
    alternatives: Alternatives = lambda call: (),
    recheck: float = 0.0,
) -> Layer:
    """A layer that rejects calls to failing tools immediately.

    Args:
        store: Where breakers are stored; with a shared one, all replicas stop together.
        policy: When they open and close.
        clock: Seconds since the epoch, the same in all replicas.
        observer: Notified of every change of a breaker.
        alternatives: What to suggest while a breaker is open; open ones are left out.
        recheck: Seconds for which a healthy breaker is trusted without reading the store again;
            saves a shared store two reads per call.
    """
    breakers = _Breakers(store, policy or BreakerPolicy(), clock, observer, recheck)

    def layer(inner: Handler) -> Handler:
        async def handle(call: ToolCall) -> CallResult:
            admitted = await breakers.admit(call.tool)
            if isinstance(admitted, _Refused):
                raise await breakers.explain(admitted, call, alternatives(call))
            try:
                result = await inner(call)
            except BaseException as exc:  # also a cancellation, which must release its probe
                reason = exc.kind if isinstance(exc, PegboardError) else type(exc).__name__
                await breakers.settle(admitted, classify_outcome(call, exc), reason)
                raise
            await breakers.settle(admitted, classify_outcome(call, result), "unavailable")
            return result

        return handle

    return layer


@dataclass(frozen=True, slots=True)
class _BreakerRef:
    """One breaker by name, and its state when a call was admitted."""

    scope: Literal["tool", "upstream"]
    name: str
    seen: Breaker = CLOSED

    @property
    def key(self) -> str:
        return f"breaker:{self.scope}:{self.name}"


@dataclass(frozen=True, slots=True)
class _Admitted:
    since: float
    refs: tuple[_BreakerRef, ...]


@dataclass(frozen=True, slots=True)
class _Refused:
    by: _BreakerRef


class _Breakers:
    """The breakers of all tools, as this process reads and writes them."""

    def __init__(
        self,
        store: Store,
        policy: BreakerPolicy,
        clock: Callable[[], float],
        observer: Observer | None,
        recheck: float,
    ) -> None:
        self._store = store
        self._policy = policy
        self._clock = clock
        self._observer = observer
        self._recheck = recheck
        self._healthy_until: dict[str, float] = {}

    async def admit(self, tool: Tool) -> _Admitted | _Refused:
        """Ask every breaker of the tool; one refusal is enough."""
        now = self._clock()
        admitted: list[_BreakerRef] = []
        try:
            for ref in _breakers_of(tool):
                if now < self._healthy_until.get(ref.key, now):
                    admitted.append(ref)
                    continue
                stored = await self._store.get(ref.key)
                # A healthy breaker is not stored at all, and nearly all are healthy.
                seen = CLOSED if stored is None else Breaker.from_json(stored)
                if seen == CLOSED:
                    if self._recheck:
                        self._healthy_until[ref.key] = now + self._recheck
                    admitted.append(ref)
                    continue
                after, go_ahead = seen.admit(self._policy, now)
                if after != seen:  # the probe is free: take it, unless another replica is faster
                    after, go_ahead = await self._take_probe(ref, now)
                if not go_ahead:
                    # The tool's own probe may be taken by now; without this nobody would try it.
                    await self._abandon(_Admitted(now, tuple(admitted)))
                    return _Refused(replace(ref, seen=after))
                admitted.append(replace(ref, seen=after))
        except StoreError as exc:
            logger.warning("Calling %s without a breaker: %s", tool.id, exc)
        return _Admitted(now, tuple(admitted))

    async def settle(self, admitted: _Admitted, verdict: BackendVerdict, reason: str) -> None:
        """Record what the call has shown."""
        try:
            match verdict:
                case BackendVerdict.ANSWERED:
                    for ref in admitted.refs:
                        if ref.seen != CLOSED:
                            await self._change(ref, lambda b: b.after_success(admitted.since))
                case BackendVerdict.UNKNOWN:
                    await self._abandon(admitted)
                case _:
                    counts = True
                    for ref in admitted.refs:
                        # A repeated failure of one tool counts for the upstream only if it was its
                        # probe.
                        if not counts and ref.seen.opened_at is None:
                            continue
                        after = await self._change(
                            ref,
                            lambda b: b.after_failure(
                                self._policy, since=admitted.since, now=self._clock(), reason=reason
                            ),
                        )
                        is_upstream = verdict is BackendVerdict.UPSTREAM_UNAVAILABLE
                        counts = is_upstream or after.failures == 1
        except StoreError as exc:
            logger.warning("A breaker could not be updated: %s", exc)

    async def explain(
        self, refused: _Refused, call: ToolCall, alternatives: Iterable[Tool]
    ) -> PegboardError:
        """The refusal as an error: what, since when, until when, and what works instead."""
        now = self._clock()
        ref, state = refused.by, refused.by.seen
        # At least a moment: "try again in 0 s" would invite a loop.
        wait = round(max(state.retry_after(self._policy, now), 0.1), 1)
        since = datetime.fromtimestamp(state.down_since or now, UTC).isoformat(timespec="seconds")
        working: list[str] = []
        for tool in alternatives:
            if tool.id != call.tool.id and tool.enabled and await self._is_working(tool, now):
                working.append(tool.name)
            if len(working) == _MAX_ALTERNATIVES:
                break
        subject = call.tool.name if ref.scope == "tool" else f"The server {ref.name}"
        hint = f" These work: {', '.join(working)}." if working else ""
        return CircuitOpen(
            f"{subject} is failing ({state.failures} times in a row, last: {state.reason}) since "
            f"{since} and is not called for now. Try again in {wait:g} s.{hint}",
            tool=call.tool.name,
            server=call.tool.server,
            since=since,
            retry_after=wait,
            related=working or None,
        )

    async def _is_working(self, tool: Tool, now: float) -> bool:
        """Whether the breakers of a tool would admit a call."""
        for ref in _breakers_of(tool):
            stored = Breaker.from_json(await self._store.get(ref.key))
            if not stored.admit(self._policy, now)[1]:
                return False
        return True

    async def _take_probe(self, ref: _BreakerRef, now: float) -> tuple[Breaker, bool]:
        taken = False

        def take(breaker: Breaker) -> Breaker:
            nonlocal taken  # the store may run this again, after another replica's change
            after, taken = breaker.admit(self._policy, now)
            return after

        after = await self._change(ref, take)
        if taken and after.opened_at is not None:
            self._notify(ref, after)
        return after, taken

    async def _abandon(self, admitted: _Admitted) -> None:
        for ref in admitted.refs:
            if ref.seen.opened_at is not None:
                # Also when the call was canceled: otherwise the next probe waits until this one
                # expires.
                with anyio.move_on_after(_RELEASE_TIMEOUT, shield=True):
                    await self._change(
                        ref, lambda b: b.after_cancellation(self._policy, admitted.since)
                    )

    async def _change(self, ref: _BreakerRef, change: Callable[[Breaker], Breaker]) -> Breaker:
        before = CLOSED

        def apply(value: Json) -> Json:
            nonlocal before
            before = Breaker.from_json(value)
            return change(before).to_json()

        self._healthy_until.pop(ref.key, None)  # what was read before is no longer true
        stored = await self._store.update(ref.key, apply, ttl=self._policy.memory)
        after = Breaker.from_json(stored)
        if after.opened_at != before.opened_at:
            self._notify(ref, after)
        return after

    def _notify(self, ref: _BreakerRef, after: Breaker) -> None:
        now = self._clock()
        record_event(
            self._observer,
            BreakerChanged(
                at=now,
                scope=ref.scope,
                name=ref.name,
                state=after.state(self._policy, now),
                failures=after.failures,
                reason=after.reason or None,
            ),
        )


def _breakers_of(tool: Tool) -> tuple[_BreakerRef, ...]:
    """The tool's own breaker, then its upstream's."""
    own = _BreakerRef("tool", tool.id)
    return (own,) if tool.server is None else (own, _BreakerRef("upstream", tool.server))
