"""Matrix products on one core.

A product of sizes like ours gains little from more cores and loses much when they are busy: the
library's threads wait for one another, and answers wait for the vectors made behind them.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController


@contextmanager
def single_thread() -> Generator[None]:
    """Inside, numpy's matrix products use the calling thread alone."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
