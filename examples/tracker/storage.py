"""Storage: the workspace's folders and files, a trash, and a quota."""

from __future__ import annotations

import posixpath
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from pegboard import Example

from ..database import Record, Refused, Row, unknown
from ..toolbox import ADDS, READS, REMOVES, SETS, Toolbox
from . import blobs
from .events import record
from .lookup import need_role
from .tracker import Tracker
from .words import Limit

storage = Toolbox[Tracker](
    "storage", "Shared folders and files of the workspace: upload, move, trash and restore, quota."
)

Path = Annotated[str, Field(description="Path from the root, such as /design/logo.svg.")]


class Item(Record):
    path: str
    kind: Literal["file", "folder"]
    size: int
    sha256: str | None
    owner: str
    updated_at: datetime


class Folder(Record):
    path: str
    items: list[Item]
    total_bytes: int = Field(description="Bytes of everything below the folder.")


class Content(Record):
    path: str
    encoding: blobs.Encoding
    content: str
    size: int


class Trashed(Record):
    id: int = Field(description="Number to restore it by.")
    path: str
    trashed_at: datetime
    size: int


class Trash(Record):
    items: list[Trashed]


class Cleared(Record):
    items: int
    freed_bytes: int


class Quota(Record):
    quota_bytes: int
    used_bytes: int = Field(description="Equal content counted once.")
    free_bytes: int
    percent_used: float
    files_bytes: int
    attachments_bytes: int
    trash_bytes: int
    largest: list[Item]


_ITEM = "SELECT files.*, coalesce(size, 0) AS size FROM files LEFT JOIN blobs USING (sha256)"
_THERE = "trashed_at IS NULL"
_BELOW = "substr(path, 1, length(?)) = ?"


@storage.tool(
    summary="Show how much storage is used and free",
    annotations=READS,
    aliases=("disk usage", "space left"),
    related=("empty_trash", "update_workspace"),
    examples=[Example("Of the workspace", {})],
)
def get_storage_quota(t: Tracker) -> Quota:
    """Show the quota of the workspace, what takes how much of it, and the largest files.

    Equal content is stored once, so the parts can add up to more than what is used.
    """
    in_files = "SELECT coalesce(sum(size), 0) FROM files JOIN blobs USING (sha256) WHERE trashed_at"
    limit, taken = blobs.quota(t), blobs.used(t)
    largest = t.rows(f"{_ITEM} WHERE {_THERE} AND sha256 IS NOT NULL ORDER BY size DESC LIMIT 5")
    return Quota(
        quota_bytes=limit,
        used_bytes=taken,
        free_bytes=max(limit - taken, 0),
        percent_used=round(100 * taken / limit, 1) if limit else 100.0,
        files_bytes=t.value(f"{in_files} IS NULL"),
        trash_bytes=t.value(f"{in_files} IS NOT NULL"),
        attachments_bytes=t.value(
            "SELECT coalesce(sum(size), 0) FROM attachments JOIN blobs USING (sha256)"
        ),
        largest=[_item(r) for r in largest],
    )


@storage.tool(
    summary="List what is in a folder",
    annotations=READS,
    aliases=("ls", "browse files"),
    examples=[Example("The root", {}), Example("Below it too", {"path": "/", "recursive": True})],
    related=("read_stored_file",),
)
def list_folder(
    t: Tracker,
    path: Path = "/",
    recursive: Annotated[bool, Field(description="Also what is in folders below.")] = False,
) -> Folder:
    """List the files and folders in a folder by path, with sizes."""
    folder = _clean(path)
    if folder != "/":
        _need(t, folder, "folder")
    prefix = folder.rstrip("/") + "/"
    rows = t.rows(f"{_ITEM} WHERE {_THERE} AND {_BELOW} ORDER BY path", prefix, prefix)
    inside = [r for r in rows if recursive or "/" not in r["path"].removeprefix(prefix)]
    return Folder(
        path=folder, items=[_item(r) for r in inside], total_bytes=sum(r["size"] for r in rows)
    )


