"""The tracker: an open database as one member of the workspace sees it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from ..database import Clock, Database, connect, system_clock

SCHEMA = Path(__file__).with_name("schema.sql")


@dataclass(frozen=True)
class Tracker(Database):
    """What the tools of the tracker work on; `me` is who asks."""

    me: str = "ana"

    @classmethod
    def open(cls, path: str, *, me: str = "ana", now: Clock = system_clock) -> Tracker:
        """Open the database at `path` (or `:memory:`), with its tables in place."""
        return cls(connect(path, SCHEMA), now, me=me)

    def acting_as(self, member: str, now: Clock | None = None) -> Tracker:
        """The same database as another member sees it, perhaps at another time."""
        return replace(self, me=member, now=now or self.now)
