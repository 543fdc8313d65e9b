"""Every error that Pegboard raises, by who must act.

    PegboardError
    ├─ ConfigError                          the operator, or the author of a tool
    ├─ ToolNotFound, AmbiguousName, InvalidArguments, InvalidField      the caller
    ├─ ToolDisabled, NotPermitted           the operator, if the caller should have the tool
    ├─ LoginRequired                        the caller, or who configured the credential
    ├─ ToolError                            the model: raised by tools themselves
    ├─ CircuitOpen, Busy                    nobody: try again later
    ├─ UpstreamError                        the operator of the upstream
    │  ├─ UpstreamTimeout
    │  └─ UpstreamUnavailable
    └─ StoreError                           the operator of the store

A message says what was wrong and what to do; the attributes carry the same as data, so that a reply
to a model, a log line and a test all read one source. `kind` is the word used on the wire.
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
    "LoginRequired",
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
    """The base of all errors; `details` is the data that a reply carries besides the message."""

    kind: ClassVar[str] = "error"

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details: dict[str, Any] = {k: v for k, v in details.items() if v is not None}


class ConfigError(PegboardError):
    """A setting, a file or a registration is wrong; its author must correct it."""

    kind = "configuration"


class ToolNotFound(PegboardError):
    """This caller has no tool with that name; `nearest` lists similar names."""

    kind = "unknown_tool"

    def __init__(self, name: str, nearest: Sequence[str] = (), *, what: str = "tool") -> None:
        hint = f" Nearest: {', '.join(nearest)}." if nearest else ""
        super().__init__(f"Unknown {what}: {name!r}.{hint}", tool=name, nearest=list(nearest))
        self.name = name
        self.nearest = tuple(nearest)


class AmbiguousName(PegboardError):
    """The name matches several tools; `candidates` lists a unique name for each."""

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
    """Raise this in your own tool for a failure that the model should read and act on."""

    kind = "tool_error"


class InvalidArguments(PegboardError):
    """The arguments of a call are not valid; the caller can correct them."""

    kind = "invalid_arguments"


class InvalidField(PegboardError):
    """The result has no field at that path."""

    kind = "invalid_field"


class ToolDisabled(PegboardError):
    """The tool exists but is disabled."""

    kind = "tool_disabled"


class NotPermitted(PegboardError):
    """The caller may see the tool, but may not call it this way."""

    kind = "not_permitted"


class LoginRequired(PegboardError):
    """The server needs a login: this caller has no credential, or it was not accepted."""

    kind = "login_required"

    def __init__(self, message: str, *, challenge: str | None = None, **details: Any) -> None:
        super().__init__(message, **details)
        self.challenge = challenge
        """The server's `WWW-Authenticate` header, which says how to get a credential."""


class CircuitOpen(PegboardError):
    """The tool or its upstream failed too often; `retry_after` says when to try again."""

    kind = "circuit_open"


class Busy(PegboardError):
    """Too many calls are waiting already; try again shortly."""

    kind = "busy"


class UpstreamError(PegboardError):
    """The server or API behind a tool failed."""

    kind = "upstream_error"


class UpstreamTimeout(UpstreamError):
    """The upstream did not answer in time."""

    kind = "timeout"


class UpstreamUnavailable(UpstreamError):
    """The upstream cannot be reached, could not be started, or exited."""

    kind = "unavailable"
    only_caller = False
    """Whether only this caller's own process failed, which says nothing about other callers."""
    reason: str | None = None
    """The message without when the server is tried again, for a person who looks at its state."""


class StoreError(PegboardError):
    """The store cannot be reached."""

    kind = "store"
