"""The question that a person answers before a program destroys anything.

It lists the exact calls. Consent covers these and no others; each covers one call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pegboard.core.code.ledger import CallRecord, count_calls
from pegboard.core.json import JsonObject, compact
from pegboard.core.sanitization import sanitize_line

_MAX_LISTED = 20
_MAX_ARGUMENTS = 120


@dataclass(frozen=True, slots=True)
class ConsentQuestion:
    """What a program is about to do.

    Args:
        records: The destructive calls, in order.
        writes: What it will write besides, which needs no consent.
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
            lines.append(f"Besides that, it writes: {count_calls(self.writes)}.")
        if not self.is_complete:
            lines.append("It may want to make more calls then, which you will be asked about.")
        return "\n".join(lines)

    def lines(self) -> list[str]:
        """The calls, one on each line, up to a limit."""
        shown = [f"- {r.name}({_write_arguments(r.arguments)})" for r in self.records[:_MAX_LISTED]]
        if (more := len(self.records) - _MAX_LISTED) > 0:
            shown.append(f"- and {more} more like these")
        return shown

    def to_json(self) -> JsonObject:
        """As it is stored."""
        return {
            "records": _records_to_json(self.records),
            "writes": _records_to_json(self.writes),
            "is_complete": self.is_complete,
        }

    @classmethod
    def from_json(cls, stored: JsonObject) -> ConsentQuestion:
        """From what `to_json` gave."""
        return cls(
            _records_from_json(stored["records"]),
            _records_from_json(stored["writes"]),
            stored["is_complete"],
        )


def _records_to_json(records: Sequence[CallRecord]) -> list[JsonObject]:
    return [record.to_json() for record in records]


def _records_from_json(stored: Sequence[JsonObject]) -> tuple[CallRecord, ...]:
    return tuple(CallRecord.from_json(record) for record in stored)


def _write_arguments(arguments: JsonObject) -> str:
    # A server or a program chose these texts, and a person decides by them: nothing invisible.
    parts = [f"{key}={compact(value)}" for key, value in arguments.items()]
    return sanitize_line(", ".join(parts), _MAX_ARGUMENTS)
