"""Everything that servers list, read page by page: all servers at first, one again when it changes.

`read_listing` reads the four lists of one server, `stream_listings` those of many at once, and
`ListingRefresher` rereads those of a server that announced a change. Entries of tools stay raw:
`catalog_entries` decides which of them are valid.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from typing import TypeAlias, cast

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp_types import Prompt, Resource, ResourceTemplate
from pydantic import BaseModel, ValidationError

from pegboard.core import defaults
from pegboard.core.calls import Caller, Era
from pegboard.core.json import Json, JsonObject, compact
from pegboard.core.tool_parser import DETAILS_KEY, EXTENSION_ID, LAZY_KEY
from pegboard.errors import PegboardError, UpstreamError
from pegboard.upstream.catalog_entries import (
    PLAIN_CLIENT,
    ClientKind,
    ToolVariants,
    kind_to_capabilities,
)
from pegboard.upstream.client_sdk import METHOD_NOT_FOUND
from pegboard.upstream.connection import Connection
from pegboard.upstream.downstream import Downstream
from pegboard.upstream.failures import prefix_server_name
from pegboard.upstream.inbound_router import UpstreamEvent
from pegboard.upstream.pool import ConnectionPool

MAX_PAGES = 1_000
MAX_ENTRIES = 100_000
DEBOUNCE = 0.2
"""Seconds from an announcement to the listing: they come in bursts, some while a server starts."""
MAX_BURST = 3
"""Listings of one server that may follow each other without a pause."""
COOLDOWN = 5.0
"""Seconds in which one server is listed so often; doubles while there is nothing new."""
MAX_COOLDOWN = 300.0
_OPTIONAL_LISTS = {
    "resources": ("resources/list", "resources", "resources"),
    "resource_templates": ("resources/templates/list", "resourceTemplates", "resources"),
    "prompts": ("prompts/list", "prompts", "prompts"),
}
"""The lists other than the list of tools: method, key of the result, capability."""
_ENTRY_TYPES: Mapping[str, type[BaseModel]] = {
    "resources": Resource,
    "resource_templates": ResourceTemplate,
    "prompts": Prompt,
}
_log = logging.getLogger(__name__)


class ListingDownstream(Downstream):
    """Lists for the gateway itself, as a client of a kind would."""

    def __init__(self, kind: ClientKind = PLAIN_CLIENT) -> None:
        super().__init__(Caller(), None, {})
        self._capabilities = kind_to_capabilities(kind)

    @property
    def can_give_input(self) -> bool:
        # Nobody would answer, but a server decides what to list based on these capabilities, and
        # needs no input for that.
        return bool(self._capabilities)


_PLAIN_DOWNSTREAM = ListingDownstream()


# One server.


@dataclass(frozen=True, slots=True)
class Listing:
    """What a server reports about itself, and the raw entries of its four lists."""

    server: str
    server_info: JsonObject = field(default_factory=dict[str, Json])
    capabilities: JsonObject = field(default_factory=dict[str, Json])
    instructions: str | None = None
    era: Era = "legacy"
    protocol_version: str | None = None
    tools: Sequence[JsonObject] = ()
    resources: Sequence[JsonObject] = ()
    resource_templates: Sequence[JsonObject] = ()
    prompts: Sequence[JsonObject] = ()
    variants: ToolVariants = field(default_factory=dict[ClientKind, Sequence[str] | None])
    """Which of the tools clients of each kind are listed."""
    failures: Mapping[str, str] = field(default_factory=dict[str, str])
    """Why lists other than the tools could not be read, by the name of the field."""


async def read_listing(connection: Connection) -> Listing:
    """Read everything that a server offers; any list except the tools may fail.

    Raises:
        UpstreamError: Its tools cannot be listed: it fails, or its pages never end.
    """
    tools = await read_tools(connection)
    failures: dict[str, str] = {}
    optional: dict[str, tuple[JsonObject, ...]] = {}
    for name, (method, key, capability) in _OPTIONAL_LISTS.items():
        optional[name] = ()
        if connection.capabilities.get(capability) is None:
            continue
        try:
            entries = await read_pages(connection, method, key)
            optional[name] = keep_valid_entries(connection.spec.name, name, entries)
        except PegboardError as exc:
            # Many servers declare a capability and have no such method: an empty list.
            if exc.details.get("code") != METHOD_NOT_FOUND:
                failures[name] = f"{connection.spec.name}: {method} failed: {exc.message}"
    handshake = connection.handshake_result
    # A legacy server gives its name and version in the handshake, a modern one in `_meta`.
    meta = cast(JsonObject, handshake.get("_meta") or {})
    info = handshake.get("serverInfo") or meta.get("io.modelcontextprotocol/serverInfo") or {}
    return Listing(
        server=connection.spec.name,
        server_info=info,
        capabilities=connection.capabilities,
        instructions=handshake.get("instructions"),
        era=connection.era,
        protocol_version=connection.version,
        tools=tools,
        resources=optional["resources"],
        resource_templates=optional["resource_templates"],
        prompts=optional["prompts"],
        failures=failures,
    )


def keep_valid_entries(
    server: str, kind: str, entries: Iterable[JsonObject]
) -> tuple[JsonObject, ...]:
    """The resources, templates or prompts of a list, without what clients would refuse.

    Clients of the SDK refuse a whole list because of one malformed entry, and this list is shown
    together with those of other servers. A malformed part costs its entry only where it is needed.
    """
    valid: list[JsonObject] = []
    left_out = 0
    for entry in entries:
        rest = entry
        try:
            try:
                _ENTRY_TYPES[kind].model_validate(entry)
            except ValidationError as exc:
                malformed = {error["loc"][0] for error in exc.errors() if error["loc"]}
                rest = {key: value for key, value in entry.items() if key not in malformed}
                _ENTRY_TYPES[kind].model_validate(rest)
            valid.append(rest)
        except ValidationError:
            left_out += 1
    if left_out:
        _log.warning("%s: %d of its %s are malformed and left out", server, left_out, kind)
    return tuple(valid)


async def read_tools(
    connection: Connection, downstream: Downstream = _PLAIN_DOWNSTREAM
) -> tuple[JsonObject, ...]:
    """The tools that a server lists to a client."""
    params = build_tools_params(connection.capabilities)
    return await read_pages(connection, "tools/list", "tools", downstream, params)


def build_tools_params(capabilities: JsonObject) -> JsonObject:
    """Parameters of `tools/list`: another Pegboard lists its tools, not its meta-tools.

    The extension is advertised in `extensions` by modern servers, in `experimental` by legacy ones.
    """
    declared = (capabilities.get(key) for key in ("extensions", "experimental"))
    if any(isinstance(known, dict) and EXTENSION_ID in known for known in declared):
        return {"_meta": {LAZY_KEY: False, DETAILS_KEY: True}}
    return {}


async def read_pages(
    connection: Connection,
    method: str,
    key: str,
    downstream: Downstream = _PLAIN_DOWNSTREAM,
    params: JsonObject | None = None,
) -> tuple[JsonObject, ...]:
    """All entries of a list, over as many pages as it has.

    Raises:
        UpstreamError: The server fails, or its pages never end.
    """

    def build_endless_error(what: str) -> UpstreamError:
        name = connection.spec.name
        return UpstreamError(f"{name}: the pages of {method} never end: {what}.", server=name)

    entries: list[JsonObject] = []
    cursors: set[str] = set()
    sent = dict(params or {})
    size = 0
    while True:
        page = await connection.request(method, sent, downstream)
        found: Json = page.get(key)
        if isinstance(found, list):
            entries.extend(entry for entry in found if isinstance(entry, dict))
        cursor: Json = page.get("nextCursor")
        if cursors or cursor:  # one page alone is within the limit of a message
            size += len(compact(found))
            if size > connection.spec.max_message_bytes:
                raise build_endless_error(f"they have {size:,} bytes by now")
        if not isinstance(cursor, str) or not cursor:
            return tuple(entries)
        if cursor in cursors:
            raise build_endless_error(f"it gave the cursor {cursor[:80]!r} twice")
        cursors.add(cursor)
        if len(cursors) >= MAX_PAGES or len(entries) > MAX_ENTRIES:
            raise build_endless_error(f"there were {len(entries)} entries by then")
        sent["cursor"] = cursor


async def read_variant(pool: ConnectionPool, name: str, kind: ClientKind) -> tuple[JsonObject, ...]:
    """The tools that a server lists to clients of a kind.

    Raises:
        PegboardError: It cannot be reached, or cannot list them.
    """
    async with pool.visit(name, (kind,)) as connection:
        return await read_tools(connection, ListingDownstream(kind))


# Many servers.


@dataclass(frozen=True, slots=True)
class ListingResult:
    """The outcome for one server: its listing, or why it could not be listed."""

    server: str
    listing: Listing | None
    error: PegboardError | None
    seconds: float

    @property
    def failure(self) -> str:
        """Why there is no listing, without advice about calls: nobody has called anything."""
        if self.error is None:
            return f"{self.server} did not answer."
        return getattr(self.error, "reason", None) or self.error.message


ListingProgress: TypeAlias = Callable[[int, int, ListingResult], None]
"""Called for each server that was listed or failed: how many so far, of how many, and which."""


@asynccontextmanager
async def stream_listings(
    pool: ConnectionPool,
    servers: Iterable[str] | None = None,
    *,
    bound: int = defaults.START_CONCURRENCY,
    progress: ListingProgress = lambda done, total, found: None,
) -> AsyncGenerator[MemoryObjectReceiveStream[ListingResult]]:
    """List servers (all, unless named), `bound` at a time; each is received as soon as it is done.

        async with stream_listings(pool) as found:
            async for one in found: ...

    A server that cannot be listed is received with its error. It does not delay others, except that
    it takes one of the `bound` places until its `start_timeout`.
    """
    names = [spec.name for spec in pool.servers] if servers is None else list(servers)
    # Room for all: no server's process has to wait for a slow receiver.
    send, receive = anyio.create_memory_object_stream[ListingResult](len(names))
    places = anyio.CapacityLimiter(bound)
    done = 0

    async def list_one(name: str, out: MemoryObjectSendStream[ListingResult]) -> None:
        async def report(found: ListingResult) -> None:
            nonlocal done
            done += 1
            progress(done, len(names), found)
            await out.send(found)

        async with out, places:
            await _list_server(pool, name, report)

    async with receive, anyio.create_task_group() as tasks:
        with send:
            for name in names:
                # Each task has its own clone, so the stream ends when the last one is done.
                tasks.start_soon(list_one, name, send.clone())
        yield receive
        tasks.cancel_scope.cancel()


async def _list_server(
    pool: ConnectionPool,
    name: str,
    report: Callable[[ListingResult], Awaitable[None]],
    kinds: Sequence[ClientKind] = (PLAIN_CLIENT,),
) -> None:
    """Report what one server offers, before the connection that was opened for it is ended."""
    began = anyio.current_time()
    try:
        async with pool.visit(name, kinds) as connection:
            listing = await read_listing(connection)
            # Inside the block: ending a process may take seconds, and nobody has to wait for it.
            await report(ListingResult(name, listing, None, anyio.current_time() - began))
    except PegboardError as exc:
        exc.message = prefix_server_name(name, exc.message)
        await report(ListingResult(name, None, exc, anyio.current_time() - began))
    except Exception as exc:  # one server must not stop the listing of the others
        _log.exception("Listing %s failed", name)
        error = UpstreamError(f"{name} could not be listed: {exc!r}", server=name)
        await report(ListingResult(name, None, error, anyio.current_time() - began))


class ListingRefresher:
    """Lists a server again after it has announced a change, and reports what is new.

    A burst of announcements leads to one listing. The first few follow at once; a server that goes
    on announcing is listed `MAX_BURST` times in `cooldown` seconds, and one that announces and
    changes nothing ever less often.
    """

    def __init__(
        self,
        pool: ConnectionPool,
        on_result: Callable[[ListingResult], Awaitable[None]],
        *,
        debounce: float = DEBOUNCE,
        cooldown: float = COOLDOWN,
        kinds: Callable[[str], Sequence[ClientKind]] = lambda server: (PLAIN_CLIENT,),
    ) -> None:
        self._pool = pool
        self._kinds = kinds
        self._on_result = on_result
        self._debounce = debounce
        self._cooldown = cooldown
        self._fingerprints: dict[str, bytes] = {}
        self._due: dict[str, float] = {}
        self._cooldowns: dict[str, float] = {}
        self._recent: dict[str, deque[float]] = {}
        self._busy: set[str] = set()
        self._wake = anyio.Event()

    async def on_event(self, event: UpstreamEvent) -> None:
        """Take an announcement; for `add_listener` of a pool."""
        if event.change != "resource":
            self.request_refresh(event.server)

    def request_refresh(self, server: str) -> None:
        """Have a server listed, soon."""
        # One that is due already covers this announcement too.
        if server not in self._due:
            soon = anyio.current_time() + self._debounce
            recent = self._recent.get(server, ())
            if len(recent) == MAX_BURST:
                # Listed often lately: wait until the cooldown of the first of these is over.
                soon = max(soon, recent[0] + self._cooldowns.get(server, self._cooldown))
            self._due[server] = soon
            self._wake.set()

    async def run(self) -> None:
        """Refresh servers when they are due, until canceled."""

        async def refresh(server: str) -> None:
            try:
                await _list_server(self._pool, server, self._report_if_new, self._kinds(server))
            finally:
                self._busy.discard(server)
                self._wake.set()

        async with anyio.create_task_group() as tasks:
            while True:
                self._wake = anyio.Event()
                now = anyio.current_time()
                # A server that is being listed now may have changed since it was read: it is
                # listed again, but not twice at once.
                waiting = {s: due for s, due in self._due.items() if s not in self._busy}
                for server in [s for s, due in waiting.items() if due <= now]:
                    del self._due[server], waiting[server]
                    self._busy.add(server)
                    self._recent.setdefault(server, deque(maxlen=MAX_BURST)).append(now)
                    tasks.start_soon(refresh, server)
                with anyio.CancelScope(deadline=min(waiting.values(), default=math.inf)):
                    await self._wake.wait()

    async def _report_if_new(self, result: ListingResult) -> None:
        server = result.server
        # Nothing new, or a failure: the next one comes later. Half, so that the first doubling
        # gives the whole cooldown.
        cooldown = self._cooldowns.get(server, self._cooldown / 2)
        self._cooldowns[server] = min(cooldown * 2, MAX_COOLDOWN)
        if result.listing is not None:
            # A digest: whole listings would be a second copy of every catalog in memory.
            text = json.dumps(asdict(result.listing), sort_keys=True, default=str)
            fingerprint = hashlib.sha256(text.encode()).digest()
            if fingerprint == self._fingerprints.get(server):
                return
            self._cooldowns[server] = self._cooldown
            self._fingerprints[server] = fingerprint
        await self._on_result(result)
