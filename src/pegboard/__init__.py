"""Pegboard: a catalog of MCP tools in which you pay only for the tools that a model uses.

Importing this is cheap: the SDK, numpy and the web parts are imported when they are first needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pegboard.board import Pegboard
from pegboard.core.calls import Call, Caller, CallResult, Outcome
from pegboard.core.policy import Policy, Rule
from pegboard.core.tools import Catalog, Category, Example, Tool
from pegboard.errors import (
    AmbiguousName,
    Busy,
    CircuitOpen,
    ConfigError,
    InvalidArguments,
    InvalidField,
    LoginRequired,
    NotPermitted,
    PegboardError,
    StoreError,
    ToolDisabled,
    ToolError,
    ToolNotFound,
    UpstreamError,
    UpstreamTimeout,
    UpstreamUnavailable,
)

if TYPE_CHECKING:
    from pegboard.attachment import attach
    from pegboard.core.results.projection import project, validate_fields
    from pegboard.core.search import Match
    from pegboard.lazy_tools import LazyTools
    from pegboard.server.serving import build_server
    from pegboard.tokens import count_tokens

__version__ = "0.2.0"

__all__ = [
    "AmbiguousName",
    "Busy",
    "Call",
    "CallResult",
    "Caller",
    "Catalog",
    "Category",
    "CircuitOpen",
    "ConfigError",
    "Example",
    "InvalidArguments",
    "InvalidField",
    "LazyTools",
    "LoginRequired",
    "Match",
    "NotPermitted",
    "Outcome",
    "Pegboard",
    "PegboardError",
    "Policy",
    "Rule",
    "StoreError",
    "Tool",
    "ToolDisabled",
    "ToolError",
    "ToolNotFound",
    "UpstreamError",
    "UpstreamTimeout",
    "UpstreamUnavailable",
    "attach",
    "build_server",
    "count_tokens",
    "project",
    "validate_fields",
]

_LAZY = {
    "LazyTools": "pegboard.lazy_tools",
    "Match": "pegboard.core.search",
    "attach": "pegboard.attachment",
    "build_server": "pegboard.server.serving",
    "count_tokens": "pegboard.tokens",
    "project": "pegboard.core.results.projection",
    "validate_fields": "pegboard.core.results.projection",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'pegboard' has no attribute {name!r}")
