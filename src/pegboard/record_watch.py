"""Following a record that others change: read it again whenever they say that it changed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress

import anyio

from pegboard.errors import PegboardError

RETRY_DELAY = 1.0
"""Seconds until a record that could not be read, or a topic that was lost, is tried again."""


async def follow(
    changes: Callable[[], AbstractAsyncContextManager[AsyncIterator[object]]],
    read: Callable[[], Awaitable[None]],
) -> None:
    """Read once it is subscribed, then after each change, until cancelled.

    Args:
        changes: Opens a subscription.
        read: Reads the record. A `PegboardError` of it leads to another try, so it must leave what
            was known before as it is.
    """
    while True:
        with suppress(PegboardError):
            async with changes() as messages:
                await read()  # what was decided before anybody listened
                async for _ in messages:
                    await read()
        await anyio.sleep(RETRY_DELAY)
