"""Vectors and indexes on disk, so that a start neither reads the tools again nor embeds one.

Vectors are stored by a hash of the text that they are vectors of, in one folder per model, so a
vector is found again whichever catalog the tool is in. Files are never changed: new vectors go into
a new file, and many small files are occasionally merged into one.

An index is one file:

    first line  pegboard-index <format> <checksum of the rest> <length of the table>
    table       JSON: type, shape and position of each array
    arrays      as they are in memory; they are mapped, so what a search does not touch is not read

It belongs to what was indexed: the texts of the tools, a hash of what their schemas were read from,
and the model. A truncated or damaged file is rebuilt.

All files are written under a temporary name and renamed, so any number of processes can read and
write at once. The worst case is a vector that is saved twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import mmap
import os
import re
import threading
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pegboard.core.search import SearchIndex
from pegboard.core.search.bm25 import Postings
from pegboard.core.search.relevance import QuantizedVectors, ToolVectors
from pegboard.core.search.search_index import IndexContents
from pegboard.core.tools import group_name
from pegboard.embed.encoder import release_mapped
from pegboard.private_files import make_private_folder, replace_file

if TYPE_CHECKING:
    from pegboard.core.tools import Catalog
    from pegboard.embed.vectorizer import LocalVectorizer


logger = logging.getLogger(__name__)

Records: TypeAlias = NDArray[np.void]

KEY_SIZE = 16
MANY_FILES = 24
LARGE_READ = 10_000
"""Vectors read at once above which the pages that were read are released afterwards."""


FORMAT = b"3"  # changes when what is indexed, or how it is stored, changes
SUFFIX = ".index"
MAX_FILES = 30
MAX_BYTES = 512 * 2**20
_ALIGNMENT = 64
_MAGIC = b"pegboard-index"

Arrays: TypeAlias = dict[str, Any]


# --- vectors --------------------------------------------------------------------------------------


class VectorFiles:
    """The vectors of one model. Without a folder they are only in memory."""

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
        except FileNotFoundError:
            return None  # another process has merged it with others
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
                # Not synced to disk: vectors that a power cut loses are computed again.
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


# --- indexes --------------------------------------------------------------------------------------


class IndexFiles:
    """A folder of indexes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._has_warned = False
        # Missing vectors of the files that were read or written here: the same number, same file.
        self._missing: dict[Path, int] = {}

    def load(
        self, catalog: Catalog, source: str, vectorizer: LocalVectorizer
    ) -> SearchIndex | None:
        """The saved index of these tools, or `None`.

        Args:
            catalog: the tools.
            source: a hash of what their schemas were read from, so that they need not be read.
            vectorizer: embeds the queries.
        """
        path = self._path(catalog, source, vectorizer.model)
        try:
            contents = _load_contents(path)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as exc:
            logger.warning("The index in %s cannot be read and is rebuilt: %s", path, exc)
            return None
        with contextlib.suppress(OSError):
            path.touch()  # recently used, see `_evict`
        index = SearchIndex(catalog, contents, vectorizer)
        self._missing[path] = len(index.tools_without_vector())
        return index

    def save(self, index: SearchIndex, source: str, vectorizer: LocalVectorizer) -> bool:
        """Save an index, and return whether that worked; without it, starts are only slower."""
        path = self._path(index.catalog, source, vectorizer.model)
        missing = len(index.tools_without_vector())
        if self._missing.get(path) == missing and path.exists():
            return True
        try:
            make_private_folder(self._folder)
            # Not synced to disk: an index that a power cut loses is built again.
            with replace_file(path, is_durable=False) as file:
                file.writelines(_encode_contents(index.contents))
            self._evict()
        except OSError as exc:
            if not self._has_warned:
                logger.warning("The index cannot be saved in %s: %s", self._folder, exc)
            self._has_warned = True
            return False
        self._missing[path] = missing
        return True

    def _path(self, catalog: Catalog, source: str, model: str) -> Path:
        """The file of an index, named without asking any tool for its schemas."""
        hashed = hashlib.blake2b(b"%s %s %s" % (FORMAT, model.encode(), source.encode()))
        for tool in catalog:
            texts = (tool.id, tool.name, tool.server, group_name(tool), tool.title, tool.summary)
            content = (*texts, tool.description, tool.aliases, tool.tags)
            hashed.update(repr(content).encode("utf-8", "surrogatepass"))
        return self._folder / f"{hashed.hexdigest()[:32]}{SUFFIX}"

    def _evict(self) -> None:
        """Remove the least recently used files over the limits; the newest one always stays."""
        found: list[tuple[float, int, Path]] = []
        for path in self._folder.glob(f"*{SUFFIX}"):
            with contextlib.suppress(OSError):
                stat = path.stat()
                found.append((stat.st_mtime, stat.st_size, path))
        room = MAX_BYTES
        for number, (_, size, path) in enumerate(sorted(found, reverse=True)):
            room -= size
            if number and (number >= MAX_FILES or room < 0):
                path.unlink(missing_ok=True)


