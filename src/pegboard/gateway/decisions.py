"""What operators decide over a gateway's tools while it runs: the lock, switches, a rollout.

Each is stored where replicas share it, and every one of them follows it. Decisions have a store of
their own, which evicts nothing and has no local stand-in: while the lock or the switches have not
been read, no tool of a server can be used.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import anyio

from pegboard.config import Configuration
from pegboard.core.tools import Tool
from pegboard.errors import PegboardError
from pegboard.gateway.offers import Offers
from pegboard.gateway.supervision import log_failure
from pegboard.gateway.switches import Switches
from pegboard.gateway.trust import trust_of
from pegboard.observe.rollouts import Rollouts, Told
from pegboard.ports import Store
from pegboard.store.fallback import decision_store
from pegboard.store.memory import MemoryStore
from pegboard.upstream.kept import KeptCatalogue

logger = logging.getLogger(__name__)


class Decisions:
    """All of them, as far as this gateway knows them now."""

    def __init__(self, configuration: Configuration, store: Store, told: Sequence[Told]) -> None:
        beside = configuration.files[0].parent if configuration.files else Path.cwd()
        self.store = decision_store(store)
        self.trust = trust_of(configuration.settings, beside, self.store)
        self.switches = Switches(self.store)
        self.rollouts = Rollouts(self.store, told)
        self.configure(configuration)

    @property
    def are_known(self) -> bool:
        """Whether the lock and the switches have been read."""
        return self.trust.is_known and self.switches.is_known

    @property
    def are_shared(self) -> bool:
        """Whether other processes can take part in them: by a lock, or by a shared store."""
        return self.trust.locks is not None or not isinstance(self.store, MemoryStore)

    def configure(self, configuration: Configuration) -> None:
        """Take what a configuration says of trust."""
        self.trust.configure(configuration.upstreams, configuration.settings.trust)

    async def load(self) -> None:
        """Read what was decided, before any tool is shown; what cannot be read stays unknown."""
        for part in (self.trust, self.switches, self.rollouts):
            try:
                await part.load()
            except PegboardError as exc:
                if part is not self.trust:  # which warns by itself
                    logger.warning("Operators' decisions cannot be read: %s", exc.message)

    async def see(self, offers: Offers) -> None:
        """Record the definitions that servers offer, where the lock does not have them yet."""
        for name in [name for name in offers.specs if name in offers]:
            try:
                await self.trust.see(name, offers[name])
            except Exception as exc:  # of one server; the others are judged all the same
                log_failure(f"What {name} lists could not be compared with the lock", exc)

    def take(self, other: Decisions) -> None:
        """Go by what another reader of the same records found."""
        self.trust.take(other.trust)
        self.switches.take(other.switches)

    def judged(self, tool: Tool, catalogue: KeptCatalogue) -> Tool:
        """The tool as it may be shown: itself, switched off, or a stand-in where it is held."""
        return self.switches.judged(self.trust.judged(tool, catalogue))

    async def follow(
        self,
        *,
        locked: Callable[[], Awaitable[None]],
        switched: Callable[[], None],
        rolled_out: Callable[[], None],
    ) -> None:
        """Keep to what is decided anywhere, until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.trust.watch, locked)
            tasks.start_soon(self.switches.follow, switched)
            tasks.start_soon(self.rollouts.follow, rolled_out)
