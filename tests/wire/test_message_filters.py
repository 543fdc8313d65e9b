from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.wire.message_filters import SurrogateFilter

PIECES = ["a", "\\", "\n", '"', "\ud83d", "\ude00", "\U0001f600", "ud83d"]
TEXTS = st.lists(st.sampled_from(PIECES)).map("".join)


def mended(data: bytes, size: int) -> bytes:
    mender = SurrogateFilter()
    parts = [mender.feed(data[n : n + size]) for n in range(0, len(data), size)]
    return b"".join([*parts, mender.end()])


@given(TEXTS, st.integers(1, 20))
def test_halves_are_replaced_and_all_else_stays_however_the_bytes_come(
    text: str, size: int
) -> None:
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    whole = json.loads(mended(json.dumps(text).encode(), size))
    whole.encode("utf-8")  # which raises where a half is left
    assert [c for c in whole if c != "\ufffd"] == [c for c in joined if c != "\ufffd"]
    if joined == text:
        assert mended(json.dumps(text).encode(), size) == json.dumps(text).encode()


@given(TEXTS)
def test_a_whole_event_never_waits(text: str) -> None:
    event = b"data: " + json.dumps({"text": text}).encode() + b"\n\n"
    mender = SurrogateFilter()
    assert mender.feed(event).endswith(b"}\n\n")
    assert mender.end() == b""


@pytest.mark.parametrize("text", [b'"\\\\ud83d"', b'"\\\\\\\\ud83d"', b'"\\ud83d\\ude00"'])
def test_what_is_no_half_stays(text: bytes) -> None:
    assert mended(text, 1) == text
