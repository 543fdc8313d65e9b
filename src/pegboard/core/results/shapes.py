"""The shape of a result: which one a call requests, where its data is, how to replace it.

A tool can state the same data up to three times: as structured content, as JSON in a text block,
and some SDKs put each element of a list into its own text block, with the structured content
wrapped as `{"result": [...]}`. Code that changes the data must change it everywhere, or clients
that read one part see something different from clients that read the other.

`include_fields` is accepted on every tool. A call meta-tool has it beside the tool's arguments; on
a direct call it is one of them, and it is removed before they are validated.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from pegboard.core.calls import CallResult, ResultShape, ToolCall
from pegboard.core.json import Json, JsonObject, compact, whole_number
from pegboard.core.results.paths import parse_fields
from pegboard.core.results.table_format import decode_table
from pegboard.core.sanitization import sanitize_text, sanitize_value
from pegboard.core.tools import Tool
from pegboard.errors import InvalidArguments, PegboardError

META_PREFIX = "io.github.pegboard/"
"""Prefix of our keys in `_meta`."""

TABLE_KEY = "table"
"""Our `_meta` key for the position of the text block that is a table (see `table_format`)."""

NOTE_KEY = "note"
"""Our `_meta` key of text blocks that are about the result and not part of it."""

WRAPPER_KEY = "result"
"""The key under which SDKs wrap structured content that is not an object."""

FIELDS_KEY = "include_fields"

OutputContract: TypeAlias = Literal["nothing", "relaxed", "exact"]
"""The output schema that a client was shown, and so will validate results against: none, one that
accepts any object, or the tool's own. Under `exact` a result must not change its form at all."""

Mirror: TypeAlias = Literal["whole", "unwrapped", "split", "none"]

_MAX_ERROR_MESSAGE = 4_000
"""Characters of a server's error message that are passed on to the model."""
_MAX_ERROR_DATA = 2_000
"""Characters of JSON up to which the `data` of a server's error is passed on."""


# --- the requested shape --------------------------------------------------------------------------


def parse_shape(given: JsonObject) -> ResultShape:
    """The shape that the arguments of a call meta-tool request.

    Raises:
        InvalidField: `include_fields` is neither a list of paths nor a text of one.
        InvalidArguments: `select` or `max_tokens` has the wrong type.
    """
    select, max_tokens = given.get("select"), given.get("max_tokens")
    if select is not None and not isinstance(select, str):
        raise InvalidArguments("`select` must be text: a JMESPath expression.", field="select")
    if (number := whole_number(max_tokens)) is not None:  # weak models write numbers as text
        max_tokens = number
    is_count = isinstance(max_tokens, int) and not isinstance(max_tokens, bool) and max_tokens >= 0
    if max_tokens is not None and not is_count:
        raise InvalidArguments(
            "`max_tokens` must be a whole number; 0 returns the complete result.",
            field="max_tokens",
        )
    return ResultShape(
        include_fields=parse_fields(given.get(FIELDS_KEY)),
        select=select or None,
        raw=given.get("raw") in (True, "true"),
        max_tokens=max_tokens,
    )


def extract_fields(tool: Tool, arguments: Json, shape: ResultShape) -> tuple[Json, ResultShape]:
    """The arguments without `include_fields`, and the shape with them.

    A tool that has a parameter of that name keeps it. Fields that the shape already has win.
    """
    given = arguments
    if isinstance(arguments, str) and FIELDS_KEY in arguments:
        with suppress(ValueError, RecursionError):  # not JSON: validation reports it
            given = json.loads(arguments)
    if not isinstance(given, dict) or FIELDS_KEY not in given:
        return arguments, shape
    if FIELDS_KEY in tool.input_schema.get("properties", {}):
        return arguments, shape
    fields = shape.include_fields or parse_fields(given[FIELDS_KEY])
    rest = {key: value for key, value in given.items() if key != FIELDS_KEY}
    return rest, replace(shape, include_fields=fields)


def default_contract(call: ToolCall) -> OutputContract:
    """The contract of a call: a call through a meta-tool is bound by no schema."""
    return "exact" if call.via is None and call.tool.output_schema is not None else "nothing"


def wants_structured(call: ToolCall) -> bool:
    """Whether the request asks for structured content."""
    meta = call.params.get("_meta")
    return isinstance(meta, dict) and meta.get(META_PREFIX + "structured") is True


