"""Work on results that can be slow: inline where it is quick, otherwise off the event loop.

JMESPath expressions and patterns are written by callers and run in a worker process, where a
deadline can stop them. Tokens are counted in a thread: the tokenizer takes linear time and releases
the interpreter lock.
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
    """What a JMESPath expression finds in a value.

    Raises:
        InvalidField: It cannot be run, or takes too long.
    """
    # Few calls have a `select`, and the import takes milliseconds.
    from pegboard.core.results.selection import (
        QUICK_LIMITS,
        TooExpensive,
        evaluate_expression,
        select,
        too_expensive_error,
    )

    size = measure_json(value, QUICK_VALUES)
    if size is not None and size.characters <= QUICK_CHARACTERS:
        try:
            return evaluate_expression(value, expression, QUICK_LIMITS)
        except TooExpensive:
            pass  # too much for the event loop, perhaps not for a worker
    try:
        return await offload(select, value, expression)
    except DeadlineExceeded as exc:
        raise too_expensive_error(expression, exc.message) from exc


async def run_find(value: Json, request: PageRequest, most: int) -> FoundItems:
    """What a page of a stored result is made of.

    Raises:
        InvalidArguments: A number or pattern is out of bounds, or the pattern takes too long.
        InvalidField: The path leads nowhere, or the expression cannot be run or takes too long.
    """
    if request.select is None and request.grep is None:
        return find_items(value, request, most)
    from pegboard.core.results.selection import QUICK_LIMITS, TooExpensive, too_expensive_error

    if not is_expensive(value, request):
        try:
            return find_items(value, request, most, QUICK_LIMITS)
        except TooExpensive:
            pass  # as above
    try:
        return await offload(find_items, value, request, most)
    except DeadlineExceeded as exc:
        if request.select is not None:
            raise too_expensive_error(request.select, exc.message) from exc
        raise InvalidArguments(
            f"grep was stopped: {exc.message} Use a simpler pattern, or a path to a smaller part.",
            field="grep",
        ) from exc


async def run_count(texts: Sequence[str], count: Count) -> int:
    """The tokens of all texts together."""
    if sum(map(len, texts)) <= QUICK_COUNT:
        return sum(map(count, texts))
    return await to_thread.run_sync(lambda: sum(map(count, texts)))
