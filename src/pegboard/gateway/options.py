"""What a configuration says, as the options of a board and the folder of a gateway."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pegboard.config.settings import Settings
from pegboard.core.tools import Risk
from pegboard.upstream.names import Naming


def options_of(settings: Settings) -> dict[str, Any]:
    """The keyword arguments of `Pegboard` for these settings; pins are found when tools are."""
    return {
        "face": settings.face,
        # Decided once for all: servers that come in later must not change the list.
        "risk": "split" if settings.risk == "auto" else settings.risk,
        "structured": settings.structured,
        "client_faces": dict(settings.clients),
        "risk_rules": _risk_rules(settings),
        "eager_budget": settings.budgets.auto_list,
        "page_tokens": settings.budgets.index_page,
        "page_size": settings.budgets.page_size or None,
        "session_cap": settings.dynamic.cap,
        "enabled_per_search": settings.dynamic.per_search,
        "category_tokens": settings.dynamic.category_tokens,
        "strict_risk": settings.risk_rules.strict,
        "dispatch_risk": settings.risk_rules.dispatch,
        "max_parallel": settings.calls.max_concurrency,
        "coerce": settings.calls.coerce,
        # Each server's own, counted by its connection: it alone knows when a person is asked.
        "timeout": None,
        "upstream_concurrency": settings.calls.upstream_concurrency,
        "upstream_queue": settings.calls.queue,
        "attempts": settings.calls.retries + 1,
        "breaker_failures": settings.calls.breaker_failures,
        "breaker_cooldown": settings.calls.breaker_cooldown,
        "spill_tokens": settings.results.spill_tokens or None,
        "spill_bytes": settings.results.spill_bytes or None,
        "spill_ttl": settings.results.spill_ttl,
        "clean_results": settings.results.clean,
        "tables": settings.results.tables,
        "table_saving": settings.results.table_saving,
        "cache": dict(settings.results.cache),
        "tokenizer": settings.budgets.tokenizer,
    }


def naming_of(settings: Settings) -> Naming:
    """How tools of several servers are named."""
    names = settings.names
    return Naming(style=names.style, separator=names.separator, max_length=names.max_length)


def folder_of(settings: Settings, environ: Mapping[str, str], beside: Path) -> Path:
    """Where catalogues and logs are kept: as configured, `PEGBOARD_HOME`, or the user's cache."""
    if settings.upstreams.folder:
        return beside / Path(settings.upstreams.folder).expanduser()
    if home := environ.get("PEGBOARD_HOME"):
        return Path(home).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("pegboard", appauthor=False)


def _risk_rules(settings: Settings) -> dict[str, Risk]:
    rules = settings.risk_rules
    by_risk: tuple[tuple[Risk, tuple[str, ...]], ...] = (
        ("destructive", rules.destructive),  # first, because the first rule that fits decides
        ("write", rules.write),
        ("read", rules.read),
    )
    return {pattern: risk for risk, patterns in by_risk for pattern in patterns}
