"""The rollout under way: read from the store, followed by every replica, its figures added up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import anyio

from pegboard.core.calls import Caller
from pegboard.core.events import AnswerSent, CallFinished, Event, ListAnswered, SearchAnswered
from pegboard.core.json import Json
from pegboard.core.rollout import ArmName, Comparison, Figures, Rollout
from pegboard.errors import StoreError
from pegboard.following import follow
from pegboard.ports import Store

KEY = "rollout"
FLUSH_EVERY = 1.0
_KEEP_FIGURES = 90 * 86_400.0

Told: TypeAlias = Callable[[Rollout, ArmName, Figures], None]
"""Told at once what an arm did here, for metrics."""


class Rollouts:
    """The switch of one gateway, and an observer that counts for the arms."""

    def __init__(self, store: Store, told: Sequence[Told] = ()) -> None:
        self._store = store
        self._told = tuple(told)
        self.current: Rollout | None = None
        self._counted = Comparison()

    def face_for(self, caller: Caller) -> str | None:
        """The face under trial, where this caller gets it."""
        return self.current.face_for(caller) if self.current is not None else None

    # Following -----------------------------------------------------------------------------------

    async def load(self) -> None:
        """Read the rollout under way, so that the first answer is of the right face."""
        self.current = await _stored(self._store)

    async def follow(self, changed: Callable[[], None]) -> None:
        """Keep to what the store says, and add the figures up there, until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._flush_often)
            await follow(lambda: self._store.subscribe(KEY), lambda: self._read(changed))

    async def _read(self, changed: Callable[[], None]) -> None:
        found = await _stored(self._store)
        if found != self.current:
            await self.flush()
            self.current = found
            changed()

    async def _flush_often(self) -> None:
        while True:
            await anyio.sleep(FLUSH_EVERY)
            await self.flush()

    # Counting ------------------------------------------------------------------------------------

    def record(self, event: Event) -> None:
        """Count an event for the arm that it belongs to."""
        if self.current is None:
            return
        match event:
            case CallFinished():
                failed = event.outcome in ("failed", "tool_error")
                figures = Figures(1, int(failed), event.duration)
            case ListAnswered():
                figures = Figures(lists=1)
            case SearchAnswered():
                figures = Figures(searches=1)
            case AnswerSent():
                figures = Figures(tokens=event.tokens)
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
            await self._store.update(_figures(self.current), add, ttl=_KEEP_FIGURES)
        except StoreError:
            self._counted = self._counted + counted


# What operators do ------------------------------------------------------------------------------


async def start(store: Store, rollout: Rollout) -> Rollout:
    """Begin a rollout, or change the share of the one under way: callers keep their side."""
    now = await _stored(store)
    if now is not None and (now.face, now.by) == (rollout.face, rollout.by):
        rollout = Rollout(face=now.face, percent=rollout.percent, by=now.by, name=now.name)
    await store.update(KEY, lambda kept: rollout.to_json())
    await store.publish(KEY, None)
    return rollout


async def stop(store: Store) -> None:
    """Give everybody the configured face again, at once."""
    await store.update(KEY, lambda kept: None)
    await store.publish(KEY, None)


async def show(store: Store) -> tuple[Rollout | None, Comparison]:
    """The rollout under way and how its arms did."""
    rollout = await _stored(store)
    if rollout is None:
        return None, Comparison()
    return rollout, Comparison.from_json(await store.get(_figures(rollout)))


async def _stored(store: Store) -> Rollout | None:
    value = await store.get(KEY)
    try:
        return Rollout.from_json(value)
    except (KeyError, TypeError, AttributeError, ValueError) as exc:
        raise StoreError(f"The store holds something that is not a rollout at {KEY!r}.") from exc


def _figures(rollout: Rollout) -> str:
    return f"{KEY}/figures/{rollout.name}"
