"""The current rollout of a mode: read from the store, followed by every replica.

    store:  rollout                   which mode, what percentage of whom
            rollout/figures/<name>    calls, errors, durations, tokens of both arms, of all replicas

Each replica counts for itself and adds its figures to those in the store once a second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import anyio

from pegboard.core.calls import Caller
from pegboard.core.events import AnswerSent, CallFinished, Event, ListAnswered, SearchAnswered
from pegboard.core.json import Json
from pegboard.core.mode_rollout import ArmName, ArmStatistics, Comparison, Rollout
from pegboard.errors import StoreError
from pegboard.ports import Store
from pegboard.record_watch import follow_record

KEY = "rollout"
FLUSH_INTERVAL = 1.0
_FIGURES_TTL = 90 * 86_400.0

ArmObserver: TypeAlias = Callable[[Rollout, ArmName, ArmStatistics], None]
"""Called at once with the figures of an arm in this process, for metrics."""


class RolloutTracker:
    """The rollout as this gateway last read it, and an observer that counts for its arms."""

    def __init__(self, store: Store, observers: Sequence[ArmObserver] = ()) -> None:
        self._store = store
        self._observers = tuple(observers)
        self.current: Rollout | None = None
        self._counted = Comparison()

    def mode_for(self, caller: Caller) -> str | None:
        """The mode under trial, if this caller gets it."""
        return self.current.mode_for(caller) if self.current is not None else None

    # Following -----------------------------------------------------------------------------------

    async def load(self) -> None:
        """Read the current rollout, so that the first answer is in the right mode."""
        self.current = await _read_rollout(self._store)

    async def follow(self, changed: Callable[[], None]) -> None:
        """Follow the rollout in the store, and add figures to it, until canceled."""

        async def read() -> None:
            found = await _read_rollout(self._store)
            if found != self.current:
                await self.flush()  # what was counted belongs to the rollout before
                self.current = found
                changed()

        async def flush_regularly() -> None:
            while True:
                await anyio.sleep(FLUSH_INTERVAL)
                await self.flush()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(flush_regularly)
            await follow_record(lambda: self._store.subscribe(KEY), read)

    # Counting ------------------------------------------------------------------------------------

    def record(self, event: Event) -> None:
        """Count an event for the arm of its caller."""
        if self.current is None:
            return
        match event:
            case CallFinished():
                failed = event.outcome in ("failed", "tool_error")
                figures = ArmStatistics(1, int(failed), event.duration)
            case ListAnswered():
                figures = ArmStatistics(lists=1)
            case SearchAnswered():
                figures = ArmStatistics(searches=1)
            case AnswerSent():
                figures = ArmStatistics(tokens=event.tokens)
            case _:
                return
        arm = self.current.arm(event.principal, event.client)
        self._counted = self._counted.add(arm, figures)
        for observe in self._observers:
            observe(self.current, arm, figures)

    async def flush(self) -> None:
        """Add the figures of this process to those of all replicas."""
        if self.current is None or not self._counted.arms:
            return
        # Taken before the store is awaited: events go on being counted meanwhile.
        counted, self._counted = self._counted, Comparison()

        def add(stored: Json) -> Json:
            return (Comparison.from_json(stored) + counted).to_json()

        try:
            await self._store.update(_figures_key(self.current), add, ttl=_FIGURES_TTL)
        except StoreError:  # tried again with the next flush, together with what comes meanwhile
            self._counted = self._counted + counted


# What operators do ------------------------------------------------------------------------------


async def start(store: Store, rollout: Rollout) -> Rollout:
    """Begin a rollout, or change the percentage of the current one: callers stay in their arm."""
    current = await _read_rollout(store)
    if current is not None and (current.mode, current.by) == (rollout.mode, rollout.by):
        # The name decides the arm of each caller and where the figures are: it must stay.
        rollout = replace(current, percent=rollout.percent)
    await store.update(KEY, lambda stored: rollout.to_json())
    await store.publish(KEY, None)
    return rollout


async def stop(store: Store) -> None:
    """Return everybody to the configured mode, at once."""
    await store.update(KEY, lambda stored: None)
    await store.publish(KEY, None)


async def show(store: Store) -> tuple[Rollout | None, Comparison]:
    """The current rollout and the figures of its arms."""
    rollout = await _read_rollout(store)
    if rollout is None:
        return None, Comparison()
    return rollout, Comparison.from_json(await store.get(_figures_key(rollout)))


async def _read_rollout(store: Store) -> Rollout | None:
    value = await store.get(KEY)
    try:
        return Rollout.from_json(value)
    except (KeyError, TypeError, AttributeError, ValueError) as exc:
        raise StoreError(f"The store holds something that is not a rollout at {KEY!r}.") from exc


def _figures_key(rollout: Rollout) -> str:
    return f"{KEY}/figures/{rollout.name}"
