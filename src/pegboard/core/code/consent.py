"""The question that a person answers before a program destroys anything.

It lists the exact calls. Consent covers these and no others; each covers one call. If a program
makes more calls than a person would read, they are asked again: calls that were not shown are not
covered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pegboard.core.code.ledger import CallRecord, count_calls
from pegboard.core.json import JsonObject, compact
from pegboard.core.sanitization import escape_hidden_json

MAX_LISTED = 50
"""Calls in one question."""
_MAX_ARGUMENTS = 400
_TAIL = 100


@dataclass(frozen=True, slots=True)
class ConsentQuestion:
    """What a program is about to do.

    Args:
        records: The destructive calls, in order.
        writes: Its other writes, which need no consent.
        is_complete: False where the preview could not be run to the end: there may be further
            calls, and they will be asked about.
    """

    records: tuple[CallRecord, ...]
    writes: tuple[CallRecord, ...] = ()
    is_complete: bool = True

    @property
    def calls(self) -> tuple[tuple[str, JsonObject], ...]:
        """The name of each tool, with the arguments."""
        return tuple((record.name, record.arguments) for record in self.records)

    @property
    def text(self) -> str:
        """The question as a person reads it."""
        lines = [f"A program is about to call {count_calls(self.records)}:", *self.lines()]
        if self.writes:
            lines.append(f"It also writes: {count_calls(self.writes)}.")
        if not self.is_complete:
            lines.append("It may want to delete more after that; you will be asked again.")
        return "\n".join(lines)

    def lines(self) -> list[str]:
        """The calls, one on each line."""
        lines: list[str] = []
        for record in self.records:
            # A server or a program chose these texts, and a person relies on them: invisible
            # characters are escaped, and the end of a long one is shown too, where text could be
            # hidden.
            parts = [f"{key}={compact(value)}" for key, value in record.arguments.items()]
            text = " ".join(escape_hidden_json(", ".join(parts)).split())
            if len(text) > _MAX_ARGUMENTS:
                start, end = text[: _MAX_ARGUMENTS - _TAIL], text[-_TAIL:]
                text = f"{start} … {end} [{len(text)} characters]"
            lines.append(f"- {record.name}({text})")
        return lines

    def to_json(self) -> JsonObject:
        """The stored form."""
        return {
            "records": _records_to_json(self.records),
            "writes": _records_to_json(self.writes),
            "is_complete": self.is_complete,
        }

    @classmethod
    def from_json(cls, stored: JsonObject) -> ConsentQuestion:
        """Read the stored form."""
        return cls(
            _records_from_json(stored["records"]),
            _records_from_json(stored["writes"]),
            stored["is_complete"],
        )


def _records_to_json(records: Sequence[CallRecord]) -> list[JsonObject]:
    return [record.to_json() for record in records]


def _records_from_json(stored: Sequence[JsonObject]) -> tuple[CallRecord, ...]:
    return tuple(CallRecord.from_json(record) for record in stored)
