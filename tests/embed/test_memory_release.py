"""Memory that is not needed goes back to the system."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from pegboard.embed.encoder import release_free_memory, release_mapped

MEGABYTE = 2**20
STATUS = Path("/proc/self/status")


def resident() -> int:
    """The memory of this process, in bytes."""
    line = next(s for s in STATUS.read_text().splitlines() if s.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


@pytest.mark.skipif(not STATUS.exists(), reason="the system does not say what a process holds")
def test_what_was_freed_between_things_that_stay_is_given_back() -> None:
    if not hasattr(ctypes.CDLL(None), "malloc_trim"):
        pytest.skip("this C library needs no asking")
    pieces = [bytearray(65_536) for _ in range(1_000)]
    stay = pieces[::16]
    del pieces
    held = resident()
    release_free_memory()
    assert len(stay) == 63
    assert held - resident() > 30 * MEGABYTE


@pytest.mark.skipif(not STATUS.exists(), reason="the system does not say what a process holds")
def test_pages_of_a_mapped_array_go_and_come_back(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(4 * MEGABYTE, dtype=np.int64))
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    total = int(mapped.sum())
    held = resident()
    release_mapped(mapped)
    assert held - resident() > 16 * MEGABYTE
    assert int(mapped.sum()) == total


def test_an_array_that_no_file_has_is_left_alone() -> None:
    array = np.arange(10)
    release_mapped(array)
    assert array.sum() == 45