@storage.tool(
    summary="Create a folder, and those above it",
    annotations=SETS,
    aliases=("mkdir",),
    related=("upload_file",),
    examples=[Example("At the root", {"path": "/contracts"})],
)
def create_folder(t: Tracker, path: Path) -> Item:
    """Create a folder and whichever folders above it are missing; an existing one is left alone."""
    folder = _clean(path)
    if folder == "/":
        raise Refused("The root is there always; name a folder below it.")
    _make_folders(t, folder)
    return _item(_need(t, folder, "folder"))


@storage.tool(
    summary="Store a file at a path, from text or base64",
    annotations=ADDS,
    related=("read_stored_file", "attach_file"),
    examples=[Example("A note", {"path": "/notes/today.md", "content": "# Today"})],
)
def upload_file(
    t: Tracker,
    path: Path,
    content: blobs.Content,
    encoding: blobs.HowEncoded = "text",
    replace: Annotated[
        bool, Field(description="Put an existing file into the trash first.")
    ] = False,
) -> Item:
    """Store a file; missing folders above it are created.

    It refuses to overwrite a file unless `replace` is true, and then the old one goes to the trash.
    New content must fit the quota.
    """
    place = _clean(path)
    there = _find(t, place)
    if there and not (replace and there["sha256"]):
        raise Refused(f"{place} is there already; pass replace=true for a file, or another path.")
    checksum = blobs.keep(t, blobs.decoded(content, encoding))
    if there:
        t.update("files", "id", there["id"], trashed_at=t.stamp)
    _make_folders(t, posixpath.dirname(place))
    t.insert("files", path=place, sha256=checksum, owner=t.me, updated_at=t.stamp)
    record(t, "file.uploaded", f"file:{place}", f"{t.me} stored {place}")
    return _item(_need(t, place))


@storage.tool(
    summary="Read a stored file",
    annotations=READS,
    aliases=("download", "cat"),
    related=("list_folder",),
    examples=[Example("By path", {"path": "/runbooks/backup.md"})],
)
def read_stored_file(
    t: Tracker,
    path: Path,
    max_bytes: Annotated[int, Field(ge=1, le=1_000_000, description="Stop after this.")] = 65_536,
) -> Content:
    """Read a file of the storage: as text when it is UTF-8, as base64 otherwise."""
    row = _need(t, _clean(path), "file")
    text, encoding = blobs.shown(blobs.content(t, row["sha256"]), 0, max_bytes)
    return Content(
        path=row["path"],
        encoding=encoding,
        content=text,
        size=row["size"],
    )


@storage.tool(
    summary="Move or rename a file or a folder",
    annotations=SETS,
    aliases=("rename file", "mv"),
    related=("list_folder",),
    examples=[
        Example(
            "Into another folder", {"path": "/design/colors.css", "to": "/design/brand/colors.css"}
        )
    ],
)
def move_stored_file(
    t: Tracker,
    path: Path,
    to: Annotated[str, Field(description="Its new path, not the folder to put it in.")],
) -> Item:
    """Move a file or folder to another path, which must be free.

    A folder takes everything below with it and cannot move into itself. Missing folders above the
    new path are created.
    """
    source, goal = _clean(path), _clean(to)
    row = _need(t, source)
    if goal == source or goal.startswith(source + "/"):
        raise Refused(f"{source} cannot move to {goal}, into itself.")
    if _find(t, goal) or goal == "/":
        raise Refused(f"{goal} is taken; give a path that is free.")
    _make_folders(t, posixpath.dirname(goal))
    for below in t.rows(
        f"SELECT id, path FROM files WHERE {_THERE} AND {_BELOW}", *[source + "/"] * 2
    ):
        t.update("files", "id", below["id"], path=goal + below["path"].removeprefix(source))
    t.update("files", "id", row["id"], path=goal, updated_at=t.stamp)
    record(t, "file.moved", f"file:{goal}", f"{t.me} moved {source} to {goal}")
    return _item(_need(t, goal))


