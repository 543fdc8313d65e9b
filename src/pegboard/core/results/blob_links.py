"""Binary content of a result: images, audio and files that are too large to send along.

    {"type": "image", "data": ...}  ──too many bytes──>  {"type": "resource_link", "uri": ...}

No tokenizer counts an image, so the budget is in bytes, for all of a result together: the largest
are replaced first, the small ones stay in the result. A replaced one is a resource of ours, read by
its URI; the last part of the URI is a handle such as large texts have.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pegboard.core.calls import CallResult
from pegboard.core.json import Json, JsonObject

URI_PREFIX = "pegboard://results/"
"""What the URIs of stored results start with."""


@dataclass(frozen=True, slots=True)
class Blob:
    """One piece of binary content, and its position in the result."""

    position: int
    data: str
    mime_type: str
    name: str

    @property
    def size(self) -> int:
        """The number of bytes that the Base64 text encodes."""
        # Computed and not decoded: the text may have megabytes.
        return len(self.data) * 3 // 4 - self.data[-2:].count("=")

    def record(self, expires_at: float) -> JsonObject:
        """What is stored of it."""
        return {
            "blob": self.data,
            "mimeType": self.mime_type,
            "size": self.size,
            "expires_at": expires_at,
        }

    def link(self, handle: str, expires: str) -> JsonObject:
        """The block that replaces it."""
        return {
            "type": "resource_link",
            "uri": handle_to_uri(handle),
            "name": self.name,
            "description": f"Stored until {expires}: too large to send along.",
            "mimeType": self.mime_type,
            "size": self.size,
        }


def find_blobs(result: CallResult) -> list[Blob]:
    """All binary content of a result."""
    blobs: list[Blob] = []
    for position, block in enumerate(result.content):
        kind, resource = block.get("type"), block.get("resource")
        if kind in ("image", "audio") and isinstance(block.get("data"), str):
            mime_type = str(block.get("mimeType") or f"{kind}/*")
            blobs.append(Blob(position, block["data"], mime_type, f"{kind} {position + 1}"))
        elif isinstance(resource, dict) and isinstance(resource.get("blob"), str):
            mime_type = str(resource.get("mimeType") or "application/octet-stream")
            # The last part of its own URI is the closest thing to a file name.
            name = str(resource.get("uri") or "").rstrip("/").rpartition("/")[2]
            blobs.append(
                Blob(position, resource["blob"], mime_type, name or f"file {position + 1}")
            )
    return blobs


def find_oversized(blobs: Iterable[Blob], budget: int) -> list[Blob]:
    """The blobs to replace, so that the others are within a number of bytes."""
    # From the smallest, so that as many as possible stay in the result.
    room = budget
    oversized: list[Blob] = []
    for blob in sorted(blobs, key=lambda blob: blob.size):
        room -= blob.size
        if room < 0:
            oversized.append(blob)
    return oversized


def replace_with_links(result: CallResult, links: dict[int, JsonObject]) -> CallResult:
    """The result with links in place of some of its blocks."""
    # A copy: the result may also be in the cache of results.
    content = [links.get(i, block) for i, block in enumerate(result.content)]
    return CallResult({**result.wire, "content": content})


def handle_to_uri(handle: str) -> str:
    return URI_PREFIX + handle


def uri_to_handle(uri: Json) -> str | None:
    """The handle of the stored result that a URI names, if it names one."""
    if isinstance(uri, str) and uri.startswith(URI_PREFIX):
        return uri.removeprefix(URI_PREFIX)
    return None


def is_stored_link(block: JsonObject) -> bool:
    """Whether a block is a link to a stored result."""
    return block.get("type") == "resource_link" and uri_to_handle(block.get("uri")) is not None


def describe_blob(handle: str, record: JsonObject) -> JsonObject:
    """The answer of `read_result` for a blob, which it cannot read."""
    return {
        "uri": handle_to_uri(handle),
        "mimeType": record["mimeType"],
        "size": record["size"],
        "note": "This is not text. Read it with resources/read by its URI, or call the tool again "
        "with max_tokens=0 to get it in the result.",
    }


def links_to_text(result: JsonObject) -> JsonObject:
    """The result with links as text: clients before `2025-06-18` reject blocks of that type."""
    content: Json = result.get("content")
    if not isinstance(content, list):
        return result
    blocks: list[Json] = []
    for block in content:
        if isinstance(block, dict) and block.get("type") == "resource_link":
            parts = (block.get("title") or block.get("name"), block.get("description"))
            lines = [str(part) for part in (*parts, block.get("uri")) if part]
            block = {"type": "text", "text": "\n".join(lines)}
        blocks.append(block)
    return {**result, "content": blocks}
