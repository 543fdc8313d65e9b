"""Indexes on disk, so that a start neither reads the tools again nor embeds one.

    first line  pegboard-index <format> <checksum of the rest> <length of the table>
    table       JSON: the kind, the shape and the place of each array
    arrays      as they lie in memory; they are mapped, so what a search does not touch is not read

A file belongs to what was indexed: the texts of the tools, a hash of what their schemas were read
from, and the model. It is written aside and put in place whole, so any number of processes may read
and write at once. One that is cut short or damaged is made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import mmap
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pegboard.core.search import SearchIndex
from pegboard.core.search.bm25 import Postings
from pegboard.core.search.search_index import IndexContents
from pegboard.core.search.vectors import QuantizedVectors, ToolVectors
from pegboard.core.tools import group_name
from pegboard.private_files import make_private_folder, replace_file

if TYPE_CHECKING:
    from pegboard.core.tools import Catalog
    from pegboard.embed.vectorizer import LocalVectorizer

logger = logging.getLogger(__name__)

FORMAT = b"2"  # changes when what is indexed, or how it is kept, changes
SUFFIX = ".index"
MOST_KEPT = 30
MOST_BYTES = 512 * 2**20
_ALIGNED = 64
_KEY_SIZE = 16
_MAGIC = b"pegboard-index"

Arrays: TypeAlias = dict[str, Any]


class IndexFiles:
    """A folder of indexes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._said = False
        self._lacking: dict[Path, int] = {}  # of files read or written here

    def load(self, catalog: Catalog, source: str, meanings: LocalVectorizer) -> SearchIndex | None:
        """The index kept of these tools, or `None`.

        Args:
            catalog: the tools.
            source: a hash of what their schemas were read from, so that they need not be read.
            meanings: gives the vectors of queries.
        """
        path = self._path(catalog, source, meanings.model)
        try:
            contents = _contents(_read(path))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as exc:
            logger.warning("The index in %s cannot be read and is made again: %s", path, exc)
            return None
        with contextlib.suppress(OSError):
            path.touch()
        index = SearchIndex(catalog, contents, meanings)
        self._lacking[path] = len(index.lacking())
        return index

    def save(self, index: SearchIndex, source: str, meanings: LocalVectorizer) -> bool:
        """Keep an index, if the disk lets us; if not, starts are slower, and that is all."""
        path = self._path(index.catalog, source, meanings.model)
        lacking = len(index.lacking())
        if self._lacking.get(path) == lacking and path.exists():
            return True
        try:
            make_private_folder(self._folder)
            # Not durable: an index that a power cut takes away is made again.
            with replace_file(path, is_durable=False) as file:
                file.writelines(_pieces(_arrays(index.contents)))
            self._forget_oldest()
        except OSError as exc:
            if not self._said:
                logger.warning("The index cannot be kept in %s: %s", self._folder, exc)
            self._said = True
            return False
        self._lacking[path] = lacking
        return True

    def _path(self, catalog: Catalog, source: str, model: str) -> Path:
        return self._folder / f"{_fingerprint(catalog, source, model)}{SUFFIX}"

    def _forget_oldest(self) -> None:
        """Keep the files used last, of a bounded number and size."""
        found: list[tuple[float, int, Path]] = []
        for path in self._folder.glob(f"*{SUFFIX}"):
            with contextlib.suppress(OSError):
                about = path.stat()
                found.append((about.st_mtime, about.st_size, path))
        room = MOST_BYTES
        for number, (_, size, path) in enumerate(sorted(found, reverse=True)):
            room -= size
            if number and (number >= MOST_KEPT or room < 0):
                path.unlink(missing_ok=True)


def _fingerprint(catalog: Catalog, source: str, model: str) -> str:
    """Names what an index is of, without asking any tool for its schemas."""
    hashed = hashlib.blake2b(b"%s %s %s" % (FORMAT, model.encode(), source.encode()))
    for tool in catalog:
        texts = (tool.id, tool.name, tool.server, group_name(tool), tool.title, tool.summary)
        said = (*texts, tool.description, tool.aliases, tool.tags)
        hashed.update(repr(said).encode("utf-8", "surrogatepass"))
    return hashed.hexdigest()[:32]


def _arrays(contents: IndexContents) -> Arrays:
    postings, vectors = contents.postings, contents.vectors
    if vectors is None:
        raise ValueError("an index without vectors is not kept")
    return {
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


def _contents(arrays: Arrays) -> IndexContents:
    raw: bytes = arrays["keys"].tobytes()
    keys = tuple(raw[at : at + _KEY_SIZE] for at in range(0, len(raw), _KEY_SIZE))
    terms: str = arrays["terms"].tobytes().decode()
    postings = Postings(
        {term: number for number, term in enumerate(terms.split("\n") if terms else ())},
        *(arrays[name] for name in ("starts", "tools", "weights", "places")),
        size=len(keys),
    )
    exact = QuantizedVectors(arrays["rows"], arrays["scales"])
    return IndexContents(keys, postings, ToolVectors(arrays["rough"], exact))


def _pieces(arrays: Arrays) -> Iterable[bytes]:
    """The whole file, piece by piece."""
    table: dict[str, Any] = {}
    body: list[bytes] = []
    at = 0
    for name, array in arrays.items():
        data = np.ascontiguousarray(array).tobytes()
        table[name] = [array.dtype.str, array.shape, at]
        body += [data, bytes(-len(data) % _ALIGNED)]
        at += len(data) + len(body[-1])
    head = json.dumps(table).encode()
    head += b" " * (-len(head) % _ALIGNED)
    checksum = zlib.crc32(head)
    for piece in body:
        checksum = zlib.crc32(piece, checksum)
    first = b"%s %s %08x %d" % (_MAGIC, FORMAT, checksum, len(head))
    return [first.ljust(_ALIGNED - 1) + b"\n", head, *body]


def _read(path: Path) -> Arrays:
    """The arrays of a file, mapped; `ValueError` when it is not whole."""
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    words = mapped[:_ALIGNED].split()
    if words[:2] != [_MAGIC, FORMAT] or len(words) != 4:
        raise ValueError("it is of another kind or version")
    if zlib.crc32(memoryview(mapped)[_ALIGNED:]) != int(words[2], 16):
        raise ValueError("it is damaged")
    start = _ALIGNED + int(words[3])
    table: dict[str, tuple[str, list[int], int]] = json.loads(mapped[_ALIGNED:start])
    return {
        name: np.frombuffer(
            mapped, dtype, count=int(np.prod(shape)), offset=start + offset
        ).reshape(shape)
        for name, (dtype, shape, offset) in table.items()
    }