@storage.tool(
    summary="Put a file or a folder into the trash",
    annotations=REMOVES,
    related=("restore_stored_file", "empty_trash"),
    examples=[Example("One file", {"path": "/runbooks/backup.md"})],
)
def delete_stored_file(t: Tracker, path: Path) -> Trash:
    """Move a file or a folder with everything below it to the trash.

    Each can be restored until the trash is emptied; until then they count against the quota.
    """
    place = _clean(path)
    _need(t, place)
    doomed = t.rows(
        f"{_ITEM} WHERE {_THERE} AND (path = ? OR {_BELOW}) ORDER BY path",
        place,
        *[place + "/"] * 2,
    )
    for row in doomed:
        t.update("files", "id", row["id"], trashed_at=t.stamp)
    record(t, "file.trashed", f"file:{place}", f"{t.me} deleted {place}", items=len(doomed))
    return Trash(items=[Trashed.model_validate({**row, "trashed_at": t.stamp}) for row in doomed])


@storage.tool(
    summary="List what is in the trash",
    annotations=READS,
    related=("restore_stored_file",),
    examples=[Example("The latest", {"limit": 10})],
)
def list_trash(t: Tracker, limit: Limit = 50) -> Trash:
    """List deleted files and folders, newest first, with the number to restore each by."""
    trashed = t.rows(f"{_ITEM} WHERE NOT {_THERE} ORDER BY trashed_at DESC, id DESC LIMIT ?", limit)
    return Trash(items=[Trashed.model_validate(r) for r in trashed])


@storage.tool(
    summary="Bring a file or folder back from the trash",
    annotations=SETS,
    aliases=("undelete",),
    related=("list_trash",),
    examples=[Example("By its number in the trash", {"item": 4})],
)
def restore_stored_file(
    t: Tracker, item: Annotated[int, Field(description="Number from list_trash.")]
) -> Item:
    """Put one item of the trash back where it was; missing folders above it are created again."""
    row = t.row(f"{_ITEM} WHERE files.id = ? AND NOT {_THERE}", item)
    if row is None:
        raise unknown("item in the trash with number", item)
    if _find(t, row["path"]):
        raise Refused(f"{row['path']} is taken by now; move what is there first.")
    _make_folders(t, posixpath.dirname(row["path"]))
    t.run("UPDATE files SET trashed_at = NULL WHERE id = ?", item)
    record(t, "file.restored", f"file:{row['path']}", f"{t.me} restored {row['path']}")
    return _item(_need(t, row["path"]))


@storage.tool(
    summary="Delete everything in the trash for good",
    annotations=REMOVES,
    related=("list_trash",),
    examples=[Example("For good", {})],
)
def empty_trash(t: Tracker) -> Cleared:
    """Delete for good what is in the trash.

    Owners and admins only. Space is freed only for content that no other file or attachment has.
    """
    need_role(t, "owner", "admin")
    items = t.run(f"DELETE FROM files WHERE NOT {_THERE}")
    freed = blobs.sweep(t)
    record(t, "trash.emptied", "workspace", f"{t.me} emptied the trash", items=items, freed=freed)
    return Cleared(items=items, freed_bytes=freed)


def _clean(path: str) -> str:
    if not path.startswith("/"):
        raise Refused(f"Paths start at the root: /{path}, not {path}.")
    if ".." in path.split("/"):
        raise Refused(f"{path} may not contain '..'; write the path out.")
    return posixpath.normpath("/" + path.lstrip("/"))


def _find(t: Tracker, path: str) -> Row | None:
    return t.row(f"{_ITEM} WHERE {_THERE} AND path = ?", path)


def _need(t: Tracker, path: str, kind: Literal["file", "folder"] | None = None) -> Row:
    row = _find(t, path)
    if row is None:
        raise unknown(
            kind or "file or folder", path, t.column(f"SELECT path FROM files WHERE {_THERE}")
        )
    found = "file" if row["sha256"] else "folder"
    if kind and found != kind:
        raise Refused(f"{path} is a {found}, not a {kind}.")
    return row


def _make_folders(t: Tracker, folder: str) -> None:
    path = ""
    for name in folder.strip("/").split("/") if folder != "/" else ():
        path += "/" + name
        there = _find(t, path)
        if there is None:
            t.insert("files", path=path, owner=t.me, updated_at=t.stamp)
        elif there["sha256"]:
            raise Refused(f"{path} is a file; nothing can be stored below it.")


def _item(row: Row) -> Item:
    return Item(**row, kind="file" if row["sha256"] else "folder")
