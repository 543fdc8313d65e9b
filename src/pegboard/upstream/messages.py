"""Messages over a pair of pipes, as the streams that the SDK's dispatcher drives.

There is no task and no queue between the dispatcher and the pipe: a message costs one write, or a
part of one read. Both ends of a gateway on stdio use these: towards its servers and its client.
"""

from __future__ import annotations

from collections import deque
from types import TracebackType
from typing import Protocol, Self

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream
from mcp.shared.message import SessionMessage

from pegboard.core.json import Json, JsonObject
from pegboard.upstream.lines import LineSplitter, LineTooLong, encode, entries, message_of

GONE = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)
"""What a pipe raises when nobody is at its other end any more."""


class Talker(Protocol):
    """Who is told what was on a line."""

    def spoken(self) -> None:
        """It was protocol."""
        ...

    def stray(self, line: bytes) -> None:
        """It was not."""
        ...


class Lane(Protocol):
    """Who takes some of the messages, past the dispatcher."""

    def wants(self, value: Json) -> bool:
        """Whether this message is for them."""
        ...

    def take(self, message: JsonObject) -> None:
        """Take it."""
        ...


class _Closable:
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


class MessageReader(_Closable):
    """The messages that come out of a pipe; a lane gets its own, in their turn."""

    def __init__(self, pipe: ByteReceiveStream, talker: Talker, lane: Lane | None = None) -> None:
        self._pipe = pipe
        self._talker = talker
        self._lane = lane
        self._splitter = LineSplitter()
        self._ready: deque[SessionMessage | JsonObject] = deque()

    async def receive(self) -> SessionMessage:
        """The next message. Raises `anyio.EndOfStream` at the end."""
        while True:
            while self._ready:
                item = self._ready.popleft()
                if isinstance(item, SessionMessage):
                    return item
                # Not before the notifications that came first have been passed on.
                assert self._lane is not None
                self._lane.take(item)
            await self._read()

    async def _read(self) -> None:
        try:
            for line in self._splitter.feed(await self._pipe.receive()):
                self._take(line)
        except LineTooLong as exc:
            self._talker.stray(str(exc).encode())
            raise anyio.EndOfStream from exc
        except GONE as exc:
            raise anyio.EndOfStream from exc

    def _take(self, line: bytes) -> None:
        try:
            self._ready.extend([self._item(value) for value in entries(line)])
            self._talker.spoken()
        except ValueError:
            self._talker.stray(line)

    def _item(self, value: Json) -> SessionMessage | JsonObject:
        if self._lane is not None and self._lane.wants(value):
            return value
        return SessionMessage(message_of(value))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class MessageWriter(_Closable):
    """Where messages go into a pipe."""

    def __init__(self, pipe: ByteSendStream) -> None:
        self._pipe = pipe

    async def send(self, item: SessionMessage) -> None:
        await self.write(encode(item.message))

    async def write(self, line: bytes) -> None:
        """Write one line, which has its end."""
        try:
            await self._pipe.send(line)
        except OSError as exc:
            raise anyio.BrokenResourceError from exc
