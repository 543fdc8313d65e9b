"""What the two eras of the protocol spell differently, as pure functions over raw messages.

A request that is relayed keeps everything its sender put in, except the envelope: the keys of
`_meta` that speak about the connection it came by. Those are written anew for the connection it
leaves by.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    LOG_LEVEL_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    SERVER_INFO_META_KEY,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pegboard.core.calls import Era
from pegboard.core.json import Json, JsonObject

INPUT_REQUIRED: Final = "input_required"
CLIENT_REQUESTS: Final = frozenset({"elicitation/create", "sampling/createMessage", "roots/list"})
"""What a server may ask a client, as a request (legacy) or inside a result (modern)."""

LOG_LEVELS: Final = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)

_ENVELOPE = frozenset(
    {PROTOCOL_VERSION_META_KEY, CLIENT_INFO_META_KEY, CLIENT_CAPABILITIES_META_KEY, "progressToken"}
)
_ASKABLE = ("elicitation", "sampling", "roots")


def era_for_version(version: str) -> Era:
    """The era that a protocol version belongs to."""
    return "modern" if version in MODERN_PROTOCOL_VERSIONS else "legacy"


def get_meta(params: Mapping[str, Json] | None) -> JsonObject:
    """The `_meta` of a message; empty when it has none."""
    meta = (params or {}).get("_meta")
    return meta if isinstance(meta, dict) else {}


def to_legacy_params(params: JsonObject, token: str | None) -> JsonObject:
    """A request's params for a legacy server: no envelope, no answers to questions in results."""
    meta = {k: v for k, v in get_meta(params).items() if k not in _ENVELOPE}
    meta.pop(LOG_LEVEL_META_KEY, None)
    if token is not None:
        meta["progressToken"] = token
    kept = {k: v for k, v in params.items() if k not in ("_meta", "inputResponses", "requestState")}
    return {**kept, "_meta": meta} if meta else kept


def to_modern_params(
    params: JsonObject, token: str | None, envelope: Mapping[str, Json]
) -> JsonObject:
    """A request's params for a modern server, with the envelope of our own connection to it."""
    meta = {k: v for k, v in get_meta(params).items() if k not in _ENVELOPE}
    meta.update(envelope)
    if token is not None:
        meta["progressToken"] = token
    return {**params, "_meta": meta}


def build_envelope(
    version: str, client: JsonObject, capabilities: JsonObject, log_level: str | None
) -> JsonObject:
    """What a modern request says about its sender."""
    keys: JsonObject = {
        PROTOCOL_VERSION_META_KEY: version,
        CLIENT_INFO_META_KEY: client,
        CLIENT_CAPABILITIES_META_KEY: capabilities,
    }
    if log_level is not None:
        keys[LOG_LEVEL_META_KEY] = log_level
    return keys


def translate_result(era: Era, result: JsonObject) -> JsonObject:
    """A server's result as a front of this era expects it.

    A modern client reads in it which server answered; a legacy one has no such key, and nobody gets
    one that is malformed.
    """
    meta = result.get("_meta")
    info = meta.get(SERVER_INFO_META_KEY) if isinstance(meta, dict) else None
    if (
        isinstance(meta, dict)
        and info is not None
        and (era == "legacy" or not _is_server_info(info))
    ):
        rest = {k: v for k, v in meta.items() if k != SERVER_INFO_META_KEY}
        result = {k: v for k, v in result.items() if k != "_meta"}
        if rest:
            result["_meta"] = rest
    if era == "modern":
        return result if "resultType" in result else {**result, "resultType": "complete"}
    if result.get("resultType") == "complete":
        return {k: v for k, v in result.items() if k != "resultType"}
    return result


def _is_server_info(info: Json) -> bool:
    return isinstance(info, dict) and all(isinstance(info.get(k), str) for k in ("name", "version"))


def to_modern_capabilities(declared: Mapping[str, Json], *, can_be_asked: bool) -> JsonObject:
    """What a front can do, said to a modern server; only what it can be reached for."""
    return {k: v for k, v in declared.items() if can_be_asked or k not in _ASKABLE}


def to_legacy_capabilities(declared: Mapping[str, Json], front: Era) -> JsonObject:
    """What a front can do, said to a legacy server."""
    if front == "legacy":
        return dict(declared)
    kept: JsonObject = {k: declared[k] for k in (*_ASKABLE, "experimental") if k in declared}
    roots = kept.get("roots")
    if isinstance(roots, dict):
        # A modern client cannot announce that its roots changed.
        kept["roots"] = {k: v for k, v in roots.items() if k != "listChanged"}
    return kept


def list_client_requests(capabilities: Mapping[str, Json]) -> tuple[str, ...]:
    """The kinds of questions that these capabilities invite, as a comparable value."""
    kinds = [k for k in _ASKABLE if capabilities.get(k) is not None]
    elicitation = capabilities.get("elicitation")
    modes = sorted(elicitation) if isinstance(elicitation, dict) else []
    return (*kinds, *modes)


def to_legacy_request(question: JsonObject, number: str) -> JsonObject:
    """The params of a question from inside a modern result, for a legacy client."""
    params: JsonObject = dict(question.get("params") or {})
    if params.get("mode") == "url":
        params.setdefault("elicitationId", number)
    return params


def to_input_request(method: str, params: Mapping[str, Json] | None) -> JsonObject:
    """A legacy server's request as a question inside a modern result."""
    kept = {k: v for k, v in (params or {}).items() if k not in ("elicitationId", "task")}
    meta = {k: v for k, v in get_meta(kept).items() if k != "progressToken"}
    kept.pop("_meta", None)
    if meta:
        kept["_meta"] = meta
    return {"method": method, "params": kept} if kept else {"method": method}


def is_level_enabled(threshold: str | None, level: Json) -> bool:
    """Whether a log message of this level was asked for."""
    if threshold not in LOG_LEVELS:
        return False
    return level not in LOG_LEVELS or LOG_LEVELS.index(level) >= LOG_LEVELS.index(threshold)
