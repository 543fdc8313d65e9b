"""Everything Pegboard raises, by who must act.

A message says what was wrong and what would be right; the attributes carry the same as data, so
that a reply to a model, a log line and a test all read one source. `kind` is the word used on the
wire.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

__all__ = [
    "AmbiguousName",
    "Busy",
    "CircuitOpen",
    "ConfigError",
    "InvalidArguments",
    "InvalidField",
    "NotPermitted",
    "PegboardError",
    "StoreError",
    "ToolDisabled",
    "ToolError",
    "ToolNotFound",
    "UpstreamError",
    "UpstreamTimeout",
    "UpstreamUnavailable",
]


class PegboardError(Exception):
    """The base of all; `details` is what a reply carries beside the message."""

    kind: ClassVar[str] = "error"

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details: dict[str, Any] = {k: v for k, v in details.items() if v is not None}


class ConfigError(PegboardError):
    """The operator or author must mend a setting, a file, or a registration."""

    kind = "configuration"


class ToolNotFound(PegboardError):
    """No tool of that name, for this caller; `nearest` lists what was perhaps meant."""

    kind = "unknown_tool"

    def __init__(self, name: str, nearest: Sequence[str] = (), *, what: str = "tool") -> None:
        hint = f" Nearest: {', '.join(nearest)}." if nearest else ""
        super().__init__(f"Unknown {what}: {name!r}.{hint}", tool=name, nearest=list(nearest))
        self.name = name
        self.nearest = tuple(nearest)


class AmbiguousName(PegboardError):
    """The name fits several tools; `candidates` are addresses that fit one each."""

    kind = "ambiguous_name"

    def __init__(self, name: str, candidates: Sequence[str]) -> None:
        super().__init__(
            f"{name!r} names several tools: use one of {', '.join(candidates)}.",
            tool=name,
            nearest=list(candidates),
        )
        self.name = name
        self.candidates = tuple(candidates)


class ToolError(PegboardError):
    """Raise it in a tool of your own for a failure that the model should read and act on."""

    kind = "tool_error"


class InvalidArguments(PegboardError):
    """The arguments of a call do not fit; the caller can mend them."""

    kind = "invalid_arguments"


class InvalidField(PegboardError):
    """A field path that the result cannot have."""

    kind = "invalid_field"


class ToolDisabled(PegboardError):
    """The tool exists and is switched off."""

    kind = "tool_disabled"


class NotPermitted(PegboardError):
    """The caller may see the tool but not call it this way."""

    kind = "not_permitted"


class CircuitOpen(PegboardError):
    """The tool or its upstream failed too often; `retry_after` says when to try again."""

    kind = "circuit_open"


class Busy(PegboardError):
    """Too many calls are waiting already; try again shortly."""

    kind = "busy"


class UpstreamError(PegboardError):
    """What stands behind a tool failed."""

    kind = "upstream_error"


class UpstreamTimeout(UpstreamError):
    """It did not answer in time."""

    kind = "timeout"


class UpstreamUnavailable(UpstreamError):
    """It cannot be reached, could not be started, or died."""

    kind = "unavailable"
    only_caller = False
    """Whether it was a process of this caller alone, which says nothing about other callers'."""


class StoreError(PegboardError):
    """The shared state cannot be reached."""

    kind = "store"
