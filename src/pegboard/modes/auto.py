"""`auto`: which mode suits this client and this catalog; and all modes, by name.

    small catalog               eager      listing it costs less than one search would
    client defers tools itself  eager      session era: by its name
    everything else             proxy      a constant list that every client understands

`dynamic` is only chosen where the configuration asks for it, for clients that follow
`list_changed`. In the modern era a client's name must not change behavior (MCP 2026-07-28), so
there only configuration and size count.
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
from pegboard.core.token_budget import BYTES_PER_TOKEN, utf8_size
from pegboard.core.tools import Catalog
from pegboard.modes.code import CodeMode
from pegboard.modes.dynamic import DynamicMode
from pegboard.modes.eager_and_stub import EagerMode, StubMode
from pegboard.modes.hierarchy import HierarchyMode
from pegboard.modes.index import IndexMode
from pegboard.modes.mode import Mode
from pegboard.modes.proxy import ProxyMode

MODES_BY_NAME: dict[ModeName, Mode] = {
    "eager": EagerMode(),
    "stub": StubMode(),
    "index": IndexMode(),
    "hierarchy": HierarchyMode(),
    "proxy": ProxyMode(),
    "dynamic": DynamicMode(),
    "code": CodeMode(),
}


@dataclass(frozen=True, slots=True)
class KnownClient:
    """What is known about an MCP client; `source` proves it, `note` says what is uncertain."""

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
    wanted: str, caller: Caller, catalog: Catalog, options: Options, *, complete: bool = True
) -> ModeName:
    """The mode for one request.

    Args:
        wanted: The mode that configuration, URL, header or environment name, or `auto`.
        caller: Has the era and, in the session era, the client.
        catalog: What would be listed.
        options: Budgets and rules per client.
        complete: False where there are loaders, so that the size is not known.
    """
    if wanted == "auto" and caller.era == "legacy" and (name := caller.client):
        # An operator's rule comes before what we know about the client.
        rules = (mode for rule, mode in options.client_modes.items() if fnmatchcase(name, rule))
        clients = known_clients()
        client = clients.get(name)
        if client is None:
            # Bridges and some clients append more to the name. The longest: `claude-code` is not
            # `claude`.
            starts = [known for known in clients if re.match(rf"{re.escape(known)}[\s(/-]", name)]
            client = clients[max(starts, key=len)] if starts else None
        known = "eager" if client and client.defers_tools else "auto"
        wanted = check_mode(next(rules, known))
    # An incomplete catalog may still grow past the budget, and a list must not change its mode.
    if wanted == "auto":
        wanted = "eager" if complete and fits_budget(catalog, options.eager_budget) else "proxy"
    # Its list would vary by connection, which that era forbids.
    if wanted == "dynamic" and caller.era == "modern":
        wanted = "proxy"
    return check_mode(wanted)  # pyright: ignore[reportReturnType] not `auto` any more


def fits_budget(catalog: Catalog, budget: int) -> bool:
    """Whether listing everything stays within a token budget; stops reading when it does not."""
    # The catalog is immutable, so the answer stays valid.
    key = ("fits", budget)
    if key not in catalog.memo:
        room = budget * BYTES_PER_TOKEN
        for tool in catalog.enabled:
            read = (tool.name, tool.description, compact(tool.input_schema))
            room -= sum(map(utf8_size, read))
            if room < 0:
                break
        catalog.memo[key] = room >= 0
    return catalog.memo[key]
