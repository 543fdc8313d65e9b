"""What a configuration says, as the options of a board."""

from __future__ import annotations

from typing import Any

from pegboard.config.settings import Settings
from pegboard.core.tools import Risk
from pegboard.upstream.names import Naming


def options_of(settings: Settings) -> dict[str, Any]:
    """The keyword arguments of `Pegboard` for these settings."""
    return {
        "face": settings.face,
        "pins": settings.pins,
        "risk": settings.risk,
        "instructions": settings.instructions,
        "structured": settings.structured,
        "client_faces": dict(settings.clients),
        "risk_rules": _risk_rules(settings),
        "eager_budget": settings.budgets.auto_list,
        "page_tokens": settings.budgets.index_page,
        "page_size": settings.budgets.page_size or None,
        "session_cap": settings.dynamic.cap,
        "dispatch_risk": settings.risk_rules.dispatch,
        "max_parallel": settings.calls.max_concurrency,
        "coerce": settings.calls.coerce,
        "timeout": settings.calls.timeout,
        "attempts": settings.calls.retries + 1,
        "breaker_failures": settings.calls.breaker_failures,
        "breaker_cooldown": settings.calls.breaker_cooldown,
        "spill_tokens": settings.results.spill_tokens or None,
        "spill_ttl": settings.results.spill_ttl,
        "tables": settings.results.tables,
        "cache": dict(settings.results.cache),
    }


def naming_of(settings: Settings) -> Naming:
    """How tools of several servers are named."""
    names = settings.names
    return Naming(style=names.style, separator=names.separator, max_length=names.max_length)


def _risk_rules(settings: Settings) -> dict[str, Risk]:
    rules = settings.risk_rules
    by_risk: tuple[tuple[Risk, tuple[str, ...]], ...] = (
        ("destructive", rules.destructive),  # first, because the first rule that fits decides
        ("write", rules.write),
        ("read", rules.read),
    )
    return {pattern: risk for risk, patterns in by_risk for pattern in patterns}
