"""What people decide over a gateway's tools while it runs: the lock, switches, a rollout.

Each is kept where replicas share it, and every one of them follows it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import anyio

from pegboard.config import Configuration
from pegboard.core.tools import Tool
from pegboard.gateway.switches import Switches
from pegboard.gateway.trust import trust_of
from pegboard.observe.rollouts import Rollouts, Told
from pegboard.ports import Store


class Decisions:
    """All of them, as far as this gateway knows them now."""

    def __init__(self, configuration: Configuration, store: Store, told: Sequence[Told]) -> None:
        beside = configuration.files[0].parent if configuration.files else Path.cwd()
        self.trust = trust_of(configuration.settings, beside, store)
        self.switches = Switches(store)
        self.rollouts = Rollouts(store, told)

    def configure(self, configuration: Configuration) -> None:
        """Take what a configuration says of trust."""
        self.trust.configure(configuration.upstreams, configuration.settings.trust.mode)

    async def load(self) -> None:
        """Read what was decided, before any tool is shown."""
        await self.trust.load()
        await self.switches.load()
        await self.rollouts.load()

    def judged(self, tool: Tool) -> Tool:
        """The tool as it may be shown: itself, switched off, or a stand-in where it is held."""
        return self.switches.judged(self.trust.judged(tool))

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
