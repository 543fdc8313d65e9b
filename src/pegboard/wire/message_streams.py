r"""Messages over a pair of pipes, as the streams that the SDK's dispatcher drives.

There is no task and no queue between the dispatcher and the pipe: a message costs one write, or a
part of one read. Both ends of a gateway on stdio use these: towards its servers and its client.

    pipe -> MessageReader -> dispatcher
                         \-> MessageInterceptor   takes some messages, past the dispatcher
"""

from __future__ import annotations

from abc import ABC, abstractmethod
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

    A message over `limit` bytes ends the stream, unless there is a `replacement` for it.
    """

    def __init__(
        self,
        pipe: ByteReceiveStream,
        observer: LineObserver,
        interceptor: MessageInterceptor | None = None,
        *,
        limit: int = MAX_LINE_BYTES,
        replacement: Replacement | None = None,
    ) -> None:
        self._pipe = pipe
        self._observer = observer
        self._interceptor = interceptor
        self._splitter = LineSplitter(limit, replacement)
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
