r"""Spills: what is stored of a large result, and the notice that the model gets in its place.

    result --over budget--> contents (in the store, under a handle only its caller can use)
                       \--> notice {handle, tokens, rows?, fields, preview, expires_at, read}

The text of a result counts, and so does structured content that no text repeats. Images, audio and
files do not: they stay in the result, or are stored as resources (`core/results/blob_links.py`). A
handle is 128 random bits, and the key in the store is derived from handle and principal together,
so somebody else's handle behaves exactly like one that never existed.

A preview keeps the structure of the value and marks every omission:

    [{"id": 1, "body": "The quick… +4,310 characters"}, {…}, "… 898 more"]

Everything that starts with `…` is ours, not the tool's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeAlias

from pegboard.core import defaults
from pegboard.core.calls import CallResult
from pegboard.core.json import Json, JsonObject, compact, digest
from pegboard.core.results.blob_links import is_stored_link
from pegboard.core.results.paths import OMISSION, build_outline, envelope_key
from pegboard.core.results.shapes import find_payload, is_note, is_text, parse_json
from pegboard.core.token_budget import Count, fits_token_budget, utf8_size
from pegboard.core.tools import Tool

RandomBytes: TypeAlias = Callable[[int], bytes]

LINE_LENGTH = 400
"""Characters after which a line counts as several, so that even one endless line can be paged."""

_HANDLE_BYTES = 16
_SHORT_PROSE = 1_000
"""Bytes of prose beside the data up to which the prose stays in the result."""


@dataclass(frozen=True, slots=True)
class SpillPolicy:
    """When results are stored instead of sent, and how much the notice shows of them.

    `tokens` is the budget of a result; `None` sends everything. `per_tool` has other budgets by
    tool id or name. `blob_bytes` is the budget of content that is not text.
    """

    tokens: int | None = defaults.SPILL_TOKENS
    per_tool: Mapping[str, int | None] = field(default_factory=dict[str, int | None])
    preview_tokens: int = 400
    page_tokens: int = 2_000
    ttl: float = defaults.SPILL_TTL
    blob_bytes: int | None = defaults.SPILL_BYTES

    def budget(self, tool: Tool, requested: int | None = None) -> int | None:
        """The tokens that a result of this tool may have; a budget that the call requests wins."""
        if requested is not None:
            return requested if requested > 0 else None
        for name in (tool.id, tool.name):
            if name in self.per_tool:
                return self.per_tool[name]
        return self.tokens


@dataclass(frozen=True, slots=True)
class ResultContents:
    """The contents of a result: the texts that a model would read, and the value in them.

    `left` are the blocks that stay in the result: binary content, and short prose beside the data.
    """

    texts: tuple[str, ...]
    value: Json
    left: tuple[JsonObject, ...] = ()


def read_contents(result: CallResult) -> ResultContents:
    """The contents of a result, without repetitions.

    The value is the one thing that the result contains, or a list if it contains several.
    """
    payload = find_payload(result)
    data = result.structured if payload is None else payload.text_value
    mirrors = () if payload is None else payload.texts
    blocks = dict(enumerate(result.content))
    stays = {i for i, b in blocks.items() if is_binary(b) or is_note(b) or is_stored_link(b)}
    texts = [block_text(block) for i, block in blocks.items() if i not in stays]
    beside = [i for i in blocks if i not in stays and i not in mirrors]
    values: list[Json] = []
    for i in beside:
        text = blocks[i]["text"] if is_text(blocks[i]) else None
        parsed = None if text is None else parse_json(text)
        values.append(parsed if parsed is not None else blocks[i] if text is None else text)
    if data is not None:
        values.insert(0, data)
        texts += [] if mirrors else [compact(data)]
        # A sentence such as "Found 900 issues:" must not turn the data into one item of a list.
        if sum(utf8_size(block_text(blocks[i])) for i in beside) <= _SHORT_PROSE:
            values, stays = [data], stays.union(beside)
    value = values[0] if len(values) == 1 else values
    return ResultContents(tuple(texts), value, tuple(blocks[i] for i in sorted(stays)))


def is_binary(block: JsonObject) -> bool:
    """Whether a block is data that no model reads as text."""
    resource = block.get("resource")
    return block.get("type") in ("image", "audio") or (
        # With a text beside the blob, a client may give that to its model.
        isinstance(resource, dict)
        and isinstance(resource.get("blob"), str)
        and "text" not in resource
    )


def block_text(block: JsonObject) -> str:
    """The text that a model reads of a block."""
    return block["text"] if is_text(block) else compact(block)


def new_handle(random: RandomBytes) -> str:
    """A name that cannot be guessed."""
    return random(_HANDLE_BYTES).hex()


def spill_key(principal: str, handle: str) -> str:
    """The key in the store of what a handle names, for one principal."""
    # Hashed together, so that no handle of a caller is a key of another.
    return f"spill:{digest([principal, handle])}"


def build_notice(
    handle: str, value: Json, *, tokens: int, expires_at: float, policy: SpillPolicy, count: Count
) -> JsonObject:
    """What the model gets instead of the result."""
    notice: JsonObject = {"handle": handle, "tokens": tokens}
    rows = find_rows(value)
    if rows is not None:
        notice["rows"] = len(rows[1])
    elif isinstance(value, str):
        notice["lines"] = len(split_lines(value))
    # Fields before the preview: with them alone a model can write its next request.
    notice["fields"] = build_outline(value)
    notice["preview"] = build_preview(value, policy.preview_tokens, count)
    notice["expires_at"] = format_expiry(expires_at)
    # Most clients let a model call only what is listed, so the way through the call tool is named.
    notice["read"] = (
        'call_tool(name="read_result", arguments={handle, path?, offset?, limit?, grep?, select?})'
    )
    return notice


def format_expiry(expires_at: float) -> str:
    """A time as models read it."""
    return datetime.fromtimestamp(expires_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def find_rows(value: Json) -> tuple[str, list[Json]] | None:
    """The rows of a list, or of the list in an envelope, with the key of that list."""
    if isinstance(value, list):
        return "", value
    key = envelope_key(value)
    return (key, value[key]) if key is not None and isinstance(value[key], list) else None


def split_lines(text: str) -> list[str]:
    """The lines of a text with their line ends, long ones in pieces; joined, they are the text."""
    return [
        line[start : start + LINE_LENGTH]
        for line in text.splitlines(keepends=True)
        for start in range(0, len(line), LINE_LENGTH)
    ]


# --- previews -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PreviewDetail:
    """How much of each part a preview shows."""

    rows: int
    keys: int
    characters: int
    depth: int


# From generous to minimal: the first one whose preview fits the budget is used.
_DETAILS = (
    PreviewDetail(rows=5, keys=40, characters=400, depth=6),
    PreviewDetail(rows=3, keys=40, characters=160, depth=6),
    PreviewDetail(rows=3, keys=30, characters=80, depth=5),
    PreviewDetail(rows=2, keys=25, characters=60, depth=4),
    PreviewDetail(rows=1, keys=20, characters=40, depth=4),
    PreviewDetail(rows=1, keys=15, characters=30, depth=3),
    PreviewDetail(rows=1, keys=8, characters=20, depth=2),
    PreviewDetail(rows=0, keys=4, characters=20, depth=1),
    PreviewDetail(rows=0, keys=0, characters=20, depth=0),
)
_TEXT_DETAILS = ((40, 10, 300), (20, 5, 200), (10, 3, 160), (5, 2, 100), (2, 1, 60), (1, 0, 20))
"""The same for texts: lines at the start, lines at the end, characters of a line."""


def build_preview(value: Json, budget: int, count: Count) -> Json:
    """As much of the value as fits the budget; only its size if nothing does."""
    small: Json = None
    if isinstance(value, str):
        lines = value.split("\n")
        for head, tail, width in _TEXT_DETAILS:
            shown = lines
            if len(lines) > head + tail:
                # The first lines and the last: the end of a log says how it ended.
                omitted = f"{OMISSION} {len(lines) - head - tail:,} more lines"
                shown = [*lines[:head], omitted, *lines[len(lines) - tail :]]
            small = "\n".join(_shorten_text(line, width) for line in shown)
            if fits_token_budget(small, budget, count):
                break
        return small
    for detail in _DETAILS:
        small = _sample(value, detail, detail.depth)
        if fits_token_budget(compact(small), budget, count):
            break
    return small


def _sample(value: Json, detail: PreviewDetail, depth: int) -> Json:
    if isinstance(value, str):
        return _shorten_text(value, detail.characters)
    if isinstance(value, dict) and value:
        if not depth:
            return f"{OMISSION} {len(value):,} keys"
        keys = list(value)[: detail.keys]
        small = {_shorten_text(key, 80): _sample(value[key], detail, depth - 1) for key in keys}
        if len(value) > len(keys):
            small[OMISSION] = f"{len(value) - len(keys):,} more keys"
        return small
    if isinstance(value, list) and value:
        if not depth:
            return f"{OMISSION} {len(value):,} items"
        rows = [_sample(item, detail, depth - 1) for item in value[: detail.rows]]
        if len(value) > detail.rows:
            rows.append(f"{OMISSION} {len(value) - detail.rows:,} more")
        return rows
    return value


def _shorten_text(text: str, characters: int) -> str:
    omitted = len(text) - characters
    # A mark as long as what it replaces saves nothing.
    return text if omitted <= 20 else f"{text[:characters]}{OMISSION} +{omitted:,} characters"
