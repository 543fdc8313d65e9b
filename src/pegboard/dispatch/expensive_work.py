"""What may take long in a large result: at once where that is quick, else out of others' way.

JMESPath and patterns, which strangers write, run in a worker process. Tokens are counted in a
thread: the tokenizer takes linear time and does not hold the interpreter lock.
"""

from __future__ import annotations

from collections.abc import Sequence

from anyio import to_thread

from pegboard.core.json import Json, measure_json
from pegboard.core.results.result_pages import (
    QUICK_CHARACTERS,
    QUICK_VALUES,
    FoundItems,
    PageRequest,
    find_items,
    is_expensive,
)
from pegboard.core.token_budget import Count
from pegboard.errors import InvalidArguments
from pegboard.offload import DeadlineExceeded, offload

QUICK_COUNT = 20_000
"""Characters that are counted in a few milliseconds."""


async def run_select(value: Json, expression: str) -> Json:
    """What an expression finds in a value.

    Raises:
        InvalidField: It cannot be run, or takes too long.
    """
    from pegboard.core.results.selection import (
        QUICK_LIMITS,
        TooExpensive,
        evaluate,
        select,
        too_expensive_error,
    )

    size = measure_json(value, QUICK_VALUES)
    if size is not None and size.characters <= QUICK_CHARACTERS:
        try:
            return evaluate(value, expression, QUICK_LIMITS)
        except TooExpensive:
            pass  # it may take that long elsewhere
    try:
        return await offload(select, value, expression)
    except DeadlineExceeded as exc:
        raise too_expensive_error(expression, exc.message) from exc


async def run_find(value: Json, reading: PageRequest, most: int) -> FoundItems:
    """What a page of a stored result is made of.

    Raises:
        InvalidArguments: A number or pattern is out of bounds, or the pattern takes too long.
        InvalidField: The path leads nowhere, or the expression cannot be run or takes too long.
    """
    if reading.select is None and reading.grep is None:
        return find_items(value, reading, most)
    from pegboard.core.results.selection import QUICK_LIMITS, TooExpensive, too_expensive_error

    if not is_expensive(value, reading):
        try:
            return find_items(value, reading, most, QUICK_LIMITS)
        except TooExpensive:
            pass  # it may take that long elsewhere
    try:
        return await offload(find_items, value, reading, most)
    except DeadlineExceeded as exc:
        if reading.select is not None:
            raise too_expensive_error(reading.select, exc.message) from exc
        raise InvalidArguments(
            f"grep was stopped: {exc.message} Use a simpler pattern, or a path to a smaller part.",
            field="grep",
        ) from exc


async def run_count(texts: Sequence[str], count: Count) -> int:
    """The tokens of all texts together."""
    if sum(map(len, texts)) <= QUICK_COUNT:
        return sum(map(count, texts))
    return await to_thread.run_sync(lambda: sum(map(count, texts)))
