"""Where a gateway's configuration comes from: the file, the overrides, and reading both again.

Reading the source again is a reload. Most settings take effect then; some are built into objects
that live as long as the process (sockets, authentication, the store, observers) and need a restart.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from pegboard.config import Configuration, Surroundings, load
from pegboard.config.settings import Settings
from pegboard.core.options import check_mode, reject_unknown_keys
from pegboard.gateway.from_settings import find_data_folder


@dataclass(frozen=True, slots=True)
class ConfigSource:
    """Which configuration to read, and what wins over it; reading it again is a reload."""

    path: Path
    settings: Mapping[str, Any]
    environ: Mapping[str, str]

    @classmethod
    def of(
        cls,
        path: str | Path,
        *,
        environ: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> ConfigSource:
        """An opening of a file, with top-level settings that win over the file's.

        Raises:
            ConfigError: There is no such setting, or no such mode.
        """
        reject_unknown_keys(settings, Settings, "setting")
        if "mode" in settings:
            check_mode(settings["mode"])
        return cls(Path(path), settings, os.environ if environ is None else environ)

    def read(self) -> Configuration:
        """The configuration as it is now.

        Raises:
            ConfigError: The file cannot be read or understood.
        """
        around = Surroundings(self.environ, Path.home(), Path.cwd())
        found = load(self.path, around)
        return replace(found, settings=replace(found.settings, **self.settings))

    def folder(self, configuration: Configuration) -> Path:
        """Where catalogues and logs are kept."""
        return find_data_folder(configuration.settings, self.environ, self.path.parent)


_SECTIONS = ("auth", "store", "observe", "http")
_KEYS = (("trust", "lock"), ("upstreams", "folder"))


def find_restart_settings(started: Settings, now: Settings) -> list[str]:
    """The keys that differ from those that the gateway was started with, and do not count yet."""
    places = [
        (section, field.name)
        for section in _SECTIONS
        for field in fields(getattr(started, section))
    ]  # fmt: skip
    changed = [
        f"{section}.{key}"
        for section, key in (*places, *_KEYS)
        if getattr(getattr(started, section), key) != getattr(getattr(now, section), key)
    ]
    if started.auth.kind == now.auth.kind == "keys":  # taken at once, so that a key can be revoked
        changed = [key for key in changed if key != "auth.keys"]
    if started.instructions != now.instructions:
        changed.append("instructions")
    return changed
