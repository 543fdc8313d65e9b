"""Content by checksum: what attachments and stored files have in common.

Equal content is kept once however many names it has, and a quota bounds the sum. A blob goes when
the last attachment or file that has it goes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from ..database import Refused
from .tracker import Tracker

Encoding: TypeAlias = Literal["text", "base64"]
Content: TypeAlias = Annotated[str, Field(description="The file itself, as text or in base64.")]
HowEncoded: TypeAlias = Annotated[Encoding, Field(description="How the content is given.")]

_UNUSED = """sha256 NOT IN (SELECT sha256 FROM attachments)
    AND sha256 NOT IN (SELECT sha256 FROM files WHERE sha256 IS NOT NULL)"""


def decoded(content: str, encoding: Encoding) -> bytes:
    """The bytes of content as a caller gave it."""
    if encoding == "text":
        return content.encode()
    try:
        return base64.b64decode(content, validate=True)
    except binascii.Error as exc:
        raise Refused(f"The content is not base64 ({exc}); plain text has encoding text.") from exc


def keep(t: Tracker, data: bytes) -> str:
    """Store content and return its checksum.

    Raises:
        Refused: it is new and does not fit the quota.
    """
    checksum = hashlib.sha256(data).hexdigest()
    if t.value("SELECT 1 FROM blobs WHERE sha256 = ?", checksum):
        return checksum
    free = quota(t) - used(t)
    if len(data) > free:
        raise Refused(
            f"{len(data)} bytes do not fit: {max(free, 0)} of {quota(t)} are free. Delete files, "
            "empty the trash, or raise the quota (update_workspace)."
        )
    t.insert("blobs", sha256=checksum, size=len(data), data=data)
    return checksum


def content(t: Tracker, checksum: str) -> bytes:
    """The content of a checksum."""
    return t.value("SELECT data FROM blobs WHERE sha256 = ?", checksum)


def used(t: Tracker) -> int:
    """Bytes that are stored, equal content counted once."""
    return t.value("SELECT coalesce(sum(size), 0) FROM blobs")


def quota(t: Tracker) -> int:
    """Bytes that may be stored."""
    return int(t.value("SELECT value FROM settings WHERE name = 'storage_quota_bytes'"))


def sweep(t: Tracker) -> int:
    """Drop content that nothing has any more; the bytes that this freed."""
    freed = t.value(f"SELECT coalesce(sum(size), 0) FROM blobs WHERE {_UNUSED}")
    t.run(f"DELETE FROM blobs WHERE {_UNUSED}")
    return freed


def shown(data: bytes, offset: int, length: int) -> tuple[str, Encoding]:
    """A slice of content and how it is encoded: as text where the whole is UTF-8."""
    part = data[offset : offset + length]
    try:
        data.decode()
        return part.decode(errors="replace"), "text"
    except UnicodeDecodeError:
        return base64.b64encode(part).decode(), "base64"
