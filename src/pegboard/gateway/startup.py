"""Start from disk: a read-only board of the catalogs that an earlier run saved.

The saved catalogs are enough to list, search and count tokens. A command that only reads needs none
of the code that runs servers, nor the time to import it, unless a server was never listed. A
running gateway starts from disk too (`Gateway.restore`), and then lists what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pegboard.board import Pegboard
from pegboard.config.loader import Configuration
from pegboard.gateway.catalogs import (
    ServerCatalogs,
    build_options,
    explain_unusable,
    name_place,
)
from pegboard.gateway.config_source import ConfigSource
from pegboard.gateway.from_settings import build_policy
from pegboard.upstream.catalog_cache import CatalogCache


class CachedBoard(Pegboard):
    """A board of cached catalogs; `failures` are servers that the configuration cannot use."""

    failures: Mapping[str, str] = {}


def open_cached_board(source: ConfigSource, configuration: Configuration) -> Pegboard | None:
    """The board of all cached catalogs; `None` where the cache alone is not enough.

    That is so when a server was never listed, and when there is a lock or a shared store: these
    hold decisions about the tools, and only a gateway reads them.
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
    board.folder = folder
    board.place = name_place(configuration)
    board.policy = build_policy(settings)
    tools = catalogs.tools()
    pins, _ = catalogs.pins(tools)
    board.reconfigure(replace(build_options(configuration), pins=pins))
    board.mount({}, tools, source=catalogs.hash)
    board.server_instructions = catalogs.instructions()
    return board
