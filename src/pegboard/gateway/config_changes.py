"""Changes that operators make to the servers of a configuration, on the dashboard.

The file is changed as text, so that comments and layout survive, and the changed text is read as a
configuration before it is written: a change that would not work never reaches the file.

    pasted JSON --> entries --> changed text --> Configuration, checked --> file --> reload
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pegboard.config.client_formats import STANDARD, Dialect, find_server_tables
from pegboard.config.documents import message_without_location, parse_document
from pegboard.config.loader import Configuration, parse_configuration
from pegboard.config.server_entries import ConfigEnvironment, runs_pegboard
from pegboard.core.json import JsonObject
from pegboard.errors import ConfigError, NotPermitted
from pegboard.gateway.config_source import ConfigSource
from pegboard.install.client_files import FileContent, read_client_file, replace_unchanged
from pegboard.install.config_editor import add_server, parse_server_table, remove_servers

_PASTED = Path("pasted.json")
_EXAMPLE = '{"mcpServers": {"NAME": {"command": "npx", "args": ["-y", "PACKAGE"]}}}'
_TABLES = ("mcpServers", "servers", "mcp_servers", "context_servers", "extensions")


@dataclass(frozen=True, slots=True)
class PastedServers:
    """Servers as somebody pasted them, in the format of some client."""

    entries: Mapping[str, JsonObject]
    dialect: Dialect = STANDARD

    @classmethod
    def parse(cls, text: str, name: str = "") -> PastedServers:
        """Parse what READMEs show: a whole file, a table of servers, or one server.

        Raises:
            ConfigError: It is not JSON, or there is no server in it.
        """
        text = text.strip().rstrip(",")
        if text.startswith(("http://", "https://")):
            text = json.dumps({"url": text})
        elif not text.startswith(("{", '"', "/")):  # or a comment
            raise ConfigError("Paste the JSON of a server, which starts with {, or its URL.")
        try:
            # Many READMEs show one line of a table: `"github": {...}`.
            document = parse_document(f"{{{text}}}" if text.startswith('"') else text, _PASTED)
        except ConfigError as exc:
            where = f"Line {exc.details['line']}: " if "line" in exc.details else ""
            raise ConfigError(f"{where}{message_without_location(exc)}") from exc
        value: JsonObject = document.value
        dialect = STANDARD
        if tables := find_server_tables(document, None):
            dialect, path = tables[0]
            for part in path:
                value = value[str(part)]
        elif "command" in value or "url" in value:
            if not name:
                raise ConfigError("Give the server a name: the pasted text does not have one.")
            value = {name: value}
        if not value or not all(isinstance(entry, dict) for entry in value.values()):
            raise ConfigError(f"There is no server in this text. It should look like {_EXAMPLE}.")
        return cls({str(key): entry for key, entry in value.items()}, dialect)


class ConfigEditor:
    """Changes the file of a running gateway.

    Args:
        source: The configuration of the gateway.
        allows_commands: Whether servers may be added that run a command on this machine.
    """

    def __init__(self, source: ConfigSource, *, allows_commands: bool) -> None:
        self._source = source
        self.allows_commands = allows_commands

    @property
    def path(self) -> Path:
        """The file that is changed: the one that the configuration was read from."""
        return Path(self._source.path).resolve()

    def add(self, pasted: PastedServers) -> Configuration:
        """Add servers to the file.

        Raises:
            NotPermitted: One of them runs a command, which is not allowed here.
            ConfigError: The file has a server of that name, or a server could not be used.
        """
        content, table = self._read()
        text = content.text
        known = parse_server_table(text, self.path, table)
        for name, entry in pasted.entries.items():
            if name in known:
                raise ConfigError(f"{self.path} already has a server {name!r}.", server=name)
            # With our keys, which `pegboard.toml` needs and all other files accept.
            adapted = pasted.dialect.adapt(entry, self._source.environ).value
            if runs_pegboard(adapted):
                raise ConfigError(f"{name} is Pegboard itself.", server=name)
            if adapted.get("command") and not self.allows_commands:
                raise NotPermitted(
                    f"{name} runs a command on the gateway's machine. On a shared gateway, this "
                    "needs `add_commands = true` under [http] in the configuration."
                )
            text = add_server(text, self.path, table, name, adapted)
        return self._write(content, text, added=tuple(pasted.entries))

    def disable(self, name: str, *, disabled: bool) -> Configuration:
        """Disable a server in the file, or enable it again.

        Raises:
            ConfigError: The file cannot be changed safely.
        """
        content, table = self._read()
        known = parse_server_table(content.text, self.path, table)
        entry = dict(known.get(name, {}))
        # Some clients write `enabled`, which takes precedence.
        entry.pop("enabled", None)
        entry["disabled"] = disabled
        if name not in known:  # an imported server: the file gets only what differs
            text = add_server(content.text, self.path, table, name, entry)
        elif self.path.suffix == ".toml":
            import tomlkit

            document: Any = tomlkit.parse(content.text)
            server = document[table][name]
            server.pop("enabled", None)
            server["disabled"] = disabled
            text = tomlkit.dumps(document)
        else:
            without = remove_servers(content.text, self.path, table, [name])
            text = add_server(without, self.path, table, name, entry)
        configuration = self._check(text)
        found = configuration.disabled if disabled else configuration.upstreams
        if name not in {spec.name for spec in found}:
            raise ConfigError(f"{name} cannot be changed here; change {self.path} by hand.")
        return self._write(content, text)

    def _read(self) -> tuple[FileContent, str]:
        """The file, and the name of its table of servers."""
        content = read_client_file(self.path)
        if self.path.suffix == ".toml" and "mcp_servers" not in content.text:
            return content, "servers"
        value = parse_document(content.text, self.path).value
        table = next((key for key in _TABLES if isinstance(value.get(key), dict)), None)
        if table is None:
            raise ConfigError(f"{self.path} has no table of servers that can be changed here.")
        return content, table

    def _check(self, text: str) -> Configuration:
        """The changed text, read as a configuration."""
        environment = ConfigEnvironment(self._source.environ, Path.home(), Path.cwd())
        return parse_configuration(parse_document(text, self._source.path), environment)

    def _write(
        self, content: FileContent, text: str, *, added: Sequence[str] = ()
    ) -> Configuration:
        configuration = self._check(text)
        for name in added:
            if reason := configuration.unusable.get(name):
                raise ConfigError(f"{name} was not added: {reason}", server=name)
        replace_unchanged(content, content.encode(text))
        return self._source.read()
