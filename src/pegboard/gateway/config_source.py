"""Where a gateway's configuration comes from: a file, and overrides of its settings.

Reading the source again is a reload. Most settings take effect then. Some are built into objects
that live as long as the process (sockets, authentication, the store, observers) and need a restart;
`find_restart_settings` names those that changed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from pegboard.config.documents import parse_document
from pegboard.config.loader import Configuration, load_configuration, parse_configuration
from pegboard.config.server_entries import ConfigEnvironment
from pegboard.config.settings import Settings
from pegboard.config.trusted_files import TrustedFile
from pegboard.core.options import check_mode, reject_unknown_keys
from pegboard.gateway.from_settings import find_data_folder

_RESTART_SECTIONS = ("auth", "store", "observe", "http")
_RESTART_KEYS = (("trust", "lock"), ("upstreams", "folder"))


@dataclass(frozen=True, slots=True)
class ConfigSource:
    """Which configuration to read, and the settings that override it."""

    path: Path
    overrides: Mapping[str, Any]
    environ: Mapping[str, str]
    text: str | None = None
    """The content to use instead of reading the file, such as imports of clients' files."""
    trust: TrustedFile | None = None
    """The content that the user has agreed to; a changed file is not read."""

    @classmethod
    def from_path(
        cls,
        path: str | Path,
        *,
        environ: Mapping[str, str] | None = None,
        text: str | None = None,
        trust: TrustedFile | None = None,
        **overrides: Any,
    ) -> ConfigSource:
        """The source for a file; other keyword arguments are top-level settings that override it.

        Raises:
            ConfigError: There is no such setting, or no such mode.
        """
        reject_unknown_keys(overrides, Settings, "setting")
        if "mode" in overrides:
            check_mode(overrides["mode"])
        environ = os.environ if environ is None else environ
        return cls(Path(path), overrides, environ, text, trust)

    def read(self) -> Configuration:
        """The current configuration.

        Raises:
            ConfigError: The file cannot be read, or is wrong.
        """
        environment = ConfigEnvironment(self.environ, Path.home(), Path.cwd())
        if self.trust is not None:
            self.trust.require_unchanged()
        if self.text is None:
            found = load_configuration(self.path, environment)
        else:
            found = parse_configuration(parse_document(self.text, self.path), environment)
        return replace(found, settings=replace(found.settings, **self.overrides))

    def folder(self, configuration: Configuration) -> Path:
        """Where catalogs and logs are stored."""
        return find_data_folder(configuration.settings, self.environ, self.path.parent)


def find_restart_settings(started: Settings, now: Settings) -> list[str]:
    """The settings that changed since the gateway was started and need a restart."""
    places = [
        (section, field.name)
        for section in _RESTART_SECTIONS
        for field in fields(getattr(started, section))
    ]
    changed = [
        f"{section}.{key}"
        for section, key in (*places, *_RESTART_KEYS)
        if getattr(getattr(started, section), key) != getattr(getattr(now, section), key)
    ]
    if started.auth.kind == now.auth.kind == "keys":
        # `ReloadableKeys` applies them at once, so that a key can be revoked without a restart.
        changed = [key for key in changed if key != "auth.keys"]
    if started.instructions != now.instructions:
        changed.append("instructions")
    return changed
