"""Everything that servers list, read page by page: all servers at first, one again when it changes.

`read_listing` reads the four lists of one server, `discover` those of many at once, and `Refresher`
reads a server's again after it announced a change. Entries stay raw: `catalog_entries` decides
which of them are valid tools.
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


class ListingDownstream(Downstream):
    """Lists for the gateway itself, in the name of a client of a kind."""

    def __init__(self, kind: ClientKind = PLAIN_CLIENT) -> None:
        super().__init__(Caller(), None, {})
        self._capabilities = kind_to_capabilities(kind)

    @property
    def can_be_asked(self) -> bool:
        return bool(self._capabilities)


_PLAIN_DOWNSTREAM = ListingDownstream()


@dataclass(frozen=True, slots=True)
class Listing:
    """What a server said of itself, and the raw entries of its four lists."""

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
    """Why lists beside that of the tools could not be read, by the name of the field."""


async def read_listing(connection: Connection) -> Listing:
    """Ask a server for all it offers; a list beside that of the tools may fail.

    Raises:
        UpstreamError: its tools cannot be listed: it fails, or its pages never end.
    """
    greeting = connection.greeting
    tools = await read_tools(connection)
    failures: dict[str, str] = {}
    others = {
        name: await _read_optional(connection, name, *how, failures)
        for name, how in _OPTIONAL_LISTS.items()
    }
    return Listing(
        server=connection.spec.name,
        server_info=_get_server_info(greeting),
        capabilities=connection.capabilities,
        instructions=greeting.get("instructions"),
        era=connection.era,
        protocol_version=connection.version,
        tools=tools,
        resources=others["resources"],
        resource_templates=others["resource_templates"],
        prompts=others["prompts"],
        failures=failures,
    )


_OPTIONAL_LISTS = {
    "resources": ("resources/list", "resources", "resources"),
    "resource_templates": ("resources/templates/list", "resourceTemplates", "resources"),
    "prompts": ("prompts/list", "prompts", "prompts"),
}
"""The lists beside that of the tools: method, key of the result, capability."""


async def read_tools(
    connection: Connection, front: Downstream = _PLAIN_DOWNSTREAM
) -> tuple[JsonObject, ...]:
    """The tools of a server, as `front` is listed them."""
    params = build_tools_params(connection.capabilities)
    return await read_pages(connection, "tools/list", "tools", front, params)


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
    front: Downstream = _PLAIN_DOWNSTREAM,
    params: JsonObject | None = None,
) -> tuple[JsonObject, ...]:
    """All entries of a list, over as many pages as it has.

    Raises:
        UpstreamError: the server fails, or its pages never end.
    """
    entries: list[JsonObject] = []
    cursors: set[str] = set()
    asked = dict(params or {})
    size = 0
    while True:
        page = await connection.request(method, asked, front)
        found: Json = page.get(key)
        if isinstance(found, list):
            entries.extend(entry for entry in found if isinstance(entry, dict))
        if cursors or page.get("nextCursor"):  # one page alone is within the limit of a message
            size += len(compact(found))
            if size > connection.spec.max_message_bytes:
                raise _build_endless_error(connection, method, f"they have {size:,} bytes by now")
        cursor: Json = page.get("nextCursor")
        if not isinstance(cursor, str) or not cursor:
            return tuple(entries)
        if cursor in cursors:
            raise _build_endless_error(
                connection, method, f"it gave the cursor {cursor[:80]!r} twice"
            )
        cursors.add(cursor)
        if len(cursors) >= MAX_PAGES or len(entries) > MAX_ENTRIES:
            raise _build_endless_error(
                connection, method, f"there were {len(entries)} entries by then"
            )
        asked["cursor"] = cursor


async def _read_optional(
    connection: Connection,
    name: str,
    method: str,
    key: str,
    capability: str,
    failures: dict[str, str],
) -> tuple[JsonObject, ...]:
    """A list that a server may lack although it says otherwise, or fail to give."""
    if connection.capabilities.get(capability) is None:
        return ()
    try:
        return await read_pages(connection, method, key)
    except UpstreamError as exc:
        if exc.details.get("code") != METHOD_NOT_FOUND:
            failures[name] = f"{connection.spec.name}: {method} failed: {exc.message}"
        return ()


def _build_endless_error(connection: Connection, method: str, what: str) -> UpstreamError:
    name = connection.spec.name
    return UpstreamError(f"{name}: the pages of {method} never end: {what}.", server=name)


def _get_server_info(greeting: JsonObject) -> JsonObject:
    """A server's name and version: in the handshake (legacy) or in `_meta` (modern)."""
    meta = cast(JsonObject, greeting.get("_meta") or {})
    return greeting.get("serverInfo") or meta.get("io.modelcontextprotocol/serverInfo") or {}


DEBOUNCE = 0.2
"""Seconds from an announcement to the look: they come in swarms, and some while a server starts."""
MAX_BURST = 3
"""Looks at one server that may follow each other without a rest."""
COOLDOWN = 5.0
"""Seconds in which one server is looked at so often; doubles while there is nothing new."""
MAX_COOLDOWN = 300.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ListingResult:
    """What became of one server: its listing, or why there is none."""

    server: str
    listing: Listing | None
    error: PegboardError | None
    seconds: float


