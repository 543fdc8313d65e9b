"""Counting tokens: exact, offline, with a named tokenizer, in one place.

Text is counted as it would be sent to a model: what looks like a special token is ordinary text
there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from pegboard.core import defaults
from pegboard.core.json import Json, JsonObject, compact
from pegboard.core.token_budget import Estimate, estimate_tokens
from pegboard.core.tool_parser import PROMPT_KEYS
from pegboard.core.tools import Tool
from pegboard.errors import ConfigError

if TYPE_CHECKING:
    from splintr import AnyTokenizer

__all__ = ["DEFAULT_TOKENIZER", "TOKENIZERS", "count_or_estimate", "count_tokens"]

DEFAULT_TOKENIZER: Final = defaults.TOKENIZER
TOKENIZERS: Final = ("o200k_base", "cl100k_base")
PIECE: Final = 100_000
"""Characters that are given to the tokenizer at once."""
_CUT_WINDOW: Final = 1_000
"""Characters before the end of a piece in which a space is looked for."""
LONGEST_COUNTED: Final = 4_000
"""Characters above which a number that is only displayed is extrapolated."""


def count_tokens(text_or_tool: str | Tool | Json, tokenizer: str = DEFAULT_TOKENIZER) -> int:
    """The tokens of a text, of a tool as a model reads it, or of a JSON value as compact text.

    Raises:
        ConfigError: The tokenizer is not one of `TOKENIZERS`.
    """
    if isinstance(text_or_tool, str):
        return _count(text_or_tool, tokenizer)
    if isinstance(text_or_tool, Tool):
        # Only what clients put into the prompt: titles, annotations and output schemas are not.
        tool = text_or_tool
        entry: JsonObject = {"name": tool.name}
        if tool.description:
            entry["description"] = tool.description
        entry["inputSchema"] = tool.input_schema
        return _count(compact(entry), tokenizer)
    return _count(compact(text_or_tool), tokenizer)


def extract_prompt_part(entry: JsonObject) -> JsonObject:
    """The part of a `tools/list` entry that clients pass on to the model."""
    return {key: entry[key] for key in PROMPT_KEYS if key in entry}


def count_entry_tokens(entries: Iterable[JsonObject], tokenizer: str = DEFAULT_TOKENIZER) -> int:
    """The tokens that a model reads of `tools/list` entries."""
    return sum(count_tokens(extract_prompt_part(entry), tokenizer) for entry in entries)


def count_or_estimate(text: str, tokenizer: str = DEFAULT_TOKENIZER) -> int:
    """About the tokens of a text, cheap enough for every call.

    Counted if the tokenizer is already loaded and the text is short. Otherwise an `Estimate`: from
    both ends of a long text, or from the number of its bytes.
    """
    # Loading would delay the first call of a process by 0.3 s, for a number in a log.
    if tokenizer not in _loaded:
        return estimate_tokens(text)
    if len(text) <= LONGEST_COUNTED:
        return _count(text, tokenizer)
    # Results often start with an envelope and end with rows, so one end alone would mislead.
    half = LONGEST_COUNTED // 2
    ends = _count(text[:half], tokenizer) + _count(text[-half:], tokenizer)
    return Estimate(round(ends * len(text) / (2 * half)))


_loaded: Final[dict[str, AnyTokenizer]] = {}


def _count(text: str, tokenizer: str) -> int:
    if tokenizer not in TOKENIZERS:
        raise ConfigError(
            f"Unknown tokenizer: {tokenizer!r}. Known: {', '.join(TOKENIZERS)}.",
            field="tokenizer",
            expected=list(TOKENIZERS),
        )
    if tokenizer not in _loaded:
        # On first use: its vocabulary takes about 0.3 s and 30 MB.
        from splintr import Tokenizer

        _loaded[tokenizer] = Tokenizer.from_pretrained(tokenizer)
    encode = _loaded[tokenizer].encode_ordinary
    try:
        return sum(len(encode(piece)) for piece in _pieces(text))
    except UnicodeEncodeError:
        # JSON can spell half of a surrogate pair; no model can be sent one.
        return _count(text.encode("utf-8", "replace").decode(), tokenizer)


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces that are quick to count, cut before a space where there is one.

    One unbroken run of megabytes takes the tokenizer seconds, a hundred short ones milliseconds. A
    cut before a space changes no count; a cut inside a run changes it by at most one token.
    """
    start = 0
    while len(text) - start > PIECE:
        end = start + PIECE
        space = text.rfind(" ", end - _CUT_WINDOW, end)
        end = space if space > start else end
        yield text[start:end]
        start = end
    yield text[start:] if start else text
