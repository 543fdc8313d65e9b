"""Connections to servers without TLS, against a server that speaks HTTP by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import httpx2
import pytest

from pegboard.upstream.h11_transport import H11Transport, supports_url

pytestmark = pytest.mark.anyio

PLAIN = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
EMPTY = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"
ENDLESS = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"
LAST = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok"
UNTIL_THE_END = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nall of it"


class ByHand:
    """Answers each request with the same bytes and remembers its connections."""

    def __init__(self, answer: bytes, *, hang_up: bool = False) -> None:
        self.answer = answer
        self.hang_up = hang_up
        self.talks: list[anyio.Event] = []
        self.bodies: list[bytes] = []
        self.left = anyio.Event()

    @property
    def connections(self) -> int:
        return len(self.talks)

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        over = anyio.Event()
        self.talks.append(over)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0] or 0)
                self.bodies.append(await reader.readexactly(length))
                writer.write(self.answer)
                if self.hang_up:
                    break
        except asyncio.IncompleteReadError:
            self.left.set()
        writer.close()
        over.set()


@asynccontextmanager
async def client_of(server: ByHand) -> AsyncGenerator[httpx2.AsyncClient]:
    with anyio.fail_after(10):
        listening = await asyncio.start_server(server.talk, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        address = f"http://127.0.0.1:{port}"
        async with httpx2.AsyncClient(transport=H11Transport(), base_url=address) as client:
            yield client
        listening.close()
        for over in server.talks:
            await over.wait()


@pytest.mark.parametrize(
    ("answer", "body"), [(PLAIN, b"ok"), (CHUNKED, b"abcde"), (EMPTY, b""), (LAST, b"ok")]
)
async def test_answers_are_read_whole_and_the_connection_is_used_again_if_it_may_be(
    answer: bytes, body: bytes
) -> None:
    server = ByHand(answer, hang_up=answer == LAST)
    async with client_of(server) as client:
        for number in range(3):
            assert (await client.post("/", content=b"%d" % number)).content == body
    assert server.bodies == [b"0", b"1", b"2"]
    assert server.connections == (3 if answer == LAST else 1)


async def test_an_answer_that_is_not_read_keeps_its_connection_only_if_it_was_empty() -> None:
    empty, long = ByHand(EMPTY), ByHand(ENDLESS)
    for server in (empty, long):
        async with client_of(server) as client:
            for _ in range(2):
                async with client.stream("POST", "/"):
                    pass
    assert (empty.connections, long.connections) == (1, 2)


async def test_requests_at_once_have_a_connection_each() -> None:
    server = ByHand(PLAIN)
    async with client_of(server) as client, anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(client.get, "/")
    assert server.connections == 4


async def test_leaving_an_answer_in_the_middle_is_seen_by_the_server() -> None:
    server = ByHand(ENDLESS)
    async with client_of(server) as client:
        async with client.stream("GET", "/") as response:
            parts = response.aiter_raw()
            assert await anext(parts) == b"abc"
        await server.left.wait()


async def test_a_body_without_a_length_ends_with_its_connection() -> None:
    async with client_of(ByHand(UNTIL_THE_END, hang_up=True)) as client:
        assert (await client.get("/")).text == "all of it"


async def test_a_connection_that_the_server_ended_meanwhile_is_not_used_again() -> None:
    server = ByHand(PLAIN, hang_up=True)
    async with client_of(server) as client:
        await client.get("/")
        await anyio.wait_all_tasks_blocked()
        assert (await client.get("/")).text == "ok"
    assert server.connections == 2


@pytest.mark.parametrize(
    ("answer", "error"),
    [(b"", httpx2.RemoteProtocolError), (b"nonsense\r\n\r\n", httpx2.RemoteProtocolError)],
)
async def test_a_server_that_does_not_answer_in_http_is_an_error_of_its(
    answer: bytes, error: type[Exception]
) -> None:
    async with client_of(ByHand(answer, hang_up=True)) as client:
        with pytest.raises(error):
            await client.get("/")


async def test_a_server_that_is_not_there_cannot_be_connected_to() -> None:
    async with httpx2.AsyncClient(transport=H11Transport()) as client:
        with pytest.raises(httpx2.ConnectError):
            await client.get("http://127.0.0.1:9")


def test_it_is_for_servers_without_tls_and_without_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert supports_url("http://127.0.0.1:8000/mcp")
    assert not supports_url("https://example.com/mcp")
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    assert not supports_url("http://example.com/mcp")
    monkeypatch.setenv("no_proxy", "example.com")
    assert supports_url("http://example.com/mcp")
