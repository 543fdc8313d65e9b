"""A SQLite database as tools use it: rows, changes, transactions, and a clock that tests can fix.

Times are kept as UTC text of one width, so that their order as text is their order in time.
"""

from __future__ import annotations

import difflib
import sqlite3
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict

Row: TypeAlias = dict[str, Any]
Value: TypeAlias = str | int | float | bytes | bool | date | None
Clock: TypeAlias = Callable[[], datetime]


class Refused(ValueError):
    """What was asked breaks a rule; the message says what would be right."""


def _without_docstring(schema: dict[str, Any]) -> None:
    # The docstring of a class is for readers of the code. In a schema it costs tokens in every
    # listing that carries the schema; what fields mean is in the `fields` module of each server.
    schema.pop("description", None)


class Record(BaseModel):
    """The base of everything that a tool takes or gives back as an object."""

    model_config = ConfigDict(frozen=True, json_schema_extra=_without_docstring)


def system_clock() -> datetime:
    """The time now, in UTC."""
    return datetime.now(UTC)


def iso(moment: datetime) -> str:
    """A moment as it is stored; one without a zone is taken as UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(text: str) -> datetime:
    """A stored moment, back as a datetime in UTC."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


def unknown(what: str, asked: str | int, known: Iterable[str] = ()) -> Refused:
    """The error for something that is not there, with the nearest names that are."""
    names = list(known)
    near = difflib.get_close_matches(str(asked), names, n=3, cutoff=0.5) or sorted(names)[:8]
    hint = f" Known: {', '.join(near)}." if near else ""
    return Refused(f"There is no {what} {asked!r}.{hint}")


def changed(**values: Value) -> dict[str, Value]:
    """The arguments that were given: an update leaves the rest as it is.

    Raises:
        Refused: nothing was given.
    """
    given: dict[str, Value] = {k: v for k, v in values.items() if v is not None}
    if not given:
        raise Refused(f"Nothing to change: give at least one of {', '.join(values)}.")
    return given


def connect(path: str, schema: Path) -> sqlite3.Connection:
    """A connection to the database at `path` (or `:memory:`), with its tables in place."""
    # Tools run on worker threads; the lock of a `Database` keeps their transactions apart.
    connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA foreign_keys = ON")
    connection.executescript(schema.read_text(encoding="utf-8"))
    return connection


@dataclass(frozen=True)
class Database:
    """An open database and what time it is."""

    connection: sqlite3.Connection
    now: Clock = system_clock
    lock: threading.RLock = field(default_factory=threading.RLock)

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Keep all changes made inside, or none; a transaction inside another is part of it."""
        with self.lock:
            if self.connection.in_transaction:
                yield
                return
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self.connection.execute("ROLLBACK")
                raise
            self.connection.execute("COMMIT")

    def rows(self, sql: str, *values: Value) -> list[Row]:
        """All rows of a query."""
        return [dict(row) for row in self._execute(sql, values)]

    def row(self, sql: str, *values: Value) -> Row | None:
        """The first row of a query, or `None`."""
        found = self._execute(sql, values).fetchone()
        return dict(found) if found else None

    def value(self, sql: str, *values: Value) -> Any:
        """The first column of the first row, or `None`."""
        found = self._execute(sql, values).fetchone()
        return found[0] if found else None

    def column(self, sql: str, *values: Value) -> list[Any]:
        """The first column of every row."""
        return [row[0] for row in self._execute(sql, values)]

    def run(self, sql: str, *values: Value) -> int:
        """Carry out one change; the number of rows that it touched."""
        return self._execute(sql, values).rowcount

    def insert(self, table: str, **values: Value) -> int:
        """Add one row; its row id."""
        marks = ", ".join("?" * len(values))
        sql = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})"
        return self._execute(sql, tuple(values.values())).lastrowid or 0

    def update(self, table: str, where: str, key: Value, **values: Value) -> None:
        """Set columns of the rows whose column `where` has the value `key`."""
        if values:
            sets = ", ".join(f"{name} = ?" for name in values)
            self.run(f"UPDATE {table} SET {sets} WHERE {where} = ?", *values.values(), key)

    @property
    def stamp(self) -> str:
        """The time now, as it is stored."""
        return iso(self.now())

    @property
    def today(self) -> date:
        return self.now().astimezone(UTC).date()

    def _execute(self, sql: str, values: Iterable[Value]) -> sqlite3.Cursor:
        return self.connection.execute(sql, [_stored(value) for value in values])


def _stored(value: Value) -> str | int | float | bytes | None:
    if isinstance(value, datetime):
        return iso(value)
    return value.isoformat() if isinstance(value, date) else value