# --- the data of a result -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Payload:
    """The data of a result.

    `texts` are the positions of the text blocks that repeat it: as it is (`whole`), without the
    wrapper (`unwrapped`), or one element each (`split`). `is_encoded` is true if the structured
    content has the data as JSON in a text, as SDKs do for functions that return text.
    """

    value: Json
    texts: tuple[int, ...] = ()
    mirror: Mirror = "none"
    structured: bool = False
    is_encoded: bool = False

    @property
    def text_value(self) -> Json:
        """The value as the text blocks have it."""
        return _unwrap(self.value) if self.structured and self.mirror != "whole" else self.value


def find_payload(result: CallResult) -> Payload | None:
    """The data of a result, or `None` when it has none: prose, images, a bare number."""
    position = result.meta.get(META_PREFIX + TABLE_KEY)
    if isinstance(position, int) and 0 <= position < len(result.content):
        block = result.content[position]
        with suppress(ValueError):  # the key came from an upstream, without a table of ours
            if is_text(block):
                return Payload(decode_table(block["text"]), (position,), "whole")
    texts = [
        (position, block["text"])
        for position, block in enumerate(result.content)
        if is_text(block) and not is_note(block)
    ]
    structured = result.structured
    if isinstance(structured, (dict, list)):
        return _find_mirror(structured, texts)
    parsed = [(i, value) for i, text in texts if (value := parse_json(text)) is not None]
    if not parsed:
        return None
    positions = tuple(i for i, _ in parsed)
    if len(parsed) == 1:
        return Payload(parsed[0][1], positions, "whole")
    return Payload([value for _, value in parsed], positions, "split")


def is_text(block: JsonObject) -> bool:
    """Whether a content block is text."""
    return block.get("type") == "text" and isinstance(block.get("text"), str)


def parse_json(text: str) -> Json | None:
    """The object or list that a text contains, or `None`."""
    # Prose is recognized by its first character: parsing megabytes to find out would be slow.
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return _decoder.decode(text)
    except (ValueError, RecursionError):
        return None


def _parse_finite(text: str) -> float:
    # `1e999` would be written back as `Infinity`, which is not JSON: then the text stays as it is.
    number = float(text)
    if math.isinf(number):
        raise ValueError(text)
    return number


_decoder = json.JSONDecoder(parse_float=_parse_finite)


def _find_mirror(structured: Json, texts: Sequence[tuple[int, str]]) -> Payload:
    """The structured content with the text blocks that repeat it, in whichever way they do."""
    parsed = [(i, text, parse_json(text)) for i, text in texts]
    whole = tuple(i for i, _, value in parsed if value is not None and _equal(value, structured))
    if whole:
        return Payload(structured, whole, "whole", structured=True)
    inner = _unwrap(structured)
    if inner is not structured:
        decoded = parse_json(inner) if isinstance(inner, str) else None
        if decoded is not None:  # the same JSON, however each of them is indented
            inner = decoded
        bare = tuple(i for i, text, value in parsed if text == inner or _equal(value, inner))
        if bare and decoded is not None:
            return Payload(decoded, bare, "whole", structured=True, is_encoded=True)
        if bare:
            return Payload(structured, bare, "unwrapped", structured=True)
    if isinstance(inner, list) and inner and len(parsed) == len(inner):
        pairs = zip(parsed, inner, strict=True)
        if all(_states(text, value, item) for (_, text, value), item in pairs):
            return Payload(structured, tuple(i for i, _ in texts), "split", structured=True)
    return Payload(structured, structured=True)


def _unwrap(structured: Json) -> Json:
    if isinstance(structured, dict) and len(structured) == 1 and WRAPPER_KEY in structured:
        return structured[WRAPPER_KEY]
    return structured


def _states(text: str, parsed: Json, item: Json) -> bool:
    """Whether a text block is one element of a list; `parsed` is its object or list, if any."""
    if isinstance(item, str):
        return text == item
    if parsed is None:  # a number, `true` or `null`, which `parse_json` leaves out
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError):
            return False
    return _equal(parsed, item)


def _equal(parsed: Json, value: Json) -> bool:
    """Equal as JSON; NaN and infinity equal themselves, and the null that SDKs make of them."""
    if type(parsed) is not type(value) or parsed is None:
        return False
    try:
        if parsed == value:
            return True
        text = json.dumps(parsed)
        if "NaN" not in text and "Infinity" not in text:
            return False
        return _loads_finite(text) == _loads_finite(json.dumps(value))
    except (TypeError, ValueError, RecursionError):
        return False


