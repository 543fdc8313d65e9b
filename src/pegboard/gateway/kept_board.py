"""A board of servers as they were last listed: to be read, not to be called.

What is kept on disk is enough to list, search and count. So whoever only reads needs nothing that
runs servers, nor the time that it takes to import, unless one of them was never listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pegboard.board import Pegboard
from pegboard.config import Configuration
from pegboard.gateway.abouts import unusable
from pegboard.gateway.governing import policy_of
from pegboard.gateway.offers import Offers, shown_as
from pegboard.gateway.opening import Opening
from pegboard.upstream.kept import CatalogueFolder


class KeptBoard(Pegboard):
    """A board of what is cached; `failures` are the servers that the configuration cannot use."""

    failures: Mapping[str, str] = {}


def kept_board(opening: Opening, configuration: Configuration) -> Pegboard | None:
    """The board of what is kept; `None` where that is not all there is to know.

    A lock or a shared store holds decisions about these tools, and the gateway alone reads those.
    """
    settings = configuration.settings
    if settings.trust.lock is not None or not settings.store.url.startswith("memory:"):
        return None
    folder = opening.folder(configuration)
    offers = Offers(configuration, CatalogueFolder(folder / "catalogues"))
    if offers.restore():
        return None
    board = KeptBoard(instructions=configuration.settings.instructions)
    board.failures = unusable(configuration)
    board.folder = folder
    board.policy = policy_of(configuration.settings)
    tools = offers.tools()
    pins, _ = offers.pins(tools)
    board.reconfigure(replace(shown_as(configuration), pins=pins))
    board.mount({}, tools, source=offers.hash)
    board.server_instructions = offers.instructions()
    return board
