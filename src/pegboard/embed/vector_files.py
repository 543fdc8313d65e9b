"""Vectors on disk, by what they are vectors of.

A key is the hash of a passage, and each model has a folder, so a vector is found again whichever
catalogue the tool is in. Files are never changed: new vectors go into a new file, written aside and
then renamed, and many small files are now and then replaced by one. So any number of processes may
read and write at once, and the worst that can happen is that a vector is kept twice.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import threading
from collections.abc import Iterator, Sequence
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
LARGE = 10_000  # vectors asked for at once, after which the pages that were read are let go


class VectorFiles:
    """The vectors of one model. Without a folder they are kept in memory alone."""

    def __init__(self, folder: Path | None, model: str, dimensions: int) -> None:
        self.dimensions = dimensions
        self._folder = folder and folder / f"{re.sub(r'[^A-Za-z0-9.-]', '_', model)}-{dimensions}"
        self._record = np.dtype(
            [("key", f"V{KEY_SIZE}"), ("scale", "<f4"), ("vector", "i1", (dimensions,))]
        )
        self._files: dict[str, Records] = {}
        self._found: dict[bytes, tuple[str, int]] = {}
        self._looked: int | None = None
        self._lock = threading.Lock()

    def get(self, keys: Sequence[bytes]) -> QuantizedVectors:
        """The vectors of these keys; scale 0 where there is none."""
        rows = np.zeros((len(keys), self.dimensions), np.int8)
        scales = np.zeros(len(keys), np.float32)
        with self._lock:
            self._look()
            for at, key in enumerate(keys):
                if place := self._found.get(key):
                    record: Any = self._files[place[0]][place[1]]
                    rows[at], scales[at] = record["vector"], record["scale"]
            if len(keys) > LARGE:
                self._let_go()
        return QuantizedVectors(rows, scales)

    def add(self, keys: Sequence[bytes], vectors: QuantizedVectors) -> None:
        """Keep these vectors, for every process and for later."""
        if not keys:
            return
        records = np.zeros(len(keys), self._record)
        records["key"] = np.frombuffer(b"".join(keys), f"V{KEY_SIZE}")
        records["scale"], records["vector"] = vectors.scales, vectors.rows
        with self._lock:
            self._take(*self._written(records))
            if len(self._files) > MANY_FILES:
                self._merge()

    def rest(self) -> None:
        """Let go of what was read of the files."""
        with self._lock:
            self._let_go()

    def _let_go(self) -> None:
        for records in self._files.values():
            release_mapped(records)

    def _look(self) -> None:
        """Take in what other processes have written."""
        if self._folder is None:
            return
        try:
            changed = self._folder.stat().st_mtime_ns
        except OSError:
            return
        if changed == self._looked:
            return
        self._looked = changed
        for path in sorted(self._folder.glob("*.npy")):
            if path.name not in self._files:
                for records in self._read(path):
                    self._take(path.name, records)

    def _read(self, path: Path) -> Iterator[Records]:
        """The file's records; nothing when it went away or is not what we write."""
        try:
            records: Records = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as exc:
            logger.warning("Vectors in %s cannot be read and will be made again: %s", path, exc)
            return
        if records.dtype == self._record and records.ndim == 1:
            yield records

    def _take(self, name: str, records: Records) -> None:
        self._files[name] = records
        raw = records["key"].tobytes()
        for at in range(len(records)):
            self._found[raw[at * KEY_SIZE : (at + 1) * KEY_SIZE]] = (name, at)

    def _written(self, records: Records) -> tuple[str, Records]:
        """The name of a new file and its records: from there, so that they are not held twice."""
        name = self._write(records)
        path = self._folder and self._folder / name
        if path is not None and path.exists():
            for kept in self._read(path):
                return name, kept
        return name, records

    def _write(self, records: Records) -> str:
        name = f"{os.urandom(16).hex()}.npy"
        if self._folder is None:
            return name
        try:
            make_private_folder(self._folder)
            # Not durable: vectors that a power cut takes away are made again.
            with replace_file(self._folder / name, is_durable=False) as file:
                np.save(file, records, allow_pickle=False)
        except OSError as exc:
            logger.warning("Vectors cannot be kept in %s: %s", self._folder, exc)
        return name

    def _merge(self) -> None:
        """Replace all files known by one; who has an old one open keeps it."""
        old = list(self._files)
        places = sorted(self._found.values())
        merged = np.zeros(len(places), self._record)
        for at, (name, row) in enumerate(places):
            merged[at] = self._files[name][row]
        self._files.clear()
        self._found.clear()
        self._take(*self._written(merged))
        if self._folder is not None:
            for name in old:
                with contextlib.suppress(OSError):
                    (self._folder / name).unlink(missing_ok=True)
