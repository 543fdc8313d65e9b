"""Learned searches: the tools that callers called after searching, so that they are found sooner.

    search ──> remember(caller, query, what was found)      for a few minutes, in memory
                            │
    call   ──> the latest search of this caller that found the tool ──> one line in a file
                            │
    search <── boosts(caller) <── learned uses (`core/search/learning.py`)

Only calls teach anything, and only their own caller: no description and no other principal changes
what somebody finds. Each principal has a file of its own, in the folder of one board. Anonymous
callers share a principal, so nothing is learned from them. By default, only the one user of a
gateway or board on their own machine teaches it (`Options.learn_searches`).

A line has the vector of a query and the id of a tool; the query itself only if the operator wants
that. Lines are appended, so that several processes can learn at the same time, and a file that is
shortened or removed by another process is read again: `pegboard index --forget` takes effect at
once.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import os
import shutil
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread

from pegboard.core.caches import BoundedCache
from pegboard.core.calls import Caller, CallResult, ToolCall
from pegboard.core.json import Json, compact
from pegboard.core.options import Learning
from pegboard.private_files import make_private_folder, open_private, replace_file

if TYPE_CHECKING:  # numpy is slow to import, and only needed for search
    from pegboard.core.search.learning import LearnedUses, Use
    from pegboard.core.search.relevance import Floats
    from pegboard.core.search.search_index import Boosts, SearchIndex

SEARCHES_FOLDER = "searches"
"""The folder of the files, in the data folder."""
MAX_CALLERS = 1_000
"""Callers whose latest searches, and principals whose uses, are in memory."""
MAX_PENDING = 8
"""Latest searches of one caller that a call may belong to."""
PENDING_FOR = 600.0
"""Seconds for which a call may belong to a search."""
MAX_FOUND = 8
"""Best matches of a search that count as found."""
_COMPACT_AT = 3
"""A file is rewritten when it has this many times the lines that are in use."""
_MAX_FILE_BYTES = 1 << 23
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Search:
    at: float
    query: str
    vector: Floats
    found: tuple[str, ...]
    taught: set[str] = field(default_factory=set[str])
    """The tools that were called after it: each counts once."""


@dataclass(slots=True)
class _Memory:
    """What one principal has taught, as it was read."""

    uses: list[Use] = field(default_factory=list["Use"])
    learned: LearnedUses | None = None
    size: int = 0
    """Bytes of the file that were read."""


class LearnedSearches:
    """What search has learned on one board, for each principal.

    Args:
        folder: Gives the folder of the files; without it, everything is held in memory alone.
        learning: Who teaches it.
        stores_queries: Whether the text of queries is stored beside their vectors.
        clock: Seconds since 1970.
    """

    def __init__(
        self,
        folder: Callable[[], Path] | None = None,
        *,
        learning: Callable[[], Learning] = lambda: "local",
        stores_queries: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder
        self._learning = learning
        self._stores_queries = stores_queries
        self._clock = clock
        self._pending: BoundedCache[tuple[str, str | None, str | None], deque[_Search]]
        self._pending = BoundedCache(MAX_CALLERS)
        self._memories: BoundedCache[str, _Memory] = BoundedCache(MAX_CALLERS)

    def learns_from(self, caller: Caller) -> bool:
        """Whether this caller teaches search, and finds what they taught."""
        learning = self._learning()
        if learning == "off" or caller.anonymous:
            return False
        return learning == "principals" or caller.is_local_user

    def boosts(self, caller: Caller) -> Boosts | None:
        """How much the tools that this caller called rise; `None` if nothing was learned."""
        if not self.learns_from(caller):
            return None
        memory = self._read(caller.principal)
        if not memory.uses:
            return None
        now = self._clock()

        def boosts(query: Floats) -> dict[str, float]:
            from pegboard.core.search.learning import LearnedUses

            if memory.learned is None:
                memory.learned = LearnedUses(memory.uses, len(query))
            return dict(memory.learned.boosts(query, now))

        return boosts

    def remember(
        self, caller: Caller, query: str, index: SearchIndex, found: Sequence[str]
    ) -> None:
        """Remember a search for the calls that follow it."""
        if not found or not self.learns_from(caller):
            return
        vector = index.embed(query)  # computed for the search itself, so it is cached
        if vector is None:
            return
        key = _caller_key(caller)
        pending = self._pending.get(key)
        if pending is None:
            pending = self._pending.put(key, deque(maxlen=MAX_PENDING))
        pending.append(_Search(self._clock(), query, vector, tuple(found[:MAX_FOUND])))

    async def learn(self, call: ToolCall, result: CallResult) -> None:
        """Learn from a call that succeeded, if it followed a search that found its tool."""
        pending = self._pending.get(_caller_key(call.caller))
        if not pending or result.is_error or not self.learns_from(call.caller):
            return
        tool, now = call.tool.id, self._clock()
        # The latest search counts: an earlier one that also found the tool did not lead to this
        # call.
        for search in reversed(pending):
            if tool in search.found and now - search.at <= PENDING_FOR:
                if tool not in search.taught:
                    search.taught.add(tool)
                    await to_thread.run_sync(self._save, call.caller.principal, search, tool, now)
                return

    def forget(self) -> int:
        """Forget everything that this board has learned; returns how many files were removed."""
        self._memories, self._pending = BoundedCache(MAX_CALLERS), BoundedCache(MAX_CALLERS)
        return 0 if self._folder is None else forget_searches(self._folder())

    # On disk -----------------------------------------------------------------------------------

    def _save(self, principal: str, search: _Search, tool: str, now: float) -> None:
        from pegboard.core.search.learning import MAX_USES, Use, merge_uses, pack_vector

        memory = self._read(principal)
        text = search.query if self._stores_queries() else ""
        use = Use(tool, pack_vector(search.vector), now, query=text)
        if self._folder is not None:
            line = _to_line(use)
            try:
                path = self._path(principal)
                make_private_folder(path.parent)
                with open(open_private(path, os.O_WRONLY | os.O_APPEND), "ab") as file:
                    file.write(line)
                self._read(principal)
                if path.stat().st_size > _COMPACT_AT * MAX_USES * len(line):
                    # Rewritten with the uses that count, each once.
                    with replace_file(path, is_durable=False) as file:
                        file.writelines(map(_to_line, memory.uses))
                    memory.size = path.stat().st_size
            except OSError as exc:
                _log.warning("What search learns cannot be saved, and is lost at shutdown: %s", exc)
                self._folder = None
        if self._folder is None:
            memory.uses, memory.learned = merge_uses([*memory.uses, use]), None

    def _read(self, principal: str) -> _Memory:
        """What a principal has taught, with what other processes have learned by now."""
        memory = self._memories.get(principal)
        if memory is None:
            memory = self._memories.put(principal, _Memory())
        if self._folder is None:
            return memory
        path = self._path(principal)
        try:
            size = path.stat().st_size
        except OSError:
            size = 0
        if size == memory.size:
            return memory
        from pegboard.core.search.learning import merge_uses

        # Files only grow by whole lines; a shorter one was rewritten or removed, and is read from
        # the start.
        is_longer = size > memory.size
        start = memory.size if is_longer else 0
        new = _read_uses(path, start) if size else []
        memory.uses = merge_uses([*(memory.uses if is_longer else ()), *new])
        memory.learned, memory.size = None, size
        return memory

    def _path(self, principal: str) -> Path:
        assert self._folder is not None
        # Hashed, because a person's name may not be valid as a file name.
        hashed = hashlib.sha256(principal.encode("utf-8", "surrogatepass")).hexdigest()
        return self._folder() / f"{hashed[:40]}.jsonl"


def board_folder(folder: Path, board: str) -> Path:
    """Where the files of one board are, inside the data folder."""
    hashed = hashlib.sha256(board.encode("utf-8", "surrogatepass")).hexdigest()
    return folder / SEARCHES_FOLDER / hashed[:20]


def forget_searches(folder: Path) -> int:
    """Remove the files of one board; returns how many there were."""
    count = len(list(folder.glob("*.jsonl")))
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)
    return count


def _caller_key(caller: Caller) -> tuple[str, str | None, str | None]:
    return caller.principal, caller.session, caller.client


def _to_line(use: Use) -> bytes:
    shape: dict[str, Json] = {"tool": use.tool, "at": round(use.at), "times": use.times}
    shape["vector"] = base64.b64encode(use.vector).decode("ascii")
    if use.query:
        shape["query"] = use.query
    return compact(shape).encode() + b"\n"


def _read_uses(path: Path, start: int) -> list[Use]:
    """The uses in a file from a position on; lines that make no sense are left out."""
    from pegboard.core.search.learning import Use

    try:
        with path.open("rb") as file:
            file.seek(start)
            lines = file.read(_MAX_FILE_BYTES).splitlines()
    except OSError:
        return []
    uses: list[Use] = []
    for line in lines:
        with suppress(ValueError, KeyError, TypeError, RecursionError):
            entry = json.loads(line)
            vector = base64.b64decode(entry["vector"], validate=True)
            if isinstance(entry["tool"], str):
                times = min(max(int(entry.get("times", 1)), 1), 1_000)
                text = str(entry.get("query", ""))
                uses.append(Use(entry["tool"], vector, float(entry["at"]), times, text))
    return uses
