"""Binary content: what is found, what must go, and what stands in its place."""

from __future__ import annotations

import base64

from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.calls import CallResult
from pegboard.core.json import JsonObject
from pegboard.core.results.blob_links import (
    Blob,
    find_blobs,
    find_oversized,
    handle_to_uri,
    replace_with_links,
    uri_to_handle,
)


def encoded(size: int) -> str:
    return base64.b64encode(bytes(size)).decode()


IMAGE: JsonObject = {"type": "image", "data": encoded(10), "mimeType": "image/png"}
AUDIO: JsonObject = {"type": "audio", "data": encoded(20), "mimeType": "audio/wav"}
TEXT: JsonObject = {"type": "text", "text": "hello"}
INSIDE: JsonObject = {
    "uri": "file:///tmp/a.zip",
    "blob": encoded(30),
    "mimeType": "application/zip",
}
FILE: JsonObject = {"type": "resource", "resource": INSIDE}
READABLE: JsonObject = {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "a"}}


def test_images_audio_and_files_are_found_and_text_is_not() -> None:
    found = find_blobs(CallResult({"content": [TEXT, IMAGE, AUDIO, READABLE, FILE]}))
    assert [(b.position, b.size, b.mime_type, b.name) for b in found] == [
        (1, 10, "image/png", "image 2"),
        (2, 20, "audio/wav", "audio 3"),
        (4, 30, "application/zip", "a.zip"),
    ]


def test_blocks_that_are_not_what_they_should_be_are_left_alone() -> None:
    odd = [{"type": "image"}, {"type": "image", "data": 5}, {"type": "resource", "resource": 5}]
    assert find_blobs(CallResult({"content": odd})) == []


@given(st.integers(0, 2000))
def test_the_size_is_that_of_the_bytes(size: int) -> None:
    assert Blob(0, encoded(size), "a/b", "a").size == size


sizes = st.lists(st.integers(0, 100), max_size=8)


@given(sizes, st.integers(0, 300))
def test_as_little_goes_as_must(given_sizes: list[int], budget: int) -> None:
    blobs = [Blob(i, encoded(size), "a/b", "a") for i, size in enumerate(given_sizes)]
    going = find_oversized(blobs, budget)
    staying = [blob for blob in blobs if blob not in going]
    assert sum(blob.size for blob in staying) <= budget
    if going:
        smallest = min(blob.size for blob in going)
        assert sum(blob.size for blob in staying) + smallest > budget
        assert all(blob.size <= smallest for blob in staying)


def test_links_stand_where_the_blobs_stood_and_the_rest_is_as_it_was() -> None:
    result = CallResult({"content": [TEXT, IMAGE, FILE], "_meta": {"a": 1}})
    blob = find_blobs(result)[1]
    link = blob.link("cafe", "tomorrow")
    changed = replace_with_links(result, {blob.position: link})
    assert changed.wire == {"content": [TEXT, IMAGE, link], "_meta": {"a": 1}}
    assert (link["uri"], link["mimeType"], link["size"]) == (
        handle_to_uri("cafe"),
        "application/zip",
        30,
    )


def test_only_our_uris_have_handles() -> None:
    assert uri_to_handle(handle_to_uri("cafe")) == "cafe"
    assert [uri_to_handle(uri) for uri in ("file:///a", None, 5, "pegboard://other/a")] == [
        None
    ] * 4
