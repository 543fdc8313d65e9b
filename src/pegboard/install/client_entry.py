"""Pegboard's entry in a client's file, and which of the client's servers move behind it.

A server stays where it is if it could not run outside its client, or is switched off. Clients start
a server with few of their own environment variables, so the new entry passes on the variables that
the moved servers refer to.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pegboard.config import client_formats as dialects
from pegboard.config.client_formats import Dialect
from pegboard.config.server_entries import runs_pegboard
from pegboard.core.json import Json, JsonObject, compact
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
