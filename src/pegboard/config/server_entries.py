"""The servers of a configuration file: from entries in a client's format to `UpstreamSpec`s.

    entry  -->  variables  -->  format of the client  -->  ServerEntry, validated  -->  UpstreamSpec

One bad entry never affects the others: it is left out and reported, so that a gateway with seventy
servers starts with the sixty-nine that are correct.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import urlsplit

from pegboard.config.client_formats import (
    KNOWN_TABLES,
    AdaptedEntry,
    Dialect,
    find_disabled_servers,
    find_server_tables,
)
from pegboard.config.documents import Document, KeyPath, message_without_location, read_document
from pegboard.config.schema import nearest_word, validate_record
from pegboard.config.settings import ServerEntry, Settings
from pegboard.config.variables import UnresolvedVariable, Variables, expand_variables
from pegboard.core.json import JsonObject
from pegboard.errors import ConfigError
from pegboard.upstream.spec import Transport, UpstreamSpec

_CLIENT_FOLDERS = {".vscode", ".cursor", ".gemini", ".codex", ".zed", ".windsurf"}


@dataclass(frozen=True, slots=True)
class ConfigEnvironment:
    """Everything outside of its files that a configuration depends on."""

    env: Mapping[str, str]
    home: Path
    project: Path

    def find(self, name: str, folder: Path) -> Path:
        """The path that a file names: `~` is home, relative paths start at the file's folder."""
        if name == "~" or name.startswith(("~/", "~\\")):
            return self.home / name[2:]
        return folder / name

    def variables(self, document: Document, inputs: Mapping[str, JsonObject]) -> Variables:
        """The values of references in this document."""
        folder = document.path.parent
        workspace = folder.parent if folder.name in _CLIENT_FOLDERS else folder
        return Variables(self.env, folder, workspace, self.home, inputs)


@dataclass(frozen=True, slots=True)
class ParsedServers:
    """The servers of one file, the problems of others, and notes on those left out on purpose.

    A disabled server is included, with `disabled` set.
    """

    specs: tuple[UpstreamSpec, ...] = ()
    problems: tuple[ConfigError, ...] = ()
    notes: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()
    """All names in the file, including those of servers that could not be read."""
    unusable: Mapping[str, str] = field(default_factory=dict[str, str])
    """Servers whose entries cannot be used, with the reason."""


def read_servers(
    path: Path, environment: ConfigEnvironment, settings: Settings | None = None
) -> ParsedServers:
    """The servers that a client's file defines, as the client would run them.

    Raises:
        ConfigError: The file cannot be read, is not valid, or has no servers at all.
    """
    document = read_document(path)
    return parse_servers(document, environment, settings or Settings())


def parse_servers(
    document: Document, environment: ConfigEnvironment, settings: Settings
) -> ParsedServers:
    """The servers of a document that has been read."""
    project = str(environment.project)
    found = find_server_tables(document, project)
    if not found and "projects" not in document.value:
        raise document.error(f"no servers are defined here: the file has none of {KNOWN_TABLES}.")
    reader = _ServerReader(
        document, environment, settings, find_disabled_servers(document, project)
    )
    for dialect, table in found:
        reader.read_table(dialect, table)
    specs = tuple(reader.specs.values())
    return ParsedServers(
        specs,
        tuple(reader.problems),
        tuple(reader.notes),
        frozenset(reader.names),
        reader.unusable,
    )


