"""Events as the layers would tell them."""

from __future__ import annotations

from typing import Any

from pegboard.core.events import CallFinished, CallStarted


def started(id: str = "c1", **about: Any) -> CallStarted:
    usual: dict[str, Any] = {"at": 1.0, "id": id, "tool": "github.search", "upstream": "github"}
    return CallStarted(**usual | about)


def finished(id: str = "c1", **about: Any) -> CallFinished:
    usual: dict[str, Any] = {
        "at": 1.0,
        "id": id,
        "tool": "github.search",
        "upstream": "github",
        "duration": 0.1,
        "outcome": "ok",
    }
    return CallFinished(**usual | about)
