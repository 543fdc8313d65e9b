"""The calls of a run: what was done, so that a retry does not do it again.

    first try    list_issues  add_comment(1)  add_comment(2)  KeyError
    second try   list_issues  add_comment(1)  add_comment(2)  add_comment(3) ...
                 └──────── answered from the record ───────┘  └── made

A completed call answers one call of the same tool with the same arguments, in order. Two equal
calls in a program are two calls, and need two records. Calls that the second try did not reach are
copied to its record, so that a third try does not make them again either. A write that may have
happened is not made again: the program gets an error, because only its author can check.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from pegboard.core.code.steps import Answer, ErrorType, Raised, Returned
from pegboard.core.json import Json, JsonObject, compact, digest
from pegboard.core.tools import Risk, Tool

CallState: TypeAlias = Literal["running", "done", "failed", "unknown"]
"""`unknown`: it was begun, and nobody knows whether it took effect."""

MAX_READ_BYTES = 8_000_000
"""Bytes of read results that are stored. A program may read far more than that; a retry repeats
the reads whose results were not stored."""
_MAX_NAMES = 12
_MAY_HAVE_HAPPENED = (
    "the earlier try may have made this call. Check that; then leave it out here, and if it is "
    "missing, make it in a program without `after`."
)


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call of a run; calls with an equal `key` are the same call."""

    tool: str
    name: str
    key: str
    risk: Risk
    arguments: JsonObject = field(default_factory=dict[str, Json])
    state: CallState = "running"
    value: Json = None
    error: str | None = None
    """The message of the exception that the program got instead of the value."""
    error_type: ErrorType = "RuntimeError"
    is_reused: bool = False
    is_held: bool = True
    """Whether arguments and value are still stored, so that it can answer a later call."""

    def to_json(self) -> JsonObject:
        """The stored form."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "is_reused"}

    @classmethod
    def from_json(cls, stored: JsonObject) -> CallRecord:
        """Read the stored form."""
        return cls(**stored)

    @property
    def answer(self) -> Answer:
        """What the program got from the call."""
        if self.error is None:
            return Returned(self.value)
        return Raised(self.error_type, self.error)


def start_record(tool: Tool, name: str, arguments: JsonObject) -> CallRecord:
    """The record of a call that begins."""
    # Without the digest of the definition: a write is not repeated because its tool was reworded.
    key = digest([tool.id, arguments])
    return CallRecord(tool.id, name, key, tool.risk, arguments)


class Ledger:
    """The calls of one run in the order in which they were made, after those of an earlier try.

    In a replay, calls that failed are answered by their records, too.
    """

    def __init__(self, earlier: Iterable[CallRecord] = (), *, is_replay: bool = False) -> None:
        self._is_replay = is_replay
        self.calls: list[CallRecord] = []
        self._read_bytes = 0
        self._earlier: dict[str, deque[CallRecord]] = {}
        self.add_earlier(earlier)

    def has_earlier(self, call: CallRecord) -> bool:
        """Whether an earlier call will answer this one."""
        return bool(self._earlier.get(call.key))

    def begin(self, call: CallRecord) -> tuple[int, CallRecord | None]:
        """Note a call: its number, and the earlier call that answers it, if there is one."""
        number = len(self.calls)
        earlier = self._earlier.get(call.key)
        found = earlier.popleft() if earlier else None
        if found is not None:
            call = replace(found, is_reused=True)
            if call.state == "unknown" and not self._is_replay:
                call = replace(call, error=f"{call.name}: {_MAY_HAVE_HAPPENED}")
        self.calls.append(call)
        return number, None if found is None else call

    def finish(self, number: int, state: CallState, answer: Answer | None = None) -> None:
        """Record how a call ended, and what the program gets from it."""
        call = replace(self.calls[number], state=state)
        if isinstance(answer, Returned):
            call = replace(call, value=answer.value)
        elif answer is not None:
            call = replace(call, error=answer.message, error_type=answer.type)
        if call.risk == "read":
            size = len(compact([call.arguments, call.value]))
            if self._read_bytes + size > MAX_READ_BYTES:
                call = replace(call, arguments={}, value=None, is_held=False)
            else:
                self._read_bytes += size
        self.calls[number] = call

    @property
    def made(self) -> list[CallRecord]:
        """The calls that this run made itself."""
        return [call for call in self.calls if not call.is_reused]

    @property
    def unused(self) -> list[CallRecord]:
        """Calls of the earlier try that this one has not reached."""
        return [call for calls in self._earlier.values() for call in calls]

    def add_earlier(self, calls: Iterable[CallRecord]) -> None:
        """Answer later calls from these records too, after the existing ones."""
        for call in calls:
            if not call.is_held:
                continue
            is_doubtful = call.state == "unknown" and call.risk != "read"
            is_failure = self._is_replay and call.error is not None
            if call.state == "done" or is_doubtful or is_failure:
                self._earlier.setdefault(call.key, deque()).append(call)

    def save(self) -> JsonObject:
        """The whole ledger, for a run that will be continued."""
        return {
            "calls": [call.to_json() for call in self.calls],
            "reused": [call.is_reused for call in self.calls],
            "earlier": [call.to_json() for call in self.unused],
        }

    @classmethod
    def load(cls, saved: JsonObject) -> Ledger:
        """Read what `save` returned."""
        ledger = cls(CallRecord.from_json(call) for call in saved["earlier"])
        for call, is_reused in zip(saved["calls"], saved["reused"], strict=True):
            ledger.calls.append(replace(CallRecord.from_json(call), is_reused=is_reused))
        return ledger

    def to_json(self, max_bytes: int) -> list[JsonObject]:
        """All calls that ended, as they are stored.

        Over `max_bytes`, results of reads are left out first, the largest first: a read can be
        repeated, and a write must not be.
        """
        calls = [*self.calls, *self.unused]
        stored = [call.to_json() for call in calls if call.state != "running" and call.is_held]
        sizes = [len(compact(call)) for call in stored]
        excess = sum(sizes) - max_bytes
        dropped: set[int] = set()
        for position in sorted(range(len(stored)), key=lambda i: -sizes[i]):
            if excess <= 0:
                break
            if stored[position]["risk"] == "read":
                dropped.add(position)
                excess -= sizes[position]
        return [call for i, call in enumerate(stored) if i not in dropped]


def count_calls(calls: Sequence[CallRecord]) -> str:
    """Calls in a line: `list_issues, add_comment ×3`."""
    counted = Counter(call.name for call in calls)
    parts = [name if n == 1 else f"{name} ×{n}" for name, n in counted.items()]
    if len(parts) > _MAX_NAMES:
        parts = [*parts[:_MAX_NAMES], f"and {len(parts) - _MAX_NAMES} others"]
    return ", ".join(parts)
