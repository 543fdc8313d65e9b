"""Records of runs in the store: what a retry must not repeat, and what waits for consent.

A record belongs to one principal. Its handle is random, and the key in the store is a hash of both,
so that nobody finds the record of another, and unknown, expired and foreign handles look the same.

Any replica can continue a run that waits for consent. What is stored is the paused program
itself, the answers that it has not been given yet, the calls that were made, and the question. The
bytes of the program come from our own sandbox and go back to the same version of it; they are never
taken from a client.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pegboard.core.code.consent import ConsentQuestion
from pegboard.core.code.ledger import Ledger
from pegboard.core.code.program_tools import ProgramTools
from pegboard.core.code.steps import Answer, Raised, Returned
from pegboard.core.json import Json, JsonObject, digest
from pegboard.core.tools import Catalog, Tool
from pegboard.errors import InvalidArguments, StoreError
from pegboard.ports import Records
from pegboard.programs.scope import ConsentChannel


class RunStorage:
    """The records of all principals, each for a limited time."""

    def __init__(
        self, store: Records, ttl: float, *, clock: Callable[[], float] = time.time
    ) -> None:
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
        return self._check(await self._store.get(_key(principal, handle)))

    def _check(self, record: Json) -> JsonObject:
        if isinstance(record, dict) and record["expires_at"] > self._clock():
            return record
        # While a shared store is unavailable, memory replaces it, but has few of its runs.
        if not getattr(self._store, "is_shared", True):
            raise StoreError(
                "Nothing ran. The shared store cannot be reached, so this run cannot be looked up: "
                "try again with the same handle."
            )
        raise self.unknown()

    @staticmethod
    def unknown() -> InvalidArguments:
        """The error for a handle that names nothing for this principal."""
        return InvalidArguments(
            "Nothing ran. This run is unknown, expired or was already continued: "
            "check what it has done before you run its program again."
        )

    async def take(self, principal: str, handle: str) -> JsonObject:
        """Load a record and delete it, so that it can be used only once. Raises as `load` does."""
        taken: list[Json] = []

        def remove(record: Json) -> Json:
            taken[:] = [record]  # a store may run a change again, and the last run counts
            return None

        await self._store.update(_key(principal, handle), remove)
        return self._check(taken[0])


def _key(principal: str, handle: str) -> str:
    return f"run:{digest([principal, handle])}"


@dataclass(frozen=True, kw_only=True)
class SuspendedRun:
    """Everything that a run needs to continue."""

    id: str
    program: str
    blob: bytes
    version: str
    names: Mapping[str, str]
    """The tools that it names: the name in the program, the digest of id and definition."""
    is_async: bool
    settled: Mapping[int, Answer]
    ledger: Ledger
    question: ConsentQuestion
    channel: ConsentChannel
    printed: str = ""

    def to_json(self) -> JsonObject:
        """The stored form."""
        return {
            "id": self.id,
            "program": self.program,
            "blob": base64.b64encode(self.blob).decode(),
            "version": self.version,
            "names": dict(self.names),
            "is_async": self.is_async,
            "settled": {
                str(number): {"value": answer.value}
                if isinstance(answer, Returned)
                else {"error": answer.type, "message": answer.message}
                for number, answer in self.settled.items()
            },
            "ledger": self.ledger.save(),
            "question": self.question.to_json(),
            "channel": self.channel,
            "printed": self.printed,
        }

    @classmethod
    def from_json(cls, stored: JsonObject) -> SuspendedRun:
        """Read the stored form."""
        return cls(
            id=stored["id"],
            program=stored["program"],
            blob=base64.b64decode(stored["blob"]),
            version=stored["version"],
            names=stored["names"],
            is_async=stored["is_async"],
            settled={
                int(number): Raised(answer["error"], answer["message"])
                if "error" in answer
                else Returned(answer["value"])
                for number, answer in stored["settled"].items()
            },
            ledger=Ledger.load(stored["ledger"]),
            question=ConsentQuestion.from_json(stored["question"]),
            channel=stored["channel"],
            printed=stored["printed"],
        )

    def find_tools(self, catalog: Catalog) -> dict[str, Tool] | None:
        """The tools that it names; `None` if one has changed, or is not there for this caller."""
        known = ProgramTools.of(catalog).by_name
        tools = {name: known[name] for name in self.names if name in known}
        return tools if identify_tools(tools) == self.names else None


def identify_tools(tools: Mapping[str, Tool]) -> dict[str, str]:
    """Identifies tools by their ids and definitions, to notice when one has changed."""
    return {name: f"{tool.id} {tool.digest} {tool.risk}" for name, tool in tools.items()}
