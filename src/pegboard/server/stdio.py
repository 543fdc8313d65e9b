"""Serving on our own stdin and stdout, without the threads in which the SDK reads files.

    pipes              the event loop waits for them itself; tool calls take the fast path
    a terminal         somebody is trying the command: they get a hint, and Ctrl-C works
    a file, Windows    the SDK's own `stdio_server`

Threads would account for most of the cost of a relayed call.

While serving, fd 0 is the null device and fd 1 is stderr, so that nothing that prints or reads by
mistake, here or in a child process, touches the protocol.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from asyncio.streams import FlowControlMixin
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

from pegboard.server.early_answers import FirstExchange, has_own_pipes
from pegboard.server.stdio_fast_path import StdioFastPath
from pegboard.wire.message_streams import MessageReader, MessageWriter

_CHUNK = 1 << 16
_HINT = "This is an MCP server on stdio: an MCP client should start it. Ctrl-C stops it.\n"
_log = logging.getLogger(__name__)


async def serve_on_stdio(server: Server[Any], first: FirstExchange | None = None) -> None:
    """Serve one client on standard input and output until it leaves.

    `first` has read, and perhaps answered, the client's first requests already.
    """
    options = server.create_initialization_options()
    if sys.platform != "win32" and os.isatty(0):
        sys.stderr.write(_HINT)
        reader = MessageReader(_Keyboard(), _StrayLineLog())
        await server.run(reader, MessageWriter(_Screen()), options)
        return
    if not has_own_pipes():
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, options)
        return
    if first is not None:
        first.take_over()
    async with _pipes(first) as (stdin, stdout), StdioFastPath.beside(server, stdout) as fast:
        await server.run(MessageReader(stdin, _StrayLineLog(), fast), fast.writer, options)


@asynccontextmanager
async def _pipes(first: FirstExchange | None) -> AsyncGenerator[tuple[_PipeReader, _PipeWriter]]:
    loop = asyncio.get_running_loop()
    with _redirect(0, os.devnull) as stdin, _redirect(1, None) as stdout:
        reader = asyncio.StreamReader(limit=_CHUNK)
        incoming, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(stdin, "rb", buffering=0)
        )
        outgoing, protocol = await loop.connect_write_pipe(
            FlowControlMixin, os.fdopen(stdout, "wb", buffering=0)
        )
        writer = asyncio.StreamWriter(outgoing, protocol, None, loop)
        try:
            yield _PipeReader(reader, first), _PipeWriter(writer, first)
        finally:
            incoming.close()
            writer.close()


@contextmanager
def _redirect(number: int, instead: str | None) -> Generator[int]:
    """A private duplicate of a standard stream; the stream itself leads to `instead` or stderr."""
    # One duplicate for the event loop, which closes it, and one to restore the stream from.
    private, original = os.dup(number), os.dup(number)
    other = os.dup(2) if instead is None else os.open(instead, os.O_RDONLY)
    os.dup2(other, number)
    os.close(other)
    try:
        yield private
    finally:
        os.set_blocking(original, True)  # the event loop made the shared pipe non-blocking
        os.dup2(original, number)
        os.close(original)


class _StrayLineLog:
    """Logs what a client sends that is not a message of the protocol."""

    def on_message(self) -> None: ...

    def on_stray_line(self, line: bytes) -> None:
        if line.strip():
            _log.warning("On stdin, not JSON-RPC: %r", line[:200])


class _PipeReader(ByteReceiveStream):
    def __init__(self, reader: asyncio.StreamReader, first: FirstExchange | None) -> None:
        self._reader = reader
        self._first = first
        self._received = first.received if first is not None else b""

    async def receive(self, max_bytes: int = _CHUNK) -> bytes:
        if self._received:
            chunk, self._received = self._received, b""
            return chunk
        chunk = await self._reader.read(max_bytes)
        if not chunk:
            raise anyio.EndOfStream
        if self._first is not None and not self._first.is_over:
            self._first.read(chunk)
        return chunk

    async def aclose(self) -> None: ...


class _PipeWriter(ByteSendStream):
    def __init__(self, writer: asyncio.StreamWriter, first: FirstExchange | None) -> None:
        self._writer = writer
        self._first = first

    async def send(self, item: bytes) -> None:
        if self._first is not None and not self._first.is_over:
            item = self._first.write(item)
        self._writer.write(item)
        await self._writer.drain()

    async def aclose(self) -> None: ...


class _Keyboard(ByteReceiveStream):
    async def receive(self, max_bytes: int = _CHUNK) -> bytes:
        await anyio.wait_readable(0)  # a read in a thread could not be canceled, only by a key
        line = os.read(0, max_bytes)
        if not line:
            raise anyio.EndOfStream
        return line

    async def aclose(self) -> None: ...


class _Screen(ByteSendStream):
    async def send(self, item: bytes) -> None:
        with os.fdopen(os.dup(1), "wb") as screen:
            screen.write(item)

    async def aclose(self) -> None: ...
