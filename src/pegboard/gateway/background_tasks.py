"""Background tasks that are restarted when they fail.

A gateway runs its tasks in one task group, where the first exception cancels them all and leaves a
process that answers every request with an error. So no exception gets that far: a task that fails
is logged and started again, after a pause that grows while it keeps failing.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio

from pegboard.errors import PegboardError

logger = logging.getLogger(__name__)

FIRST_RESTART_PAUSE = 1.0
MAX_RESTART_PAUSE = 60.0


async def run_supervised(name: str, task: Callable[[], Awaitable[None]]) -> None:
    """Run a task to its end; whenever it fails, run it again after a pause.

    Args:
        name: What the task does, for the log.
        task: The task; it can be started again after any failure.
    """
    pause = FIRST_RESTART_PAUSE
    while True:
        began = anyio.current_time()
        try:
            await task()
            return
        except Exception as exc:
            # A task that ran for long before it failed starts with short pauses again.
            if anyio.current_time() - began > MAX_RESTART_PAUSE:
                pause = FIRST_RESTART_PAUSE
            log_failure(f"{name} failed and is started again in {pause:g} s", exc)
        await anyio.sleep(pause)
        pause = min(pause * 2, MAX_RESTART_PAUSE)


def log_failure(what: str, exc: Exception) -> None:
    """Log a failure: in one line if its cause is external, with a traceback if it is a bug."""
    causes = flatten_exceptions(exc)
    is_bug = not all(isinstance(one, (PegboardError, OSError)) for one in causes)
    reasons = "; ".join(dict.fromkeys(str(one) or type(one).__name__ for one in causes))
    logger.error("%s: %s", what, reasons, exc_info=exc if is_bug else None)


def flatten_exceptions(exc: BaseException) -> list[BaseException]:
    """The exceptions in a group, or the exception itself."""
    if isinstance(exc, BaseExceptionGroup):
        return [cause for one in exc.exceptions for cause in flatten_exceptions(one)]  # pyright: ignore[reportUnknownVariableType] of whatever kind
    return [exc]
