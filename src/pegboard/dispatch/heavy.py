"""What may take long in a large result: at once where that is quick, else out of others' way.

JMESPath and patterns, which strangers write, run in a worker process. Tokens are counted in a
thread: the tokenizer takes linear time and does not hold the interpreter lock.
"""

from __future__ import annotations

from collections.abc import Sequence

from anyio import to_thread

from pegboard.core.budget import Count
from pegboard.core.json import Json
from pegboard.core.reading import MOST_CHARACTERS, MOST_VALUES, Found, Reading, find, is_heavy
from pegboard.core.schemas.keywords import measured
from pegboard.errors import InvalidArguments
from pegboard.offload import DeadlineExceeded, offload

MOST_COUNTED = 20_000
"""Characters that are counted in a few milliseconds."""


async def select_in(value: Json, expression: str) -> Json:
    """What an expression finds in a value.

    Raises:
        InvalidField: It cannot be run, or takes too long.
    """
    from pegboard.core.selection import QUICK, TooExpensive, evaluate, select, took_too_long

    size = measured(value, MOST_VALUES)
    if size is not None and size.characters <= MOST_CHARACTERS:
        try:
            return evaluate(value, expression, QUICK)
        except TooExpensive:
            pass  # it may take that long elsewhere
    try:
        return await offload(select, value, expression)
    except DeadlineExceeded as exc:
        raise took_too_long(expression, exc.message) from exc


async def find_in(value: Json, reading: Reading, most: int) -> Found:
    """What a page of a stored result is made of.

    Raises:
        InvalidArguments: A number or pattern is out of bounds, or the pattern takes too long.
        InvalidField: The path leads nowhere, or the expression cannot be run or takes too long.
    """
    if reading.select is None and reading.grep is None:
        return find(value, reading, most)
    from pegboard.core.selection import QUICK, TooExpensive, took_too_long

    if not is_heavy(value, reading):
        try:
            return find(value, reading, most, QUICK)
        except TooExpensive:
            pass  # it may take that long elsewhere
    try:
        return await offload(find, value, reading, most)
    except DeadlineExceeded as exc:
        if reading.select is not None:
            raise took_too_long(reading.select, exc.message) from exc
        raise InvalidArguments(
            f"grep was stopped: {exc.message} Use a simpler pattern, or a path to a smaller part.",
            field="grep",
        ) from exc


async def count_in(texts: Sequence[str], count: Count) -> int:
    """The tokens of all texts together."""
    if sum(map(len, texts)) <= MOST_COUNTED:
        return sum(map(count, texts))
    return await to_thread.run_sync(lambda: sum(map(count, texts)))
