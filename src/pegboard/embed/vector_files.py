"""Vectors on disk, by a hash of the text that they are vectors of.

Each model has a folder, and a key is the hash of a passage, so a vector is found again whichever
catalog the tool is in. Files are never changed: new vectors go into a new file, written under a
temporary name and then renamed, and many small files are occasionally merged into one. So any
number of processes can read and write at once, and the worst case is a vector that is saved twice.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pegboard.core.search.vectors import QuantizedVectors
from pegboard.embed.numpy_runtime import release_mapped
from pegboard.private_files import make_private_folder, replace_file

logger = logging.getLogger(__name__)

Records: TypeAlias = NDArray[np.void]

KEY_SIZE = 16
MANY_FILES = 24
LARGE_READ = 10_000
"""Vectors read at once above which the pages that were read are released afterwards."""


class VectorFiles:
    """The vectors of one model. Without a folder they are kept in memory only."""

    def __init__(self, folder: Path | None, model: str, dimensions: int) -> None:
        self.dimensions = dimensions
        self._folder = folder and folder / f"{re.sub(r'[^A-Za-z0-9.-]', '_', model)}-{dimensions}"
        # A fixed size per vector, so that a file is one array that can be mapped.
        self._record = np.dtype(
            [("key", f"V{KEY_SIZE}"), ("scale", "<f4"), ("vector", "i1", (dimensions,))]
        )
        self._files: dict[str, Records] = {}
        self._positions: dict[bytes, tuple[str, int]] = {}
        self._folder_mtime: int | None = None
        self._lock = threading.Lock()

    def get(self, keys: Sequence[bytes]) -> QuantizedVectors:
        """The vectors of these keys; scale 0 for missing ones."""
        rows = np.zeros((len(keys), self.dimensions), np.int8)
        scales = np.zeros(len(keys), np.float32)
        with self._lock:
            self._read_new_files()
            for at, key in enumerate(keys):
                if position := self._positions.get(key):
                    record: Any = self._files[position[0]][position[1]]
                    rows[at], scales[at] = record["vector"], record["scale"]
            if len(keys) > LARGE_READ:
                self._release_pages()
        return QuantizedVectors(rows, scales)

    def add(self, keys: Sequence[bytes], vectors: QuantizedVectors) -> None:
        """Save these vectors, for every process and for later."""
        if not keys:
            return
        records = np.zeros(len(keys), self._record)
        records["key"] = np.frombuffer(b"".join(keys), f"V{KEY_SIZE}")
        records["scale"], records["vector"] = vectors.scales, vectors.rows
        with self._lock:
            self._write(records)
            if len(self._files) > MANY_FILES:
                self._merge()

    def release_memory(self) -> None:
        """Release the pages that were read of the files."""
        with self._lock:
            self._release_pages()

    def _release_pages(self) -> None:
        for records in self._files.values():
            release_mapped(records)

    def _read_new_files(self) -> None:
        """Read what other processes have written."""
        if self._folder is None:
            return
        try:
            mtime = self._folder.stat().st_mtime_ns
        except OSError:
            return
        # Files appear by renaming, which changes the folder: nothing else has to be looked at.
        if mtime == self._folder_mtime:
            return
        self._folder_mtime = mtime
        for path in sorted(self._folder.glob("*.npy")):
            if path.name not in self._files and (records := self._read(path)) is not None:
                self._register(path.name, records)

    def _read(self, path: Path) -> Records | None:
        """The records of a file; `None` if it is gone or has another format."""
        try:
            records: Records = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as exc:
            logger.warning("Vectors in %s cannot be read and will be computed again: %s", path, exc)
            return None
        return records if records.dtype == self._record and records.ndim == 1 else None

    def _register(self, name: str, records: Records) -> None:
        self._files[name] = records
        raw = records["key"].tobytes()
        for at in range(len(records)):
            self._positions[raw[at * KEY_SIZE : (at + 1) * KEY_SIZE]] = (name, at)

    def _write(self, records: Records) -> None:
        """Write a new file and use its records from there, or from memory if that fails."""
        name = f"{os.urandom(16).hex()}.npy"
        saved: Records | None = None
        if self._folder is not None:
            path = self._folder / name
            try:
                make_private_folder(self._folder)
                # Not durable: vectors that a power cut takes away are computed again.
                with replace_file(path, is_durable=False) as file:
                    np.save(file, records, allow_pickle=False)
            except OSError as exc:
                logger.warning("Vectors cannot be saved in %s: %s", self._folder, exc)
            else:
                saved = self._read(path)  # mapped, so that they are not in memory twice
        self._register(name, records if saved is None else saved)

    def _merge(self) -> None:
        """Replace all known files by one; a process that has an old one open can still read it."""
        old = list(self._files)
        positions = sorted(self._positions.values())  # file by file, row by row
        merged = np.zeros(len(positions), self._record)
        for at, (name, row) in enumerate(positions):
            merged[at] = self._files[name][row]
        self._files.clear()
        self._positions.clear()
        self._write(merged)
        if self._folder is not None:
            for name in old:
                with contextlib.suppress(OSError):
                    (self._folder / name).unlink(missing_ok=True)
