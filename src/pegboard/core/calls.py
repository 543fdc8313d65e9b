"""A call and its result, as values that every layer, mode and source shares.

Call         a tool's name and arguments, as a Python caller writes them: `pegboard.Call`
|          the name is resolved for this caller
v
ToolCall     one call of one `Tool`, on its way through the layers to its source
|
v
CallResult   the result as it travels, the object of the wire
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pegboard.core.json import Json, JsonObject, compact
from pegboard.core.tools import Tool

Era: TypeAlias = Literal["legacy", "modern"]
"""`modern` is MCP 2026-07-28 and later: no handshake, no session. Everything older is `legacy`."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes a request: everything about them that modes, permissions and logs may use."""

    principal: str = "local"
    era: Era = "modern"
    session: str | None = None
    client: str | None = None
    client_version: str | None = None
    mode: str | None = None
    scopes: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    profile: str | None = None
    """The part of the catalog that they chose to see; `None` is the configured one."""
    anonymous: bool = False
    """Whether several people may share this principal, because nobody had to sign in."""
    token: str | None = field(default=None, repr=False)
    """The access token of the request, if a server exchanges it for one of its own."""

    @property
    def is_local_user(self) -> bool:
        """Whether this is the one user of a gateway on their own machine."""
        # Over HTTP without sign-in every principal is `local`, and may be another user's.
        return self.principal == LOCAL_CALLER.principal and not self.anonymous


LOCAL_CALLER = Caller()


@dataclass(frozen=True, slots=True)
class ResultShape:
    """How the result should come back: which fields, how many tokens, in which form."""

    include_fields: tuple[str, ...] = ()
    select: str | None = None
    raw: bool = False
    max_tokens: int | None = None


WHOLE_RESULT = ResultShape()


@dataclass(frozen=True, slots=True)
class Call:
    """One call as a Python caller writes it, before the name is resolved to a tool."""

    name: str
    arguments: Mapping[str, Json] = field(default_factory=dict[str, Json])
    include_fields: Sequence[str] = ()
    select: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of one tool on its way through the layers.

    `via` is the meta-tool that the call came through, if any, and `parent` the run of the program
    that made it. `params` are further parameters of the request (`_meta`, `inputResponses`,
    `requestState`, `task`), passed on unchanged. `request` is the transport's context, opaque to
    all but sources.
    """

    tool: Tool
    arguments: JsonObject
    id: str = ""
    shape: ResultShape = WHOLE_RESULT
    caller: Caller = LOCAL_CALLER
    via: str | None = None
    params: Mapping[str, Json] = field(default_factory=dict[str, Json])
    request: object | None = None
    parent: str | None = None


class CallResult:
    """A `tools/call` result as it travels: the wire object, with its parts by name.

    It is never taken apart and rebuilt, so everything that we do not know about survives: `_meta`,
    content kinds of later protocol versions, `input_required` and task results.
    """

    __slots__ = ("wire",)

    def __init__(self, wire: JsonObject) -> None:
        self.wire = wire

    @classmethod
    def text(cls, text: str, *, structured: Json = None, is_error: bool = False) -> CallResult:
        """A result of one text block."""
        wire: JsonObject = {"content": [{"type": "text", "text": text}]}
        if structured is not None:
            wire["structuredContent"] = structured
        if is_error:
            wire["isError"] = True
        return cls(wire)

    @classmethod
    def json(cls, value: Json, *, structured: bool = True) -> CallResult:
        """A JSON value as compact text and, by default, as structured content."""
        return cls.text(compact(value), structured=value if structured else None)

    @property
    def content(self) -> list[JsonObject]:
        return self.wire.get("content") or []

    @property
    def structured(self) -> Json:
        return self.wire.get("structuredContent")

    @property
    def is_error(self) -> bool:
        return bool(self.wire.get("isError"))

    @property
    def is_complete(self) -> bool:
        """False for `input_required` and task results, which no layer may touch."""
        # Legacy servers send no `resultType`, and the first result of a task has no content.
        return self.wire.get("resultType", "complete") == "complete" and "content" in self.wire

    @property
    def meta(self) -> JsonObject:
        return self.wire.get("_meta") or {}

    @property
    def output(self) -> Json:
        """The value for a Python caller: structured content if any, else the text."""
        if self.structured is not None:
            return self.structured
        return "\n".join(b["text"] for b in self.content if b.get("type") == "text")

    def __repr__(self) -> str:
        return f"CallResult({compact(self.wire)[:200]})"  # a result may have megabytes


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one call of a fan-out: a result, or an error of its own."""

    name: str
    ok: bool
    result: CallResult | None = None
    error: JsonObject | None = None
    duration_ms: float = 0.0


_BLOCK_FIELDS: dict[Json, tuple[tuple[str, type], ...]] = {
    "text": (("text", str),),
    "image": (("data", str), ("mimeType", str)),
    "audio": (("data", str), ("mimeType", str)),
    "resource": (("resource", dict),),
    "resource_link": (("uri", str),),
}
"""What each known kind of content must have. Kinds of later protocol versions are not checked."""


def find_malformed_part(wire: JsonObject) -> str | None:
    """What is wrong with a server's `tools/call` result, if the layers could not work with it."""
    content: Json = wire.get("content", [])
    if not isinstance(content, list):
        return "`content` is not a list"
    for block in content:
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            return "`content` has a block without a `type`"
        for key, kind in _BLOCK_FIELDS.get(block["type"], ()):
            if not isinstance(block.get(key), kind):
                return f"`content` has a block of type `{block['type']}` without a valid `{key}`"
    return None if isinstance(wire.get("_meta", {}), dict) else "`_meta` is not an object"
