"""The tasks of servers: `server:id` for clients, `id` at the server, each bound to who started it.

Servers choose the ids of tasks, and some simply count up, so knowing an id does not prove that a
caller may use it. The store has a record of every task, under a key of principal, server and id
together. A caller who did not start a task finds no record, exactly as with an id that never
existed. Replicas with a shared store share the records.
"""

from __future__ import annotations

import logging
from typing import Final
from urllib.parse import quote, unquote

from pegboard.core.json import Json, JsonObject, digest
from pegboard.errors import StoreError
from pegboard.ports import Store
from pegboard.upstream.addresses import Location

TASK_RECORD_TTL: Final = 7 * 86_400.0
"""Seconds for which a task can be followed."""
RELATED_TASK: Final = "io.modelcontextprotocol/related-task"
"""Key of `_meta` in messages that belong to a task."""
TASK_KEYS: Final = frozenset({"taskId", "task", "tasks"})
"""Where a message names tasks."""
_log = logging.getLogger(__name__)


def build_task_address(server: str, task_id: str) -> str:
    """The id that a client sees."""
    return f"{quote(server, safe='')}:{task_id}"


def parse_task_address(address: Json) -> Location | None:
    """Where the task of an address is; `None` when it is not one of our addresses."""
    if not isinstance(address, str):
        return None
    server, colon, task_id = address.partition(":")
    return Location(unquote(server), task_id) if colon and server and task_id else None


def add_task_addresses(server: str, message: JsonObject) -> JsonObject:
    """A result or params from a server, with task ids as its clients see them."""
    changed = message
    for key in TASK_KEYS & message.keys():
        value: Json = message[key]
        if key == "taskId" and isinstance(value, str):
            value = build_task_address(server, value)
        elif key != "taskId" and isinstance(value, dict):
            value = add_task_addresses(server, value)
        elif key != "taskId" and isinstance(value, list):
            value = [
                add_task_addresses(server, entry) if isinstance(entry, dict) else entry
                for entry in value
            ]
        changed = {**changed, key: value}
    meta = message.get("_meta")
    if isinstance(meta, dict) and isinstance(meta.get(RELATED_TASK), dict):
        related = add_task_addresses(server, meta[RELATED_TASK])
        changed = {**changed, "_meta": {**meta, RELATED_TASK: related}}
    return changed


class TaskOwners:
    """Who started which task, by which tool."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def record(self, principal: str, server: str, tool_id: str, result: JsonObject) -> None:
        """Bind the tasks that a call's result names to the caller and the tool."""
        # 2025-11-25 has `task: {taskId}`, the extension of 2026-07-28 `taskId` in the result.
        for part in (result, result.get("task")):
            if not isinstance(part, dict) or not isinstance(part.get("taskId"), str):
                continue
            owner = {"tool": tool_id}
            key = _task_key(principal, server, part["taskId"])
            try:
                await self._store.update(key, lambda _, owner=owner: owner, ttl=TASK_RECORD_TTL)
            except StoreError as exc:
                # The call has been made: it must not fail because its record cannot be stored.
                _log.warning("A task of %s cannot be followed: %s", server, exc)

    async def find_tool(self, principal: str, task: Location) -> str | None:
        """The id of the tool by which this principal started a task; `None` if they did not."""
        record = await self._store.get(_task_key(principal, task.server, task.name))
        return record.get("tool") if isinstance(record, dict) else None


def _task_key(principal: str, server: str, task_id: str) -> str:
    return f"task:{digest([principal, server, task_id])}"
