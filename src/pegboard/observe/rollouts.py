"""The rollout under way: read from the store, followed by every replica, its figures added up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import anyio

from pegboard.core.calls import Caller
from pegboard.core.events import AnswerSent, CallFinished, Event, ListAnswered, SearchAnswered
from pegboard.core.json import Json
from pegboard.core.mode_rollout import ArmName, ArmStatistics, Comparison, Rollout
from pegboard.errors import StoreError
from pegboard.ports import Store
from pegboard.record_watch import follow

KEY = "rollout"
FLUSH_INTERVAL = 1.0
_FIGURES_TTL = 90 * 86_400.0

ArmObserver: TypeAlias = Callable[[Rollout, ArmName, ArmStatistics], None]
"""Told at once what an arm did here, for metrics."""


class RolloutTracker:
    """The switch of one gateway, and an observer that counts for the arms."""

    def __init__(self, store: Store, told: Sequence[ArmObserver] = ()) -> None:
        self._store = store
        self._told = tuple(told)
        self.current: Rollout | None = None
        self._counted = Comparison()

    def mode_for(self, caller: Caller) -> str | None:
        """The mode under trial, where this caller gets it."""
        return self.current.mode_for(caller) if self.current is not None else None

    # Following -----------------------------------------------------------------------------------

    async def load(self) -> None:
        """Read the rollout under way, so that the first answer is of the right mode."""
        self.current = await _read_rollout(self._store)

    async def follow(self, changed: Callable[[], None]) -> None:
        """Keep to what the store says, and add the figures up there, until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._flush_often)
            await follow(lambda: self._store.subscribe(KEY), lambda: self._read(changed))

    async def _read(self, changed: Callable[[], None]) -> None:
        found = await _read_rollout(self._store)
        if found != self.current:
            await self.flush()
            self.current = found
            changed()

    async def _flush_often(self) -> None:
        while True:
            await anyio.sleep(FLUSH_INTERVAL)
            await self.flush()

    # Counting ------------------------------------------------------------------------------------

    def record(self, event: Event) -> None:
        """Count an event for the arm that it belongs to."""
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
        for told in self._told:
            told(self.current, arm, figures)

    async def flush(self) -> None:
        """Add what was counted here to what all replicas counted."""
        if self.current is None or not self._counted.arms:
            return
        counted, self._counted = self._counted, Comparison()

        def add(kept: Json) -> Json:
            return (Comparison.from_json(kept) + counted).to_json()

        try:
            await self._store.update(_figures_key(self.current), add, ttl=_FIGURES_TTL)
        except StoreError:
            self._counted = self._counted + counted


# What operators do ------------------------------------------------------------------------------


async def start(store: Store, rollout: Rollout) -> Rollout:
    """Begin a rollout, or change the share of the one under way: callers keep their side."""
    now = await _read_rollout(store)
    if now is not None and (now.mode, now.by) == (rollout.mode, rollout.by):
        rollout = Rollout(mode=now.mode, percent=rollout.percent, by=now.by, name=now.name)
    await store.update(KEY, lambda kept: rollout.to_json())
    await store.publish(KEY, None)
    return rollout


async def stop(store: Store) -> None:
    """Give everybody the configured mode again, at once."""
    await store.update(KEY, lambda kept: None)
    await store.publish(KEY, None)


async def show(store: Store) -> tuple[Rollout | None, Comparison]:
    """The rollout under way and how its arms did."""
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
