r"""The compact layer: JSON that a server sends indented, or inside a string, as compact JSON.

    {\n  "issues": [\n    {"key": "A-1"}\n  ]\n}     {"issues":[{"key":"A-1"}]}
    {"result": "{\n  \"total\": 1\n}"}              {"total":1}     the JSON inside the string

Models read the text of a result, and indentation is a third of its tokens. What programs read is
left alone: structured content, results for clients that validate them against a listed output
schema, and calls that request `raw` or structured content.

Nothing is decoded and encoded again: only whitespace between tokens is removed, and escapes of
printable characters are replaced by them. Numbers keep their digits, and keys their order, also
where a key occurs twice. A text that is not JSON stays as it is, to the last space.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from pegboard.core.calls import CallResult, ToolCall
from pegboard.core.json import JsonObject
from pegboard.core.results.shapes import (
    WRAPPER_KEY,
    OutputContract,
    default_contract,
    is_note,
    is_text,
    parse_json,
    wants_structured,
)
from pegboard.core.token_budget import Count
from pegboard.dispatch.call_events import record_tokens_before, result_text
from pegboard.dispatch.expensive_work import run_count
from pegboard.errors import Busy
from pegboard.offload import DeadlineExceeded, offload
from pegboard.ports import Handler, Layer

_QUICK_CHARACTERS = 200_000
"""Characters of JSON that are rewritten in a few milliseconds."""


def compact_layer(
    *,
    count: Count,
    structured: bool = False,
    contract: Callable[[ToolCall], OutputContract] = default_contract,
) -> Layer:
    """A layer that writes JSON in texts compactly.

    With `structured`, all clients get structured content, and texts stay as servers sent them.
    """

    def layer(inner: Handler) -> Handler:
        async def handle(call: ToolCall) -> CallResult:
            result = await inner(call)
            if structured or call.shape.raw or wants_structured(call):
                return result
            if not result.is_complete or contract(call) != "nothing":
                return result
            # Most results are prose or compact, and cost this one look.
            if not any(is_text(b) and b["text"].lstrip()[:1] in ("{", "[") for b in result.content):
                return result
            if sum(len(b["text"]) for b in result.content if is_text(b)) <= _QUICK_CHARACTERS:
                content = compact_content(result.content)
            else:
                try:
                    content = await offload(compact_content, result.content)
                except (DeadlineExceeded, Busy):
                    return result
            if content == result.content:
                return result
            record_tokens_before(await run_count([result_text(result)], count))
            return CallResult({**result.wire, "content": content})

        return handle

    return layer


_SPACE = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")|\s+')
_MARKS = ("\n", '": ', ", ", "\\u", f'{{"{WRAPPER_KEY}":"')
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)


def compact_content(content: Sequence[JsonObject]) -> list[JsonObject]:
    """The content of a result with compact JSON in its texts; other blocks unchanged."""
    return [
        {**block, "text": compact_json_text(block["text"])}
        if is_text(block) and not is_note(block)
        else block
        for block in content
    ]


def compact_json_text(text: str) -> str:
    """The object or list that a text contains, without a wrapper; any other text as it is."""
    # Before anything is parsed: compact JSON without such marks is as short as it can be.
    if not any(mark in text for mark in _MARKS) or (value := parse_json(text)) is None:
        return text
    # The wrapper that SDKs put around a text.
    inner = value.get(WRAPPER_KEY) if isinstance(value, dict) and len(value) == 1 else None
    if isinstance(inner, str) and parse_json(inner) is not None:
        text = inner
    text = _SPACE.sub(r"\1", text)
    return _ESCAPE.sub(_unescape, text) if "\\u" in text else text


def _unescape(found: re.Match[str]) -> str:
    if found[1] is None:
        return found[0]
    character = chr(int(found[1], 16))
    # Invisible characters stay visible, and halves of a surrogate pair stay together.
    return character if character.isprintable() and character not in '"\\' else found[0]
