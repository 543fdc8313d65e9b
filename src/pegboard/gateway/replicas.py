"""What replicas announce to each other: that a server has a new catalog.

Every replica holds all catalogs itself. When one has noticed that a server changed, the others take
the new catalog from the folder that they share, or list the server themselves. Each of them then
notifies its own clients.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable

from pegboard.errors import StoreError
from pegboard.ports import Store

logger = logging.getLogger(__name__)

TOPIC = "catalogs"


class ReplicaChannel:
    """The connection of this replica to the others that share its store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.id = secrets.token_hex(8)

    async def announce(self, server: str, catalog_hash: str) -> None:
        """Announce that a server has a new catalog."""
        try:
            message = {"from": self.id, "server": server, "hash": catalog_hash}
            await self._store.publish(TOPIC, message)
        except StoreError as exc:
            logger.warning("Other replicas are not notified that %s changed: %s", server, exc)

    async def follow(self, changed: Callable[[str | None, str | None], Awaitable[None]]) -> None:
        """Call `changed` for each announcement of another replica, until cancelled.

        Args:
            changed: Takes the server and the hash of its new catalog; `None` for both when
                announcements were lost, so that any server may have changed.
        """
        async with self._store.subscribe(TOPIC) as messages:
            async for message in messages:
                if message is None:
                    await changed(None, None)
                    continue
                match message:
                    # Anything else was published by a later version: it is ignored.
                    case {"from": str(sender), "server": str(server), "hash": str(catalog_hash)}:
                        if sender != self.id:
                            await changed(server, catalog_hash)
                    case _:
                        pass
