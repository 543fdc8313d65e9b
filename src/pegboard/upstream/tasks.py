"""The tasks of servers: `server:id` outside, `id` at the server, each bound to who began it.

Servers choose ids, and some count: an id says nothing about who may use it. So the store has a
record of every task, under a key of principal, server and id together. Whoever did not begin a
task finds no record, exactly as with an id that never was. Replicas with a shared store share them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote, unquote

from pegboard.core.json import Json, JsonObject, digest
from pegboard.errors import StoreError
from pegboard.ports import Store

logger = logging.getLogger(__name__)

RECORD_TTL: Final = 7 * 86_400.0
"""Seconds for which a task can be followed."""
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


class TaskOwners:
    """Who began which task, by which tool."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def record(self, principal: str, server: str, tool_id: str, result: JsonObject) -> None:
        """Bind the tasks that a call's result tells of to the caller and the tool."""
        for task_id in _begun(result):
            owner = {"tool": tool_id}
            key = _key(principal, server, task_id)
            try:
                await self._store.update(key, lambda _, owner=owner: owner, ttl=RECORD_TTL)
            except StoreError as exc:
                logger.warning("A task of %s cannot be followed: %s", server, exc)

    async def tool_of(self, principal: str, server: str, task_id: str) -> str | None:
        """The id of the tool by which this principal began a task; `None` if they did not."""
        record = await self._store.get(_key(principal, server, task_id))
        return record.get("tool") if isinstance(record, dict) else None


def _begun(result: JsonObject) -> Iterator[str]:
    for part in (result, result.get("task")):
        if isinstance(part, dict) and isinstance(part.get("taskId"), str):
            yield part["taskId"]


def _key(principal: str, server: str, task_id: str) -> str:
    return f"task:{digest([principal, server, task_id])}"
