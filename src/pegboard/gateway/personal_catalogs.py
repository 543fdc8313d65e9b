"""Catalogs of one caller each, of servers that list nothing without a login.

A catalog is normally read once, with the credential of the operator, and shared by all callers. A
server for which the operator has none refuses to be listed. Then each caller who has a credential
of their own gets a catalog of their own, because the list may contain private names:

    view(caller)   known            add it to the catalog that the caller sees
                   not known        list the server as this caller, and wait a moment
                   outdated         use it, and list the server again in the background

These catalogs are in memory only. They are added when a view is built, so nothing that is computed
for all callers ever contains them. Only tools are listed, no prompts or resources.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup

from pegboard.core.caches import BoundedCache
from pegboard.core.calls import Caller
from pegboard.core.tools import Catalog, Tool
from pegboard.errors import PegboardError
from pegboard.gateway.catalogs import ServerCatalogs
from pegboard.upstream.catalog_cache import CachedCatalog
from pegboard.upstream.downstream import Downstream
from pegboard.upstream.inbound_router import UpstreamEvent
from pegboard.upstream.listing import read_tools
from pegboard.upstream.pool import ConnectionPool

if TYPE_CHECKING:
    from pegboard.board import Pegboard
    from pegboard.modes.mode import View

logger = logging.getLogger(__name__)

MAX_CATALOGS = 1_024
"""Catalogs of callers in memory; the least recently used one is listed again when needed."""
RETRY_AFTER = 30.0
"""Seconds until a server that did not list its tools to a caller is listed again."""
REFRESH_AFTER = 600.0
_MEMO = "personal tools"


@dataclass(eq=False)
class _PersonalCatalog:
    """What one server lists to one caller."""

    catalog: CachedCatalog | None = None
    is_listing: bool = False
    listed: anyio.Event = field(default_factory=anyio.Event)
    """Set when it was listed for the first time, or could not be."""
    wait_until: float = 0.0
    refresh_at: float = 0.0
    tools: list[Tool] | None = None


class PersonalCatalogs:
    """The catalogs of single callers.

    Args:
        catalogs: The shared catalogs; they know the servers and the names of tools.
        pool: Connections to the servers.
        record: Records definitions in the lock before anybody sees them.
        listing_wait: Seconds for which an answer waits for a caller's first listing.
    """

    def __init__(
        self,
        catalogs: ServerCatalogs,
        pool: ConnectionPool,
        *,
        record: Callable[[str, CachedCatalog], Awaitable[None]],
        listing_wait: float,
    ) -> None:
        self._catalogs = catalogs
        self._pool = pool
        self._record = record
        self._listing_wait = listing_wait
        self._known: BoundedCache[tuple[str, str], _PersonalCatalog] = BoundedCache(MAX_CATALOGS)
        self._version = 0
        self.servers: set[str] = set()
        """Servers that cannot be listed without a login."""

    # Listing -----------------------------------------------------------------------------------

    async def wait_for(self, caller: Caller, tasks: TaskGroup | None) -> None:
        """Return when a caller's catalogs are known, or when the wait is over."""
        if caller.is_local_user or caller.anonymous or tasks is None:
            return
        for name in sorted(self.servers):
            if name not in self._catalogs.specs:
                continue
            key = name, caller.principal
            known = self._known.get(key) or self._known.put(key, _PersonalCatalog())
            now = anyio.current_time()
            if not known.is_listing and now >= known.refresh_at:
                known.is_listing = True
                known.wait_until = now + self._listing_wait
                tasks.start_soon(self._list, name, caller, known)
            with anyio.CancelScope(deadline=known.wait_until):
                await known.listed.wait()

    async def _list(self, name: str, caller: Caller, known: _PersonalCatalog) -> None:
        # Not the caller of the request: its session may end before the listing does.
        principal = caller.principal
        downstream = Downstream(Caller(principal, token=caller.token), None, {})
        pause = RETRY_AFTER
        try:
            async with self._pool.use(name, downstream) as connection:
                entries = await read_tools(connection, downstream)
            catalog = self._catalogs.parse_entries(name, entries)
            await self._record(name, catalog)
            known.catalog, known.tools = catalog, None
            pause = REFRESH_AFTER
        except PegboardError as exc:
            logger.debug("%s lists nothing to %s: %s", name, principal, exc.message)
        except Exception:  # the outermost frame of this task: the caller sees the other servers
            logger.exception("%s could not be listed for one caller", name)
        finally:
            known.refresh_at = anyio.current_time() + pause
            known.is_listing = False
            known.listed.set()

    def forget(self, server: str, principal: str) -> None:
        """List a server again for a caller who has just logged in."""
        self._known.put((server, principal), _PersonalCatalog())

    async def on_event(self, event: UpstreamEvent) -> None:
        """List a server again that has announced a change."""
        if event.change == "tools" and event.server in self.servers:
            for server, principal in list(self._known):
                if server == event.server and (one := self._known.get((server, principal))):
                    one.refresh_at = 0.0

    def on_mount(self) -> None:
        """Apply changed decisions of operators and changed names of tools."""
        self._version += 1
        for key in list(self._known):
            if (known := self._known.get(key)) is not None:
                known.tools = None

    # Showing -----------------------------------------------------------------------------------

    def has_catalog(self, server: str, caller: Caller) -> bool:
        """Whether a caller has a catalog of their own of this server."""
        known = self._known.get((server, caller.principal)) if server in self.servers else None
        return known is not None and known.catalog is not None

    def extend(self, view: View, board: Pegboard) -> None:
        """Add a caller's own tools to what they see."""
        caller = view.caller
        if caller.is_local_user or caller.anonymous:
            return
        own = {
            name: known
            for name in sorted(self.servers)
            if (known := self._known.get((name, caller.principal))) and known.catalog is not None
        }
        if not own:
            return

        def combine(shared: Catalog) -> Catalog:
            grant = board.policy.grant(caller)
            memo: BoundedCache[object, Catalog] = shared.memo.setdefault(_MEMO, BoundedCache(256))
            versions = tuple((name, known.catalog) for name, known in own.items())
            key = caller.principal, grant, self._version, versions
            combined = memo.get(key)
            if combined is None:
                mine: list[Tool] = []
                for name, known in own.items():
                    if known.tools is None and known.catalog is not None:
                        built = self._catalogs.build_tools(name, known.catalog)
                        known.tools = [board.prepare_tool(tool) for tool in built]
                    mine += known.tools or ()
                tools = [t for t in mine if grant.allows(t) and shared.get(t.id) is None]
                combined = memo.put(key, Catalog([*shared, *tools], shared.categories))
            return combined

        whole = view.catalog = combine(view.catalog)
        view.index = lambda: board.index.restricted_to(whole)
        # Added to lists too, although these were fixed before the caller was known.
        view.constant = None if view.constant is None else combine(view.constant)
        view.plain = None if view.plain is None else combine(view.plain)
