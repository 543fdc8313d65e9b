"""Small observers: several combined into one, and the calls in flight."""

from __future__ import annotations

import anyio

from pegboard.core.events import CallFinished, CallStarted, Event
from pegboard.ports import Observer, record_event


class CombinedObserver:
    """Passes each event to all observers; one that fails does not affect the others."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def record(self, event: Event) -> None:
        """Pass an event to all of them."""
        for observer in self._observers:
            record_event(observer, event)


class InFlight:
    """An observer that knows the calls between their start and their end."""

    def __init__(self) -> None:
        self._calls: dict[str, CallStarted] = {}
        self._changed = anyio.Event()

    def record(self, event: Event) -> None:
        """Note a start or an end."""
        match event:
            case CallStarted():
                self._calls[event.id] = event
            case CallFinished():
                self._calls.pop(event.id, None)
                if not self._calls:
                    self._changed.set()
            case _:
                pass

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def calls(self) -> tuple[CallStarted, ...]:
        """The calls in progress, oldest first."""
        return tuple(self._calls.values())

    async def drained(self, timeout: float) -> bool:
        """Wait until no call is in progress; whether that happened within `timeout` seconds."""
        with anyio.move_on_after(timeout):
            while self._calls:
                self._changed = anyio.Event()
                await self._changed.wait()
        return not self._calls
