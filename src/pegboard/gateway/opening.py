"""From a file to a configuration and the folder that goes with it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pegboard.config import Configuration, Surroundings, load
from pegboard.config.settings import Settings
from pegboard.core.options import checked_face, refuse_unknown
from pegboard.gateway.options import folder_of


@dataclass(frozen=True, slots=True)
class Opening:
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
    ) -> Opening:
        """An opening of a file, with top-level settings that win over the file's.

        Raises:
            ConfigError: There is no such setting, or no such face.
        """
        refuse_unknown(settings, Settings, "setting")
        if "face" in settings:
            checked_face(settings["face"])
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
        return folder_of(configuration.settings, self.environ, self.path.parent)
