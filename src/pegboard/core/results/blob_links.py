"""Binary content of a result: images, audio and files that are too large to be sent along.

    {"type": "image", "data": ...}  ──too many bytes──>  {"type": "resource_link", "uri": ...}

No tokenizer counts a picture, so the budget is in bytes, for all of a result together: the largest
go first, the small ones stay where they are. What has gone is a resource of ours, read by its URI;
the last part of it is a handle such as large texts have.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pegboard.core.calls import CallResult
from pegboard.core.json import Json, JsonObject

URI_PREFIX = "pegboard://results/"
"""What the URIs of kept results start with."""


@dataclass(frozen=True, slots=True)
class Blob:
    """One piece of binary content, and where in the result it stands."""

    position: int
    data: str
    mime_type: str
    name: str

    @property
    def size(self) -> int:
        """How many bytes there are behind the Base64 text."""
        return len(self.data) * 3 // 4 - self.data[-2:].count("=")

    def record(self, expires_at: float) -> JsonObject:
        """What the store keeps of it."""
        return {
            "blob": self.data,
            "mimeType": self.mime_type,
            "size": self.size,
            "expires_at": expires_at,
        }

    def link(self, handle: str, expires: str) -> JsonObject:
        """The block that stands in its place."""
        return {
            "type": "resource_link",
            "uri": handle_to_uri(handle),
            "name": self.name,
            "description": f"Kept until {expires}: too large to be sent along.",
            "mimeType": self.mime_type,
            "size": self.size,
        }


def find_blobs(result: CallResult) -> list[Blob]:
    """All binary content of a result."""
    found = (_blob(i, block) for i, block in enumerate(result.content))
    return [blob for blob in found if blob is not None]


def find_oversized(blobs: Iterable[Blob], budget: int) -> list[Blob]:
    """The blobs that must go, so that the others are within a number of bytes."""
    kept = sorted(blobs, key=lambda blob: blob.size)
    room = budget
    going: list[Blob] = []
    for blob in kept:
        room -= blob.size
        if room < 0:
            going.append(blob)
    return going


def replace_with_links(result: CallResult, links: dict[int, JsonObject]) -> CallResult:
    """The result with links in place of some of its blocks."""
    content = [links.get(i, block) for i, block in enumerate(result.content)]
    return CallResult({**result.wire, "content": content})


def handle_to_uri(handle: str) -> str:
    return URI_PREFIX + handle


def uri_to_handle(uri: Json) -> str | None:
    """The handle of a kept result that a URI names, if it names one."""
    return (
        uri.removeprefix(URI_PREFIX)
        if isinstance(uri, str) and uri.startswith(URI_PREFIX)
        else None
    )


def is_stored_link(block: JsonObject) -> bool:
    """Whether a block is the link to something that was kept."""
    return block.get("type") == "resource_link" and uri_to_handle(block.get("uri")) is not None


def describe_blob(handle: str, record: JsonObject) -> JsonObject:
    """What `read_result` says of a blob, which it cannot read."""
    return {
        "uri": handle_to_uri(handle),
        "mimeType": record["mimeType"],
        "size": record["size"],
        "note": "This is no text. Read it with resources/read by its URI, or call the tool again "
        "with max_tokens=0 to have it in the result.",
    }


def _blob(position: int, block: JsonObject) -> Blob | None:
    kind = block.get("type")
    if kind in ("image", "audio") and isinstance(block.get("data"), str):
        mime_type = str(block.get("mimeType") or f"{kind}/*")
        return Blob(position, block["data"], mime_type, f"{kind} {position + 1}")
    resource = block.get("resource")
    if isinstance(resource, dict) and isinstance(resource.get("blob"), str):
        mime_type = str(resource.get("mimeType") or "application/octet-stream")
        name = str(resource.get("uri") or "").rstrip("/").rpartition("/")[2]
        return Blob(position, resource["blob"], mime_type, name or f"file {position + 1}")
    return None


def links_to_text(result: JsonObject) -> JsonObject:
    """The result with links as text: clients before `2025-06-18` refuse blocks of that kind."""
    content: Json = result.get("content")
    if not isinstance(content, list):
        return result
    return {**result, "content": [_unlinked(block) for block in content]}


def _unlinked(block: Json) -> Json:
    if not isinstance(block, dict) or block.get("type") != "resource_link":
        return block
    parts = (block.get("title") or block.get("name"), block.get("description"), block.get("uri"))
    return {"type": "text", "text": "\n".join(str(part) for part in parts if part)}
