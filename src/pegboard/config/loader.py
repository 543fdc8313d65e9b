"""From a file to a `Configuration`: settings, servers, sources, and their problems.

The file is `pegboard.toml`, or a client's own file, which has servers and no settings. All errors
in `pegboard.toml` itself are raised together. An error in one server, one source or one imported
file affects only that one: it is left out and reported, and the rest is used.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pegboard.adapters.openapi.document import OpenApiSpec
from pegboard.config.documents import Document, KeyPath, message_without_location, read_document
from pegboard.config.schema import nearest_word, raise_all, validate_record
from pegboard.config.server_entries import (
    ConfigEnvironment,
    ParsedServers,
    apply_entry,
    build_spec,
    parse_servers,
)
from pegboard.config.settings import ProfileEntry, Settings
from pegboard.config.source_settings import SourceEntry
from pegboard.config.variables import UnresolvedVariable, expand_variables
from pegboard.core.json import JsonObject
from pegboard.credentials import is_template
from pegboard.errors import ConfigError
from pegboard.upstream.spec import UpstreamSpec

PINS_VARIABLE = "ALWAYS_AVAILABLE_TOOLS"
PROFILE_VARIABLE = "PEGBOARD_PROFILE"
_INDEPENDENT_TABLES = ("servers", "sources")
"""Tables in which a wrong entry does not affect the others."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """The configuration of a gateway: read once, frozen, independent of its files."""

    settings: Settings
    upstreams: tuple[UpstreamSpec, ...] = ()
    sources: tuple[OpenApiSpec, ...] = ()
    disabled: tuple[UpstreamSpec, ...] = ()
    unusable: Mapping[str, str] = field(default_factory=dict[str, str])
    """Servers and sources that are left out because their entry is wrong, with the reason."""
    problems: tuple[ConfigError, ...] = ()
    """Errors for everything that is left out because it is wrong, with file, line and key."""
    notes: tuple[str, ...] = ()
    """Notes on what is left out on purpose."""
    files: tuple[Path, ...] = ()
    """Every file that was read, to watch for changes."""


def load_configuration(path: Path, environment: ConfigEnvironment) -> Configuration:
    """The configuration in a file and in the files it imports.

    Raises:
        ConfigError: The file cannot be read or parsed, or `pegboard.toml` has a wrong setting.
    """
    return parse_configuration(read_document(path), environment)


def parse_configuration(document: Document, environment: ConfigEnvironment) -> Configuration:
    """The configuration in a document that has been read, and in the files it imports.

    Raises:
        ConfigError: `pegboard.toml` has a wrong setting, or a client's file has no servers.
    """
    if _is_settings_file(document):
        return _Loader(document, environment).configuration()
    found = parse_servers(document, environment, Settings())
    return Configuration(
        settings=_apply_environment(Settings(), environment),
        upstreams=tuple(s for s in found.specs if not s.disabled),
        disabled=tuple(s for s in found.specs if s.disabled),
        unusable=found.unusable,
        problems=found.problems,
        notes=found.notes,
        files=(document.path,),
    )


def _is_settings_file(document: Document) -> bool:
    """Whether this is a `pegboard.toml`, and not the file of a client."""
    return document.syntax == "toml" and "mcp_servers" not in document.value


def _apply_environment(settings: Settings, environment: ConfigEnvironment) -> Settings:
    named = environment.env.get(PINS_VARIABLE, "")
    pins = [pin.strip() for pin in named.split(",") if pin.strip()]
    profile = environment.env.get(PROFILE_VARIABLE, "").strip() or settings.profile
    return replace(settings, pins=tuple(dict.fromkeys([*settings.pins, *pins])), profile=profile)


@dataclass
class _Loader:
    """Loads one `pegboard.toml`."""

    document: Document
    environment: ConfigEnvironment
    problems: list[ConfigError] = field(default_factory=list[ConfigError])
    notes: list[str] = field(default_factory=list[str])
    unusable: dict[str, str] = field(default_factory=dict[str, str])
    unresolved: set[KeyPath] = field(default_factory=set[KeyPath])
    specs: dict[str, UpstreamSpec] = field(default_factory=dict[str, UpstreamSpec])
    names: set[str] = field(default_factory=set[str])
    files: list[Path] = field(default_factory=list[Path])
    profiles: dict[str, ProfileEntry] = field(default_factory=dict[str, ProfileEntry])
    clashes: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """The files that define different servers under one name; the first file wins."""
    importers: tuple[Path, ...] = ()
    """The files that import this one, so that none imports itself."""

    def configuration(self) -> Configuration:
        settings = self._settings()
        for name in settings.imports:
            self._import(name, settings)
        for name in settings.servers:
            self._add_server(name, settings)
        for name, (first, *others) in self.clashes.items():
            message = (
                f"{', '.join(others)}: {name!r} is the name of another server in {first}, which is "
                f"used. Rename it to use both."
            )
            self.problems.append(ConfigError(message, file=others[0], server=name))
        sources = tuple(self._sources(settings))
        settings = replace(settings, profiles={**self.profiles, **settings.profiles})
        used = {*self.specs, *(source.name for source in sources)}
        return Configuration(
            settings=_apply_environment(settings, self.environment),
            upstreams=tuple(s for s in self.specs.values() if not s.disabled),
            disabled=tuple(s for s in self.specs.values() if s.disabled),
            sources=sources,
            # An entry that is wrong in one file may be right in another.
            unusable={name: why for name, why in self.unusable.items() if name not in used},
            problems=tuple(self.problems),
            notes=tuple(self.notes),
            files=(self.document.path, *self.files),
        )

    def _settings(self) -> Settings:
        fatal: list[ConfigError] = []

        def report(key: KeyPath, unresolved: UnresolvedVariable) -> None:
            error = self.document.error(str(unresolved), key, variable=unresolved.variable)
            # An unset variable in one server must not keep the others from starting.
            if len(key) > 1 and key[0] in _INDEPENDENT_TABLES:
                self.unresolved.add(key[:2])
                self._leave_out(str(key[1]), error)
            else:
                fatal.append(error)

        variables = self.environment.variables(self.document, {})
        value: JsonObject = expand_variables(self.document.value, variables, "dollar", report)
        settings, wrong = validate_record(Settings, value, self.document)
        raise_all([*fatal, *wrong])
        return settings or Settings()

    def _leave_out(self, name: str, error: ConfigError) -> None:
        """Leave a server or a source out, with the reason."""
        self.problems.append(error)
        before = [self.unusable[name]] if name in self.unusable else []
        self.unusable[name] = " ".join([*before, message_without_location(error)])

    def _import(self, name: str, settings: Settings) -> None:
        """Add the servers of a client's file, or the servers and profiles of a `pegboard.toml`."""
        path = self.environment.find(name, self.document.path.parent)
        self.files.append(path)  # even if it cannot be read: it is watched until it can be
        try:
            document = read_document(path)
            if _is_settings_file(document):
                found = self._import_settings(document)
            else:
                found = parse_servers(document, self.environment, settings)
        except ConfigError as exc:
            self.problems.append(exc)
            return
        self.problems.extend(found.problems)
        self.notes.extend(found.notes)
        self.names.update(found.names)
        self.unusable.update(found.unusable)
        for spec in found.specs:
            known = self.specs.setdefault(spec.name, spec)
            # The same server in two files is no conflict: people copy their entries, and switch
            # them off in one client.
            if replace(known, origin=None, disabled=False) != replace(
                spec, origin=None, disabled=False
            ):
                self.clashes.setdefault(spec.name, [str(known.origin)]).append(str(spec.origin))

    def _import_settings(self, document: Document) -> ParsedServers:
        """The servers of another `pegboard.toml`; its profiles are added, other settings are not.

        Raises:
            ConfigError: It is wrong, or imports this file in turn.
        """
        importers = (*self.importers, self.document.path.resolve())
        if document.path.resolve() in importers:
            raise self.document.error(f"{document.path} imports this file.", ("import",))
        found = _Loader(document, self.environment, importers=importers).configuration()
        self.files.extend(found.files[1:])  # the first is the document, which is there already
        self.profiles.update(found.settings.profiles)
        specs = (*found.upstreams, *found.disabled)
        names = frozenset([*(spec.name for spec in specs), *found.unusable])
        return ParsedServers(specs, found.problems, found.notes, names, found.unusable)

    def _add_server(self, name: str, settings: Settings) -> None:
        """Add a server of `pegboard.toml`, or its changes to an imported one."""
        at: KeyPath = ("servers", name)
        entry = settings.servers[name]
        if at in self.unresolved:
            self.specs.pop(name, None)  # without its changes, the imported one is not what is meant
            return
        try:
            if entry.command or entry.url:
                self.specs[name] = build_spec(
                    name, entry, self.document, at, self.environment, settings
                )
            elif name in self.specs:
                self.specs[name] = apply_entry(self.specs[name], entry)
            elif name not in self.names:
                near = nearest_word(name, self.names)
                hint = f" Did you mean {near!r}?" if near else ""
                raise self.document.error(
                    f"a server needs a `command` to start or a `url` to reach, and no imported "
                    f"file has one of this name.{hint}",
                    at,
                    server=name,
                )
        except ConfigError as exc:
            self._leave_out(name, exc)

    def _sources(self, settings: Settings) -> list[OpenApiSpec]:
        found: list[OpenApiSpec] = []
        for name, entry in settings.sources.items():
            at: KeyPath = ("sources", name)
            auth = entry.auth
            if at in self.unresolved:
                continue
            if entry.disabled:
                self.notes.append(f"{self.document.path}: {name} is left out: it is disabled.")
            elif name in self.specs:
                message = "a server has this name already; names are shared by servers and sources."
                self._leave_out(name, self.document.error(message, at))
            elif sum(way is not None for way in (auth.bearer, auth.basic, auth.api_key)) > 1:
                message = "set only one of `bearer`, `basic` and `api_key`."
                self._leave_out(name, self.document.error(message, (*at, "auth")))
            elif header := next((n for n, v in entry.headers.items() if is_template(v)), None):
                message = "only MCP servers can have headers with a credential for each caller."
                self._leave_out(name, self.document.error(message, (*at, "headers", header)))
            else:
                found.append(self._source(name, entry, settings))
        return found

    def _source(self, name: str, entry: SourceEntry, settings: Settings) -> OpenApiSpec:
        document = entry.openapi
        if not document.lower().startswith(("http://", "https://")):
            document = str(self.environment.find(document, self.document.path.parent))
        headers, query, cookies = dict(entry.headers), dict[str, str](), dict[str, str]()
        # The caller has checked that at most one way to log in is given.
        if entry.auth.bearer:
            headers["Authorization"] = f"Bearer {entry.auth.bearer}"
        elif basic := entry.auth.basic:
            pair = f"{basic.username}:{basic.password}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        elif key := entry.auth.api_key:
            {"header": headers, "query": query, "cookie": cookies}[key.place][key.name] = key.value
        return OpenApiSpec(
            name=name,
            document=document,
            base_url=entry.base_url,
            headers=headers,
            query=query,
            cookies=cookies,
            include=entry.include,
            exclude=entry.exclude,
            category=entry.category,
            prefix=entry.prefix,
            timeout=entry.timeout or settings.calls.timeout,
            max_bytes=settings.upstreams.max_message_bytes,
        )
