"""How a program runs, step by step: what a sandbox reports, and what it gets in return.

    start ──> Paused(calls, waits_for) ──resume(answers)──> Paused ──> ... ──> Completed(value)
                 └─ Paused(stopped_at): just before one call is made

A step that fails raises `ProgramFailed`, `LimitExceeded` or `SandboxFailed`. `to_json` writes the
values of a program, its result and the arguments of its calls, as JSON.
"""

from __future__ import annotations

import base64
import datetime
import math
from collections.abc import Mapping, Set
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, TypeAlias

from pegboard.core.json import Json

ErrorType: TypeAlias = Literal[
    "ValueError", "PermissionError", "TimeoutError", "RuntimeError", "TypeError", "NameError"
]
"""The exceptions that a call can raise inside a program."""


KEEP, KEPT = "keep", "kept"
"""Functions that a program calls without `await`: store a value, and get a stored one."""

SLEEP = "asyncio.sleep"
"""The name of a call that only waits, for `seconds`."""


@dataclass(frozen=True, slots=True)
class ProgramCall:
    """One call that a program makes. `arguments` are still Python values of the sandbox."""

    id: int
    name: str
    arguments: Mapping[str, Any]
    positional: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Returned:
    """The result of a call, as the program gets it."""

    value: Any


@dataclass(frozen=True, slots=True)
class Raised:
    """The exception that a call raises inside the program."""

    type: ErrorType
    message: str


@dataclass(frozen=True, slots=True)
class Later:
    """For a call that the program stopped at: continue; the answer follows."""


Answer: TypeAlias = Returned | Raised
Answers: TypeAlias = Mapping[int, Returned | Raised | Later]


@dataclass(frozen=True, slots=True)
class Paused:
    """The program waits.

    Args:
        calls: The calls that it has made since the last step, to be started now.
        waits_for: Ids of calls; it continues when at least one of them is answered.
        stopped_at: The call before which it stopped, if it did: answer this one.
    """

    calls: tuple[ProgramCall, ...] = ()
    waits_for: tuple[int, ...] = ()
    stopped_at: ProgramCall | None = None


@dataclass(frozen=True, slots=True)
class Completed:
    """The program ended with a value; `calls` were made and never awaited."""

    value: Any
    calls: tuple[ProgramCall, ...] = ()


Step: TypeAlias = Paused | Completed


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxLimits:
    """What a program may use, enforced from outside. Durations are seconds."""

    compute_time: float
    sleep_time: float
    memory_bytes: int
    recursion: int
    max_calls: int
    print_bytes: int
    seed: str = ""
    """The seed of random numbers."""
    now: float | None = None
    """A time at which the clock stands still, in seconds since the epoch; by default it runs."""


class ProgramFailed(Exception):
    """The program raised an exception that it did not catch."""

    def __init__(self, error: str, message: str, line: int | None = None) -> None:
        super().__init__(f"{error}: {message}" if message else error)
        self.error = error
        self.message = message
        self.line = line


class LimitExceeded(Exception):
    """The program used more than it may; it cannot catch this."""


class SandboxFailed(Exception):
    """The sandbox itself failed: its process died, or cannot be started."""


class ProgramRejected(Exception):
    """The checker found mistakes; `findings` is its own text. Nothing ran."""

    def __init__(self, findings: str) -> None:
        super().__init__(findings)
        self.findings = findings


_MAX_DEPTH = 100
_MAX_VALUES = 250_000
_MAX_INTEGER_BITS = 4_096
"""Larger integers become text: writing them takes quadratic time, and Python refuses it."""


class ValueTooLarge(ValueError):
    """A program's value is too large as JSON."""


def to_json(value: Any, max_bytes: int) -> Json:
    """A value as JSON; where JSON has no such type, the closest one, such as ISO text for a date.

    A program can build a value that is small in memory and enormous as JSON: a list that holds
    another one twice, which holds another one twice, and so on. So conversion limits the size.

    Raises:
        ValueTooLarge: It has more than `max_bytes`, or 250,000 values.
        ValueError: It is nested too deep.
    """
    return _Converter(max_bytes).convert(value, _MAX_DEPTH)


class _Converter:
    """Converts one value, and counts its size so far: never more than the size of its JSON."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.bytes_left = max_bytes
        self.values_left = _MAX_VALUES

    def convert(self, value: Any, depth: int) -> Json:
        match value:
            case None | bool():
                return self.count(value, 4)
            case str():
                return self.count(value, len(value))
            case int():
                is_short = value.bit_length() <= _MAX_INTEGER_BITS
                return self.count(value if is_short else hex(value), value.bit_length() // 4)
            case float():
                return self.count(value if math.isfinite(value) else None, 3)
            case datetime.datetime() | datetime.date() | datetime.time():
                return self.count(value.isoformat(), 8)
            case datetime.timedelta():
                return self.count(value.total_seconds(), 3)
            case Decimal():
                return self.count(text := str(value), len(text))
            case bytes():
                return self.count(base64.b64encode(value).decode(), len(value))
            case _:
                return self.convert_container(value, depth)

    def count(self, value: Json, size: int) -> Json:
        self.values_left -= 1
        self.bytes_left -= size
        if self.bytes_left < 0:
            raise ValueTooLarge(f"too large: value_bytes is {self.max_bytes}")
        if self.values_left < 0:
            raise ValueTooLarge(f"too large: it has more than {_MAX_VALUES:,} values")
        return value

    def convert_container(self, value: Any, depth: int) -> Json:
        if depth <= 0:
            raise ValueError(f"The value is nested deeper than {_MAX_DEPTH} levels.")
        match value:
            case Mapping():
                self.count(None, 2)
                return {
                    str(self.convert(key, 1)): self.convert(inner, depth - 1)
                    for key, inner in value.items()
                }
            case list() | tuple():
                self.count(None, 2)
                return [self.convert(inner, depth - 1) for inner in value]
            case Set():
                self.count(None, 2)
                items = [self.convert(inner, depth - 1) for inner in value]
                return sorted(items, key=repr)  # the order of a set is not fixed
            case BaseException():
                return self.count(text := f"{type(value).__name__}: {value}", len(text))
            case _:
                # An object of the program itself: its attributes are its data.
                attributes = getattr(value, "attributes", None)
                if isinstance(attributes, Mapping):
                    return self.convert_container(attributes, depth)
                return self.count(text := str(value), len(text))
