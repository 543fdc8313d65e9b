"""Pegboard's entry in a client's file, the `pegboard.toml` behind it, and which servers move there.

A server stays where it is if it could not run outside its client, or is switched off. Clients start
a server with few of their own environment variables, so the new entry passes on the variables that
the moved servers refer to.

`install` decides a few lines of the `pegboard.toml`; the others belong to the user. Installing
again changes only what was asked for.

    import    the servers that were moved, and the user's configuration if a profile is chosen
    mode      how the client sees the tools
    profile   which of the tools it sees
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pegboard.config import client_formats as dialects
from pegboard.config.client_formats import Dialect
from pegboard.config.documents import Document, parse_document, read_document
from pegboard.config.server_entries import runs_pegboard
from pegboard.core.json import Json, JsonObject, compact
from pegboard.core.options import check_mode
from pegboard.errors import ConfigError
from pegboard.install.client_files import InstallFolder
from pegboard.install.clients import Client

NAME = "pegboard"
_DESCRIPTION = "All MCP servers of this client behind one entry; tools are listed on demand."

_DIALECTS: dict[str, Dialect] = {
    "gemini-cli": dialects.GEMINI,
    "cline": dialects.CLINE,
    "vscode": dialects.VSCODE,
    "zed": dialects.ZED,
    "opencode": dialects.OPENCODE,
    "goose": dialects.GOOSE,
    "codex": dialects.CODEX,
}
_REFERENCE = re.compile(r"(?<!\$)\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-[^{}]*)?\}")
_BARE_REFERENCE = re.compile(r"(?<!\$)\$([A-Za-z_][A-Za-z0-9_]*)")
_BRACED_REFERENCE = re.compile(r"\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
_FOLDERS = ("workspaceFolder", "workspaceFolderBasename", "userHome", "pathSeparator")


@dataclass(frozen=True, slots=True)
class SkippedServer:
    """A server that stays where it is, and why."""

    name: str
    reason: str


def select_servers(
    client: Client, servers: Mapping[str, Json], *, off: Collection[str], keep: Mapping[str, str]
) -> tuple[list[str], list[SkippedServer]]:
    """The names of the servers to move, and those that stay; `keep` has reasons by name."""
    moved: list[str] = []
    skipped: list[SkippedServer] = []
    for name, entry in servers.items():
        reason = keep.get(name) or _skip_reason(client, entry, name in off)
        if reason:
            skipped.append(SkippedServer(name, reason))
        else:
            moved.append(name)
    return moved, skipped


def _skip_reason(client: Client, entry: JsonObject, is_off: bool) -> str | None:
    adapted = _DIALECTS.get(client.key, dialects.STANDARD).adapt(entry, {})
    text = compact(entry)
    if adapted.left_out:
        return adapted.left_out
    # Behind itself, Pegboard would list its own meta-tools.
    if runs_pegboard(adapted.value):
        return "it is Pegboard itself"
    if is_off or adapted.value.get("disabled") is True:
        return "it is switched off"
    if not (adapted.value.get("command") or adapted.value.get("url")):
        return "it has neither a command nor a URL"
    # Only the client knows these values; a server behind Pegboard would start without them.
    if "${input:" in text:
        return f"{client.title} asks for a value when it starts the server"
    if "${workspaceFolder" in text:
        return "it depends on the open folder"
    return None


def build_entry(
    client: Client, command: Sequence[str], servers: Iterable[JsonObject]
) -> JsonObject:
    """The entry that starts Pegboard, in the client's format; `servers` are those that move."""
    moved = list(servers)
    program, args = command[0], list(command[1:])
    variables = _variables(client, moved)
    if client.shape == "codex":
        names = _codex_variables(moved)
        return {"command": program, "args": args, **({"env_vars": names} if names else {})}
    if client.shape == "opencode":
        entry: JsonObject = {"type": "local", "command": list(command), "enabled": True}
        return {**entry, "environment": variables} if variables else entry
    if client.shape == "goose":
        keys = [key for server in moved for key in server.get("env_keys") or []]
        return {
            "name": NAME,
            "type": "stdio",
            "enabled": True,
            "description": _DESCRIPTION,
            "cmd": program,
            "args": args,
            "envs": {},
            # Goose stores secrets in its keyring and passes those that an entry names.
            "env_keys": list(dict.fromkeys(keys)),
            "timeout": 300,
        }
    entry = {"command": program, "args": args, **({"env": variables} if variables else {})}
    match client.shape:
        case "typed":
            return {"type": "stdio", **entry}
        case "zed":
            return {"source": "custom", **entry, "env": entry.get("env", {})}
        case _:
            return entry


