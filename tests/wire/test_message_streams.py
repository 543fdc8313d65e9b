"""Messages as lines: every byte once, nothing lost, odd messages told from no messages."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as t
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.wire.message_streams import (
    LineSplitter,
    LineTooLong,
    encode_message,
    parse_line,
    to_message,
)

JSON: Any = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


def decode_line(line: bytes) -> list[t.JSONRPCMessage]:
    return [to_message(value) for value in parse_line(line)]


@given(st.lists(st.binary().map(lambda line: line.replace(b"\n", b""))), st.integers(1, 7))
def test_lines_are_the_same_however_the_chunks_fall(lines: list[bytes], size: int) -> None:
    data = b"".join(line + b"\n" for line in lines)
    splitter = LineSplitter()
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    assert [line for chunk in chunks for line in splitter.feed(chunk)] == lines


def test_a_line_past_the_limit_is_refused_before_it_ends() -> None:
    splitter = LineSplitter(limit=10)
    assert list(splitter.feed(b"0123456789\n01234")) == [b"0123456789"]
    with pytest.raises(LineTooLong):
        list(splitter.feed(b"56789x"))


@given(st.dictionaries(st.text(), JSON, max_size=3))
def test_a_result_is_decoded_as_the_json_that_it_is(result: dict[str, Any]) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": 7, "result": result}).encode()
    [message] = decode_line(line)
    assert isinstance(message, t.JSONRPCResponse)
    assert message.result == result


@given(st.dictionaries(st.text(), JSON, max_size=3), st.text())
def test_what_is_encoded_decodes_to_the_same(params: dict[str, Any], method: str) -> None:
    sent = t.JSONRPCRequest(jsonrpc="2.0", id="a", method=method, params=params)
    line = encode_message(sent)
    assert line.count(b"\n") == 1
    [message] = decode_line(line)
    assert isinstance(message, t.JSONRPCRequest)
    assert (message.id, message.method, message.params) == ("a", method, params)


def test_a_lone_surrogate_survives() -> None:
    [message] = decode_line(b'{"jsonrpc":"2.0","id":1,"result":{"text":"\\ud83d"}}')
    assert isinstance(message, t.JSONRPCResponse)
    assert json.loads(encode_message(message))["result"] == {"text": "\ud83d"}


def test_the_four_kinds_of_messages_are_recognized() -> None:
    kinds: dict[bytes, type[Any]] = {
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}': t.JSONRPCRequest,
        b'{"jsonrpc":"2.0","method":"notifications/x","params":{}}': t.JSONRPCNotification,
        b'{"jsonrpc":"2.0","id":"x","result":{}}': t.JSONRPCResponse,
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"no"}}': t.JSONRPCError,
    }
    assert [type(decode_line(line)[0]) for line in kinds] == list(kinds.values())


def test_a_batch_is_several_messages() -> None:
    batch = b'[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","method":"m"}]'
    assert [type(message) for message in decode_line(batch)] == [
        t.JSONRPCResponse,
        t.JSONRPCNotification,
    ]


@pytest.mark.parametrize("result", [b"null", b"[]", b"5", b'"text"'])
def test_an_answer_without_a_result_object_is_an_error(result: bytes) -> None:
    [message] = decode_line(b'{"jsonrpc":"2.0","id":1,"result":' + result + b"}")
    assert isinstance(message, t.JSONRPCError)
    assert message.id == 1


@pytest.mark.parametrize("line", [b"", b"hello", b"{}", b"5", b"null", b'{"id":true}', b"\xff\xfe"])
def test_what_is_no_message_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError):
        decode_line(line)
