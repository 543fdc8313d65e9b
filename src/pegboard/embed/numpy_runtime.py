"""How numpy uses this machine: matrix products on one core, and memory returned to the system.

A product of our sizes gains little from more cores and loses much when they are busy: the threads
of the library wait for one another, and answers wait for the vectors computed in the background.

Computing vectors takes far more memory than storing them. glibc retains what was freed: every
thread allocates in its own arena, and only the end of an arena is returned without an explicit
request. On other systems these functions do nothing.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController


@contextmanager
def single_thread() -> Generator[None]:
    """Inside, numpy's matrix products use the calling thread alone."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # searching the loaded libraries takes milliseconds


def release_free_memory() -> None:
    """Return the free pages of all arenas to the system; takes milliseconds per arena."""
    _trim()(0)


def release_mapped(array: NDArray[Any]) -> None:
    """Drop the pages of a memory-mapped array that were read: its file still has them."""
    mapped = getattr(array, "_mmap", None)
    if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        with suppress(OSError):  # pages that are locked in memory cannot be dropped
            mapped.madvise(mmap.MADV_DONTNEED)


@cache
def _trim() -> Callable[[int], object]:
    """`malloc_trim` of glibc; a function that does nothing on other systems."""
    if sys.platform != "linux":
        return lambda _: None
    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):  # another C library, such as musl
        return lambda _: None
