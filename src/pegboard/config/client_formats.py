"""The configuration format of each MCP client, translated to our own keys.

A `Dialect` says where in the file the servers are, which of our keys its keys mean, and which
variables it expands. Keys that are not listed only concern the client and are ignored. The source
of each format is named beside its dialect; `docs/reference/configuration.md` has the table of
files, keys and units.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TypeAlias

from pegboard.config.documents import Document, KeyPath
from pegboard.config.settings import ServerEntry
from pegboard.config.variables import VariableSyntax
from pegboard.core.json import Json, JsonObject
from pegboard.oauth.login_options import REDIRECT_PATH, OAuthOptions

MILLISECONDS_FROM = 1000
"""A `timeout` from this number on is in milliseconds (Gemini CLI, Claude Code), below it in seconds
(Cline): the clients use the same word for different units."""


@dataclass(slots=True)
class AdaptedEntry:
    """One entry with our keys; `written_as` maps our keys back to those of the client."""

    value: JsonObject = field(default_factory=dict[str, Json])
    written_as: dict[str, str] = field(default_factory=dict[str, str])
    missing: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """The client's key, and the environment variable that it names and that is not set."""
    left_out: str | None = None
    """Why this entry cannot be used outside its client."""

    def put(self, word: str, value: Json, theirs: str) -> None:
        self.value[word] = value
        self.written_as[word] = theirs


Finish: TypeAlias = Callable[[AdaptedEntry, JsonObject, Mapping[str, str]], None]
"""What a dialect does beyond renaming keys: adapted entry, original entry, environment."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The format of one client."""

    client: str
    words: Mapping[str, str]
    spelling: VariableSyntax
    finish: Finish

    def adapt(self, entry: JsonObject, env: Mapping[str, str]) -> AdaptedEntry:
        """The entry with our keys, and with the variants that several clients allow normalized."""
        adapted = AdaptedEntry()
        for theirs, given in entry.items():
            if (word := self.words.get(theirs)) and given is not None:
                adapted.put(word, given, theirs)
        self.finish(adapted, entry, env)
        value = adapted.value
        if isinstance(enabled := entry.get("enabled"), bool):
            adapted.put("disabled", not enabled, "enabled")
        if isinstance(transport := value.get("transport"), str):
            plain = transport.lower().replace("-", "").replace("_", "")
            value["transport"] = _TRANSPORTS.get(plain, transport)
        if not isinstance(value.get("trust"), str):
            value.pop("trust", None)  # in Gemini CLI a boolean with another meaning
        if isinstance(command := value.get("command"), list) and command:
            # opencode writes the program and its arguments as one list.
            value["command"], value["args"] = command[0], [*command[1:], *value.get("args", [])]
        if isinstance(args := value.get("args"), list):
            value["args"] = [_to_text(a) for a in args]
        for word in ("env", "headers"):
            if isinstance(table := value.get(word), dict):
                value[word] = {k: _to_text(v) for k, v in table.items() if v is not None}
        # `_TRANSPORTS` and a Zed command without a path leave a null, which means "not given".
        for word in [w for w, v in value.items() if v is None]:
            del value[word]
        _adapt_oauth(adapted, entry)
        return adapted


# --- what all of them share -----------------------------------------------------------------------

_OURS = {f.name: f.name for f in fields(ServerEntry)}
_STANDARD = {
    **_OURS,
    "type": "transport",
    "transportType": "transport",
    "serverUrl": "url",
    "httpUrl": "url",
    "envFile": "env_file",
    "includeTools": "include",
    "excludeTools": "exclude",
    "disabledTools": "exclude",
    "startTimeout": "start_timeout",
    "idleStop": "idle_stop",
}
_TRANSPORTS = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "streamablehttp": "http",
    "sse": "sse",
    # Neither says which transport: it is chosen by the URL, as for an entry without one.
    "remote": None,
    "auto": None,
}


_OAUTH_WORDS = {
    **{f.name: f.name for f in fields(OAuthOptions)},
    "clientId": "client_id",
    "clientSecret": "client_secret",
    "CLIENT_ID": "client_id",
    "CLIENT_SECRET": "client_secret",
    "scopes": "scope",
    "redirectUri": "redirect",
    "redirect_uri": "redirect",
}
"""The words of Claude Code, VS Code, Gemini CLI and opencode, and those of Cursor's `auth`."""


