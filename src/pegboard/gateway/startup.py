"""Start from disk: a read-only board of the catalogs that an earlier run saved.

The saved catalogs are enough to list, search and count tokens. A command that only reads needs none
of the code that runs servers, nor the time to import it, unless a server was never listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pegboard.board import Pegboard
from pegboard.config import Configuration
from pegboard.gateway.catalogs import ServerCatalogs, build_options, explain_unusable
from pegboard.gateway.config_source import ConfigSource
from pegboard.gateway.from_settings import build_policy
from pegboard.upstream.catalog_cache import CatalogCache


class CachedBoard(Pegboard):
    """A board of what is cached; `failures` are the servers that the configuration cannot use."""

    failures: Mapping[str, str] = {}


def open_cached_board(opening: ConfigSource, configuration: Configuration) -> Pegboard | None:
    """The board of what is kept; `None` where that is not all there is to know.

    A lock or a shared store holds decisions about these tools, and the gateway alone reads those.
    """
    settings = configuration.settings
    if settings.trust.lock is not None or not settings.store.url.startswith("memory:"):
        return None
    folder = opening.folder(configuration)
    offers = ServerCatalogs(configuration, CatalogCache(folder / "catalogues"))
    if offers.restore():
        return None
    board = CachedBoard(instructions=configuration.settings.instructions)
    board.failures = explain_unusable(configuration)
    board.folder = folder
    board.policy = build_policy(configuration.settings)
    tools = offers.tools()
    pins, _ = offers.pins(tools)
    board.reconfigure(replace(build_options(configuration), pins=pins))
    board.mount({}, tools, source=offers.hash)
    board.server_instructions = offers.instructions()
    return board
