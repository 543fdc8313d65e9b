"""Messages over a pair of pipes, as the streams that the SDK's dispatcher drives.

There is no task and no queue between the dispatcher and the pipe: a message costs one write, or a
part of one read. Both ends of a gateway on stdio use these: towards its servers and its client.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream
from mcp.shared.message import SessionMessage

from pegboard.core.json import Json, JsonObject
from pegboard.wire.lines import (
    MAX_LINE_BYTES,
    LineSplitter,
    LineTooLong,
    Replacement,
    encode_message,
    parse_line,
    serialize_message,
    to_message,
)

PIPE_CLOSED_ERRORS = (
    anyio.EndOfStream,
    anyio.ClosedResourceError,
    anyio.BrokenResourceError,
    OSError,
)
"""What a pipe raises when nobody is at its other end any more."""


class LineObserver(Protocol):
    """Who is told what was on a line."""

    def spoken(self) -> None:
        """It was protocol."""
        ...

    def stray(self, line: bytes) -> None:
        """It was not."""
        ...


class MessageInterceptor(Protocol):
    """Who takes some of the messages, past the dispatcher."""

    def wants(self, message: JsonObject) -> bool:
        """Whether this message is for them; asked once, when it is its turn."""
        ...

    def take(self, message: JsonObject) -> None:
        """Take it."""
        ...

    async def ended(self) -> None:
        """No more messages will come; the dispatcher hears of it afterwards."""
        ...


class BorrowedStream:
    """A stream whose pipe belongs to somebody else."""

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


class MessageReader(BorrowedStream):
    """The messages that come out of a pipe; a lane gets its own, in their turn.

    A message over `limit` bytes ends the stream, unless there is a `replacement` for it.
    """

    def __init__(
        self,
        pipe: ByteReceiveStream,
        talker: LineObserver,
        lane: MessageInterceptor | None = None,
        *,
        limit: int = MAX_LINE_BYTES,
        replacement: Replacement | None = None,
    ) -> None:
        self._pipe = pipe
        self._talker = talker
        self._lane = lane
        self._splitter = LineSplitter(limit, replacement)
        self._ready: deque[Json] = deque()

    async def receive(self) -> SessionMessage:
        """The next message. Raises `anyio.EndOfStream` at the end."""
        while True:
            while self._ready:
                if (message := self._given(self._ready.popleft())) is not None:
                    return message
            try:
                await self._read()
            except anyio.EndOfStream:
                if self._lane is not None:
                    await self._lane.ended()
                raise

    def _given(self, value: Json) -> SessionMessage | None:
        """A message for the dispatcher; a lane's own is taken in its turn, and not before."""
        if self._lane is not None and isinstance(value, dict) and self._lane.wants(value):
            self._lane.take(value)
            self._talker.spoken()
            return None
        try:
            message = SessionMessage(to_message(value))
        except ValueError:
            self._talker.stray(serialize_message(value))
            return None
        self._talker.spoken()
        return message

    async def _read(self) -> None:
        try:
            for line in self._splitter.feed(await self._pipe.receive()):
                self._take(line)
        except LineTooLong as exc:
            self._talker.stray(str(exc).encode())
            raise anyio.EndOfStream from exc
        except PIPE_CLOSED_ERRORS as exc:
            raise anyio.EndOfStream from exc

    def _take(self, line: bytes) -> None:
        try:
            self._ready.extend(parse_line(line))
        except ValueError:
            self._talker.stray(line)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class MessageWriter(BorrowedStream):
    """Where messages go into a pipe; `told` hears of those that the dispatcher sends."""

    def __init__(
        self, pipe: ByteSendStream, told: Callable[[SessionMessage], None] | None = None
    ) -> None:
        self._pipe = pipe
        self._told = told

    async def send(self, item: SessionMessage) -> None:
        if self._told is not None:
            self._told(item)
        await self.write(encode_message(item.message))

    async def write(self, line: bytes) -> None:
        """Write one line, which has its end."""
        try:
            await self._pipe.send(line)
        except OSError as exc:
            raise anyio.BrokenResourceError from exc
