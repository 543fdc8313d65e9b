"""The catalogs of servers on disk, so that a server need not be started to be listed.

One file for each server, named by a digest of what identifies it. It is replaced as a whole, so
that readers in any number of gateways see the old or the new one and never a part. Its first line
has a checksum: a file that was cut short, is damaged or of another version is ignored with a
warning, and rewritten when the server has been listed again.

    first line   pegboard-catalog 1 <sha-256 of the rest> <length of the index>
    index        the profile of the server; each tool without its schemas, and where these are
    body         the schemas, JSON after JSON

Reading a file parses the index alone. A tool's schemas are parsed when they are needed, and not
held: `core.sanitization` caches those in use. That makes the start of a gateway with thousands of
tools fast, and its memory small.

Functions here block: call them in a thread where an event loop runs.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from pegboard.core.calls import Era
from pegboard.core.json import Json, JsonObject, compact, digest
from pegboard.core.tool_lock import ListedDefinition, definition_digest
from pegboard.core.tools import Schemas, Tool
from pegboard.private_files import TEMPORARY_SUFFIX, make_private_folder, replace_file
from pegboard.upstream.catalog_entries import (
    ClientKind,
    ToolFactory,
    ToolProblem,
    ToolVariants,
    check_entries,
    get_schemas,
)
from pegboard.upstream.namespaces import DEFAULT_NAMING, Namespaces, Naming
from pegboard.upstream.spec import UpstreamSpec

# This spelling is part of the format on disk: another one would orphan the files that exist.
CATALOG_SUFFIX = ".catalog"
FAILURE_SUFFIX = ".failed"
_MAGIC = b"pegboard-catalog 1"
_SECRET = re.compile(r"key|token|secret|passw|auth|credential|session|cookie", re.IGNORECASE)
_STALE_AFTER = 3600.0
FIRST_RETRY_DELAY = 30.0
"""Seconds until a server that could not be listed is tried again; doubles each time."""
MAX_RETRY_DELAY = 600.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServerProfile:
    """What a server reports about itself, except its tools."""

    server_info: JsonObject = field(default_factory=dict[str, Json])
    capabilities: JsonObject = field(default_factory=dict[str, Json])
    instructions: str | None = None
    era: Era = "legacy"
    protocol_version: str | None = None
    resources: list[JsonObject] = field(default_factory=list[JsonObject])
    resource_templates: list[JsonObject] = field(default_factory=list[JsonObject])
    prompts: list[JsonObject] = field(default_factory=list[JsonObject])
    variants: ToolVariants = field(default_factory=dict[ClientKind, Sequence[str] | None])
    """Which of its tools clients of each kind are listed."""


@dataclass(frozen=True, slots=True)
class ListingFailure:
    """Why a server could not be listed, how often in a row, and when to try again."""

    reason: str
    count: int = 1
    retry_at: float = 0.0
    """In seconds since the epoch."""
    needs_login: bool = False
    """Whether it refused for lack of a valid login."""

    @classmethod
    def after(
        cls, before: ListingFailure | None, reason: str, now: float, *, needs_login: bool = False
    ) -> ListingFailure:
        """The next failure; the delay doubles with each one in a row."""
        count = before.count + 1 if before else 1
        delay = min(FIRST_RETRY_DELAY * 2.0 ** min(count - 1, 10), MAX_RETRY_DELAY)
        return cls(reason, count, now + delay, needs_login)

    def wait(self, now: float) -> float:
        """Seconds until it is tried again; 0 when it may be tried now."""
        wait = self.retry_at - now
        # A delay longer than the maximum means that the clock was set back, so there is no wait.
        return wait if 0 < wait <= MAX_RETRY_DELAY else 0.0


def compute_identity(spec: UpstreamSpec) -> str:
    """A digest of what identifies a server, in hexadecimal.

    Credentials are left out: header values, and environment variables whose names say that they are
    secret, count by name alone. A new token does not make a new server, and nothing secret can be
    guessed from the digest. The configured name is included, since two accounts on one server are
    two upstreams.
    """
    return digest(
        {
            "name": spec.name,
            "transport": spec.transport,
            "command": [spec.command, *spec.args],
            "cwd": spec.cwd,
            "url": spec.url,
            "env": {k: None if _SECRET.search(k) else v for k, v in spec.env.items()},
            "headers": sorted(name.lower() for name in spec.headers),
        }
    )


def build_tool_factory(spec: UpstreamSpec, names: Namespaces | None = None) -> ToolFactory:
    """The factory for the tools of a server, configured by its spec.

    Its timeout is not passed on: the connection counts the seconds of a call, since only it knows
    when the server waits for a person.
    """
    shows = spec.shows if spec.include or spec.exclude else None
    return ToolFactory(spec.name, names or build_namespaces([spec]), spec.category, shows)


def build_namespaces(
    specs: Iterable[UpstreamSpec], naming: Naming = DEFAULT_NAMING, *, taken: Iterable[str] = ()
) -> Namespaces:
    """The namespaces of the servers of a configuration."""
    listed = list(specs)
    prefixes = {spec.name: spec.prefix for spec in listed if spec.prefix is not None}
    return Namespaces([spec.name for spec in listed], naming, prefixes=prefixes, taken=taken)


def log_skipped_tool(server: str, tool: str, exc: Exception) -> None:
    """Log that an entry is not shown."""
    _log.warning("%s: %s is left out: %s", server, ascii(tool), exc)


# One catalog.


class _LazySchemas:
    """A tool's schemas as a piece of the file, parsed whenever they are needed."""

    __slots__ = ("_body", "_end", "_start")

    def __init__(self, body: bytes, start: int, end: int) -> None:
        self._body, self._start, self._end = body, start, end

    def __call__(self) -> Schemas:
        return get_schemas(self.entry())

    def entry(self) -> JsonObject:
        return json.loads(self._body[self._start : self._end])


