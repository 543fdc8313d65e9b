"""Stops calling what keeps failing: one breaker per tool and one per upstream, shared by the store.

A failure counts for its tool. For the upstream it counts when the upstream itself was away, or when
it is the first of its tool's run: so one bad tool does not shut out its neighbours, and an upstream
on which one tool after the other fails is recognised.

A healthy breaker is no entry in the store, so a call of a healthy tool reads and writes nothing.
A success that meets no failures is not written: it cannot shorten a run that began while it ran.
While the store is away calls go through unguarded: a guard must not be the outage.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias

import anyio

from pegboard.core.breaker import CLOSED, Breaker, BreakerPolicy
from pegboard.core.calls import Call, CallResult
from pegboard.core.events import BreakerChanged
from pegboard.core.json import Json
from pegboard.core.tools import Tool
from pegboard.dispatch.outages import Verdict, verdict
from pegboard.errors import CircuitOpen, PegboardError, StoreError
from pegboard.ports import Handler, Layer, Observer, Store, tell

logger = logging.getLogger(__name__)

Alternatives: TypeAlias = Callable[[Call], Iterable[Tool]]
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
    switches = _Switches(store, policy or BreakerPolicy(), clock, observer, recheck)

    def layer(handler: Handler) -> Handler:
        async def guarded(call: Call) -> CallResult:
            admitted = await switches.admit(call.tool)
            if isinstance(admitted, _Refused):
                raise await switches.explain(admitted, call, alternatives(call))
            try:
                result = await handler(call)
            except BaseException as exc:
                await switches.settle(admitted, verdict(call, exc), _reason(exc))
                raise
            await switches.settle(admitted, verdict(call, result), "unavailable")
            return result

        return guarded

    return layer


@dataclass(frozen=True, slots=True)
class _Switch:
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
    switches: tuple[_Switch, ...]


@dataclass(frozen=True, slots=True)
class _Refused:
    by: _Switch


class _Switches:
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
        admitted: list[_Switch] = []
        try:
            for switch in _switches_of(tool):
                asked, go_ahead = await self._ask(switch, now)
                if not go_ahead:
                    await self._abandon(_Admitted(now, tuple(admitted)))
                    return _Refused(asked)
                admitted.append(asked)
        except StoreError as exc:
            logger.warning("Calling %s unguarded: %s", tool.id, exc)
        return _Admitted(now, tuple(admitted))

    async def settle(self, admitted: _Admitted, told: Verdict, reason: str) -> None:
        """Enter what the call has shown."""
        try:
            match told:
                case Verdict.ANSWERED:
                    await self._succeed(admitted)
                case Verdict.UNTOLD:
                    await self._abandon(admitted)
                case _:
                    await self._fail(admitted, told, reason)
        except StoreError as exc:
            logger.warning("A breaker could not be changed: %s", exc)

    async def explain(
        self, refused: _Refused, call: Call, instead: Iterable[Tool]
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

    async def _ask(self, switch: _Switch, now: float) -> tuple[_Switch, bool]:
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
        return _Switch(switch.scope, switch.name, after), go_ahead

    async def _take_probe(self, switch: _Switch, now: float) -> tuple[Breaker, bool]:
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

    async def _fail(self, admitted: _Admitted, told: Verdict, reason: str) -> None:
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
            counts = told is Verdict.UPSTREAM_AWAY or after.failures == 1

    async def _abandon(self, admitted: _Admitted) -> None:
        for switch in admitted.switches:
            if switch.seen.opened_at is not None:
                # Also when the call was cancelled: else the next probe waits for this one's expiry.
                with anyio.move_on_after(_PATIENCE, shield=True):
                    await self._change(switch, lambda b: b.abandoned(self._policy, admitted.since))

    async def _change(self, switch: _Switch, change: Callable[[Breaker], Breaker]) -> Breaker:
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
        for switch in _switches_of(tool):
            kept = Breaker.from_json(await self._store.get(switch.key))
            if not kept.admit(self._policy, now)[1]:
                return False
        return True

    def _tell(self, switch: _Switch, after: Breaker) -> None:
        now = self._clock()
        tell(
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


def _switches_of(tool: Tool) -> tuple[_Switch, ...]:
    """The tool's own breaker, then its upstream's."""
    own = _Switch("tool", tool.id)
    return (own,) if tool.server is None else (own, _Switch("upstream", tool.server))


def _reason(exc: BaseException) -> str:
    return exc.kind if isinstance(exc, PegboardError) else type(exc).__name__
