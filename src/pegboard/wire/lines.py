"""JSON-RPC messages as lines, decoded without modelling what is inside them.

The SDK's own reader validates every message against four models and copies the unfinished line with
every chunk, so its work grows with the square of a long result; here each byte is looked at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TypeAlias

from mcp_types import (
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from pegboard.core.json import Json, JsonObject

MAX_LINE_BYTES = 1 << 28
"""The longest line that is read into memory where no other limit is given: 256 MiB."""
_EDGE_BYTES = 512
"""How many bytes of either end of a skipped line are given to what replaces it."""

Replacement: TypeAlias = Callable[[bytes, bytes], bytes]
"""Makes a line in place of one over the limit, out of that line's first and last bytes."""


class LineTooLong(Exception):
    """A line grew past the limit."""


class LineSplitter:
    """Chunks in, whole lines out; each byte is copied once however long the line.

    A line over the limit is skipped to its end and `replacement` gives one in its place; without a
    replacement, `feed` raises.
    """

    def __init__(self, limit: int = MAX_LINE_BYTES, replacement: Replacement | None = None) -> None:
        self._limit = limit
        self._replacement = replacement
        self._parts: list[bytes] = []
        self._size = 0
        self._skipped_head: bytes | None = None

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that this chunk completes. Raises `LineTooLong`."""
        head, *rest = chunk.split(b"\n")
        self._add(head)
        for part in rest:
            # The parts are let go before the line is used: it may be as large as the limit.
            line = self.rest()
            yield line
            self._add(part)

    def rest(self) -> bytes:
        """What has come since the last line ended."""
        line = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        head, self._skipped_head = self._skipped_head, None
        if head is not None and self._replacement is not None:
            return self._replacement(head, line)
        return line

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._limit:
            self._skip(part)
        elif part:
            self._parts.append(part)

    def _skip(self, part: bytes) -> None:
        """Keep the two ends of a line over the limit, and nothing else of it."""
        if self._replacement is None:
            raise LineTooLong(f"a message of more than {self._limit} bytes")
        self._parts.append(part)
        if self._skipped_head is None:
            self._skipped_head = _first_bytes(self._parts)
        self._parts = [_last_bytes(self._parts)]


def _first_bytes(parts: list[bytes]) -> bytes:
    found = b""
    for part in parts:
        found = (found + part[:_EDGE_BYTES])[:_EDGE_BYTES]
        if len(found) == _EDGE_BYTES:
            break
    return found


def _last_bytes(parts: list[bytes]) -> bytes:
    found = b""
    for part in reversed(parts):
        found = (part[-_EDGE_BYTES:] + found)[-_EDGE_BYTES:]
        if len(found) == _EDGE_BYTES:
            break
    return found


def encode_message(message: JSONRPCMessage) -> bytes:
    """One line of UTF-8, with its end."""
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
    except (PydanticSerializationError, UnicodeEncodeError):
        # A lone surrogate, which JSON can escape and UTF-8 cannot carry.
        return json.dumps(message.model_dump(by_alias=True, exclude_unset=True)).encode() + b"\n"


def serialize_message(value: JsonObject) -> bytes:
    """A message that is no model, as UTF-8 without an end of line."""
    try:
        return to_json(value)
    except (PydanticSerializationError, UnicodeEncodeError):
        return json.dumps(value).encode()


def parse_json(text: bytes | str) -> Json:
    """The JSON value of a text. Raises `ValueError`."""
    try:
        return from_json(text)
    except ValueError:
        try:
            return json.loads(text)  # accepts escaped lone surrogates
        except RecursionError as exc:
            raise ValueError("nested too deep") from exc


def parse_line(line: bytes) -> list[Json]:
    """What one line holds, usually one value; revision 2025-03-26 allowed batches.

    Raises:
        ValueError: the line is not JSON.
    """
    value = parse_json(line)
    return value if isinstance(value, list) else [value]


def decode_line(line: bytes) -> list[JSONRPCMessage]:
    """The messages of one line.

    Raises:
        ValueError: the line is not JSON-RPC.
    """
    return [to_message(entry) for entry in parse_line(line)]


def to_message(value: Json) -> JSONRPCMessage:
    """A value as the message that it is. Raises `ValueError` when it is none."""
    if not isinstance(value, dict):
        raise ValueError("not a JSON-RPC message")
    entry: JsonObject = value
    request_id: Json = entry.get("id")
    method = entry.get("method")
    if isinstance(method, str):
        params: Json = entry.get("params")
        fields: JsonObject = {"params": params} if isinstance(params, dict) else {}
        if _is_id(request_id):
            return JSONRPCRequest.model_construct(
                jsonrpc="2.0", id=request_id, method=method, **fields
            )
        return JSONRPCNotification.model_construct(jsonrpc="2.0", method=method, **fields)
    if not _is_id(request_id) and "error" not in entry:
        raise ValueError("neither a method nor an id")
    result: Json = entry.get("result")
    if isinstance(result, dict):
        return JSONRPCResponse.model_construct(jsonrpc="2.0", id=request_id, result=result)
    return JSONRPCError.model_construct(
        jsonrpc="2.0", id=request_id if _is_id(request_id) else None, error=extract_error(entry)
    )


def _is_id(value: Json) -> bool:
    return isinstance(value, (int, str)) and not isinstance(value, bool)


def extract_error(entry: JsonObject) -> ErrorData:
    """What an answer without a result says went wrong."""
    try:
        return ErrorData.model_validate(entry.get("error"))
    except ValidationError:
        # The asker must not wait for an answer that has come, however odd it is.
        return ErrorData(
            code=INTERNAL_ERROR, message="The server answered with neither a result nor an error."
        )