class CachedCatalog:
    """What one server last listed."""

    def __init__(
        self, name: str, index: JsonObject, data: bytes, offset: int, saved_at: float
    ) -> None:
        self.about = ServerProfile(**index["about"])
        self.hash: str = index["hash"]
        self.saved_at = saved_at
        """When it was last confirmed, in seconds since the epoch."""
        self.problems = tuple(ToolProblem(name, *problem) for problem in index["problems"])
        self._tools: list[list[Any]] = index["tools"]
        self._data = data
        self._offset = offset

    def __len__(self) -> int:
        return len(self._tools)

    def entries(self) -> list[JsonObject]:
        """The raw `tools/list` entries, whole."""
        return [self._read_entry(*tool) for tool in self._tools]

    @cached_property
    def listed(self) -> dict[str, ListedDefinition]:
        """Every definition with the digest that a lock knows it by, by the server's own name."""
        return {
            tool[0]["name"]: ListedDefinition(
                tool[0]["name"],
                definition_digest(self._read_entry(*tool)),
                partial(self._read_entry, *tool),
            )
            for tool in self._tools
        }

    def tools(
        self,
        spec: UpstreamSpec,
        names: Namespaces | None = None,
        left_out: Callable[[str, str, Exception], None] = log_skipped_tool,
    ) -> list[Tool]:
        """The tools that the configuration shows; their schemas are parsed on first use.

        Args:
            spec: The server.
            names: The namespaces of all configured servers; without it, this one is alone.
            left_out: Called for an entry that no tool can be made of: its server, its name, why.
        """
        factory = build_tool_factory(spec, names)
        tools: list[Tool] = []
        for entry, start, end in self._tools:
            if factory.wants(entry["name"]):
                try:
                    tools.append(factory.build(entry, self._slice(start, end)))
                except Exception as exc:  # a server may list anything; only this entry is lost
                    left_out(spec.name, entry["name"], exc)
        return tools

    def _read_entry(self, entry: JsonObject, start: int, end: int) -> JsonObject:
        return {**entry, **self._slice(start, end).entry()}

    def _slice(self, start: int, end: int) -> _LazySchemas:
        return _LazySchemas(self._data, self._offset + start, self._offset + end)


def _serialize(name: str, about: ServerProfile, entries: Iterable[Json]) -> bytes:
    good, problems = check_entries(entries, name)
    tools: list[list[Any]] = []
    pieces: list[bytes] = []
    position = 0
    for entry in good:
        schemas = {k: entry[k] for k in ("inputSchema", "outputSchema") if k in entry}
        without_schemas = {k: v for k, v in entry.items() if k not in schemas}
        # Servers list lone surrogates, which JSON may hold and UTF-8 may not.
        piece = compact(schemas).encode("utf-8", "surrogatepass")
        tools.append([without_schemas, position, position + len(piece)])
        pieces.append(piece)
        position += len(piece)
    body = b"".join(pieces)
    index = {
        "hash": hashlib.sha256(compact(tools).encode("utf-8", "surrogatepass") + body).hexdigest(),
        "about": asdict(about),
        "problems": [[p.tool, p.message, p.left_out] for p in problems],
        "tools": tools,
    }
    text = compact(index).encode("utf-8", "surrogatepass")
    checksum = hashlib.sha256(text + body).hexdigest().encode()
    return b"%s %s %d\n%s%s" % (_MAGIC, checksum, len(text), text, body)


def _parse(name: str, data: bytes, saved_at: float) -> CachedCatalog:
    # Bounded: a file of another kind may be one long line.
    end = data.find(b"\n", 0, 200)
    head = data[: max(end, 0)].split(b" ")
    if len(head) != 4 or b" ".join(head[:2]) != _MAGIC:
        raise ValueError("it is of another kind or version")
    start = end + 1
    if hashlib.sha256(memoryview(data)[start:]).hexdigest().encode() != head[2]:
        raise ValueError("it is damaged")
    body = start + int(head[3])
    index = json.loads(data[start:body].decode("utf-8", "surrogatepass"))
    return CachedCatalog(name, index, data, body, saved_at)


