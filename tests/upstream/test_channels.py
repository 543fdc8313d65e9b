"""Requests over pipes that go past the SDK's dispatcher: order, end, cancelling."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from anyio.abc import ByteReceiveStream, ByteSendStream

from pegboard.upstream.channels import FIRST_REQUEST_ID, StdioChannel
from pegboard.upstream.client_sdk import MCPError, is_connection_closed
from pegboard.wire.message_streams import MessageReader, MessageWriter

pytestmark = pytest.mark.anyio


class Pipe(ByteReceiveStream, ByteSendStream):
    """Both ends of a conversation with nobody: what is said to it, and what it says."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.written = anyio.Event()
        self._chunks, self._out = anyio.create_memory_object_stream[bytes](10)

    def say(self, *messages: dict[str, Any]) -> None:
        lines = [json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages]
        self._chunks.send_nowait(b"".join(lines))

    async def receive(self, max_bytes: int = 65536) -> bytes:
        return await self._out.receive()

    async def send(self, item: bytes) -> None:
        self.sent.append(json.loads(item))
        self.written.set()

    async def send_eof(self) -> None: ...

    async def aclose(self) -> None:
        await self._chunks.aclose()
        await self._out.aclose()


class Nobody:
    def on_message(self) -> None: ...

    def on_stray_line(self, line: bytes) -> None:
        raise AssertionError(line)


async def asked(exchange: StdioChannel, into: list[Any]) -> None:
    try:
        into.append(await exchange.send("tools/call", {"name": "x"}, None))
    except MCPError as exc:
        into.append(exc)


@pytest.mark.parametrize("number", [FIRST_REQUEST_ID + 1, str(FIRST_REQUEST_ID + 1)])
async def test_an_answer_comes_after_the_notifications_that_were_sent_before_it(
    number: int | str,
) -> None:
    """Some servers send the id back as a text."""
    pipe, answers = Pipe(), list[Any]()
    exchange = StdioChannel(MessageWriter(pipe))
    reader = MessageReader(pipe, Nobody(), exchange)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asked, exchange, answers)
            await pipe.written.wait()
            pipe.say({"method": "notifications/progress"}, {"id": number, "result": {"a": 1}})
            first: Any = (await reader.receive()).message
            await anyio.wait_all_tasks_blocked()
            assert (first.method, answers) == ("notifications/progress", [])
            tasks.start_soon(reader.receive)
            await anyio.wait_all_tasks_blocked()
            assert answers == [{"a": 1}]
            tasks.cancel_scope.cancel()
    await pipe.aclose()


async def test_an_error_of_the_server_is_raised_with_its_code_and_data() -> None:
    pipe, answers = Pipe(), list[Any]()
    exchange = StdioChannel(MessageWriter(pipe))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(asked, exchange, answers)
        await pipe.written.wait()
        error = {"code": -5, "message": "no", "data": {"k": 1}}
        exchange.take({"id": FIRST_REQUEST_ID + 1, "error": error})
    assert (answers[0].code, answers[0].message, answers[0].data) == (-5, "no", {"k": 1})
    await pipe.aclose()


async def test_waiting_and_later_requests_fail_when_the_connection_ends() -> None:
    pipe, answers = Pipe(), list[Any]()
    exchange = StdioChannel(MessageWriter(pipe))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(asked, exchange, answers)
        await pipe.written.wait()
        exchange.end()
    await asked(exchange, answers)
    assert [is_connection_closed(one) for one in answers] == [True, True]
    assert len(pipe.sent) == 1
    await pipe.aclose()


async def test_a_cancelled_request_is_cancelled_at_the_server_and_its_answer_is_nobodys() -> None:
    pipe = Pipe()
    exchange = StdioChannel(MessageWriter(pipe))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(asked, exchange, [])
        await pipe.written.wait()
        tasks.cancel_scope.cancel()
    assert pipe.sent[1]["method"] == "notifications/cancelled"
    assert pipe.sent[1]["params"]["requestId"] == pipe.sent[0]["id"]
    assert not exchange.wants({"id": pipe.sent[0]["id"], "result": {}})
    await pipe.aclose()
