"""One observer made of several: each hears everything, whatever becomes of the others."""

from __future__ import annotations

from pegboard.core.events import Event
from pegboard.ports import Observer, tell


class Several:
    """Tells each observer in turn."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def record(self, event: Event) -> None:
        """Tell all of them."""
        for observer in self._observers:
            tell(observer, event)
