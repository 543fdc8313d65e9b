"""Learned shapes: what tools without an informative output schema have returned so far.

A shape is a small JSON Schema: names of keys, types, lists and maps. It never holds a value of a
result, and it is bounded however a result looks. `format_result_shape` writes it like a declared
one.

    {"issues": [{"key": "A-1", "votes": 3}], "total": 1}
    {"issues": list of {"key": string, "votes": integer}, "total": integer}     as a schema

Keys are names chosen by a server, and they end up in what a model reads. So a key is recorded only
if it looks like a name in a program. An object whose keys look like data (ids, dates, addresses, or
simply too many) is a map: its values are described, its keys are not.

    call ──> handler ──> result ──> learn, unless the shape has been stable for a while
                                      │
                                      ▼
              LearnedShapes     in memory; one small file each, so that they survive a restart
                                      ▲
                                      │
    search, descriptions, code ──> get(tool, caller)

A shape belongs to one definition of a tool: a changed definition starts again. Where a server is
called with credentials of the caller it also belongs to that principal, because what a service
returns may depend on who asks.

Once a shape is stable, a call costs a lookup, and only every fiftieth result is examined.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

from anyio import to_thread

from pegboard.core.caches import BoundedCache
from pegboard.core.calls import Caller, CallResult, ToolCall
from pegboard.core.json import Json, JsonObject, compact
from pegboard.core.results.shapes import WRAPPER_KEY, find_payload, is_text
from pegboard.core.sanitization import find_suspicious_phrases
from pegboard.core.tools import Tool
from pegboard.errors import Busy
from pegboard.offload import DeadlineExceeded, offload
from pegboard.private_files import make_private_folder, replace_file

MAX_DEPTH = 5
MAX_KEYS = 32
"""Keys that one object may have before it is a map."""
MAX_ITEMS = 20
"""Items of a list, and values of a map, that are examined."""
MAX_VALUES = 500
"""Values of one result that are examined in total."""
MAX_FIELDS = 300
"""Fields of a shape in total; a larger one loses its deepest levels."""

_NAME = re.compile(r"[A-Za-z_$@][A-Za-z0-9_$@-]{0,39}")
_DATA = re.compile(r"\d{4,}|[0-9a-f]{8,}|.*\d.*[-_].*\d")
"""Numbers, hashes and dates: keys that are data, not names."""
_WORD_BREAK = re.compile(r"[_$@-]+|(?<=[a-z])(?=[A-Z])")
_TYPES: Mapping[type, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}
_REST = "additionalProperties"

T = TypeVar("T")


def learn_shape(value: Json) -> JsonObject:
    """The shape of one value."""
    return _limit_fields(_learn(value, MAX_DEPTH, iter(range(MAX_VALUES))))


def merge_shapes(known: JsonObject, seen: JsonObject) -> JsonObject:
    """The shape that values of both have; what only one of them has is there as well."""
    return _limit_fields(_merge(known, seen))


def _merge(known: JsonObject, seen: JsonObject) -> JsonObject:
    if known == seen or not seen:
        return known
    if not known:
        return seen
    types = sorted({*_types(known), *_types(seen)})
    merged: JsonObject = {"type": types[0] if len(types) == 1 else types}
    items = [shape["items"] for shape in (known, seen) if "items" in shape]
    if items:
        merged["items"] = _merge_all(items)
    members = [shape["properties"] for shape in (known, seen) if "properties" in shape]
    rest = [shape[_REST] for shape in (known, seen) if _REST in shape]
    if any(_REST in shape and "properties" not in shape for shape in (known, seen)):
        # One of them is a map: its keys were data, and still are.
        rest += [one for keys in members for one in keys.values()]
        members = []
    named: dict[str, JsonObject] = {}
    for keys in members:
        for key, shape in keys.items():
            named[key] = _merge(named.get(key, {}), shape)
    return merged | _object(named, rest)


def _learn(value: Json, depth: int, left: Iterator[int]) -> JsonObject:
    if isinstance(value, list):
        items = [_learn(one, depth - 1, left) for one in _take(value, depth, left)]
        return {"type": "array", "items": _merge_all(items)} if items else {"type": "array"}
    if isinstance(value, dict):
        chosen = _take(
            value.items(), depth, left, MAX_KEYS if len(value) <= MAX_KEYS else MAX_ITEMS
        )
        members = {key: _learn(one, depth - 1, left) for key, one in chosen}
        names = {key: shape for key, shape in members.items() if _is_name(key)}
        if len(value) > MAX_KEYS or len(names) < len(members) / 2 or _are_alike(names):
            names = {}
        rest = [shape for key, shape in members.items() if key not in names]
        return {"type": "object", **_object(names, rest)}
    return {"type": _TYPES[type(value)]} if type(value) in _TYPES else {}


def _take(
    values: Iterable[T], depth: int, left: Iterator[int], most: int = MAX_ITEMS
) -> Iterable[T]:
    """The first values, as long as neither depth nor the number of all values runs out."""
    return (one for one, _ in zip(islice(values, most), left, strict=False)) if depth else ()


def _object(names: Mapping[str, JsonObject], rest: Sequence[JsonObject]) -> JsonObject:
    """The keywords for an object with named members and others; too many names are a map."""
    if len(names) > MAX_KEYS:
        names, rest = {}, [*names.values(), *rest]
    made: JsonObject = {"properties": dict(names)} if names else {}
    return made | {_REST: _merge_all(rest)} if rest else made


def _are_alike(members: Mapping[str, JsonObject]) -> bool:
    """Whether these are entries and not fields: `{"ann": {"age": 1}, "bob": {"age": 2}, ...}`."""
    keys = [frozenset(shape.get("properties", ())) for shape in members.values()]
    return len(keys) > 2 and bool(keys[0]) and len(set(keys)) == 1


def _is_name(key: str) -> bool:
    if _NAME.fullmatch(key) is None or _DATA.fullmatch(key) is not None:
        return False
    return not find_suspicious_phrases(_WORD_BREAK.sub(" ", key))


def _types(shape: JsonObject) -> list[str]:
    types = shape.get("type", [])
    return types if isinstance(types, list) else [types]


def _merge_all(shapes: Iterable[JsonObject]) -> JsonObject:
    merged: JsonObject = {}
    for shape in shapes:
        merged = _merge(merged, shape)
    return merged


def _limit_fields(shape: JsonObject) -> JsonObject:
    """The shape without as many of its deepest levels as make it too large."""
    depth = MAX_DEPTH
    while _count_fields(shape) > MAX_FIELDS:
        depth -= 1
        shape = _cut_below(shape, depth)
    return shape


def _count_fields(shape: JsonObject) -> int:
    own = (shape[keyword] for keyword in ("items", _REST) if keyword in shape)
    return 1 + sum(map(_count_fields, (*shape.get("properties", {}).values(), *own)))


def _cut_below(shape: JsonObject, depth: int) -> JsonObject:
    cut: JsonObject = {"type": shape["type"]} if "type" in shape else {}
    if depth <= 0:
        return cut
    if members := shape.get("properties"):
        cut["properties"] = {key: _cut_below(one, depth - 1) for key, one in members.items()}
    for keyword in ("items", _REST):
        if keyword in shape:
            cut[keyword] = _cut_below(shape[keyword], depth - 1)
    return cut


SHAPES_FOLDER = "shapes"
"""The folder of the files, in the data folder."""
STABLE_AFTER = 5
"""Results in a row that add nothing, after which most results are no longer examined."""
SAMPLE_EVERY = 50
"""For a tool with a stable shape, one in this many results is examined."""
MAX_CHANGES = 40
"""Changes of one shape in one process: a server whose results keep changing is not followed."""
MAX_SHAPES = 4_096
"""Shapes in memory."""
MAX_FILES = 4_096
MISSING_FOR = 30.0
"""Seconds until the disk is checked again for a missing shape: another process may learn it."""
_MAX_FILE_BYTES = 1 << 18
_QUICK_CHARACTERS = 200_000
"""Characters of JSON that are parsed in a few milliseconds."""
_SUFFIX = ".json"
_UNINFORMATIVE = ("", "{result}", "{*}", "{result{*}}", "[]{*}", "{result[]{*}}")
"""Shapes of output schemas that say nothing: any object, a list of any objects, and the wrapper of
SDKs around text."""
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
        """The learned shape of a tool's results as JSON Schema; `None` if nothing was learned.

        Also `None` if the tool's own output schema says more.
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
            if entry.tool is tool and (
                entry.shape is not None
                or entry.is_declared
                # Later, another process may have learned the shape that was not on disk.
                or self._clock() - entry.read_at < MISSING_FOR
            ):
                return entry
        is_declared = tool.returns not in _UNINFORMATIVE
        # A digest takes longer than everything else here, and only what is learned needs one.
        digest = "" if is_declared else tool.digest
        entry = _Entry(tool, digest, None, self._clock(), is_declared)
        if not is_declared and self._folder is not None:
            entry.shape = _read_shape(self._path(entry, owner))
        return self._entries.put(key, entry)

    # On disk -----------------------------------------------------------------------------------

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
        # Hashed, because the name of a tool or a person may not be valid as a file name.
        name = compact([entry.tool.id, entry.digest, owner])
        hashed = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        return self._folder() / f"{hashed[:40]}{_SUFFIX}"


async def _shape_of(result: CallResult) -> JsonObject | None:
    """The shape of a result: of its data, or that it is text; `None` if it has neither."""
    # Parsing JSON in large texts would block the event loop; structured content is parsed already.
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
