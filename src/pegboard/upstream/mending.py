r"""Answers of HTTP servers with halves of surrogate pairs replaced.

JSON can spell half of a pair (`\ud83d`), and UTF-8 cannot carry one. The SDK's parser refuses a
whole message for it, so one odd character in one description would cost a server all its tools.
Here such a half becomes U+FFFD while the bytes pass by; everything else stays as it came.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import httpx2

_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_UNFINISHED = re.compile(
    rb"(?<!\\)(?:\\\\)*(?:\\u[dD][89abAB][0-9a-fA-F]{2})?(?:\\(?:u[0-9a-fA-F]{0,3})?)?\Z"
)
"""What may go on in the next chunk. No message ends with it, so none waits."""
_LONGEST = 64
_TYPES = ("application/json", "text/event-stream")


class Mender:
    """Chunks in, chunks out."""

    def __init__(self) -> None:
        self._kept = b""

    def feed(self, chunk: bytes) -> bytes:
        """The bytes that can go on."""
        data = self._kept + chunk
        end = len(data)
        if b"\\" in data[-_LONGEST:]:
            begin = max(0, len(data) - _LONGEST)
            found = _UNFINISHED.search(data, begin)
            end = found.start() if found else end
        self._kept = data[end:]
        return _mended(data[:end])

    def end(self) -> bytes:
        """The rest."""
        rest, self._kept = self._kept, b""
        return _mended(rest)


async def mend(response: httpx2.Response) -> None:
    """Have a response read through a `Mender`; for the hooks of a client."""
    kind = response.headers.get("content-type", "")
    if kind.startswith(_TYPES) and "content-encoding" not in response.headers:
        response.stream = _Mended(response.stream)  # pyright: ignore[reportArgumentType] async here


class _Mended(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        mender = Mender()
        async for chunk in self._stream:
            if ready := mender.feed(chunk):
                yield ready
        if rest := mender.end():
            yield rest

    async def aclose(self) -> None:
        await self._stream.aclose()


def _mended(data: bytes) -> bytes:
    if b"\\ud" not in data and b"\\uD" not in data:
        return data
    return _ESCAPE.sub(lambda found: b"\\ufffd" if found["half"] else found[0], data)
