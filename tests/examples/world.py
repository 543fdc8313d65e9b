"""The example servers as a test sees them: calls through the real board, a clock that stands still.

The demo data is made once; before each test it is copied over the database that the boards work on.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from examples.database import Database, iso

from pegboard import Pegboard, PegboardError


class Clock:
    """Stands still until it is moved."""

    def __init__(self, start: datetime) -> None:
        self.start = self.time = start

    def __call__(self) -> datetime:
        return self.time

    def forward(self, **amount: float) -> None:
        self.time += timedelta(**amount)

    @property
    def text(self) -> str:
        return iso(self.time)


class Caller:
    """Calls tools of a board and hands back what they answer."""

    def __init__(self, board: Pegboard) -> None:
        self.board = board

    async def __call__(self, tool: str, /, **arguments: Any) -> Any:
        result = await self.board.call(tool, arguments)
        assert not result.is_error, result
        assert result.structured is not None
        return result.structured

    async def refused(self, tool: str, /, **arguments: Any) -> str:
        """The message with which a call is refused."""
        with pytest.raises(PegboardError) as caught:
            await self.board.call(tool, arguments)
        assert caught.value.kind in ("tool_error", "invalid_arguments"), caught.value
        return caught.value.message


class World:
    """One example server with its demo data, as new for every test."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self.database = database
        self.clock = clock
        self._pristine = sqlite3.connect(":memory:")
        database.connection.backup(self._pristine)

    def reset(self) -> None:
        self.clock.time = self.clock.start
        self._pristine.backup(self.database.connection)

    def close(self) -> None:
        self._pristine.close()
        self.database.connection.close()


class TrackerWorld(World):
    """The tracker; `world.ana`, `world.ben` ... call as that member."""

    def __init__(
        self, database: Database, clock: Clock, board_of: Callable[[str], Pegboard]
    ) -> None:
        super().__init__(database, clock)
        self.ana = Caller(board_of("ana"))
        self.ben = Caller(board_of("ben"))
        self.chen = Caller(board_of("chen"))
        self.dora = Caller(board_of("dora"))
