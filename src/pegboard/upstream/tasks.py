"""The ids of tasks, made unique across servers: `server:id` outside, `id` at the server.

The address says which server to ask, so a task can be followed through any replica and after a
restart.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

from pegboard.core.json import Json, JsonObject

RELATED_TASK = "io.modelcontextprotocol/related-task"


def address(server: str, task_id: str) -> str:
    """The id that a client sees."""
    return f"{quote(server, safe='')}:{task_id}"


def parse(task_address: Json) -> tuple[str, str] | None:
    """Server and id of what a client sent; `None` when it is no address of ours."""
    if not isinstance(task_address, str):
        return None
    server, colon, task_id = task_address.partition(":")
    return (unquote(server), task_id) if colon and server and task_id else None


def outward(server: str, message: JsonObject) -> JsonObject:
    """A result or params from a server, with task ids as its clients see them."""
    changed = message
    for key in ("taskId", "task", "tasks"):
        if key in message:
            changed = {**changed, key: _named(server, key, message[key])}
    meta = message.get("_meta")
    if isinstance(meta, dict) and isinstance(meta.get(RELATED_TASK), dict):
        related = outward(server, meta[RELATED_TASK])
        changed = {**changed, "_meta": {**meta, RELATED_TASK: related}}
    return changed


def _named(server: str, key: str, value: Json) -> Json:
    if key == "taskId":
        return address(server, value) if isinstance(value, str) else value
    if isinstance(value, dict):
        return outward(server, value)
    if isinstance(value, list):
        return [outward(server, entry) if isinstance(entry, dict) else entry for entry in value]
    return value
