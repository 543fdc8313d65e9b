"""What a call's ending says about the backend: it answered, it failed, or it was never asked.

| ending | verdict |
|---|---|
| a result, also one of `input_required` or a task | answered |
| `UpstreamUnavailable` of a process that serves this caller alone | untold: others have their own |
| any other `UpstreamUnavailable`; a bare `ConnectionError` | the upstream is away |
| `UpstreamTimeout`, any other `UpstreamError`; a bare `TimeoutError` | the tool failed |
| `UpstreamError` that relays a JSON-RPC error about the request (-32600 to -32602) | answered |
| `isError` or `ToolError` that says that the backend is unavailable | the tool failed |
| any other `isError` or `ToolError`: bad input, not found, no permission | answered |
| cancellation, `Busy`, any other error | untold: the backend was not asked, or did not say |

Whether a text says so is decided narrowly: a mistaken "unavailable" takes a good tool away from
everybody. Only the beginning of the first text is read, only for phrases of the transport, and not
at all when the caller chose where to connect: a fetch of a dead page is no outage of the fetcher.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum

from pegboard.core.calls import Call, CallResult
from pegboard.core.json import Json
from pegboard.errors import ToolError, UpstreamError, UpstreamUnavailable


class Verdict(Enum):
    """What one call says about what stands behind it."""

    ANSWERED = "answered"
    TOOL_FAILED = "tool failed"
    UPSTREAM_AWAY = "upstream away"
    UNTOLD = "untold"


def verdict(call: Call, ended: CallResult | BaseException) -> Verdict:
    """The verdict on one ending of one call."""
    match ended:
        case CallResult():
            down = ended.is_error and _says_unavailable(call, _first_text(ended), ended.structured)
            return Verdict.TOOL_FAILED if down else Verdict.ANSWERED
        case ToolError():
            down = _says_unavailable(call, ended.message, None)
            return Verdict.TOOL_FAILED if down else Verdict.ANSWERED
        case UpstreamUnavailable(only_caller=True):
            return Verdict.UNTOLD
        case UpstreamUnavailable() | ConnectionError():
            return Verdict.UPSTREAM_AWAY
        case UpstreamError() if ended.details.get("code") in _ABOUT_THE_REQUEST:
            return Verdict.ANSWERED
        case UpstreamError() | TimeoutError():
            return Verdict.TOOL_FAILED
        case _:
            return Verdict.UNTOLD


_ABOUT_THE_REQUEST = (-32600, -32601, -32602)

_READ = 300
"""Characters of a message that are looked at: an outage is said first, quoted logs come later."""

_KINDS = frozenset(
    {"unavailable", "service_unavailable", "bad_gateway", "gateway_timeout", "circuit_open"}
)
_STATUSES = frozenset({502, 503, 504})

_PHRASES = re.compile(
    r"""
      \b(ECONNREFUSED|ECONNRESET|ECONNABORTED|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|EAI_AGAIN)\b
    | \bconnection\ (was\ )?(refused|reset|aborted|timed\ out)\b
    | \b(could\ not|cannot|can't|failed\ to|unable\ to)\ connect\ to\b
    | \bno\ route\ to\ host\b | \bnetwork\ is\ unreachable\b
    | \btemporary\ failure\ in\ name\ resolution\b
    | \b(service|server|backend|database|upstream)\ (is\ )?(currently\ |temporarily\ )*
      (unavailable|unreachable|offline|down)\b
    | \b(http|status|status\ code|error)[:\ ]+50[234]\b
    | \b50[234]:?\ (bad\ gateway|service\ (temporarily\ )?unavailable|gateway\ time-?out)\b
    | \bbad\ gateway\b | \bgateway\ time-?out\b
    """,
    re.IGNORECASE | re.VERBOSE,
)

_PLACES = re.compile(r"(^|_)(url|uri|host|hostname|endpoint|address|domain|ip|server)s?$", re.I)


def _says_unavailable(call: Call, text: str, structured: Json) -> bool:
    if _names_a_place(call.arguments):
        return False
    return _coded_unavailable(structured) or _PHRASES.search(text[:_READ]) is not None


def _coded_unavailable(structured: Json) -> bool:
    """`{"error": {"kind": "unavailable"}}`, `{"status": 503}` and their like."""
    match structured:
        case {"error": {"kind": str(kind)} | {"code": str(kind)}}:
            return kind.lower() in _KINDS
        case {"error": {"status": int(status)}} | {"status": int(status)}:
            return status in _STATUSES
        case _:
            return False


def _names_a_place(arguments: Json) -> bool:
    """Whether the caller said where to connect: a failure to do so is about that place."""
    if not isinstance(arguments, Mapping):
        return False
    return any(
        _PLACES.search(str(name)) is not None or (isinstance(value, str) and "://" in value)
        for name, value in arguments.items()
    )


def _first_text(result: CallResult) -> str:
    return next((b["text"] for b in result.content if isinstance(b.get("text"), str)), "")
