"""Records of runs in the store: what a second try must not repeat, and what waits for consent.

A record belongs to one principal. Its handle is random, and the key in the store is a hash of both,
so that nobody finds the record of another, and unknown, expired and foreign handles look the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from pegboard.core.json import Json, JsonObject, digest
from pegboard.errors import InvalidArguments
from pegboard.ports import Store


class RunStorage:
    """The records of all principals, each for a limited time."""

    def __init__(self, store: Store, ttl: float, *, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._ttl = ttl
        self._clock = clock

    async def save(self, principal: str, handle: str, record: JsonObject) -> None:
        """Store a record. Raises `StoreError`."""
        stored = {**record, "expires_at": self._clock() + self._ttl}
        await self._store.update(_key(principal, handle), lambda _: stored, ttl=self._ttl)

    async def load(self, principal: str, handle: str) -> JsonObject:
        """A record.

        Raises:
            InvalidArguments: It is unknown, expired or somebody else's.
            StoreError: The store cannot be reached.
        """
        record: Json = await self._store.get(_key(principal, handle))
        if not isinstance(record, dict) or record["expires_at"] <= self._clock():
            raise self.unknown()
        return record

    @staticmethod
    def unknown() -> InvalidArguments:
        """The error for a handle that names nothing for this principal."""
        return InvalidArguments(
            "Nothing ran. This run is unknown, expired or was already continued: "
            "run the program again."
        )

    async def take(self, principal: str, handle: str) -> JsonObject:
        """A record that nobody can take again. Raises as `load` does."""
        taken: list[Json] = []

        def remove(record: Json) -> Json:
            taken[:] = [record]  # a store may run a change again, and the last run counts
            return None

        await self._store.update(_key(principal, handle), remove)
        record = taken[0]
        if not isinstance(record, dict) or record["expires_at"] <= self._clock():
            raise self.unknown()
        return record


def _key(principal: str, handle: str) -> str:
    return f"run:{digest([principal, handle])}"
