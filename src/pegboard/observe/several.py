"""One observer made of several: each hears everything, whatever becomes of the others."""

from __future__ import annotations

import logging

from pegboard.core.events import Event
from pegboard.ports import Observer

logger = logging.getLogger(__name__)


class Several:
    """Tells each observer in turn; one that fails is logged and the rest still hear."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def record(self, event: Event) -> None:
        """Tell all of them."""
        for observer in self._observers:
            try:
                observer.record(event)
            except Exception:
                name = type(observer).__name__
                logger.exception("The observer %s failed on %s.", name, event.kind)
