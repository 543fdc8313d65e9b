"""JSON-RPC messages over pipes: as lines, and as the streams that the SDK's dispatcher drives.

Both ends of a gateway on stdio use these: towards its servers and its client.

    pipe --LineSplitter--> lines --parse_line--> JSON values --to_message--> MessageReader
    MessageWriter --encode_message--> lines --> pipe

Messages are decoded without modelling what is inside them. The SDK's own reader validates every
message against four models, and copies the unfinished line with every chunk, so that its work grows
with the square of a long result. Here each byte is looked at once, and only the outside of a
message is checked: the code that uses its params or result checks those.

There is no task and no queue between the dispatcher and the pipe: a message costs one write, or a
part of one read. A `MessageInterceptor` may take some of the messages, past the dispatcher.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Protocol, Self, TypeAlias

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream
from mcp.shared.message import SessionMessage
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
PIPE_CLOSED_ERRORS = (
    anyio.EndOfStream,
    anyio.ClosedResourceError,
    anyio.BrokenResourceError,
    OSError,
)
"""What a pipe raises when nobody is at its other end any more."""
EDGE_BYTES = 512
"""How many bytes of either end of a skipped line are given to what replaces it."""

Replacement: TypeAlias = Callable[[bytes, bytes], bytes]
"""Makes a line in place of one over the limit, out of that line's first and last bytes."""
UnreadableReplacement: TypeAlias = Callable[[bytes], JsonObject | None]
"""Makes a message in place of a line that cannot be parsed; `None` when it was not a message."""


# Lines.


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
        if self._size <= self._limit:
            if part:
                self._parts.append(part)
            return
        if self._replacement is None:
            raise LineTooLong(f"a message of more than {self._limit} bytes")
        # Of a line over the limit only its two ends are held: that is enough to find its id.
        self._parts.append(part)
        if self._skipped_head is None:
            self._skipped_head = _first_bytes(self._parts)
        self._parts = [_last_bytes(self._parts)]


def _first_bytes(parts: list[bytes]) -> bytes:
    # Joining all parts would copy a line as large as the limit for its first few bytes.
    found = b""
    for part in parts:
        found = (found + part[:EDGE_BYTES])[:EDGE_BYTES]
        if len(found) == EDGE_BYTES:
            break
    return found


def _last_bytes(parts: list[bytes]) -> bytes:
    found = b""
    for part in reversed(parts):
        found = (part[-EDGE_BYTES:] + found)[-EDGE_BYTES:]
        if len(found) == EDGE_BYTES:
            break
    return found


# Writing. Both fall back to `json`, which escapes lone surrogates: JSON can carry them that way,
# and UTF-8 cannot.


def encode_message(message: JSONRPCMessage) -> bytes:
    """One line of UTF-8, its end included."""
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
    except (PydanticSerializationError, UnicodeEncodeError):
        return json.dumps(message.model_dump(by_alias=True, exclude_unset=True)).encode() + b"\n"


def serialize_message(value: JsonObject) -> bytes:
    """A message that is not a model, as UTF-8 without an end of line."""
    try:
        return to_json(value)
    except (PydanticSerializationError, UnicodeEncodeError):
        return json.dumps(value).encode()


# Reading.


def decode_json(text: bytes | str) -> Json:
    """The JSON value of a text. Raises `ValueError`."""
    try:
        return from_json(text)
    except ValueError as exc:
        # The SDK at the other end has the same parser: what is too deep here would be lost there.
        if "recursion limit" in str(exc):
            raise
        # Slower, and accepts escaped lone surrogates.
        try:
            return json.loads(text)
        except RecursionError as deep:
            raise ValueError("nested too deep") from deep


def parse_line(line: bytes) -> list[Json]:
    """What one line holds, usually one value; revision 2025-03-26 allowed batches.

    Raises:
        ValueError: The line is not JSON.
    """
    value = decode_json(line)
    return value if isinstance(value, list) else [value]


def to_message(value: Json) -> JSONRPCMessage:
    """The message that a JSON value is. Raises `ValueError` when it is not one."""
    if not isinstance(value, dict):
        raise ValueError("not a JSON-RPC message")
    entry: JsonObject = value
    request_id: Json = entry.get("id")
    method = entry.get("method")
    # `model_construct` skips validation: the checks here are all that the dispatcher relies on.
    if isinstance(method, str):
        params: Json = entry.get("params")
        fields: JsonObject = {"params": params} if isinstance(params, dict) else {}
        if is_request_id(request_id):
            return JSONRPCRequest.model_construct(
                jsonrpc="2.0", id=request_id, method=method, **fields
            )
        return JSONRPCNotification.model_construct(jsonrpc="2.0", method=method, **fields)
    if not is_request_id(request_id) and "error" not in entry:
        raise ValueError("neither a method nor an id")
    result: Json = entry.get("result")
    if isinstance(result, dict):
        return JSONRPCResponse.model_construct(jsonrpc="2.0", id=request_id, result=result)
    return JSONRPCError.model_construct(
        jsonrpc="2.0",
        id=request_id if is_request_id(request_id) else None,
        error=extract_error(entry),
    )


