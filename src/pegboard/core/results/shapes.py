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
"""Our `_meta` key of text blocks that are about the result and no part of it."""

WRAPPER_KEY = "result"
"""The key under which SDKs wrap structured content that is no object."""

OutputContract: TypeAlias = Literal["nothing", "relaxed", "exact"]
"""What a client was told of a tool's output, and so will check: no schema, one that any object
fits, or the tool's own. Under `exact` a result may not change its form at all."""

Mirror: TypeAlias = Literal["whole", "unwrapped", "split", "none"]


@dataclass(frozen=True, slots=True)
class Payload:
    """The data of a result.

    `texts` are the positions of the text blocks that say it: as it is (`whole`), without the
    wrapper (`unwrapped`), or one element each (`split`).
    """

    value: Json
    texts: tuple[int, ...] = ()
    mirror: Mirror = "none"
    structured: bool = False

    @property
    def said(self) -> Json:
        """The value as the text blocks say it."""
        return _unwrapped(self.value) if self.structured and self.mirror != "whole" else self.value


def find_payload(result: CallResult) -> Payload | None:
    """The data of a result, or `None` when it carries none: prose, images, a bare number."""
    table = _find_table(result)
    if table is not None:
        return table
    said = [(i, b) for i, b in enumerate(result.content) if is_text(b) and not is_note(b)]
    texts = [(i, block["text"]) for i, block in said]
    structured = result.structured
    if isinstance(structured, (dict, list)):
        return _mirrored(structured, texts)
    parsed = [(i, value) for i, text in texts if (value := parse_json(text)) is not None]
    if not parsed:
        return None
    positions = tuple(i for i, _ in parsed)
    if len(parsed) == 1:
        return Payload(parsed[0][1], positions, "whole")
    return Payload([value for _, value in parsed], positions, "split")


def _find_table(result: CallResult) -> Payload | None:
    position = result.meta.get(META_PREFIX + TABLE_KEY)
    if not isinstance(position, int) or not 0 <= position < len(result.content):
        return None
    block = result.content[position]
    try:
        return (
            Payload(decode_table(block["text"]), (position,), "whole") if is_text(block) else None
        )
    except ValueError:  # the mark came from an upstream, and not with a table of ours
        return None


def is_text(block: JsonObject) -> bool:
    """Whether a content block is text."""
    return block.get("type") == "text" and isinstance(block.get("text"), str)


def parse_json(text: str) -> Json | None:
    """The object or list that a text is, or `None`."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return _decoder.decode(text)
    except (ValueError, RecursionError):
        return None


def _finite(text: str) -> float:
    """A number that would come out as another text than JSON's is left where it is."""
    number = float(text)
    if math.isinf(number):
        raise ValueError(text)
    return number


_decoder = json.JSONDecoder(parse_float=_finite)


def _mirrored(structured: Json, texts: Sequence[tuple[int, str]]) -> Payload:
    parsed = [(i, text, parse_json(text)) for i, text in texts]
    whole = tuple(i for i, _, value in parsed if value is not None and _same(value, structured))
    if whole:
        return Payload(structured, whole, "whole", structured=True)
    inner = _unwrapped(structured)
    if inner is not structured:
        bare = tuple(i for i, text, value in parsed if text == inner or _same(value, inner))
        if bare:
            return Payload(structured, bare, "unwrapped", structured=True)
    if isinstance(inner, list) and inner and _split(parsed, inner):
        return Payload(structured, tuple(i for i, _ in texts), "split", structured=True)
    return Payload(structured, structured=True)


def _unwrapped(structured: Json) -> Json:
    if isinstance(structured, dict) and len(structured) == 1 and WRAPPER_KEY in structured:
        return structured[WRAPPER_KEY]
    return structured


def _split(parsed: Sequence[tuple[int, str, Json]], items: Sequence[Json]) -> bool:
    return len(parsed) == len(items) and all(
        text == item
        if isinstance(item, str)
        else _same(_loaded(text) if value is None else value, item)
        for (_, text, value), item in zip(parsed, items, strict=True)
    )


def _loaded(text: str) -> Json:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _same(parsed: Json, value: Json) -> bool:
    """Equal as JSON; NaN and infinity equal themselves, and the null that SDKs make of them."""
    if type(parsed) is not type(value) or parsed is None:
        return False
    try:
        if parsed == value:
            return True
        text = json.dumps(parsed)
        is_strange = "NaN" in text or "Infinity" in text
        return is_strange and _nulled(text) == _nulled(json.dumps(value))
    except (TypeError, ValueError, RecursionError):
        return False


def _nulled(text: str) -> Json:
    """What a text says, with null for what is no number in JSON."""
    return json.loads(text, parse_constant=lambda _: None)


def replace_value(result: CallResult, payload: Payload, value: Json) -> CallResult:
    """The same result about another value: structured content and its mirror both changed."""
    changed = Payload(value, payload.texts, payload.mirror, payload.structured)
    said = changed.said
    if payload.mirror == "split" and isinstance(said, list) and len(said) == len(payload.texts):
        texts = dict(zip(payload.texts, map(_as_text, said), strict=True))
    elif payload.texts:
        texts = {payload.texts[0]: _as_text(said)}
    else:
        texts = {}
    wire = {**result.wire, "content": _content(result, payload, texts)}
    if payload.structured:
        wire["structuredContent"] = value
    return CallResult(wire)


