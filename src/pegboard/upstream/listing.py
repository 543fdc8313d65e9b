"""Everything one server offers, read page by page: what discovery finds and a catalogue keeps.

Entries are kept raw: whoever builds tools of them decides what is a valid one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from pegboard.core.calls import Caller, Era
from pegboard.core.details import DETAILS_KEY, EXTENSION_ID, LAZY_KEY
from pegboard.core.json import Json, JsonObject
from pegboard.errors import UpstreamError
from pegboard.upstream.connection import Connection
from pegboard.upstream.fronts import Front
from pegboard.upstream.sdk import METHOD_NOT_FOUND

MOST_PAGES = 1_000
MOST_ENTRIES = 100_000

_READER = Front(Caller(), None, {})
"""Listing is done for the gateway itself, not for a client."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What a server said of itself, and the raw entries of its four lists."""

    server: str
    server_info: JsonObject = field(default_factory=dict[str, Json])
    capabilities: JsonObject = field(default_factory=dict[str, Json])
    instructions: str | None = None
    era: Era = "legacy"
    protocol_version: str | None = None
    tools: Sequence[JsonObject] = ()
    resources: Sequence[JsonObject] = ()
    resource_templates: Sequence[JsonObject] = ()
    prompts: Sequence[JsonObject] = ()


async def read_listing(connection: Connection) -> Listing:
    """Ask a server for all it offers.

    Raises:
        UpstreamError: it cannot be listed: it fails, or its pages never end.
    """
    greeting = connection.greeting
    return Listing(
        server=connection.spec.name,
        server_info=_info(greeting),
        capabilities=connection.capabilities,
        instructions=greeting.get("instructions"),
        era=connection.era,
        protocol_version=connection.version,
        tools=await read_pages(
            connection, "tools/list", "tools", tools_params(connection.capabilities)
        ),
        resources=await _optional(connection, "resources/list", "resources"),
        resource_templates=await _optional(
            connection, "resources/templates/list", "resourceTemplates", capability="resources"
        ),
        prompts=await _optional(connection, "prompts/list", "prompts"),
    )


def tools_params(capabilities: JsonObject) -> JsonObject:
    """What `tools/list` is asked with: another Pegboard for its tools, not for its meta-tools.

    The extension is advertised in `extensions` by modern servers, in `experimental` by legacy ones.
    """
    declared = (capabilities.get(key) for key in ("extensions", "experimental"))
    if any(isinstance(known, dict) and EXTENSION_ID in known for known in declared):
        return {"_meta": {LAZY_KEY: False, DETAILS_KEY: True}}
    return {}


async def read_pages(
    connection: Connection, method: str, key: str, params: JsonObject | None = None
) -> tuple[JsonObject, ...]:
    """All entries of a list, over as many pages as it has.

    Raises:
        UpstreamError: the server fails, or its pages never end.
    """
    entries: list[JsonObject] = []
    cursors: set[str] = set()
    asked = dict(params or {})
    while True:
        page = await connection.request(method, asked, _READER)
        found: Json = page.get(key)
        if isinstance(found, list):
            entries.extend(entry for entry in found if isinstance(entry, dict))
        cursor: Json = page.get("nextCursor")
        if not isinstance(cursor, str) or not cursor:
            return tuple(entries)
        if cursor in cursors:
            raise _endless(connection, method, f"it gave the cursor {cursor[:80]!r} twice")
        cursors.add(cursor)
        if len(cursors) >= MOST_PAGES or len(entries) > MOST_ENTRIES:
            raise _endless(connection, method, f"there were {len(entries)} entries by then")
        asked["cursor"] = cursor


async def _optional(
    connection: Connection, method: str, key: str, capability: str | None = None
) -> tuple[JsonObject, ...]:
    """A list that a server may lack although it says otherwise."""
    if connection.capabilities.get(capability or key) is None:
        return ()
    try:
        return await read_pages(connection, method, key)
    except UpstreamError as exc:
        if exc.details.get("code") == METHOD_NOT_FOUND:
            return ()
        raise


def _endless(connection: Connection, method: str, what: str) -> UpstreamError:
    name = connection.spec.name
    return UpstreamError(f"The pages of {method} of {name} never end: {what}.", server=name)


def _info(greeting: JsonObject) -> JsonObject:
    """A server's name and version: in the handshake (legacy) or in `_meta` (modern)."""
    meta = cast(JsonObject, greeting.get("_meta") or {})
    return greeting.get("serverInfo") or meta.get("io.modelcontextprotocol/serverInfo") or {}
