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

from pegboard.upstream.lines import LineSplitter, LineTooLong, decode, encode

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
    """The messages that come out of a pipe."""

    def __init__(self, pipe: ByteReceiveStream, talker: Talker) -> None:
        self._pipe = pipe
        self._talker = talker
        self._splitter = LineSplitter()
        self._ready: deque[SessionMessage] = deque()

    async def receive(self) -> SessionMessage:
        """The next message. Raises `anyio.EndOfStream` at the end."""
        while not self._ready:
            try:
                for line in self._splitter.feed(await self._pipe.receive()):
                    self._take(line)
            except LineTooLong as exc:
                self._talker.stray(str(exc).encode())
                raise anyio.EndOfStream from exc
            except GONE as exc:
                raise anyio.EndOfStream from exc
        return self._ready.popleft()

    def _take(self, line: bytes) -> None:
        try:
            self._ready.extend(SessionMessage(message) for message in decode(line))
            self._talker.spoken()
        except ValueError:
            self._talker.stray(line)

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
        try:
            await self._pipe.send(encode(item.message))
        except OSError as exc:
            raise anyio.BrokenResourceError from exc
