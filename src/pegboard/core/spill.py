"""Spills: what is kept of a large result, and what the model is told in its place.

    result ──over budget──> Kept (in the store, under a handle only its caller can use)
                       └──> notice {handle, tokens, rows?, fields, preview, expires_at, read}

The text of a result counts, and so does structured content that no text says; images, audio and
files do not: they stay in the result, or are kept as resources (`core/blobs.py`). A handle is 128
random bits, and the key in the store is derived from handle and principal together: somebody else's
handle leads nowhere, exactly like one never given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeAlias

from pegboard.core.blobs import is_kept
from pegboard.core.budget import Count, utf8_size
from pegboard.core.calls import CallResult
from pegboard.core.envelope import envelope_key
from pegboard.core.json import Json, JsonObject, compact, digest
from pegboard.core.outline import outline
from pegboard.core.preview import preview
from pegboard.core.results import is_note, is_text, parse_json, payload_of
from pegboard.core.tools import Tool

RandomBytes: TypeAlias = Callable[[int], bytes]

LINE = 400
"""Characters after which a line counts as several, so that even one endless line can be paged."""

_HANDLE_BYTES = 16
_FEW_WORDS = 1_000
"""Bytes of prose beside the data that stay where they are."""


@dataclass(frozen=True, slots=True)
class SpillPolicy:
    """When results are kept back, and how much is said of them.

    `tokens` is the budget of a result; `None` keeps nothing back. `per_tool` has other budgets by
    tool id or name. `blob_bytes` is the budget of what is no text.
    """

    tokens: int | None = 4_000
    per_tool: Mapping[str, int | None] = field(default_factory=dict[str, int | None])
    preview_tokens: int = 400
    page_tokens: int = 2_000
    ttl: float = 3_600.0
    blob_bytes: int | None = 1_000_000

    def budget(self, tool: Tool, asked: int | None = None) -> int | None:
        """The tokens that a result of this tool may have; what the call asked for comes first."""
        if asked is not None:
            return asked if asked > 0 else None
        for name in (tool.id, tool.name):
            if name in self.per_tool:
                return self.per_tool[name]
        return self.tokens


@dataclass(frozen=True, slots=True)
class Contents:
    """What a result says: the texts that a model would read, and the value in them.

    `left` are the blocks that stay in the result: what is no text, and short words beside the data.
    """

    texts: tuple[str, ...]
    value: Json
    left: tuple[JsonObject, ...] = ()


def contents_of(result: CallResult) -> Contents:
    """The contents of a result, each thing once.

    The value is the one thing that the result says, or a list where it says several.
    """
    payload = payload_of(result)
    data = result.structured if payload is None else payload.said
    mirrors = () if payload is None else payload.texts
    blocks = dict(enumerate(result.content))
    stays = {i for i, b in blocks.items() if is_binary(b) or is_note(b) or is_kept(b)}
    texts = [readable(block) for i, block in blocks.items() if i not in stays]
    beside = [i for i in blocks if i not in stays and i not in mirrors]
    values = [_value_of(blocks[i]) for i in beside]
    if data is not None:
        values.insert(0, data)
        texts += [] if mirrors else [compact(data)]
        if sum(utf8_size(readable(blocks[i])) for i in beside) <= _FEW_WORDS:
            values, stays = [data], stays.union(beside)
    value = values[0] if len(values) == 1 else values
    return Contents(tuple(texts), value, tuple(blocks[i] for i in sorted(stays)))


def is_binary(block: JsonObject) -> bool:
    """Whether a block is data that no model reads as text."""
    resource = block.get("resource")
    return block.get("type") in ("image", "audio") or (
        isinstance(resource, dict) and "blob" in resource
    )


def readable(block: JsonObject) -> str:
    """The text that a model reads of a block."""
    return block["text"] if is_text(block) else compact(block)


def _value_of(block: JsonObject) -> Json:
    if not is_text(block):
        return block
    parsed = parse_json(block["text"])
    return block["text"] if parsed is None else parsed


def new_handle(random: RandomBytes) -> str:
    """A name that nobody guesses."""
    return random(_HANDLE_BYTES).hex()


def spill_key(principal: str, handle: str) -> str:
    """Where the store keeps what a handle names, for one principal."""
    return f"spill:{digest([principal, handle])}"


def notice(
    handle: str, value: Json, *, tokens: int, expires_at: float, policy: SpillPolicy, count: Count
) -> JsonObject:
    """What the model gets instead of the result."""
    said: JsonObject = {"handle": handle, "tokens": tokens}
    rows = rows_of(value)
    if rows is not None:
        said["rows"] = len(rows[1])
    elif isinstance(value, str):
        said["lines"] = len(lines_of(value))
    said["fields"] = outline(value)
    said["preview"] = preview(value, policy.preview_tokens, count)
    said["expires_at"] = until(expires_at)
    said["read"] = "read_result(handle, path?, offset?, limit?, grep?, select?)"
    return said


def until(expires_at: float) -> str:
    """A moment as models are told it."""
    return datetime.fromtimestamp(expires_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rows_of(value: Json) -> tuple[str, list[Json]] | None:
    """The rows of a list, or of one in an envelope with the key that it stands under."""
    if isinstance(value, list):
        return "", value
    key = envelope_key(value)
    return (key, value[key]) if key is not None and isinstance(value[key], list) else None


def lines_of(text: str) -> list[str]:
    """The lines of a text with their ends, long ones in pieces; together they are the text."""
    return [
        line[start : start + LINE]
        for line in text.splitlines(keepends=True)
        for start in range(0, len(line), LINE)
    ]
