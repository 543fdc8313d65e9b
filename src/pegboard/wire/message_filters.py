"""What happens to a server's messages before anybody parses them: a size limit, and valid text.

Both filters work on bytes while they arrive, so that one bad message costs one request and never
the connection.

**Size limit.** A message over the limit is discarded as it arrives, and a JSON-RPC error takes its
place. The request that it answers fails with the reason, and the connection goes on:

    stdio, server-sent events   the line is skipped to its end; its id is read from either end of it
    a plain HTTP response       reading stops; the SDK or `HttpChannel` raises an error

Memory for a discarded message is bounded by the limit, also when the response is compressed: bytes
are counted after decompression.

**Lone surrogates.** JSON can spell half of a surrogate pair, and UTF-8 cannot carry one. The SDK's
parser rejects a whole message for it, so one odd character in one description would cost a server
all its tools. Such a half becomes U+FFFD; everything else stays as it came.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Final, TypeAlias

import httpx2
from mcp_types import INTERNAL_ERROR

from pegboard.core.json import JsonObject
from pegboard.wire.message_streams import EDGE_BYTES, LineSplitter

ResponseHook: TypeAlias = Callable[[httpx2.Response], Awaitable[None]]

_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
"""Any escape: a whole pair, half of one, or another. All are matched, so none is cut in two."""
_UNFINISHED = re.compile(
    rb"(?<!\\)(?:\\\\)*(?:\\u[dD][89abAB][0-9a-fA-F]{2})?(?:\\(?:u[0-9a-fA-F]{0,3})?)?\Z"
)
"""What may go on in the next chunk. No message ends with it, so none waits."""
_MAX_UNFINISHED = 64
_FILTERED_TYPES = ("application/json", "text/event-stream")

_UNREADABLE: Final = "sent an answer that is not valid JSON, or nested too deep to be read."
LIMIT_SETTING: Final = "upstreams.max_message_bytes"
_DATA: Final = b"data:"
_ID: Final = rb'"id"\s*:\s*(\d{1,18}|"[^"\\]{1,100}")'
_VERSION: Final = rb'"jsonrpc"\s*:\s*"2\.0"'
_ID_FIRST: Final = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb"\s*,\s*)?" + _ID)
_ID_LAST: Final = re.compile(_ID + rb"\s*(?:,\s*" + _VERSION + rb"\s*)?\}\s*\Z")


# Lone surrogates.


class SurrogateFilter:
    """Replaces lone surrogates: chunks in, chunks out."""

    def __init__(self) -> None:
        self._unfinished = b""

    def feed(self, chunk: bytes) -> bytes:
        """The bytes that can be passed on."""
        data = self._unfinished + chunk
        end = len(data)
        # The search is costly for a regular expression, and most chunks do not end in an escape.
        if b"\\" in data[-_MAX_UNFINISHED:]:
            found = _UNFINISHED.search(data, max(0, len(data) - _MAX_UNFINISHED))
            end = found.start() if found else end
        self._unfinished = data[end:]
        return _replace_lone_surrogates(data[:end])

    def end(self) -> bytes:
        """The rest."""
        rest, self._unfinished = self._unfinished, b""
        return _replace_lone_surrogates(rest)


def _replace_lone_surrogates(data: bytes) -> bytes:
    if b"\\ud" not in data and b"\\uD" not in data:
        return data
    return _ESCAPE.sub(lambda found: b"\\ufffd" if found["half"] else found[0], data)


async def filter_surrogates(response: httpx2.Response) -> None:
    """A hook for the responses of an HTTP client: they are read through a `SurrogateFilter`."""
    kind = response.headers.get("content-type", "")
    # Compressed bytes hold no escapes to replace.
    if kind.startswith(_FILTERED_TYPES) and "content-encoding" not in response.headers:
        response.stream = _FilteredStream(response.stream)  # pyright: ignore[reportArgumentType] async here


class _FilteredStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        surrogates = SurrogateFilter()
        async for chunk in self._stream:
            if ready := surrogates.feed(chunk):
                yield ready
        if rest := surrogates.end():
            yield rest

    async def aclose(self) -> None:
        await self._stream.aclose()


# The size limit.


class MessageTooLarge(httpx2.StreamError):
    """The body of a response is over the limit; the SDK reports a `StreamError` as an answer."""

    def __init__(self, limit: int) -> None:
        super().__init__(describe_oversize(limit))


def describe_oversize(limit: int) -> str:
    """The text of an error about a message over the limit; follows the name of the server."""
    return (
        f"sent a message over the limit of {limit:,} bytes, which was discarded. Ask for less, or "
        f"raise `{LIMIT_SETTING}`."
    )


def find_discard_reason(message: str) -> str | None:
    """Why a message was discarded, if that is what an error message is about."""
    # The SDK wraps our text in its own; a server could send the same words, but hardly the setting.
    found = re.search(r"sent a message over the limit of .*", message)
    if found and LIMIT_SETTING in found[0]:
        return found[0]
    # The SDK quotes its validator at length where a response is not JSON.
    is_unreadable = message == _UNREADABLE or message.startswith("Failed to parse JSON response")
    return _UNREADABLE if is_unreadable else None


def build_oversize_replacement(limit: int) -> Callable[[bytes, bytes], bytes]:
    """Makes the line that takes the place of one over the limit, of which both ends are given."""

    def build_error_line(head: bytes, tail: bytes) -> bytes:
        is_event = head.startswith(_DATA)
        # Without an id no request can be failed: it runs into its timeout.
        message_id = _find_id(head.removeprefix(_DATA), tail)
        answer = _build_error(message_id, describe_oversize(limit))
        return (_DATA if is_event else b"") + json.dumps(answer).encode()

    return build_error_line


def replace_unreadable(line: bytes) -> JsonObject | None:
    """The error that takes the place of an answer that cannot be parsed.

    The request that it answers fails at once instead of waiting for its timeout. Lines that show no
    id, a greeting for example, are nobody's answer: there is nothing to replace them with.
    """
    message_id = _find_id(line[:EDGE_BYTES], line[-EDGE_BYTES:])
    return None if message_id is None else _build_error(message_id, _UNREADABLE)


def _find_id(head: bytes, tail: bytes) -> int | str | None:
    # The line is gone or cannot be parsed: SDKs write the id first (Python) or last (TypeScript).
    found = _ID_FIRST.match(head) or _ID_LAST.search(tail)
    return json.loads(found[1]) if found else None


def _build_error(message_id: int | str | None, message: str) -> JsonObject:
    error: JsonObject = {"code": INTERNAL_ERROR, "message": message}
    return {"jsonrpc": "2.0", "id": message_id, "error": error}


def limit_response_size(limit: int) -> ResponseHook:
    """A hook for the responses of an HTTP client: none of their messages exceeds the limit."""

    async def limit_response(response: httpx2.Response) -> None:
        read = response.aiter_bytes
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        apply_limit = _limit_lines if is_stream else _limit_body

        def aiter_bytes(chunk_size: int | None = None) -> AsyncGenerator[bytes, None]:
            return apply_limit(read(chunk_size), limit)

        # Everything that reads the decompressed body goes through this method.
        response.aiter_bytes = aiter_bytes

    return limit_response


async def _limit_body(
    chunks: AsyncGenerator[bytes, None], limit: int
) -> AsyncGenerator[bytes, None]:
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > limit:
            raise MessageTooLarge(limit)
        yield chunk


async def _limit_lines(
    chunks: AsyncGenerator[bytes, None], limit: int
) -> AsyncGenerator[bytes, None]:
    splitter = LineSplitter(limit, build_oversize_replacement(limit))
    held = b""
    async for chunk in chunks:
        # Server-sent events may end lines with CR, LF or both. A CR at the end of a chunk waits:
        # the LF that belongs to it may be the first byte of the next.
        if held or b"\r" in chunk:
            chunk = held + chunk
            held = b"\r" if chunk.endswith(b"\r") else b""
            chunk = chunk.removesuffix(b"\r").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if lines := b"".join(line + b"\n" for line in splitter.feed(chunk)):
            yield lines
    if rest := splitter.rest() + held.replace(b"\r", b"\n"):
        yield rest