def is_request_id(value: Json) -> bool:
    """Whether a value can be the id of a request."""
    # `True` is an `int` in Python, and no id in JSON-RPC.
    return isinstance(value, (int, str)) and not isinstance(value, bool)


def extract_error(entry: JsonObject) -> ErrorData:
    """The error of an answer without a result."""
    try:
        return ErrorData.model_validate(entry.get("error"))
    except ValidationError:
        # The caller must not wait for an answer that has come, however odd it is.
        return ErrorData(
            code=INTERNAL_ERROR, message="The server answered with neither a result nor an error."
        )


# Streams of messages.


class LineObserver(Protocol):
    """Observes the lines of a pipe."""

    def on_message(self) -> None:
        """A line was a message."""
        ...

    def on_stray_line(self, line: bytes) -> None:
        """A line was not a message."""
        ...


class MessageInterceptor(Protocol):
    """Takes some of the messages, past the dispatcher."""

    def wants(self, message: JsonObject) -> bool:
        """Whether to take this message; called once, when it is the message's turn."""
        ...

    def take(self, message: JsonObject) -> None:
        """Take it."""
        ...

    async def on_end(self) -> None:
        """No more messages will come; the dispatcher is notified afterwards."""
        ...


class BorrowedStream:
    """A stream whose pipe belongs to somebody else, who closes it."""

    async def aclose(self) -> None:
        """Nothing to close here."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.aclose()


class MessageSource(BorrowedStream, ABC):
    """A stream of messages, to receive or to iterate over."""

    @abstractmethod
    async def receive(self) -> SessionMessage:
        """The next message. Raises `anyio.EndOfStream` at the end."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class MessageReader(MessageSource):
    """The messages that come out of a pipe; an interceptor gets its own, in their turn.

    A message over `limit` bytes ends the stream, unless there is a `replacement` for it. A line
    that cannot be parsed is skipped, unless `unreadable` gives a message in its place.
    """

    def __init__(
        self,
        pipe: ByteReceiveStream,
        observer: LineObserver,
        interceptor: MessageInterceptor | None = None,
        *,
        limit: int = MAX_LINE_BYTES,
        replacement: Replacement | None = None,
        unreadable: UnreadableReplacement | None = None,
    ) -> None:
        self._pipe = pipe
        self._observer = observer
        self._interceptor = interceptor
        self._splitter = LineSplitter(limit, replacement)
        self._unreadable = unreadable
        self._pending: deque[Json] = deque()

    async def receive(self) -> SessionMessage:
        while True:
            while self._pending:
                if (message := self._next_for_dispatcher()) is not None:
                    return message
            try:
                for line in self._splitter.feed(await self._pipe.receive()):
                    try:
                        self._pending.extend(parse_line(line))
                    except ValueError:
                        self._observer.on_stray_line(line)
                        if self._unreadable and (message := self._unreadable(line)):
                            self._pending.append(message)
            except (LineTooLong, *PIPE_CLOSED_ERRORS) as exc:
                if isinstance(exc, LineTooLong):
                    self._observer.on_stray_line(str(exc).encode())
                if self._interceptor is not None:
                    # It may have calls under way that need what the dispatcher is about to close.
                    await self._interceptor.on_end()
                raise anyio.EndOfStream from exc

    def _next_for_dispatcher(self) -> SessionMessage | None:
        """The next pending message; `None` when it was not for the dispatcher."""
        # An interceptor is asked here and not when the line arrives: what it decides may depend on
        # messages before this one, which the dispatcher has to be given first.
        value = self._pending.popleft()
        interceptor = self._interceptor
        if interceptor is not None and isinstance(value, dict) and interceptor.wants(value):
            interceptor.take(value)
            self._observer.on_message()
            return None
        try:
            message = SessionMessage(to_message(value))
        except ValueError:
            self._observer.on_stray_line(serialize_message(value))
            return None
        self._observer.on_message()
        return message


class MessageWriter(BorrowedStream):
    """Where messages go into a pipe.

    `on_send` is called for those that the dispatcher sends, not for lines that are written past it.
    """

    def __init__(
        self, pipe: ByteSendStream, on_send: Callable[[SessionMessage], None] | None = None
    ) -> None:
        self._pipe = pipe
        self._on_send = on_send

    async def send(self, item: SessionMessage) -> None:
        if self._on_send is not None:
            self._on_send(item)
        await self.write(encode_message(item.message))

    async def write(self, line: bytes) -> None:
        """Write one line, its end included."""
        try:
            await self._pipe.send(line)
        except OSError as exc:
            raise anyio.BrokenResourceError from exc