def parse_entries(
    spec: UpstreamSpec, about: ServerProfile, entries: Iterable[Json]
) -> CachedCatalog:
    """What a server listed, as it would be read from the disk, without writing it there."""
    return _parse(spec.name, _serialize(spec.name, about, entries), 0.0)


# The folder.


class CatalogCache:
    """The folder of cached catalogs; where it cannot be used, servers are listed again."""

    def __init__(self, folder: Path, *, warn: Callable[[str], None] = _log.warning) -> None:
        self.folder = folder
        self._warn = warn
        self._has_warned = False

    def load(self, spec: UpstreamSpec) -> CachedCatalog | None:
        """What the server listed last; `None` when that is not known or cannot be read."""
        path = self.path(spec)
        try:
            with path.open("rb") as file:
                data = file.read()
                saved_at = os.fstat(file.fileno()).st_mtime
        except FileNotFoundError:
            return None
        except OSError as exc:
            self._warn_once(exc)
            return None
        try:
            return _parse(spec.name, data, saved_at)
        except (ValueError, KeyError, TypeError) as exc:
            self._warn(f"{path} is not usable and is ignored ({exc}); {spec.name} is listed again.")
            return None

    def save(
        self, spec: UpstreamSpec, about: ServerProfile, entries: Iterable[Json]
    ) -> CachedCatalog:
        """Store what a server listed, and return it as it would be read.

        Where the folder cannot be written the result is the same; a warning is logged once.
        """
        data = _serialize(spec.name, about, entries)
        path = self.path(spec)
        try:
            make_private_folder(self.folder)
            _write(path, data)
            path.with_suffix(FAILURE_SUFFIX).unlink(missing_ok=True)
        except OSError as exc:
            self._warn_once(exc)
        try:
            saved_at = path.stat().st_mtime
        except OSError:
            saved_at = 0.0
        # Parsed from the serialized bytes, so that the result is the same as after a restart.
        return _parse(spec.name, data, saved_at)

    def forget(self, spec: UpstreamSpec) -> None:
        """Remove what is stored of a server."""
        try:
            self.path(spec).unlink(missing_ok=True)
        except OSError as exc:
            self._warn_once(exc)

    def mark_failed(
        self, spec: UpstreamSpec, reason: str, *, now: float, needs_login: bool = False
    ) -> ListingFailure:
        """Record that a server could not be listed; `save` removes the record."""
        before = self.last_failure(spec)
        failure = ListingFailure.after(before, reason, now, needs_login=needs_login)
        try:
            make_private_folder(self.folder)
            text = compact(asdict(failure)).encode("utf-8", "surrogatepass")
            _write(self.path(spec).with_suffix(FAILURE_SUFFIX), text)
        except OSError as exc:
            self._warn_once(exc)
        return failure

    def last_failure(self, spec: UpstreamSpec) -> ListingFailure | None:
        """Why it could not be listed when it was last tried; `None` when it could."""
        try:
            text = self.path(spec).with_suffix(FAILURE_SUFFIX).read_bytes()
        except OSError:
            return None
        try:
            return ListingFailure(**json.loads(text.decode("utf-8", "surrogatepass")))
        except (ValueError, TypeError):  # of an earlier version, which stored no reason
            return ListingFailure(f"{spec.name} could not be listed the last time.")

    def sweep(self, *, now: float, unused_for: float = 90 * 86_400.0) -> int:
        """Remove what a killed writer left behind and what nobody has refreshed for long."""
        removed = 0
        limits = {
            TEMPORARY_SUFFIX: _STALE_AFTER,
            CATALOG_SUFFIX: unused_for,
            FAILURE_SUFFIX: unused_for,
        }
        try:
            for path in self.folder.iterdir():
                limit = limits.get(path.suffix)
                if limit is not None and now - path.stat().st_mtime > limit:
                    path.unlink(missing_ok=True)
                    removed += 1
        except OSError:
            pass  # another gateway sweeps too, or there is no folder: the next sweep does the rest
        return removed

    def path(self, spec: UpstreamSpec) -> Path:
        """The file that holds a server's catalog, once it was listed."""
        readable = re.sub(r"[^A-Za-z0-9_-]", "_", spec.name)[:40]
        return self.folder / f"{readable}-{compute_identity(spec)[:24]}{CATALOG_SUFFIX}"

    def _warn_once(self, exc: OSError) -> None:
        if not self._has_warned:
            self._has_warned = True
            self._warn(
                f"Catalogs cannot be stored in {self.folder} ({exc.strerror or exc}): servers are "
                f"started to be listed every time. Make the folder writable or set another one."
            )


def _write(path: Path, data: bytes) -> None:
    """Replace a file; one that holds the same already only becomes newer."""
    # Most listings bring nothing new. Their time still counts: `sweep` removes by age.
    with suppress(OSError):
        if path.stat().st_size == len(data) and path.read_bytes() == data:
            os.utime(path)
            return
    with replace_file(path) as file:
        file.write(data)
