"""What replicas tell each other: that a server lists other tools now.

Every replica holds all catalogues itself. When one has seen a server change, the others take the
new catalogue from the folder that they share, or ask the server themselves; each then tells its own
clients.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable

from pegboard.core.json import Json
from pegboard.errors import StoreError
from pegboard.ports import Store

logger = logging.getLogger(__name__)

TOPIC = "catalogues"


class ReplicaChannel:
    """This replica among those that share a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.id = secrets.token_hex(8)

    async def tell(self, server: str, catalogue: str) -> None:
        """Say that a server lists something new; `catalogue` is the hash of it."""
        try:
            message = {"from": self.id, "server": server, "hash": catalogue}
            await self._store.publish(TOPIC, message)
        except StoreError as exc:
            logger.warning("Other replicas do not hear that %s changed: %s", server, exc)

    async def follow(self, changed: Callable[[str | None, str | None], Awaitable[None]]) -> None:
        """Call `changed` with what others say, until cancelled; without a name when some was lost.

        Args:
            changed: Takes the server and the hash of its new catalogue.
        """
        async with self._store.subscribe(TOPIC) as messages:
            async for message in messages:
                if message is None:
                    await changed(None, None)
                elif _is_announcement(message) and message["from"] != self.id:
                    await changed(message["server"], message["hash"])


def _is_announcement(message: Json) -> bool:
    return isinstance(message, dict) and all(
        isinstance(message.get(key), str) for key in ("from", "server", "hash")
    )