class _ServerReader:
    """Reads the tables of one document; a server in a narrower scope replaces one in a wider."""

    def __init__(
        self, document: Document, environment: ConfigEnvironment, settings: Settings, off: set[str]
    ) -> None:
        self.document = document
        self.environment = environment
        self.settings = settings
        self.off = off
        self.specs: dict[str, UpstreamSpec] = {}
        self.problems: list[ConfigError] = []
        self.notes: list[str] = []
        self.names: set[str] = set()
        self.unusable: dict[str, str] = {}

    def read_table(self, dialect: Dialect, table: KeyPath) -> None:
        around: Any = {}
        servers: Any = self.document.value
        for part in table:
            around, servers = servers, servers[part]
        if not servers or not isinstance(servers, dict | list):
            if servers != {}:
                self.problems.append(self.document.error("a table of servers is expected.", table))
            return
        for name, lines in self.document.repeated(table).items():
            self._report_repeat(name, (*table, name), lines[:-1])
        # VS Code asks its user for values; their `inputs` are beside its `servers`.
        inputs = around.get("inputs")
        listed: list[Any] = inputs if isinstance(inputs, list) else []
        variables = self.environment.variables(
            self.document,
            {str(i["id"]): i for i in listed if isinstance(i, dict) and "id" in i},
        )
        if isinstance(servers, dict):
            for key, entry in servers.items():
                self._read_entry(dialect, (*table, key), str(key), entry, variables)
            return
        # In a list, the name of a server is inside its entry, so no parser finds repeated names.
        earlier: dict[str, list[int | None]] = {}
        for index, entry in enumerate(servers):
            at = (*table, index)
            name = str(entry.get("name") or "") if isinstance(entry, dict) else ""
            if name and name in earlier:
                self._report_repeat(name, at, earlier[name])
            earlier.setdefault(name, []).append(self.document.line(at))
            self._read_entry(dialect, at, name, entry, variables)

    def _report_repeat(self, name: str, at: KeyPath, earlier: Sequence[int | None]) -> None:
        lines = ", ".join(str(line) for line in earlier if line is not None)
        also = f" (also line {lines})" if lines else ""
        message = f"two servers have this name{also}; the last one counts."
        self.problems.append(self.document.error(message, at, server=name))

    def _read_entry(
        self, dialect: Dialect, at: KeyPath, name: str, entry: Any, variables: Variables
    ) -> None:
        self.names.add(name)
        # A wrong entry in a narrower scope must not leave the one that it replaces in use.
        self.specs.pop(name, None)
        self.unusable.pop(name, None)
        if not isinstance(entry, dict):
            message = f"a table is expected for a server, not {type(entry).__name__}."
            self._report(name, [self.document.error(message, at, server=name)])
            return
        problems: list[ConfigError] = []

        def report(key: KeyPath, unresolved: UnresolvedVariable) -> None:
            variable = unresolved.variable
            problems.append(self.document.error(str(unresolved), (*at, *key), variable=variable))

        # Variables first: a dialect may take an expanded value apart.
        expanded = expand_variables(entry, variables, dialect.spelling, report)
        adapted = dialect.adapt(expanded, self.environment.env)
        for key, variable in adapted.missing:
            message = f"the variable {variable} is not set."
            problems.append(self.document.error(message, (*at, key), variable=variable))
        if name in self.off:
            adapted.value["disabled"] = True
        is_ours = not adapted.left_out and runs_pegboard(adapted.value)
        if reason := "it is Pegboard itself" if is_ours else adapted.left_out:
            self._leave_out(name, reason)
            return
        spec = None
        if not problems:
            spec, problems = self._spec(name, adapted, at)
        if spec:
            self.specs[name] = spec
        # Nobody wants to hear what is wrong with a server that they have switched off.
        elif adapted.value.get("disabled") is True:
            self._leave_out(name, "it is disabled")
        else:
            self._report(name, problems)

    def _report(self, name: str, problems: Sequence[ConfigError]) -> None:
        self.problems.extend(problems)
        self.unusable[name] = " ".join(message_without_location(problem) for problem in problems)

    def _leave_out(self, name: str, reason: str) -> None:
        self.notes.append(f"{self.document.path}: {name} is left out: {reason}.")

    def _spec(
        self, name: str, adapted: AdaptedEntry, at: KeyPath
    ) -> tuple[UpstreamSpec | None, list[ConfigError]]:
        words = adapted.written_as
        entry, problems = validate_record(ServerEntry, adapted.value, self.document, at, words)
        if entry is None:
            return None, problems
        if not (entry.command or entry.url):
            # Unknown keys are the client's own and ignored: a misspelled `command` among them
            # would otherwise only be reported as missing.
            written: Any = self.document.value
            for part in at:
                written = written[part]
            for word in written:
                if meant := nearest_word(word, ("command", "url")):
                    return None, [self.document.error(f"did you mean {meant!r}?", (*at, word))]
        try:
            return build_spec(name, entry, self.document, at, self.environment, self.settings), []
        except ConfigError as exc:
            return None, [exc]


