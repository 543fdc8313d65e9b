"""What a catalogue costs under each mode: counted through the real modes, computed without effects.

measure(board) -> Measurement    servers, tools, modes, sessions, the dearest tools and why
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegboard.measure.measuring import Measurement, measure
    from pegboard.measure.sessions import Prices, Use

__all__ = ["Measurement", "Prices", "Use", "measure"]

_HOMES = {
    "Measurement": "measuring",
    "measure": "measuring",
    "Prices": "sessions",
    "Use": "sessions",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
