"""Following a record that other processes change: it is read again whenever it was changed.

What an operator decided is such a record: it is in the store or in a file, and every replica has to
act by it within moments.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress

import anyio

from pegboard.errors import PegboardError

RETRY_DELAY = 1.0
"""Seconds until a record that could not be read, or a topic that was lost, is tried again."""


async def follow_record(
    changes: Callable[[], AbstractAsyncContextManager[AsyncIterator[object]]],
    read: Callable[[], Awaitable[None]],
) -> None:
    """Read a record once it is subscribed to, then after each change, until canceled.

    Args:
        changes: Opens a subscription.
        read: Reads the record. A `PegboardError` of it leads to another try, so it must leave what
            was known before unchanged.
    """
    while True:
        with suppress(PegboardError):
            async with changes() as messages:
                # Only now: a change between reading and subscribing would be missed.
                await read()
                async for _ in messages:
                    await read()
        await anyio.sleep(RETRY_DELAY)
