"""Memory that nobody needs for now, given back to the system.

What is worked out behind the answers takes far more memory than what is kept of it. glibc holds on
to what was freed: every thread allocates in an arena of its own, and of an arena only the end is
given back without being asked for. Elsewhere nothing is done, and nothing is lost.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

from numpy.typing import NDArray


def give_back() -> None:
    """Return the free pages of all arenas; takes milliseconds, arena by arena."""
    _trim()(0)


def let_go(array: NDArray[Any]) -> None:
    """Return the pages that were read of a mapped array: its file still has them."""
    mapped = getattr(array, "_mmap", None)
    if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        with suppress(OSError):  # pages that are locked in memory stay there
            mapped.madvise(mmap.MADV_DONTNEED)


@cache
def _trim() -> Callable[[int], object]:
    """What glibc has for that; on other systems something that does nothing."""
    if sys.platform != "linux":
        return lambda _: None
    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):  # another C library, such as musl
        return lambda _: None
