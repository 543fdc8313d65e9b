"""Configuration: clients' own server files and `pegboard.toml`, read once into frozen values.

    load(path, around) -> Configuration(settings, upstreams, sources, problems, notes, files)

What is untrusted is checked where it enters; behind it there are only frozen records. Imports are
deferred so that `Settings` can be named without paying for the reading.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pegboard.config.settings import Settings

if TYPE_CHECKING:
    from pegboard.config.loader import Configuration, load
    from pegboard.config.server_entries import ServersRead, Surroundings, read_servers

__all__ = ["Configuration", "ServersRead", "Settings", "Surroundings", "load", "read_servers"]

_HOMES = {
    "Configuration": "loader",
    "load": "loader",
    "ServersRead": "server_entries",
    "Surroundings": "server_entries",
    "read_servers": "server_entries",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
