"""The clients that Pegboard can be installed into, and where each has its file on each system.

System, home folder and environment are arguments, so that tests on one system cover all three.
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal, TypeAlias

from pegboard.core.json import JsonObject
from pegboard.core.similar_names import nearest
from pegboard.errors import ConfigError
from pegboard.modes.auto import known_clients

Shape: TypeAlias = Literal["plain", "typed", "codex", "zed", "goose", "opencode"]
System: TypeAlias = Literal["linux", "darwin", "win32"]


@dataclass(frozen=True, slots=True)
class Client:
    """One MCP client, as `clients.toml` describes it."""

    key: str
    title: str
    known_as: str
    table: str
    shape: Shape
    files: tuple[str, ...]
    found_by: tuple[str, ...]
    source: str
    windows: tuple[str, ...] = ()
    saved_as: str = ""
    window: int | None = None
    """Tokens of its context window; `None` if that depends on the model that the user chose."""
    window_source: str = ""

    @property
    def defers_tools(self) -> bool:
        """Whether it keeps tool definitions from the model until they are needed."""
        known = known_clients().get(self.known_as)
        return known is not None and known.defers_tools

    @property
    def mode(self) -> str:
        """The recommended mode: a client that defers tools by itself gets all of them."""
        return "eager" if self.defers_tools else "auto"


@dataclass(frozen=True, slots=True)
class Machine:
    """The paths of one machine."""

    system: System
    home: Path
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    @property
    def app(self) -> Path:
        """The folder for application data."""
        if self.system == "win32":
            return self._from_env("APPDATA", self.home / "AppData" / "Roaming")
        if self.system == "darwin":
            return self.home / "Library" / "Application Support"
        return self.config

    @property
    def config(self) -> Path:
        """The folder for configuration files, as XDG defines it."""
        return self._from_env("XDG_CONFIG_HOME", self.home / ".config")

    @property
    def settings_folder(self) -> Path:
        """Our folder for what the user decides: the configuration, installations, trusted files."""
        return self._from_env("PEGBOARD_CONFIG_HOME", self.app / "pegboard")

    @property
    def user_config(self) -> Path:
        """The user's own configuration, which commands read where none is named."""
        return self.settings_folder / "pegboard.toml"

    @property
    def install_root(self) -> Path:
        """Our folder, with one folder for each installation in it."""
        return self.settings_folder / "clients"

    def client_files(self, client: Client) -> list[Path]:
        """The paths where the client's file may be, the most likely first."""
        named = client.windows if self.system == "win32" and client.windows else client.files
        return [self._path(template) for template in named]

    def client_file(self, client: Client) -> Path:
        """The client's file: the one that exists, otherwise the one that it would create."""
        candidates = self.client_files(client)
        # A dangling link counts as the client's file, so that it is reported and not replaced.
        existing = [path for path in candidates if path.is_symlink() or path.exists()]
        in_existing_folder = [path for path in candidates if path.parent.exists()]
        return (existing or in_existing_folder or candidates)[0]

    def has(self, client: Client) -> bool:
        """Whether the client seems to be installed."""
        evidence = [*self.client_files(client), *(self._path(name) for name in client.found_by)]
        return any(path.is_symlink() or path.exists() for path in evidence)

    def _path(self, template: str) -> Path:
        return Path(
            template.format(
                home=self.home,
                app=self.app,
                config=self.config,
                codex=self._from_env("CODEX_HOME", self.home / ".codex"),
                claude=self._from_env("CLAUDE_CONFIG_DIR", self.home),
            )
        )

    def _from_env(self, variable: str, default: Path) -> Path:
        return Path(self.env[variable]) if self.env.get(variable) else default


def this_machine() -> Machine:
    """The machine that this process runs on."""
    system: System = "linux"
    if sys.platform in ("win32", "darwin"):
        system = sys.platform
    return Machine(system, Path.home(), os.environ)


@cache
def load_clients() -> dict[str, Client]:
    """All supported clients, by key."""
    text = files("pegboard.install").joinpath("clients.toml").read_text("utf-8")
    rows = tomllib.loads(text)["client"]
    found: dict[str, Client] = {}
    for row in rows:
        # A list of TOML becomes a tuple, since a `Client` is frozen and hashable.
        values: JsonObject = {k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}
        found[row["key"]] = Client(**values)
    return found


def find_client(key: str) -> Client:
    """The client with this key.

    Raises:
        ConfigError: There is none; the message suggests the nearest and lists all.
    """
    known = load_clients()
    if key in known:
        return known[key]
    meant = nearest(key, list(known), limit=1)
    hint = f" Did you mean {meant[0]!r}?" if meant else ""
    raise ConfigError(f"Unknown client {key!r}.{hint} Clients: {', '.join(known)}.", nearest=meant)
