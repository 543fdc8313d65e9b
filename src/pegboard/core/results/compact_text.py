r"""JSON in the texts of a result, written in as few characters as the same JSON can have.

    {\n  "issues": [\n    {"key": "A-1"}\n  ]\n}     {"issues":[{"key":"A-1"}]}
    {"result": "{\n  \"total\": 1\n}"}              {"total":1}     the JSON inside the string

Nothing is decoded and encoded again: only whitespace between tokens is removed, and escapes of
printable characters are replaced by them. Numbers keep their digits, and keys their order, also
where a key occurs twice. A text that is not JSON stays as it is, to the last space.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pegboard.core.json import Json, JsonObject
from pegboard.core.results.shapes import WRAPPER_KEY, is_note, is_text, parse_json

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
    inner = _text_inside(value)
    if inner is not None and parse_json(inner) is not None:
        text = inner
    text = _SPACE.sub(r"\1", text)
    return _ESCAPE.sub(_unescape, text) if "\\u" in text else text


def _text_inside(value: Json) -> str | None:
    """The text in the wrapper that SDKs put around it."""
    if isinstance(value, dict) and len(value) == 1:
        inner = value.get(WRAPPER_KEY)
        return inner if isinstance(inner, str) else None
    return None


def _unescape(found: re.Match[str]) -> str:
    if found[1] is None:
        return found[0]
    character = chr(int(found[1], 16))
    # Invisible characters stay visible, and halves of a surrogate pair stay together.
    return character if character.isprintable() and character not in '"\\' else found[0]
