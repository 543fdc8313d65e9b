"""Background tasks that outlive their failures.

A gateway runs its tasks in one task group, where the first exception ends them all and leaves a
process that answers every request with an error. So none gets that far: what fails is logged and
started again, with a pause that grows while it keeps failing.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio

from pegboard.errors import PegboardError

logger = logging.getLogger(__name__)

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0


async def run_supervised(name: str, work: Callable[[], Awaitable[None]]) -> None:
    """Run a task to its end; whenever it fails, run it again after a pause.

    Args:
        name: What the task does, for the log.
        work: The task; it can be started again after any failure.
    """
    pause = FIRST_PAUSE
    while True:
        began = anyio.current_time()
        try:
            await work()
            return
        except Exception as exc:
            if anyio.current_time() - began > LONGEST_PAUSE:
                pause = FIRST_PAUSE
            log_failure(f"{name} failed and is started again in {pause:g} s", exc)
        await anyio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)


def log_failure(what: str, exc: Exception) -> None:
    """Log a failure: in one line where its cause is outside, with a traceback where it is ours."""
    expected = flatten_exceptions(exc)
    ours = not all(isinstance(one, (PegboardError, OSError)) for one in expected)
    reasons = "; ".join(dict.fromkeys(str(one) or type(one).__name__ for one in expected))
    logger.error("%s: %s", what, reasons, exc_info=exc if ours else None)


def flatten_exceptions(exc: BaseException) -> list[BaseException]:
    """The exceptions in a group, or the exception itself."""
    if isinstance(exc, BaseExceptionGroup):
        return [cause for one in exc.exceptions for cause in flatten_exceptions(one)]  # pyright: ignore[reportUnknownVariableType] of whatever kind
    return [exc]
