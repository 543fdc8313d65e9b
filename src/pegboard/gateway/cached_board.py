"""Start from disk: a read-only board of the catalogs that an earlier run saved, and its logins.

The saved catalogs are enough to list, search and count tokens. A command that only reads needs none
of the code that runs servers, nor the time to import it, unless a server was never listed. A
running gateway starts from disk too (`Gateway.restore`), and then lists what is missing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from pegboard.board import Pegboard
from pegboard.config.loader import Configuration
from pegboard.core.calls import LOCAL_CALLER
from pegboard.gateway.catalogs import (
    ServerCatalogs,
    build_options,
    explain_unusable,
    name_place,
)
from pegboard.gateway.config_source import ConfigSource
from pegboard.gateway.from_settings import build_logins, build_policy, close_store, open_store
from pegboard.oauth.grants import LoginState
from pegboard.upstream.catalog_cache import CatalogCache


class CachedBoard(Pegboard):
    """A board of cached catalogs; `failures` are servers that the configuration cannot use."""

    failures: Mapping[str, str] = {}
    read_login_states: Callable[[], Awaitable[dict[str, LoginState]]]


def open_cached_board(source: ConfigSource, configuration: Configuration) -> Pegboard | None:
    """The board of all cached catalogs; `None` if the cache alone is not enough.

    It is not enough if a server was never listed, or if there is a lock or a shared store: these
    contain decisions about tools, which only a gateway reads.
    """
    settings = configuration.settings
    if settings.trust.lock is not None or not settings.store.url.startswith("memory:"):
        return None
    folder = source.folder(configuration)
    catalogs = ServerCatalogs(configuration, CatalogCache(folder / "catalogs"))
    if catalogs.restore():
        return None
    board = CachedBoard(instructions=settings.instructions)
    board.failures = explain_unusable(configuration)
    board.read_login_states = partial(read_login_states, configuration, folder)
    board.folder = folder
    board.place = name_place(configuration)
    board.policy = build_policy(settings)
    tools = catalogs.tools()
    pins, _ = catalogs.pins(tools)
    board.reconfigure(replace(build_options(configuration), pins=pins))
    board.mount({}, tools, source=catalogs.hash)
    board.server_instructions = catalogs.instructions()
    return board


async def read_login_states(configuration: Configuration, folder: Path) -> dict[str, LoginState]:
    """The state of the user's login to each server that has or needs one; nothing is requested.

    Args:
        configuration: The servers.
        folder: Where their catalogs are cached, with the reason if one could not be listed.
    """
    remote = [spec for spec in configuration.upstreams if spec.uses_oauth]
    if not remote:
        return {}
    cache, store = CatalogCache(folder / "catalogs"), open_store(configuration.settings, None)
    logins = build_logins(configuration.settings, store)
    found: dict[str, LoginState] = {}
    try:
        for spec in remote:
            failure = cache.last_failure(spec)
            state = await logins.state(
                spec,
                LOCAL_CALLER.principal,
                is_refused=failure is not None and failure.needs_login,
            )
            if state is not None:
                found[spec.name] = state
    finally:
        await close_store(store)
    return found
