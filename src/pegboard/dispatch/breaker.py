"""The circuit breaker: stops calling what keeps failing.

There is one breaker per tool and one per upstream, shared by all replicas through the store. A
failure counts for its tool. For the upstream it counts when the upstream itself was unavailable, or
when it is the first failure in a run of its tool: so one bad tool does not shut out its neighbors,
and an upstream on which one tool after the other fails is recognized.

A healthy breaker has no entry in the store, so a call of a healthy tool reads and writes nothing.
A success that meets no failures is not written: it cannot shorten a run that began while it ran.
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
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Literal, TypeAlias

import anyio

from pegboard.core.breaker import CLOSED, Breaker, BreakerPolicy
from pegboard.core.calls import CallResult, ToolCall
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


class BackendVerdict(Enum):
    """What one call says about what stands behind it."""

    ANSWERED = "answered"
    TOOL_FAILED = "tool failed"
    UPSTREAM_AWAY = "upstream away"
    UNTOLD = "untold"


def classify_outcome(call: ToolCall, ended: CallResult | BaseException) -> BackendVerdict:
    """The verdict on one ending of one call."""
    match ended:
        case CallResult():
            down = ended.is_error and _says_unavailable(call, _first_text(ended), ended.structured)
            return BackendVerdict.TOOL_FAILED if down else BackendVerdict.ANSWERED
        case ToolError():
            down = _says_unavailable(call, ended.message, None)
            return BackendVerdict.TOOL_FAILED if down else BackendVerdict.ANSWERED
        case UpstreamUnavailable(only_caller=True):
            return BackendVerdict.UNTOLD
        case UpstreamUnavailable() | ConnectionError():
            return BackendVerdict.UPSTREAM_AWAY
        case UpstreamError() if ended.details.get("code") in _ABOUT_THE_REQUEST:
            return BackendVerdict.ANSWERED
        case UpstreamError() | TimeoutError():
            return BackendVerdict.TOOL_FAILED
        case _:
            return BackendVerdict.UNTOLD


_ABOUT_THE_REQUEST = (-32600, -32601, -32602)

_READ = 300
"""Characters of a message that are looked at: an outage is said first, quoted logs come later."""

_KINDS = frozenset(
    {"unavailable", "service_unavailable", "bad_gateway", "gateway_timeout", "circuit_open"}
)
_STATUSES = frozenset({502, 503, 504})

_PHRASES = re.compile(
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

_PLACES = re.compile(r"(^|_)(url|uri|host|hostname|endpoint|address|domain|ip|server)s?$", re.I)


def _says_unavailable(call: ToolCall, text: str, structured: Json) -> bool:
    if _names_a_place(call.arguments):
        return False
    return _coded_unavailable(structured) or _PHRASES.search(text[:_READ]) is not None


def _coded_unavailable(structured: Json) -> bool:
    """`{"error": {"kind": "unavailable"}}`, `{"status": 503}` and their like."""
    match structured:
        case {"error": {"kind": str(kind)} | {"code": str(kind)}}:
            return kind.lower() in _KINDS
        case {"error": {"status": int(status)}} | {"status": int(status)}:
            return status in _STATUSES
        case _:
            return False


def _names_a_place(arguments: Json) -> bool:
    """Whether the caller said where to connect: a failure to do so is about that place."""
    if not isinstance(arguments, Mapping):
        return False
    return any(
        _PLACES.search(str(name)) is not None or (isinstance(value, str) and "://" in value)
        for name, value in arguments.items()
    )


def _first_text(result: CallResult) -> str:
    return next((b["text"] for b in result.content if isinstance(b.get("text"), str)), "")


logger = logging.getLogger(__name__)

Alternatives: TypeAlias = Callable[[ToolCall], Iterable[Tool]]
"""Tools that the caller of a call may use instead, best first."""

_MOST_ALTERNATIVES = 5
_PATIENCE = 2.0
"""Seconds that a cancelled call may spend on giving its probe back."""


def breaker(
    *,
    store: Store,
    policy: BreakerPolicy | None = None,
    clock: Callable[[], float] = time.time,
    observer: Observer | None = None,
    alternatives: Alternatives = lambda call: (),
    recheck: float = 0.0,
) -> Layer:
    """A layer that refuses calls of failing tools at once.

    Args:
        store: Where breakers are kept; with a shared one, all replicas stop together.
        policy: When they open and close.
        clock: Seconds since the epoch, the same in all replicas.
        observer: Told of every change of a breaker.
        alternatives: What to suggest while a breaker is open; those that are open too are left out.
        recheck: Seconds for which a healthy breaker is believed without asking the store again;
            spares a shared store two reads per call.
    """
    switches = _Breakers(store, policy or BreakerPolicy(), clock, observer, recheck)

    def layer(handler: Handler) -> Handler:
        async def guarded(call: ToolCall) -> CallResult:
            admitted = await switches.admit(call.tool)
            if isinstance(admitted, _Refused):
                raise await switches.explain(admitted, call, alternatives(call))
            try:
                result = await handler(call)
            except BaseException as exc:
                await switches.settle(admitted, classify_outcome(call, exc), _reason(exc))
                raise
            await switches.settle(admitted, classify_outcome(call, result), "unavailable")
            return result

        return guarded

    return layer


@dataclass(frozen=True, slots=True)
class _BreakerRef:
    """One breaker by name, and how it was when a call asked."""

    scope: Literal["tool", "upstream"]
    name: str
    seen: Breaker = CLOSED

    @property
    def key(self) -> str:
        return f"breaker:{self.scope}:{self.name}"


@dataclass(frozen=True, slots=True)
class _Admitted:
    since: float
    switches: tuple[_BreakerRef, ...]


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
        """Ask every breaker that the tool stands behind; one refusal is enough."""
        now = self._clock()
        admitted: list[_BreakerRef] = []
        try:
            for switch in _breakers_of(tool):
                asked, go_ahead = await self._ask(switch, now)
                if not go_ahead:
                    await self._abandon(_Admitted(now, tuple(admitted)))
                    return _Refused(asked)
                admitted.append(asked)
        except StoreError as exc:
            logger.warning("Calling %s unguarded: %s", tool.id, exc)
        return _Admitted(now, tuple(admitted))

    async def settle(self, admitted: _Admitted, told: BackendVerdict, reason: str) -> None:
        """Enter what the call has shown."""
        try:
            match told:
                case BackendVerdict.ANSWERED:
                    await self._succeed(admitted)
                case BackendVerdict.UNTOLD:
                    await self._abandon(admitted)
                case _:
                    await self._fail(admitted, told, reason)
        except StoreError as exc:
            logger.warning("A breaker could not be changed: %s", exc)

    async def explain(
        self, refused: _Refused, call: ToolCall, instead: Iterable[Tool]
    ) -> PegboardError:
        """The refusal as an error: what, since when, until when, and what works instead."""
        now = self._clock()
        switch, state = refused.by, refused.by.seen
        wait = round(max(state.retry_after(self._policy, now), 0.1), 1)
        since = datetime.fromtimestamp(state.down_since or now, UTC).isoformat(timespec="seconds")
        working = await self._working(instead, beside=call.tool)
        subject = call.tool.name if switch.scope == "tool" else f"The server {switch.name}"
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

    async def _ask(self, switch: _BreakerRef, now: float) -> tuple[_BreakerRef, bool]:
        key = switch.key
        if now < self._healthy_until.get(key, now):
            return switch, True
        seen = Breaker.from_json(await self._store.get(key))
        if seen == CLOSED:
            if self._recheck:
                self._healthy_until[key] = now + self._recheck
            return switch, True
        after, go_ahead = seen.admit(self._policy, now)
        if after != seen:  # the probe is free: take it, unless somebody is quicker
            after, go_ahead = await self._take_probe(switch, now)
        return _BreakerRef(switch.scope, switch.name, after), go_ahead

    async def _take_probe(self, switch: _BreakerRef, now: float) -> tuple[Breaker, bool]:
        taken = False

        def take(breaker: Breaker) -> Breaker:
            nonlocal taken
            after, taken = breaker.admit(self._policy, now)
            return after

        after = await self._change(switch, take)
        if taken and after.opened_at is not None:
            self._tell(switch, after)
        return after, taken

    async def _succeed(self, admitted: _Admitted) -> None:
        for switch in admitted.switches:
            if switch.seen != CLOSED:
                await self._change(switch, lambda b: b.succeeded(admitted.since))

    async def _fail(self, admitted: _Admitted, told: BackendVerdict, reason: str) -> None:
        counts = True
        for switch in admitted.switches:
            if not counts and switch.seen.opened_at is None:
                continue
            after = await self._change(
                switch,
                lambda b: b.failed(
                    self._policy, since=admitted.since, now=self._clock(), reason=reason
                ),
            )
            counts = told is BackendVerdict.UPSTREAM_AWAY or after.failures == 1

    async def _abandon(self, admitted: _Admitted) -> None:
        for switch in admitted.switches:
            if switch.seen.opened_at is not None:
                # Also when the call was cancelled: else the next probe waits for this one's expiry.
                with anyio.move_on_after(_PATIENCE, shield=True):
                    await self._change(switch, lambda b: b.abandoned(self._policy, admitted.since))

    async def _change(self, switch: _BreakerRef, change: Callable[[Breaker], Breaker]) -> Breaker:
        before = CLOSED

        def apply(value: Json) -> Json:
            nonlocal before
            before = Breaker.from_json(value)
            return change(before).to_json()

        self._healthy_until.pop(switch.key, None)
        kept = await self._store.update(switch.key, apply, ttl=self._policy.memory)
        after = Breaker.from_json(kept)
        if after.opened_at != before.opened_at:
            self._tell(switch, after)
        return after

    async def _working(self, tools: Iterable[Tool], *, beside: Tool) -> list[str]:
        """The names of the first few tools whose breakers would let a call through."""
        names: list[str] = []
        for tool in tools:
            if tool.id != beside.id and tool.enabled and await self._works(tool):
                names.append(tool.name)
            if len(names) == _MOST_ALTERNATIVES:
                break
        return names

    async def _works(self, tool: Tool) -> bool:
        now = self._clock()
        for switch in _breakers_of(tool):
            kept = Breaker.from_json(await self._store.get(switch.key))
            if not kept.admit(self._policy, now)[1]:
                return False
        return True

    def _tell(self, switch: _BreakerRef, after: Breaker) -> None:
        now = self._clock()
        record_event(
            self._observer,
            BreakerChanged(
                at=now,
                scope=switch.scope,
                name=switch.name,
                state=after.state(self._policy, now),
                failures=after.failures,
                reason=after.reason or None,
            ),
        )


def _breakers_of(tool: Tool) -> tuple[_BreakerRef, ...]:
    """The tool's own breaker, then its upstream's."""
    own = _BreakerRef("tool", tool.id)
    return (own,) if tool.server is None else (own, _BreakerRef("upstream", tool.server))


def _reason(exc: BaseException) -> str:
    return exc.kind if isinstance(exc, PegboardError) else type(exc).__name__