def replace_with_text(result: CallResult, payload: Payload, text: str) -> tuple[CallResult, int]:
    """The same result with its data as one text and nowhere else, and where that text stands."""
    wire = {k: v for k, v in result.wire.items() if k != "structuredContent"}
    if payload.texts:
        position = payload.texts[0]
        wire["content"] = _content(result, payload, {position: text})
    else:
        position = len(result.content)
        wire["content"] = [*result.content, {"type": "text", "text": text}]
    return CallResult(wire), position


def add_meta(result: CallResult, key: str, value: Json) -> CallResult:
    """The same result with one more of our keys in its `_meta`."""
    return CallResult({**result.wire, "_meta": {**result.meta, META_PREFIX + key: value}})


def add_note(result: CallResult, text: str) -> CallResult:
    """The same result with one more text block at its end, marked as ours."""
    note = {"type": "text", "text": text, "_meta": {META_PREFIX + NOTE_KEY: True}}
    return CallResult({**result.wire, "content": [*result.content, note]})


def is_note(block: JsonObject) -> bool:
    """Whether a block is a note of ours about the result."""
    meta = block.get("_meta")
    return isinstance(meta, dict) and meta.get(META_PREFIX + NOTE_KEY) is True


def _as_text(value: Json) -> str:
    return value if isinstance(value, str) else compact(value)


def _content(result: CallResult, payload: Payload, texts: Mapping[int, str]) -> list[JsonObject]:
    """The content with new texts; blocks of the payload without one are gone."""
    return [
        {**block, "text": texts[i]} if i in texts else block
        for i, block in enumerate(result.content)
        if i in texts or i not in payload.texts
    ]


def payload_text(result: CallResult, payload: Payload) -> str:
    """The text that a model reads of the data as it came."""
    texts = [result.content[i]["text"] for i in payload.texts]
    return "\n".join(texts) if texts else compact(payload.value)


def default_contract(call: ToolCall) -> OutputContract:
    """What a client knows of the output: a call through a meta-tool is bound by no schema."""
    return "exact" if call.via is None and call.tool.output_schema is not None else "nothing"


def wants_structured(call: ToolCall) -> bool:
    """Whether the request asks for structured content."""
    meta = call.params.get("_meta")
    return isinstance(meta, dict) and meta.get(META_PREFIX + "structured") is True


_ERROR_MESSAGE = 4_000
"""Characters of a server's error message that a model is given."""
_ERROR_DATA = 2_000
"""Characters of JSON that the `data` of a server's error may have to be given along."""


def error_to_json(exc: PegboardError) -> JsonObject:
    """An error as a model reads it: its kind, its message, and what helps to fix it.

    A server's own JSON-RPC error, which has a `code`, is text from upstream: cleaned and bounded.
    """
    if "code" not in exc.details:
        return {"kind": exc.kind, "message": exc.message, **exc.details}
    details = {key: value for key, value in exc.details.items() if key != "data"}
    message = sanitize_text(exc.message)
    if len(message) > _ERROR_MESSAGE:
        message = f"{message[:_ERROR_MESSAGE]}… ({len(message) - _ERROR_MESSAGE} more characters)"
    shape = {"kind": exc.kind, "message": message, **details}
    data = exc.details.get("data")
    if data is not None and len(compact(data)) <= _ERROR_DATA:
        shape["data"] = sanitize_value(data)
    return shape


FIELDS_KEY = "include_fields"


def parse_shape(given: JsonObject) -> ResultShape:
    """The shape that a call meta-tool's arguments ask for.

    Raises:
        InvalidField: `include_fields` is no list of paths, nor a text that spells one.
        InvalidArguments: `select` or `max_tokens` is of another kind than it must be.
    """
    return ResultShape(
        include_fields=parse_fields(given.get(FIELDS_KEY)),
        select=_parse_select(given.get("select")),
        raw=given.get("raw") in (True, "true"),
        max_tokens=_parse_max_tokens(given.get("max_tokens")),
    )


def extract_fields(tool: Tool, arguments: Json, shape: ResultShape) -> tuple[Json, ResultShape]:
    """The arguments without `include_fields`, and the shape with them.

    A tool that has a parameter of that name keeps it; what the shape asks for already stays.
    """
    given = _parse_arguments(arguments)
    if not isinstance(given, dict) or FIELDS_KEY not in given:
        return arguments, shape
    if FIELDS_KEY in tool.input_schema.get("properties", {}):
        return arguments, shape
    fields = shape.include_fields or parse_fields(given[FIELDS_KEY])
    rest = {key: value for key, value in given.items() if key != FIELDS_KEY}
    return rest, replace(shape, include_fields=fields)


def _parse_arguments(arguments: Json) -> Json:
    """The object that a text of JSON spells; anything else as it came."""
    if not isinstance(arguments, str) or FIELDS_KEY not in arguments:
        return arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def _parse_select(given: Json) -> str | None:
    if given is None or isinstance(given, str):
        return given or None
    raise InvalidArguments("`select` must be a text: a JMESPath expression.", field="select")


def _parse_max_tokens(given: Json) -> int | None:
    if given is None:
        return None
    given = given if (number := whole_number(given)) is None else number
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return given
    raise InvalidArguments(
        "`max_tokens` must be a whole number; 0 keeps nothing back.", field="max_tokens"
    )
