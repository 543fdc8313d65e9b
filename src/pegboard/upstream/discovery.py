"""What the servers offer: found at first, all at once; looked at again when they say it changed."""

from __future__ import annotations

import hashlib
import json
import logging
import math
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from pegboard.core.json import JsonObject
from pegboard.errors import PegboardError, UpstreamError
from pegboard.upstream.causes import with_server_name
from pegboard.upstream.listing import Listing, Reader, read_listing, read_tools
from pegboard.upstream.pool import Pool
from pegboard.upstream.switchboard import UpstreamEvent
from pegboard.upstream.variants import PLAIN, Kind

QUIET = 0.2
"""Seconds from an announcement to the look: they come in swarms, and some while a server starts."""
BURST = 3
"""Looks at one server that may follow each other without a rest."""
REST = 5.0
"""Seconds in which one server is looked at so often; doubles while there is nothing new."""
LONGEST_REST = 300.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Found:
    """What became of one server: its listing, or why there is none."""

    server: str
    listing: Listing | None
    error: PegboardError | None
    seconds: float


Progress: TypeAlias = Callable[[int, int, Found], None]
"""Told of each server as it is in: how many are, of how many, and which."""


@asynccontextmanager
async def discover(
    pool: Pool,
    servers: Iterable[str] | None = None,
    *,
    bound: int = 8,
    progress: Progress = lambda done, total, found: None,
) -> AsyncGenerator[MemoryObjectReceiveStream[Found]]:
    """List servers (all, unless named), `bound` at a time; each is received as soon as it is in.

        async with discover(pool) as found:
            async for one in found: ...

    A server that cannot be listed is received with its error; it holds up no other, except by the
    one place of `bound` that it takes until its `start_timeout`.
    """
    names = [spec.name for spec in pool.servers] if servers is None else list(servers)
    send, receive = anyio.create_memory_object_stream[Found](len(names))
    places = anyio.CapacityLimiter(bound)
    done = 0

    async def look(name: str, out: MemoryObjectSendStream[Found]) -> None:
        async def report(found: Found) -> None:
            nonlocal done
            done += 1
            progress(done, len(names), found)
            await out.send(found)

        async with out, places:
            await _look(pool, name, report)

    async with receive, anyio.create_task_group() as tasks:
        with send:
            for name in names:
                tasks.start_soon(look, name, send.clone())
        yield receive
        tasks.cancel_scope.cancel()


async def read_variant(pool: Pool, name: str, kind: Kind) -> tuple[JsonObject, ...]:
    """The tools that a server lists to clients of a kind.

    Raises:
        PegboardError: it cannot be reached, or cannot list them.
    """
    async with pool.visit(name, (kind,)) as connection:
        return await read_tools(connection, Reader(kind))


async def _look(
    pool: Pool,
    name: str,
    report: Callable[[Found], Awaitable[None]],
    kinds: Sequence[Kind] = (PLAIN,),
) -> None:
    """Report what one server offers, before the connection that was opened for it is ended."""
    began = anyio.current_time()
    try:
        async with pool.visit(name, kinds) as connection:
            listing = await read_listing(connection)
            await report(Found(name, listing, None, anyio.current_time() - began))
    except PegboardError as exc:
        exc.message = with_server_name(name, exc.message)
        await report(Found(name, None, exc, anyio.current_time() - began))
    except Exception as exc:  # whatever a server may do, it must not end the look at others
        _log.exception("Looking at %s failed", name)
        error = UpstreamError(f"{name} could not be listed: {exc!r}", server=name)
        await report(Found(name, None, error, anyio.current_time() - began))


class Refresher:
    """Looks at a server again after it has announced a change, and reports what is new.

    However often a server announces, it is looked at once for a swarm of announcements. The first
    few looks follow at once; a server that goes on announcing is looked at `BURST` times in `rest`
    seconds, and one that announces and changes nothing ever less often.
    """

    def __init__(
        self,
        pool: Pool,
        on_found: Callable[[Found], Awaitable[None]],
        *,
        quiet: float = QUIET,
        rest: float = REST,
        kinds: Callable[[str], Sequence[Kind]] = lambda server: (PLAIN,),
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
        return looks[0] + self._rests.get(server, self._rest) if len(looks) == BURST else 0.0

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
                    self._looks.setdefault(server, deque(maxlen=BURST)).append(now)
                    tasks.start_soon(self._refresh, server)
                with anyio.CancelScope(deadline=min(waiting.values(), default=math.inf)):
                    await self._wake.wait()

    async def _refresh(self, server: str) -> None:
        try:
            await _look(self._pool, server, self._compare, self._kinds(server))
        finally:
            self._busy.discard(server)
            self._wake.set()

    async def _compare(self, found: Found) -> None:
        rest = self._rests.get(found.server, self._rest / 2)
        self._rests[found.server] = min(rest * 2, LONGEST_REST)
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