def _variables(client: Client, moved: list[JsonObject]) -> dict[str, str]:
    """Each variable that a moved server refers to, in the spelling that it uses."""
    spelling = _DIALECTS.get(client.key, dialects.STANDARD).spelling
    patterns = {
        "dollar": [_REFERENCE],
        "dollar-bare": [_REFERENCE, _BARE_REFERENCE],
        "braces": [_BRACED_REFERENCE],
    }.get(spelling, [])
    found: dict[str, str] = {}
    for text in _texts(moved):
        for pattern in patterns:
            for match in pattern.finditer(text):
                # The client itself fills in its folders; they are not environment variables.
                if match[1] not in _FOLDERS:
                    found.setdefault(match[1], match[0])
    return found


def _texts(value: Json) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)


def _codex_variables(moved: list[JsonObject]) -> list[str]:
    # Codex expands nothing in its file: an entry names the variables that it needs.
    names: list[str] = []
    for server in moved:
        token = server.get("bearer_token_env_var")
        headers = server.get("env_http_headers")
        passed = server.get("env_vars")
        names += [token] if isinstance(token, str) else []
        names += [str(name) for name in headers.values()] if isinstance(headers, dict) else []
        for item in passed if isinstance(passed, list) else []:
            names.append(str(item.get("name") if isinstance(item, dict) else item))
    return list(dict.fromkeys(names))


@dataclass(frozen=True, slots=True)
class ServedSettings:
    """The settings of one installation, as they are or as they should become."""

    text: str = field(repr=False)
    is_written: bool
    """Whether the file exists with this text."""
    path: Path
    client: Client

    @classmethod
    def read(cls, folder: InstallFolder, client: Client) -> ServedSettings:
        """The settings of an installation; those of a new one where there is none.

        Raises:
            ConfigError: The file exists and is not valid.
        """
        if folder.settings.exists():
            document = read_document(folder.settings)
            return cls(document.text, True, folder.settings, client)
        name = folder.servers.relative_to(folder.path).as_posix()
        text = (
            f"# The servers behind the `{NAME}` entry of {client.title}, "
            f"written by `pegboard install {client.key}`.\n"
            "# You can add settings here; they are preserved when the command runs again.\n"
            f'import = ["{name}"]\n'
        )
        return cls(text, False, folder.settings, client)

    @property
    def mode(self) -> str:
        return str(self._document.value.get("mode", "auto"))

    @property
    def profile(self) -> str | None:
        found = self._document.value.get("profile")
        return found if isinstance(found, str) else None

    def to_write(self) -> bytes | None:
        """The content of the file; `None` if it exists with this content."""
        return None if self.is_written else self.text.encode()

    def with_choice(
        self, mode: str | None, profile: str | None, user_config: Path
    ) -> ServedSettings:
        """The settings with another mode and profile; what is `None` stays.

        Raises:
            ConfigError: There is no such mode or profile.
        """
        value = self._document.value
        if mode is not None or "mode" not in value:
            self = self._set("mode", check_mode(mode or self.client.mode))
        if profile is None:
            return self
        imports = value.get("import")
        names = [str(name) for name in imports] if isinstance(imports, list) else []
        if profile not in _profiles(self._document):
            if not user_config.is_file() or profile not in _profiles(read_document(user_config)):
                raise ConfigError(
                    f"There is no profile {profile!r}: define [profiles.{profile}] in "
                    f"{user_config}.",
                    profile=profile,
                )
            # The profile and the servers it names are defined there.
            if str(user_config) not in names:
                self = self._set("import", [*names, str(user_config)])
        return self._set("profile", profile)

    def _set(self, key: str, value: Any) -> ServedSettings:
        import tomlkit

        document: Any = tomlkit.parse(self.text)
        if document.get(key) == value:
            return self
        # After `import`, so that it does not become part of a table at the end of the file.
        if key in document or not any(isinstance(v, dict) for v in document.values()):
            document[key] = value
            text = tomlkit.dumps(document)
        else:
            line = tomlkit.document()
            line[key] = value
            text = tomlkit.dumps(line) + self.text
        return replace(self, text=text, is_written=False)

    @property
    def _document(self) -> Document:
        return parse_document(self.text, self.path)


def _profiles(document: Document) -> dict[str, Any]:
    found = document.value.get("profiles")
    return found if isinstance(found, dict) else {}
