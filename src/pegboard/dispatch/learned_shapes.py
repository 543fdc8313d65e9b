"""Learned shapes: what tools without an informative output schema have returned so far.

    call ──> handler ──> result ──> learn, unless the shape has been stable for a while
                                      │
                                      ▼
              LearnedShapes     in memory; one small file each, so that they survive a restart
                                      ▲
                                      │
    search, descriptions, code ──> get(tool, caller)

A shape has names and types and never a value (`core/results/learned_shape.py`). It belongs to one
definition of a tool: a changed definition starts anew. Where a server is called with credentials of
the caller it also belongs to that principal, because what a service returns may depend on who asks.

Once a shape is stable, a call costs a lookup, and only every fiftieth result is looked at.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from anyio import to_thread

from pegboard.core.caches import BoundedCache
from pegboard.core.calls import Caller, CallResult, ToolCall
from pegboard.core.json import Json, JsonObject, compact
from pegboard.core.results.learned_shape import learn_shape, merge_shapes
from pegboard.core.results.shapes import WRAPPER_KEY, find_payload, is_text
from pegboard.core.tools import Tool
from pegboard.errors import Busy
from pegboard.offload import DeadlineExceeded, offload
from pegboard.private_files import make_private_folder, replace_file

SHAPES_FOLDER = "shapes"
"""The folder of the files, in the data folder."""
STABLE_AFTER = 5
"""Results in a row that add nothing, after which most results are no longer looked at."""
SAMPLE_EVERY = 50
"""One of so many results of a tool with a stable shape is looked at."""
MAX_CHANGES = 40
"""Changes of one shape in one process: a server whose results keep changing is not followed."""
MAX_SHAPES = 4_096
"""Shapes in memory."""
MAX_FILES = 4_096
MISSING_FOR = 30.0
"""Seconds until a shape that was not on disk is looked for again: another process may learn it."""
_MAX_FILE_BYTES = 1 << 18
_QUICK_CHARACTERS = 200_000
"""Characters of JSON that are parsed in a few milliseconds."""
_SUFFIX = ".json"
_UNINFORMATIVE = ("", "{result}", "{*}", "{result{*}}")
"""Shapes of output schemas that say nothing: any object, and the wrapper of SDKs around text."""
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Entry:
    """What is known about the results of one tool, for one owner."""

    tool: Tool
    """For comparison by identity, which is faster than by digest."""
    digest: str
    shape: JsonObject | None
    read_at: float
    """When it was looked for on disk."""
    is_declared: bool
    """Whether its output schema says enough, so that nothing is learned."""
    same: int = 0
    """Results in a row that added nothing."""
    changes: int = 0


class LearnedShapes:
    """The learned shapes of all tools.

    Args:
        folder: Gives the folder of the files; without it, shapes are held in memory alone.
        owner: Whose shape a call teaches: empty for everybody's, a principal, or `None` where
            nothing may be learned.
        clock: Seconds since anything.
    """

    def __init__(
        self,
        folder: Callable[[], Path] | None = None,
        *,
        owner: Callable[[Tool, Caller], str | None] = lambda tool, caller: "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._owner = owner
        self._clock = clock
        self._entries: BoundedCache[tuple[str, str], _Entry] = BoundedCache(MAX_SHAPES)
        self._has_swept = False

    def get(self, tool: Tool, caller: Caller) -> JsonObject | None:
        """The learned shape of a tool's results as JSON Schema; `None` where nothing was learned.

        Also `None` where the tool's own output schema says more.
        """
        owner = self._owner(tool, caller)
        return None if owner is None else self._entry(tool, owner).shape

    async def learn(self, call: ToolCall, result: CallResult) -> None:
        """Learn from a result, if something may be left to learn; never raises."""
        if (owner := self._owner(call.tool, call.caller)) is None:
            return
        entry = self._entry(call.tool, owner)
        if entry.is_declared or entry.changes >= MAX_CHANGES:
            return
        if entry.same >= STABLE_AFTER:
            entry.same += 1
            if entry.same % SAMPLE_EVERY:
                return
        if result.is_error or not result.is_complete:
            return
        seen = await _shape_of(result)
        if seen is None:
            return
        merged = merge_shapes(entry.shape or {}, seen)
        if merged == entry.shape:
            entry.same += 1
            return
        entry.shape, entry.same, entry.changes = merged, 0, entry.changes + 1
        if self._folder is not None:
            await to_thread.run_sync(self._save, entry, owner)

    def _entry(self, tool: Tool, owner: str) -> _Entry:
        key = (tool.id, owner)
        entry = self._entries.get(key)
        if entry is not None:
            is_new = entry.tool is not tool
            if is_new and not entry.is_declared and entry.digest == tool.digest:
                entry.tool = tool  # mounted again, unchanged
            if entry.tool is tool and (entry.shape is not None or not self._is_due(entry)):
                return entry
        return self._entries.put(key, self._load(tool, owner))

    def _is_due(self, entry: _Entry) -> bool:
        """Whether to look on disk again for a shape that was not there."""
        return not entry.is_declared and self._clock() - entry.read_at >= MISSING_FOR

    # On disk -----------------------------------------------------------------------------------

    def _load(self, tool: Tool, owner: str) -> _Entry:
        is_declared = tool.returns not in _UNINFORMATIVE
        # A digest takes longer than everything else here, and only what is learned needs one.
        digest = "" if is_declared else tool.digest
        entry = _Entry(tool, digest, None, self._clock(), is_declared)
        if is_declared or self._folder is None:
            return entry
        entry.shape = _read_shape(self._path(entry, owner))
        return entry

    def _save(self, entry: _Entry, owner: str) -> None:
        path = self._path(entry, owner)
        try:
            make_private_folder(path.parent)
            if not self._has_swept:
                self._has_swept = True
                _remove_oldest(path.parent)
            # Another process may have learned something else in the meantime.
            entry.shape = merge_shapes(_read_shape(path) or {}, entry.shape or {})
            with replace_file(path, is_durable=False) as file:
                file.write(compact(entry.shape).encode())
        except OSError as exc:
            _log.warning("Shapes of results cannot be saved, and are learned again: %s", exc)
            self._folder = None

    def _path(self, entry: _Entry, owner: str) -> Path:
        assert self._folder is not None
        # Hashed, so that no name of a tool or a person has to be legal in the name of a file.
        name = compact([entry.tool.id, entry.digest, owner])
        hashed = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        return self._folder() / f"{hashed[:40]}{_SUFFIX}"


async def _shape_of(result: CallResult) -> JsonObject | None:
    """The shape of a result: of its data, or that it is text; `None` where it has neither."""
    texts = [block["text"] for block in result.content if is_text(block)]
    structured: Json = result.structured
    if sum(map(len, texts)) <= _QUICK_CHARACTERS:
        return shape_of_parts(texts, structured)
    if isinstance(structured, dict) and not isinstance(structured.get(WRAPPER_KEY), str):
        return learn_shape(structured)
    try:
        return await offload(shape_of_parts, texts, structured)
    except (DeadlineExceeded, Busy):
        return None


def shape_of_parts(texts: Sequence[str], structured: Json) -> JsonObject | None:
    """The same for the texts and the structured content of a result."""
    wire: JsonObject = {"content": [{"type": "text", "text": text} for text in texts]}
    if structured is not None:
        wire["structuredContent"] = structured
    payload = find_payload(CallResult(wire))
    if payload is not None:
        return learn_shape(payload.value)
    return {"type": "string"} if texts else None


def _read_shape(path: Path) -> JsonObject | None:
    with suppress(OSError, ValueError, RecursionError):  # without a usable file it is learned
        with path.open("rb") as file:
            shape: Json = json.loads(file.read(_MAX_FILE_BYTES))
        return shape if isinstance(shape, dict) else None
    return None


def _remove_oldest(folder: Path) -> None:
    """Remove the files that were written longest ago, where there are too many."""
    files = [path for path in folder.iterdir() if path.suffix == _SUFFIX]
    if len(files) <= MAX_FILES:
        return
    files.sort(key=lambda path: path.stat().st_mtime)
    for path in files[: len(files) - MAX_FILES // 2]:
        path.unlink(missing_ok=True)
