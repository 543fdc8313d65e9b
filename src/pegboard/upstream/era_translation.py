"""Translates raw messages between the two eras of the protocol, with pure functions.

| | legacy (up to 2025-11-25) | modern (2026-07-28) |
|---|---|---|
| who the client is and what it can do | once, in the handshake | in `_meta` of every request |
| input that a server wants from a client | a request of its own | `inputRequests` of a result |
| the answers to that | the response to the request | `inputResponses`, in the call made again |
| log level | `logging/setLevel` | in `_meta` of a request |
| kind of a result | known by its request | `resultType` |

A relayed request keeps everything except its envelope: the keys of `_meta` that describe the
connection to the client. They are rewritten for the connection to the server.
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
from pegboard.core.sanitization import sanitize_prose
from pegboard.errors import UpstreamError

INPUT_REQUIRED: Final = "input_required"
MAX_INPUT_REQUESTS: Final = 10
"""What a server may ask a client for at a time."""
INPUT_METHODS: Final = frozenset({"elicitation/create", "sampling/createMessage", "roots/list"})
"""The input that a server may want from a client."""
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
_INPUT_CAPABILITIES = ("elicitation", "sampling", "roots")


def era_for_version(version: str) -> Era:
    """The era that a protocol version belongs to."""
    return "modern" if version in MODERN_PROTOCOL_VERSIONS else "legacy"


def get_meta(params: Mapping[str, Json] | None) -> JsonObject:
    """The `_meta` of a message; empty when it has none."""
    meta = (params or {}).get("_meta")
    return meta if isinstance(meta, dict) else {}


# Requests.


def to_legacy_params(params: JsonObject, token: str | None) -> JsonObject:
    """A request's params for a legacy server: no envelope, and no answers to input requests."""
    meta = {k: v for k, v in get_meta(params).items() if k not in _ENVELOPE}
    meta.pop(LOG_LEVEL_META_KEY, None)
    if token is not None:
        meta["progressToken"] = token
    rest = {k: v for k, v in params.items() if k not in ("_meta", "inputResponses", "requestState")}
    return {**rest, "_meta": meta} if meta else rest


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
    """The part of a modern request that describes its sender."""
    keys: JsonObject = {
        PROTOCOL_VERSION_META_KEY: version,
        CLIENT_INFO_META_KEY: client,
        CLIENT_CAPABILITIES_META_KEY: capabilities,
    }
    if log_level is not None:
        keys[LOG_LEVEL_META_KEY] = log_level
    return keys


# Results.


def translate_result(era: Era, result: JsonObject) -> JsonObject:
    """A server's result as a client of this era expects it.

    For a modern client, it names the server that answered. A legacy client gets no such key, and no
    client gets a malformed one.
    """
    meta = result.get("_meta")
    info = meta.get(SERVER_INFO_META_KEY) if isinstance(meta, dict) else None
    if isinstance(meta, dict) and info is not None:
        is_valid = isinstance(info, dict) and all(
            isinstance(info.get(key), str) for key in ("name", "version")
        )
        if era == "legacy" or not is_valid:
            rest = {k: v for k, v in meta.items() if k != SERVER_INFO_META_KEY}
            result = {k: v for k, v in result.items() if k != "_meta"}
            if rest:
                result["_meta"] = rest
    if era == "modern":
        return result if "resultType" in result else {**result, "resultType": "complete"}
    if result.get("resultType") == "complete":
        return {k: v for k, v in result.items() if k != "resultType"}
    return result


# Capabilities.


def to_modern_capabilities(declared: Mapping[str, Json], *, can_give_input: bool) -> JsonObject:
    """What a client can do, for a modern server; input only where the client can be reached."""
    return {k: v for k, v in declared.items() if can_give_input or k not in _INPUT_CAPABILITIES}


def to_legacy_capabilities(declared: Mapping[str, Json], client_era: Era) -> JsonObject:
    """What a client can do, for a legacy server."""
    if client_era == "legacy":
        return dict(declared)
    known = (*_INPUT_CAPABILITIES, "experimental")
    capabilities: JsonObject = {k: declared[k] for k in known if k in declared}
    roots = capabilities.get("roots")
    if isinstance(roots, dict):
        # A modern client cannot announce that its roots changed.
        capabilities["roots"] = {k: v for k, v in roots.items() if k != "listChanged"}
    return capabilities


def list_input_kinds(capabilities: Mapping[str, Json]) -> tuple[str, ...]:
    """The kinds of input that a client with these capabilities can give, as a comparable value."""
    kinds = [k for k in _INPUT_CAPABILITIES if capabilities.get(k) is not None]
    elicitation = capabilities.get("elicitation")
    modes = sorted(elicitation) if isinstance(elicitation, dict) else []
    return (*kinds, *modes)


# Input that a server wants from a client.


def attribute_elicitation(server: str, params: Mapping[str, Json] | None) -> JsonObject:
    """A server's question to a person, without hidden text and with the name of the server.

    A client shows the questions of all servers as those of the gateway. Without the name, any of
    them could ask for a password in the name of another.
    """
    shown: JsonObject = sanitize_prose(dict(params or {}))
    return {**shown, "message": f"{server} asks: {shown.get('message', '')}"}


def attribute_input_requests(server: str, result: JsonObject) -> JsonObject:
    """A modern server's `input_required` result, with its name in each question to a person.

    Raises:
        UpstreamError: The questions are malformed or too many.
    """
    requests = result.get("inputRequests")
    if requests is None:
        return result
    # A server could otherwise send the client any request, and any number of them.
    if (
        not isinstance(requests, dict)
        or len(requests) > MAX_INPUT_REQUESTS
        or not all(isinstance(entry, dict) for entry in requests.values())
        or not {str(entry.get("method")) for entry in requests.values()} <= INPUT_METHODS
    ):
        raise UpstreamError(
            f"{server} asked the user for something that cannot be answered.", server=server
        )
    shown: JsonObject = {}
    for key, request in requests.items():
        shown[key] = request
        if request.get("method") == "elicitation/create":
            params = request.get("params")
            if isinstance(params, dict):
                shown[key] = {**request, "params": attribute_elicitation(server, params)}
    return {**result, "inputRequests": shown}


def to_legacy_request(input_request: JsonObject, key: str) -> JsonObject:
    """The params of a request to a legacy client, for an input request in a modern result."""
    params: JsonObject = dict(input_request.get("params") or {})
    if params.get("mode") == "url":
        # Required in 2025-11-25, where a notification refers to it later; gone in 2026-07-28.
        params.setdefault("elicitationId", key)
    return params


def to_input_request(method: str, params: Mapping[str, Json] | None) -> JsonObject:
    """A legacy server's request as an entry of `inputRequests` in a modern result."""
    rest = {k: v for k, v in (params or {}).items() if k not in ("elicitationId", "task")}
    # A result has no progress of its own to report.
    meta = {k: v for k, v in get_meta(rest).items() if k != "progressToken"}
    rest.pop("_meta", None)
    if meta:
        rest["_meta"] = meta
    return {"method": method, "params": rest} if rest else {"method": method}


def is_level_enabled(threshold: str | None, level: Json) -> bool:
    """Whether a client with this log level wants messages of another."""
    if threshold not in LOG_LEVELS:
        return False
    # A level that we do not know may be an important one: it is passed on.
    return level not in LOG_LEVELS or LOG_LEVELS.index(level) >= LOG_LEVELS.index(threshold)
