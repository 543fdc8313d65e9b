"""`auto`: which mode suits this client and this catalogue.

    small catalogue             eager      listing it costs less than one search would
    client defers tools itself  eager      session era: by its name
    everything else             proxy      a constant list that every client understands

`dynamic` is chosen for a client that follows `list_changed` only where configuration asks for it.
In the modern era a client's name must not change behaviour (MCP 2026-07-28), so there only
configuration and size count.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files

from pegboard.core.calls import Caller
from pegboard.core.json import compact
from pegboard.core.options import ModeName, Options, check_mode
from pegboard.core.tools import Catalog, Tool

CHARACTERS_PER_TOKEN = 4.0
"""For deciding only; figures that people see are counted."""


@dataclass(frozen=True, slots=True)
class KnownClient:
    """What is known of an MCP client; `source` shows it, `note` says what is uncertain."""

    name: str
    title: str
    follows_list_changed: bool
    defers_tools: bool
    source: str
    note: str = ""


@cache
def known_clients() -> dict[str, KnownClient]:
    """The table of clients, by the name that they give."""
    text = files("pegboard.modes").joinpath("clients.toml").read_text("utf-8")
    return {row["name"]: KnownClient(**row) for row in tomllib.loads(text)["client"]}


def choose_mode(
    asked: str, caller: Caller, catalog: Catalog, options: Options, *, complete: bool = True
) -> ModeName:
    """The mode for one request.

    Args:
        asked: What configuration, URL, header or environment say, or `auto`.
        caller: Era and, in the session era, the client.
        catalog: What would be listed.
        options: Budgets and rules per client.
        complete: False where there are loaders, so that the size is not known.
    """
    if asked == "auto" and caller.era == "legacy" and caller.client:
        asked = _mode_for_client(caller.client, options)
    if asked == "auto":
        asked = "eager" if complete and fits_budget(catalog, options.eager_budget) else "proxy"
    if asked == "dynamic" and caller.era == "modern":
        asked = "proxy"
    return check_mode(asked)  # pyright: ignore[reportReturnType] not `auto` any more


def fits_budget(catalog: Catalog, budget: int) -> bool:
    """Whether listing everything stays within a token budget; stops reading when it does not."""
    key = ("fits", budget)
    if key not in catalog.memo:
        catalog.memo[key] = _measure_fit(catalog, budget)
    return catalog.memo[key]


def _measure_fit(catalog: Catalog, budget: int) -> bool:
    room = budget * CHARACTERS_PER_TOKEN
    for tool in catalog.enabled:
        room -= _size(tool)
        if room < 0:
            return False
    return True


def _size(tool: Tool) -> int:
    return len(tool.name) + len(tool.description) + len(compact(tool.input_schema))


def _mode_for_client(name: str, options: Options) -> str:
    for pattern, mode in options.client_modes.items():
        if fnmatchcase(name, pattern):
            return check_mode(mode)
    client = _known_client(name)
    return "eager" if client and client.defers_tools else "auto"


def _known_client(name: str) -> KnownClient | None:
    """The client of that name; bridges and some clients put more behind their names."""
    clients = known_clients()
    if name in clients:
        return clients[name]
    starts = [known for known in clients if re.match(rf"{re.escape(known)}[\s(/-]", name)]
    return clients[max(starts, key=len)] if starts else None
