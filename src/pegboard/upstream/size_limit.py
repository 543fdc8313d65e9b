r"""One limit on the size of a message from a server, whatever its transport.

A message over the limit is discarded while it arrives, and a JSON-RPC error takes its place, so the
request that it answers fails with the reason and the connection goes on:

    stdio, server-sent events   the line is skipped to its end; its id is read from either end of it
    a plain HTTP response       reading stops; the SDK or `posts` turns the exception into an error

Memory for a discarded message is bounded by the limit, also when the response is compressed: the
bytes are counted after decompression.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final, TypeAlias

import httpx2
from mcp_types import INTERNAL_ERROR

from pegboard.core.json import Json
from pegboard.upstream.lines import LineSplitter

SETTING: Final = "upstreams.max_message_bytes"
_DATA: Final = b"data:"
_ID: Final = rb'"id"\s*:\s*(\d{1,18}|"[^"\\]{1,100}")'
_VERSION: Final = rb'"jsonrpc"\s*:\s*"2\.0"'
_ID_FIRST: Final = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb"\s*,\s*)?" + _ID)
_ID_LAST: Final = re.compile(_ID + rb"\s*(?:,\s*" + _VERSION + rb"\s*)?\}\s*\Z")

Hook: TypeAlias = Callable[[httpx2.Response], Awaitable[None]]


class MessageTooLarge(httpx2.StreamError):
    """The body of a response is over the limit; the SDK reports a `StreamError` as an answer."""

    def __init__(self, limit: int) -> None:
        super().__init__(too_large(limit))


def too_large(limit: int) -> str:
    """What an error says about a message over the limit; follows the name of the server."""
    return (
        f"sent a message over the limit of {limit:,} bytes, which was discarded. Ask for less, or "
        f"raise `{SETTING}`."
    )


def mentions_limit(message: str) -> str | None:
    """The part of an error message that is about this limit, if it is."""
    found = re.search(r"sent a message over the limit of .*", message)
    return found[0] if found and SETTING in found[0] else None


def error_instead(limit: int) -> Callable[[bytes, bytes], bytes]:
    """Makes the line that takes the place of one over the limit, of which both ends are given."""

    def line(head: bytes, tail: bytes) -> bytes:
        is_event = head.startswith(_DATA)
        error = {"code": INTERNAL_ERROR, "message": too_large(limit)}
        answer = {"jsonrpc": "2.0", "id": _id(head.removeprefix(_DATA), tail), "error": error}
        return (_DATA if is_event else b"") + json.dumps(answer).encode()

    return line


def _id(head: bytes, tail: bytes) -> Json:
    """The id of a message that was not kept: SDKs write it first (Python) or last (TypeScript)."""
    found = _ID_FIRST.match(head) or _ID_LAST.search(tail)
    return json.loads(found[1]) if found else None


def limited(limit: int) -> Hook:
    """A hook for the responses of an HTTP client: none of their messages exceeds the limit."""

    async def limit_response(response: httpx2.Response) -> None:
        read = response.aiter_bytes
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        bound = _limited_lines if is_stream else _limited_body

        def aiter_bytes(chunk_size: int | None = None) -> AsyncGenerator[bytes, None]:
            return bound(read(chunk_size), limit)

        # Everything that reads the decompressed body goes through this method.
        response.aiter_bytes = aiter_bytes

    return limit_response


async def _limited_body(
    chunks: AsyncGenerator[bytes, None], limit: int
) -> AsyncGenerator[bytes, None]:
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > limit:
            raise MessageTooLarge(limit)
        yield chunk


async def _limited_lines(
    chunks: AsyncGenerator[bytes, None], limit: int
) -> AsyncGenerator[bytes, None]:
    splitter = LineSplitter(limit, error_instead(limit))
    held = b""
    async for chunk in chunks:
        if held or b"\r" in chunk:  # server-sent events may end lines with CR, LF or both
            chunk = held + chunk
            held = b"\r" if chunk.endswith(b"\r") else b""
            chunk = chunk.removesuffix(b"\r").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if lines := b"".join(line + b"\n" for line in splitter.feed(chunk)):
            yield lines
    if rest := splitter.rest() + held.replace(b"\r", b"\n"):
        yield rest