def _loads_finite(text: str) -> Json:
    """The value of a text, with null for NaN and infinity."""
    return json.loads(text, parse_constant=lambda _: None)


def payload_text(result: CallResult, payload: Payload) -> str:
    """The text that a model reads of the data, as the tool sent it."""
    texts = [result.content[i]["text"] for i in payload.texts]
    return "\n".join(texts) if texts else compact(payload.value)


# --- the same result with other data --------------------------------------------------------------


def replace_value(result: CallResult, payload: Payload, value: Json) -> CallResult:
    """The result with another value: structured content and its mirror both changed."""
    text_value = replace(payload, value=value).text_value
    is_split = payload.mirror == "split" and isinstance(text_value, list)
    if is_split and len(text_value) == len(payload.texts):
        texts = dict(zip(payload.texts, map(_to_text, text_value), strict=True))
    elif payload.texts:
        # Elements were dropped, so they no longer match the blocks one to one: one block has all.
        texts = {payload.texts[0]: _to_text(text_value)}
    else:
        texts = {}
    wire = {**result.wire, "content": _replace_texts(result, payload, texts)}
    if payload.structured:
        wire["structuredContent"] = {WRAPPER_KEY: _to_text(value)} if payload.is_encoded else value
    return CallResult(wire)


def replace_with_text(result: CallResult, payload: Payload, text: str) -> tuple[CallResult, int]:
    """The result with its data as one text and nowhere else, and the position of that text."""
    wire = {k: v for k, v in result.wire.items() if k != "structuredContent"}
    if payload.texts:
        position = payload.texts[0]
        wire["content"] = _replace_texts(result, payload, {position: text})
    else:
        position = len(result.content)
        wire["content"] = [*result.content, {"type": "text", "text": text}]
    return CallResult(wire), position


def _to_text(value: Json) -> str:
    return value if isinstance(value, str) else compact(value)


def _replace_texts(
    result: CallResult, payload: Payload, texts: Mapping[int, str]
) -> list[JsonObject]:
    """The content with new texts; blocks of the payload without one are removed."""
    return [
        {**block, "text": texts[i]} if i in texts else block
        for i, block in enumerate(result.content)
        if i in texts or i not in payload.texts
    ]


def add_meta(result: CallResult, key: str, value: Json) -> CallResult:
    """The result with one more of our keys in its `_meta`."""
    return CallResult({**result.wire, "_meta": {**result.meta, META_PREFIX + key: value}})


def add_note(result: CallResult, text: str) -> CallResult:
    """The result with one more text block at its end, marked as ours."""
    note = {"type": "text", "text": text, "_meta": {META_PREFIX + NOTE_KEY: True}}
    return CallResult({**result.wire, "content": [*result.content, note]})


def is_note(block: JsonObject) -> bool:
    """Whether a block is a note of ours about the result."""
    meta = block.get("_meta")
    return isinstance(meta, dict) and meta.get(META_PREFIX + NOTE_KEY) is True


def disown_notes(wire: JsonObject) -> JsonObject:
    """A server's result in which no block poses as a note of ours: these are never cut."""
    content: list[JsonObject] = wire.get("content", [])
    if not any(map(is_note, content)):
        return wire
    blocks = [
        {**b, "_meta": {k: v for k, v in b["_meta"].items() if k != META_PREFIX + NOTE_KEY}}
        if is_note(b)
        else b
        for b in content
    ]
    return {**wire, "content": blocks}


def error_to_json(exc: PegboardError) -> JsonObject:
    """An error as a model reads it: its kind, its message, and what helps to fix it.

    A server's own JSON-RPC error, which has a `code`, is untrusted text: sanitized and bounded.
    """
    if "code" not in exc.details:
        return {"kind": exc.kind, "message": exc.message, **exc.details}
    details = {key: value for key, value in exc.details.items() if key != "data"}
    message = sanitize_text(exc.message)
    if (more := len(message) - _MAX_ERROR_MESSAGE) > 0:
        message = f"{message[:_MAX_ERROR_MESSAGE]}… ({more} more characters)"
    error = {"kind": exc.kind, "message": message, **details}
    data = exc.details.get("data")
    if data is not None and len(compact(data)) <= _MAX_ERROR_DATA:
        error["data"] = sanitize_value(data)
    return error
