"""Everything one server offers, read page by page: what discovery finds and a catalogue keeps.

Entries are kept raw: whoever builds tools of them decides what is a valid one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from pegboard.core.calls import Caller, Era
from pegboard.core.details import DETAILS_KEY, EXTENSION_ID, LAZY_KEY
from pegboard.core.json import Json, JsonObject, compact
from pegboard.errors import UpstreamError
from pegboard.upstream.connection import Connection
from pegboard.upstream.fronts import Front
from pegboard.upstream.sdk import METHOD_NOT_FOUND
from pegboard.upstream.variants import PLAIN, Kind, Variants, capabilities_of

MOST_PAGES = 1_000
MOST_ENTRIES = 100_000


class Reader(Front):
    """Lists for the gateway itself, in the name of a client of a kind."""

    def __init__(self, kind: Kind = PLAIN) -> None:
        super().__init__(Caller(), None, {})
        self._capabilities = capabilities_of(kind)

    @property
    def can_be_asked(self) -> bool:
        return bool(self._capabilities)


_PLAIN_READER = Reader()


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
    variants: Variants = field(default_factory=dict[Kind, Sequence[str] | None])
    """Which of the tools clients of each kind are listed."""
    failures: Mapping[str, str] = field(default_factory=dict[str, str])
    """Why lists beside that of the tools could not be read, by the name of the field."""


async def read_listing(connection: Connection) -> Listing:
    """Ask a server for all it offers; a list beside that of the tools may fail.

    Raises:
        UpstreamError: its tools cannot be listed: it fails, or its pages never end.
    """
    greeting = connection.greeting
    tools = await read_tools(connection)
    failures: dict[str, str] = {}
    others = {
        name: await _optional(connection, name, *how, failures) for name, how in _OTHERS.items()
    }
    return Listing(
        server=connection.spec.name,
        server_info=_info(greeting),
        capabilities=connection.capabilities,
        instructions=greeting.get("instructions"),
        era=connection.era,
        protocol_version=connection.version,
        tools=tools,
        resources=others["resources"],
        resource_templates=others["resource_templates"],
        prompts=others["prompts"],
        failures=failures,
    )


_OTHERS = {
    "resources": ("resources/list", "resources", "resources"),
    "resource_templates": ("resources/templates/list", "resourceTemplates", "resources"),
    "prompts": ("prompts/list", "prompts", "prompts"),
}
"""The lists beside that of the tools: method, key of the result, capability."""


async def read_tools(
    connection: Connection, front: Front = _PLAIN_READER
) -> tuple[JsonObject, ...]:
    """The tools of a server, as `front` is listed them."""
    params = tools_params(connection.capabilities)
    return await read_pages(connection, "tools/list", "tools", front, params)


def tools_params(capabilities: JsonObject) -> JsonObject:
    """Parameters of `tools/list`: another Pegboard lists its tools, not its meta-tools.

    The extension is advertised in `extensions` by modern servers, in `experimental` by legacy ones.
    """
    declared = (capabilities.get(key) for key in ("extensions", "experimental"))
    if any(isinstance(known, dict) and EXTENSION_ID in known for known in declared):
        return {"_meta": {LAZY_KEY: False, DETAILS_KEY: True}}
    return {}


async def read_pages(
    connection: Connection,
    method: str,
    key: str,
    front: Front = _PLAIN_READER,
    params: JsonObject | None = None,
) -> tuple[JsonObject, ...]:
    """All entries of a list, over as many pages as it has.

    Raises:
        UpstreamError: the server fails, or its pages never end.
    """
    entries: list[JsonObject] = []
    cursors: set[str] = set()
    asked = dict(params or {})
    size = 0
    while True:
        page = await connection.request(method, asked, front)
        found: Json = page.get(key)
        if isinstance(found, list):
            entries.extend(entry for entry in found if isinstance(entry, dict))
        if cursors or page.get("nextCursor"):  # one page alone is within the limit of a message
            size += len(compact(found))
            if size > connection.spec.max_message_bytes:
                raise _endless(connection, method, f"they have {size:,} bytes by now")
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
    connection: Connection,
    name: str,
    method: str,
    key: str,
    capability: str,
    failures: dict[str, str],
) -> tuple[JsonObject, ...]:
    """A list that a server may lack although it says otherwise, or fail to give."""
    if connection.capabilities.get(capability) is None:
        return ()
    try:
        return await read_pages(connection, method, key)
    except UpstreamError as exc:
        if exc.details.get("code") != METHOD_NOT_FOUND:
            failures[name] = f"{connection.spec.name}: {method} failed: {exc.message}"
        return ()


def _endless(connection: Connection, method: str, what: str) -> UpstreamError:
    name = connection.spec.name
    return UpstreamError(f"{name}: the pages of {method} never end: {what}.", server=name)


def _info(greeting: JsonObject) -> JsonObject:
    """A server's name and version: in the handshake (legacy) or in `_meta` (modern)."""
    meta = cast(JsonObject, greeting.get("_meta") or {})
    return greeting.get("serverInfo") or meta.get("io.modelcontextprotocol/serverInfo") or {}
