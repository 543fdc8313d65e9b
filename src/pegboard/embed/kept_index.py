"""Indexes on disk, so that a start does not read every tool again.

An index is kept under a fingerprint of the catalogue's content, which whoever loads the catalogue
can tell cheaply (the hash of a file). Exact vectors are not in it: they have files of their own.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import uuid
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pegboard.core.search import SearchIndex
from pegboard.core.search.bm25 import Postings
from pegboard.core.search.dense import Meanings, Vectors
from pegboard.core.search.index import Contents

if TYPE_CHECKING:
    from pegboard.core.tools import Catalog

logger = logging.getLogger(__name__)

FORMAT = "1"  # changes when what is indexed, or how it is kept, changes
MOST_KEPT = 50


class KeptIndexes:
    """A folder of indexes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, catalog: Catalog, fingerprint: str, meanings: Meanings) -> SearchIndex | None:
        """The index kept for this content, or `None`."""
        path = self._path(fingerprint)
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as parts:
                contents = _contents(dict(parts), meanings)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as exc:
            logger.warning("The index in %s cannot be read and will be made again: %s", path, exc)
            return None
        if len(contents.keys) != len(catalog):
            return None
        with contextlib.suppress(OSError):
            path.touch()
        return SearchIndex(catalog, contents, meanings)

    def save(self, index: SearchIndex, fingerprint: str) -> None:
        """Keep an index; when the disk does not let us, the next start is slower, that is all."""
        aside = self._folder / f"{uuid.uuid4().hex}.part"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with aside.open("wb") as file:
                np.savez(file, **_parts(index.contents))
            os.replace(aside, self._path(fingerprint))
            self._forget_oldest()
        except OSError as exc:
            logger.warning("The index cannot be kept in %s: %s", self._folder, exc)
            with contextlib.suppress(OSError):
                aside.unlink(missing_ok=True)

    def _path(self, fingerprint: str) -> Path:
        name = hashlib.sha256(f"{FORMAT} {fingerprint}".encode()).hexdigest()[:32]
        return self._folder / f"{name}.npz"

    def _forget_oldest(self) -> None:
        def age(path: Path) -> float:
            with contextlib.suppress(OSError):
                return path.stat().st_mtime
            return 0.0

        for path in sorted(self._folder.glob("*.npz"), key=age)[:-MOST_KEPT]:
            path.unlink(missing_ok=True)


def _parts(contents: Contents) -> dict[str, Any]:
    postings, vectors = contents.postings, contents.vectors
    return {
        "keys": np.frombuffer(b"".join(contents.keys), np.uint8),
        "terms": np.frombuffer("\n".join(postings.vocabulary).encode(), np.uint8),
        "starts": postings.starts,
        "tools": postings.tools,
        "weights": postings.weights,
        "places": postings.places,
        "rough": np.zeros((0, 0), np.float32) if vectors is None else vectors.rough,
    }


def _contents(parts: dict[str, Any], meanings: Meanings) -> Contents:
    raw: bytes = parts["keys"].tobytes()
    keys = tuple(raw[at : at + 16] for at in range(0, len(raw), 16))
    terms = parts["terms"].tobytes().decode()
    postings = Postings(
        {term: number for number, term in enumerate(terms.split("\n") if terms else ())},
        parts["starts"],
        parts["tools"],
        parts["weights"],
        parts["places"],
        len(keys),
    )
    if len(parts["rough"]) != len(keys):
        raise ValueError("rough vectors are missing")
    return Contents(keys, postings, Vectors(parts["rough"], meanings.exact(keys)))
