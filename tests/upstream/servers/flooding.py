"""A server whose answers are as large as it is asked for, without the SDK.

`python flooding.py stdio` speaks on its pipes; `python flooding.py http` listens on a free port of
this machine and prints its address. The path of a request chooses how it is answered:

/json   a JSON body          /gzip   the same, compressed
/sse    an event stream      /old    the older transport: GET for the stream, POST beside it

With `?modern` it speaks 2026-07-28.
"""

from __future__ import annotations

import gzip
import json
import os
import queue
import sys
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import raw

CHUNK = b"x" * 65536


def answer(message: raw.Message, *, modern: bool = False) -> raw.Message:
    """The result of a request; a flood is asked for by `bytes` and has a placeholder."""
    method = message["method"]
    if method == "initialize":
        return raw.greeting(None)
    if method == "server/discover" and modern:
        info = {"io.modelcontextprotocol/serverInfo": {"name": "flooding", "version": "1"}}
        return {
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0,
            "cacheScope": "private", "capabilities": {"tools": {}}, "_meta": info,
        }  # fmt: skip
    if method == "tools/list":
        kind = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if modern else {}
        return raw.tools(**kind)
    if method == "tools/call":
        size = message["params"].get("arguments", {}).get("bytes", 0)
        return raw.said(f"{os.getpid()}:{'@' if size else ''}")
    return raw.not_found(message)


def pieces(message: raw.Message, *, modern: bool = False, id_last: bool = False) -> Iterator[bytes]:
    """The text of the answer to a request, a little at a time."""
    result = answer(message, modern=modern)
    kind = {"error": result["error"]} if "error" in result else {"result": result}
    envelope = {"jsonrpc": "2.0", "id": message["id"]}
    whole = json.dumps({**kind, **envelope} if id_last else {**envelope, **kind})
    before, flood, after = whole.partition("@")
    yield before.encode()
    left = message.get("params", {}).get("arguments", {}).get("bytes", 0) if flood else 0
    while left > 0:
        yield CHUNK[:left]
        left -= len(CHUNK)
    yield after.encode()


def on_stdio() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        for piece in pieces(message, id_last="id-last" in sys.argv):
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.write(b"\n")
        sys.stdout.buffer.flush()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    streams: ClassVar[dict[str, queue.Queue[Iterator[bytes]]]] = {}

    def do_GET(self) -> None:
        if not self.path.startswith("/old"):
            self.send_error(405)
            return
        self._begin("text/event-stream")
        path = f"/old?{len(Handler.streams)}"
        Handler.streams[path] = queue.Queue()
        self._chunk(b"event: endpoint\ndata: %s\n\n" % path.encode())
        while True:
            self._event(Handler.streams[path].get())

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        text = pieces(message, modern="modern" in self.path) if "id" in message else None
        if self.path.startswith("/old") or text is None:
            if text is not None:
                Handler.streams[self.path].put(text)
            self.send_response(202)
            self.send_header("content-length", "0")
            self.end_headers()
        elif self.path.startswith("/sse"):
            self._begin("text/event-stream")
            self._event(text)
            self._chunk(b"")
        else:
            compressed = self.path.startswith("/gzip")
            self._begin("application/json", "gzip" if compressed else None)
            for piece in [gzip.compress(b"".join(text))] if compressed else text:
                if piece:
                    self._chunk(piece)
            self._chunk(b"")

    def _begin(self, kind: str, encoding: str | None = None) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("transfer-encoding", "chunked")
        if encoding:
            self.send_header("content-encoding", encoding)
        self.end_headers()

    def _event(self, text: Iterator[bytes]) -> None:
        self._chunk(b"event: message\ndata: ")
        for piece in text:
            if piece:
                self._chunk(piece)
        self._chunk(b"\n\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def handle(self) -> None:
        with suppress(OSError):  # the client has left in the middle of an answer
            super().handle()


def on_http() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)  # noqa: T201
    server.serve_forever()


if __name__ == "__main__":
    on_http() if "http" in sys.argv else on_stdio()