def build_spec(
    name: str,
    entry: ServerEntry,
    document: Document,
    at: KeyPath,
    environment: ConfigEnvironment,
    settings: Settings,
) -> UpstreamSpec:
    """The spec of a validated entry, with defaults filled in.

    Raises:
        ConfigError: It has neither or both of `command` and `url`, or the wrong `transport`.
    """
    if not name.strip():
        raise document.error("a server needs a name.", at)
    transport = _choose_transport(entry, document, at)
    variables = environment.variables(document, {})
    defaults = settings.upstreams
    command = entry.command
    if command and command.startswith("~/"):
        command = str(environment.home / command[2:])
    bare = UpstreamSpec(
        name=name,
        transport=transport,
        command=command if transport == "stdio" else None,
        url=entry.url if transport != "stdio" else None,
        timeout=settings.calls.timeout,
        start_timeout=defaults.start_timeout,
        idle_stop=defaults.idle_stop,
        isolation=defaults.isolation,
        log_bytes=defaults.log_bytes,
        max_message_bytes=defaults.max_message_bytes,
        origin=str(document.path),
    )
    cwd = str(environment.find(entry.cwd, variables.workspace)) if entry.cwd else None
    file_env = _read_env_file(entry, document, at, environment)
    # The entry is applied last: its own `env` takes precedence over that of its file.
    return apply_entry(replace(bare, cwd=cwd, env=file_env), replace(entry, cwd=None))


def apply_entry(spec: UpstreamSpec, entry: ServerEntry) -> UpstreamSpec:
    """The spec with the changes of an entry: lists are replaced, `env` and `headers` merged."""
    given: dict[str, Any] = {
        name: value
        for name in _COPIED_FIELDS
        if (value := getattr(entry, name)) is not None and value != ()
    }
    if entry.stateless and entry.isolation is None:
        given["isolation"] = None  # the server's own setting takes precedence over the default
    return replace(
        spec,
        **given,
        env={**spec.env, **entry.env},
        headers={**spec.headers, **entry.headers},
        disabled=spec.disabled if entry.disabled is None else entry.disabled,
    )


_COPIED_FIELDS = (
    "transport",
    "args",
    "cwd",
    "include",
    "exclude",
    "category",
    "prefix",
    "pins",
    "mode",
    "timeout",
    "start_timeout",
    "isolation",
    "stateless",
    "idle_stop",
    "trust",
    "oauth",
)


def runs_pegboard(entry: JsonObject) -> bool:
    """Whether an entry starts Pegboard; importing it would connect the gateway to itself."""
    command, args = entry.get("command"), entry.get("args")
    words = [w for w in [command, *(args if isinstance(args, list) else [])] if isinstance(w, str)]
    program = PurePath(words[0].replace("\\", "/")).stem if words else ""
    if program == "pegboard":
        return True
    # `uvx pegboard@1.2 run`, `python -m pegboard`: a few words only, not those of a long script.
    runner = program in ("uvx", "uv", "pipx") or program.startswith("python")
    return runner and any(word.partition("@")[0] == "pegboard" for word in words[1:6])


def _choose_transport(entry: ServerEntry, document: Document, at: KeyPath) -> Transport:
    if entry.command and entry.url:
        raise document.error("a server has a `command` or a `url`, not both.", at)
    if not entry.command and not entry.url:
        raise document.error("a server needs a `command` to start or a `url` to reach.", at)
    if entry.command:
        if entry.transport not in (None, "stdio"):
            raise document.error(f"a `command` cannot use the transport {entry.transport}.", at)
        return "stdio"
    url = entry.url or ""
    if not url.lower().startswith(("http://", "https://")):
        message = "a `url` must start with `http://` or `https://`."
        raise document.error(message, (*at, "url"))
    try:
        has_host = bool(urlsplit(url).hostname) and urlsplit(url).port != 0
    except ValueError:
        has_host = False
    if not has_host:
        raise document.error("the `url` has no valid host and port.", (*at, "url"))
    if entry.transport == "stdio":
        raise document.error("a `url` cannot use the transport stdio.", at)
    if entry.transport:
        return entry.transport
    # Clients try streamable HTTP first and then SSE. The path of an SSE server usually shows it,
    # which saves the attempt.
    return "sse" if url.partition("?")[0].rstrip("/").endswith("/sse") else "http"


def _read_env_file(
    entry: ServerEntry, document: Document, at: KeyPath, environment: ConfigEnvironment
) -> dict[str, str]:
    if not entry.env_file:
        return {}
    from dotenv import dotenv_values

    path = environment.find(entry.env_file, document.path.parent)
    if not path.is_file():
        raise document.error(f"there is no file {path}.", (*at, "env_file"))
    # Clients do not interpolate either: a `$` in a password is a `$`.
    values = dotenv_values(path, interpolate=False, encoding="utf-8")
    return {name: value for name, value in values.items() if value is not None}