def _adapt_oauth(adapted: AdaptedEntry, entry: JsonObject) -> None:
    """Read the login settings of a client; what only concerns the client is ignored."""
    adapted.value.pop("oauth", None)
    key = "oauth" if "oauth" in entry else "auth"
    given = entry.get(key)
    if given is False:
        adapted.put("oauth", {"enabled": False}, key)
    if not isinstance(given, dict):
        return
    found: JsonObject = {}
    for theirs, value in given.items():
        if (word := _OAUTH_WORDS.get(theirs)) and value not in (None, ""):
            found[word] = " ".join(map(str, value)) if isinstance(value, list) else value
    if isinstance(port := given.get("callbackPort"), int):
        found["redirect"] = f"http://localhost:{port}{REDIRECT_PATH}"
    if not isinstance(found.get("resource", True), bool):
        # Ours says whether to send the resource indicator (RFC 8707); others mean something else.
        del found["resource"]
    if found:
        adapted.put("oauth", found, key)


def _to_text(value: Json) -> Json:
    """Numbers and booleans as the text that a process gets; everything else unchanged."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (int, float)) else value


def _timeout_to_seconds(adapted: AdaptedEntry) -> None:
    timeout = adapted.value.get("timeout")
    if isinstance(timeout, (int, float)) and timeout >= MILLISECONDS_FROM:
        adapted.value["timeout"] = timeout / 1000


# --- the dialects ---------------------------------------------------------------------------------


def _standard(adapted: AdaptedEntry, entry: JsonObject, env: Mapping[str, str]) -> None:
    _timeout_to_seconds(adapted)
    if "httpUrl" in entry:
        adapted.put("url", entry["httpUrl"], "httpUrl")
        adapted.put("transport", "http", "httpUrl")


def _cline(adapted: AdaptedEntry, entry: JsonObject, env: Mapping[str, str]) -> None:
    _timeout_to_seconds(adapted)
    if "url" in adapted.value and "transport" not in adapted.value:
        adapted.put("transport", "sse", "url")  # its schema tries SSE first


def _zed(adapted: AdaptedEntry, entry: JsonObject, env: Mapping[str, str]) -> None:
    command = entry.get("command")
    if isinstance(command, dict):  # before mid-2025
        adapted.put("command", command.get("path"), "command")
        for word in ("args", "env"):
            if word in command:
                adapted.put(word, command[word], "command")
    if "command" not in adapted.value and "url" not in adapted.value:
        adapted.left_out = "it is run by a Zed extension"


def _opencode(adapted: AdaptedEntry, entry: JsonObject, env: Mapping[str, str]) -> None:
    timeout = adapted.value.pop("start_timeout", None)
    if isinstance(timeout, (int, float)):
        adapted.put("start_timeout", timeout / 1000, "timeout")


def _goose(adapted: AdaptedEntry, entry: JsonObject, env: Mapping[str, str]) -> None:
    if entry.get("type") not in ("stdio", "sse", "streamable_http", None):
        adapted.left_out = f"it is part of Goose itself ({entry['type']})"
        return
    names = entry.get("env_keys")
    for name in names if isinstance(names, list) else []:
        _from_env(adapted, "env", str(name), str(name), "env_keys", env)


def _codex(adapted: AdaptedEntry, entry: JsonObject, env: Mapping[str, str]) -> None:
    if isinstance(start := entry.get("startup_timeout_ms"), (int, float)):
        adapted.put("start_timeout", start / 1000, "startup_timeout_ms")
    if isinstance(token := entry.get("bearer_token_env_var"), str):
        key = "bearer_token_env_var"
        _from_env(adapted, "headers", "Authorization", token, key, env, "Bearer ")
    headers = entry.get("env_http_headers")
    for header, name in headers.items() if isinstance(headers, dict) else ():
        _from_env(adapted, "headers", header, str(name), "env_http_headers", env)
    passed = entry.get("env_vars")
    for item in passed if isinstance(passed, list) else []:
        name = item.get("name") if isinstance(item, dict) else item
        if str(name) in env:  # Codex passes those that are set
            _from_env(adapted, "env", str(name), str(name), "env_vars", env)


def _from_env(
    adapted: AdaptedEntry,
    word: str,
    name: str,
    variable: str,
    key: str,
    env: Mapping[str, str],
    before: str = "",
) -> None:
    if variable not in env:
        adapted.missing.append((key, variable))
        return
    table = adapted.value.get(word)
    adapted.value[word] = {
        **(table if isinstance(table, dict) else {}),
        name: before + env[variable],
    }


# Claude Desktop (modelcontextprotocol.io/docs/develop/connect-local-servers), Claude Code
# (code.claude.com/docs/en/mcp), Cursor (cursor.com/docs/mcp), Windsurf: `serverUrl`,
# `disabledTools` (docs.windsurf.com/windsurf/cascade/mcp).
STANDARD = Dialect("mcpServers", _STANDARD, "dollar", _standard)
# google-gemini/gemini-cli: docs/tools/mcp-server.md, schemas/settings.schema.json
GEMINI = replace(STANDARD, client="Gemini CLI", spelling="dollar-bare")
# cline/cline: src/services/mcp/schemas.ts
CLINE = replace(STANDARD, client="Cline", finish=_cline)
# Gateways that write servers as a list, each with its `name`. gitlab-org/ai/lazy-mcp: README.md,
# `requestTimeout` in milliseconds; smart-mcp-proxy/mcpproxy-go: README.md, `protocol`, `enabled`.
LISTED = replace(
    STANDARD,
    client="another gateway",
    words={**_STANDARD, "protocol": "transport", "requestTimeout": "timeout"},
)
# code.visualstudio.com/docs/copilot/reference/mcp-configuration
VSCODE = Dialect("VS Code", _STANDARD, "dollar", _standard)
# zed-industries/zed: crates/settings_content/src/project.rs, docs/src/ai/mcp.md
ZED = Dialect("Zed", _OURS, "none", _zed)
# anomalyco/opencode: packages/opencode/src/config/mcp.ts and variable.ts
OPENCODE = Dialect(
    "opencode",
    {**_OURS, "type": "transport", "environment": "env", "timeout": "start_timeout"},
    "braces",
    _opencode,
)
# block/goose: crates/goose/src/agents/extension.rs
GOOSE = Dialect(
    "Goose",
    {
        **_OURS,
        "type": "transport",
        "cmd": "command",
        "envs": "env",
        "uri": "url",
        "available_tools": "include",
    },
    "dollar-bare",
    _goose,
)
# openai/codex: codex-rs/config/src/mcp_types.rs
CODEX = Dialect(
    "Codex",
    {
        **_OURS,
        "http_headers": "headers",
        "enabled_tools": "include",
        "disabled_tools": "exclude",
        "tool_timeout_sec": "timeout",
        "startup_timeout_sec": "start_timeout",
    },
    "none",
    _codex,
)

KNOWN_TABLES = "mcpServers, servers, mcp, context_servers, extensions, mcp_servers"


def find_server_tables(document: Document, project: str | None) -> list[tuple[Dialect, KeyPath]]:
    """The tables of servers in a document, each with its format; the narrower scope last.

    Args:
        document: A client's configuration file.
        project: The folder whose own servers in `~/.claude.json` are included.
    """
    value = document.value
    found: list[tuple[Dialect, KeyPath]] = []
    if "mcpServers" in value:
        # Several clients use this key: the shape or the path of the file tells them apart.
        dialect = STANDARD
        if _is_list(value["mcpServers"]):
            dialect = LISTED
        elif ".gemini" in document.path.parts:
            dialect = GEMINI
        elif document.path.name == "cline_mcp_settings.json":
            dialect = CLINE
        found.append((dialect, ("mcpServers",)))
    if "servers" in value:
        found.append((LISTED if _is_list(value["servers"]) else VSCODE, ("servers",)))
    if isinstance(mcp := value.get("mcp"), dict):
        if isinstance(mcp.get("servers"), dict) and "type" not in mcp["servers"]:
            found.append((VSCODE, ("mcp", "servers")))
        elif any(isinstance(entry, dict) for entry in mcp.values()) or not found:
            found.append((OPENCODE, ("mcp",)))
    for key, other in (("context_servers", ZED), ("extensions", GOOSE), ("mcp_servers", CODEX)):
        if key in value:
            found.append((other, (key,)))
    if project and "mcpServers" in _project_settings(document, project):
        found.append((STANDARD, ("projects", project, "mcpServers")))
    return found


def _is_list(servers: Json) -> bool:
    return isinstance(servers, list)


def find_disabled_servers(document: Document, project: str | None) -> set[str]:
    """Servers that the client has disabled outside of their entries."""
    off: set[str] = set()
    mcp = document.value.get("mcp")
    if isinstance(mcp, dict) and "mcpServers" in document.value:  # Gemini CLI
        excluded, allowed = mcp.get("excluded"), mcp.get("allowed")
        if isinstance(excluded, list):
            off.update(str(name) for name in excluded)
        if isinstance(allowed, list) and isinstance(servers := document.value["mcpServers"], dict):
            off.update(str(name) for name in servers if name not in allowed)
    if project and isinstance(
        names := _project_settings(document, project).get("disabledMcpServers"), list
    ):
        off.update(str(name) for name in names)  # Claude Code
    return off


def _project_settings(document: Document, project: str) -> JsonObject:
    """The settings of one project folder in `~/.claude.json`."""
    projects = document.value.get("projects")
    own = projects.get(project) if isinstance(projects, dict) else None
    return own if isinstance(own, dict) else {}