def _encode_contents(contents: IndexContents) -> Iterable[bytes]:
    """The content of the file, in pieces."""
    postings, vectors = contents.postings, contents.vectors
    if vectors is None:
        raise ValueError("an index without vectors is not saved")
    arrays: Arrays = {
        "keys": np.frombuffer(b"".join(contents.keys), np.uint8),
        "terms": np.frombuffer("\n".join(postings.vocabulary).encode(), np.uint8),
        "starts": postings.starts,
        "tools": postings.tools,
        "weights": postings.weights,
        "places": postings.places,
        "rough": vectors.rough,
        "rows": vectors.exact.rows,
        "scales": vectors.exact.scales,
    }
    table: dict[str, Any] = {}
    body: list[bytes] = []
    at = 0
    for name, array in arrays.items():
        data = np.ascontiguousarray(array).tobytes()
        table[name] = [array.dtype.str, array.shape, at]
        body += [data, bytes(-len(data) % _ALIGNMENT)]  # numpy computes faster on aligned data
        at += len(data) + len(body[-1])
    head = json.dumps(table).encode()
    head += b" " * (-len(head) % _ALIGNMENT)
    checksum = zlib.crc32(head)
    for piece in body:
        checksum = zlib.crc32(piece, checksum)
    first = b"%s %s %08x %d" % (_MAGIC, FORMAT, checksum, len(head))
    return [first.ljust(_ALIGNMENT - 1) + b"\n", head, *body]


def _load_contents(path: Path) -> IndexContents:
    """The contents of a file, its arrays memory-mapped; `ValueError` if it is damaged."""
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    words = mapped[:_ALIGNMENT].split()
    if words[:2] != [_MAGIC, FORMAT] or len(words) != 4:
        raise ValueError("it has another format or version")
    # Reads the whole file once, which is still far faster than building the index.
    if zlib.crc32(memoryview(mapped)[_ALIGNMENT:]) != int(words[2], 16):
        raise ValueError("it is damaged")
    start = _ALIGNMENT + int(words[3])
    table: dict[str, tuple[str, list[int], int]] = json.loads(mapped[_ALIGNMENT:start])
    arrays: Arrays = {}
    for name, (dtype, shape, offset) in table.items():
        flat = np.frombuffer(mapped, dtype, count=int(np.prod(shape)), offset=start + offset)
        arrays[name] = flat.reshape(shape)
    raw: bytes = arrays["keys"].tobytes()
    keys = tuple(raw[at : at + KEY_SIZE] for at in range(0, len(raw), KEY_SIZE))
    terms: str = arrays["terms"].tobytes().decode()
    postings = Postings(
        {term: number for number, term in enumerate(terms.split("\n") if terms else ())},
        *(arrays[name] for name in ("starts", "tools", "weights", "places")),
        size=len(keys),
    )
    exact = QuantizedVectors(arrays["rows"], arrays["scales"])
    return IndexContents(keys, postings, ToolVectors(arrays["rough"], exact))