ListingProgress: TypeAlias = Callable[[int, int, ListingResult], None]
"""Told of each server as it is in: how many are, of how many, and which."""


@asynccontextmanager
async def discover(
    pool: ConnectionPool,
    servers: Iterable[str] | None = None,
    *,
    bound: int = 8,
    progress: ListingProgress = lambda done, total, found: None,
) -> AsyncGenerator[MemoryObjectReceiveStream[ListingResult]]:
    """List servers (all, unless named), `bound` at a time; each is received as soon as it is in.

        async with discover(pool) as found:
            async for one in found: ...

    A server that cannot be listed is received with its error; it holds up no other, except by the
    one place of `bound` that it takes until its `start_timeout`.
    """
    names = [spec.name for spec in pool.servers] if servers is None else list(servers)
    send, receive = anyio.create_memory_object_stream[ListingResult](len(names))
    places = anyio.CapacityLimiter(bound)
    done = 0

    async def look(name: str, out: MemoryObjectSendStream[ListingResult]) -> None:
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
                tasks.start_soon(look, name, send.clone())
        yield receive
        tasks.cancel_scope.cancel()


async def read_variant(pool: ConnectionPool, name: str, kind: ClientKind) -> tuple[JsonObject, ...]:
    """The tools that a server lists to clients of a kind.

    Raises:
        PegboardError: it cannot be reached, or cannot list them.
    """
    async with pool.visit(name, (kind,)) as connection:
        return await read_tools(connection, ListingDownstream(kind))


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
            await report(ListingResult(name, listing, None, anyio.current_time() - began))
    except PegboardError as exc:
        exc.message = prefix_server_name(name, exc.message)
        await report(ListingResult(name, None, exc, anyio.current_time() - began))
    except Exception as exc:  # whatever a server may do, it must not end the look at others
        _log.exception("Looking at %s failed", name)
        error = UpstreamError(f"{name} could not be listed: {exc!r}", server=name)
        await report(ListingResult(name, None, error, anyio.current_time() - began))


class ListingRefresher:
    """Looks at a server again after it has announced a change, and reports what is new.

    However often a server announces, it is looked at once for a swarm of announcements. The first
    few looks follow at once; a server that goes on announcing is looked at `BURST` times in `rest`
    seconds, and one that announces and changes nothing ever less often.
    """

    def __init__(
        self,
        pool: ConnectionPool,
        on_found: Callable[[ListingResult], Awaitable[None]],
        *,
        quiet: float = DEBOUNCE,
        rest: float = COOLDOWN,
        kinds: Callable[[str], Sequence[ClientKind]] = lambda server: (PLAIN_CLIENT,),
    ) -> None:
        self._pool = pool
        self._kinds = kinds
        self._on_found = on_found
        self._quiet = quiet
        self._rest = rest
        self._known: dict[str, bytes] = {}
        self._due: dict[str, float] = {}
        self._rests: dict[str, float] = {}
        self._looks: dict[str, deque[float]] = {}
        self._busy: set[str] = set()
        self._wake = anyio.Event()

    async def notice(self, event: UpstreamEvent) -> None:
        """Take an announcement; a listener for `Pool.listen`."""
        if event.change != "resource":
            self.want(event.server)

    def want(self, server: str) -> None:
        """Have a server looked at, soon."""
        if server not in self._due:
            soon = anyio.current_time() + self._quiet
            self._due[server] = max(soon, self._rested_at(server))
            self._wake.set()

    def _rested_at(self, server: str) -> float:
        """When a server may be looked at again: at once, unless that has happened often of late."""
        looks = self._looks.get(server, ())
        return looks[0] + self._rests.get(server, self._rest) if len(looks) == MAX_BURST else 0.0

    async def run(self) -> None:
        """Look when it is time, for ever."""
        async with anyio.create_task_group() as tasks:
            while True:
                self._wake = anyio.Event()
                now = anyio.current_time()
                waiting = {s: due for s, due in self._due.items() if s not in self._busy}
                for server in [s for s, due in waiting.items() if due <= now]:
                    del self._due[server], waiting[server]
                    self._busy.add(server)
                    self._looks.setdefault(server, deque(maxlen=MAX_BURST)).append(now)
                    tasks.start_soon(self._refresh, server)
                with anyio.CancelScope(deadline=min(waiting.values(), default=math.inf)):
                    await self._wake.wait()

    async def _refresh(self, server: str) -> None:
        try:
            await _list_server(self._pool, server, self._compare, self._kinds(server))
        finally:
            self._busy.discard(server)
            self._wake.set()

    async def _compare(self, found: ListingResult) -> None:
        rest = self._rests.get(found.server, self._rest / 2)
        self._rests[found.server] = min(rest * 2, MAX_COOLDOWN)
        if found.listing is not None:
            said = _fingerprint(found.listing)
            if said == self._known.get(found.server):
                return
            self._rests[found.server] = self._rest
            self._known[found.server] = said
        await self._on_found(found)


def _fingerprint(listing: Listing) -> bytes:
    """Tells listings apart in 32 bytes: whole ones would be a second copy of every catalogue."""
    said = json.dumps(asdict(listing), sort_keys=True, default=str)
    return hashlib.sha256(said.encode()).digest()
