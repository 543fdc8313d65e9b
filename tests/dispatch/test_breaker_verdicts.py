from __future__ import annotations

from typing import Any

import anyio
import pytest
from tests.dispatch.fakes import make_call

from pegboard.core.calls import CallResult
from pegboard.dispatch.breaker import BackendVerdict, classify_outcome
from pegboard.errors import (
    Busy,
    CircuitOpen,
    InvalidArguments,
    NotPermitted,
    ToolError,
    UpstreamError,
    UpstreamTimeout,
    UpstreamUnavailable,
)


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        (CallResult.text("fine"), BackendVerdict.ANSWERED),
        (
            CallResult({"resultType": "input_required", "inputRequests": {}}),
            BackendVerdict.ANSWERED,
        ),
        (UpstreamUnavailable("x"), BackendVerdict.UPSTREAM_UNAVAILABLE),
        (ConnectionResetError("x"), BackendVerdict.UPSTREAM_UNAVAILABLE),
        (UpstreamTimeout("x"), BackendVerdict.TOOL_FAILED),
        (TimeoutError(), BackendVerdict.TOOL_FAILED),
        (UpstreamError("internal", code=-32603), BackendVerdict.TOOL_FAILED),
        (UpstreamError("no such tool", code=-32601), BackendVerdict.ANSWERED),
        (ToolError("no such issue"), BackendVerdict.ANSWERED),
        (ToolError("connection refused"), BackendVerdict.TOOL_FAILED),
        (InvalidArguments("x"), BackendVerdict.UNKNOWN),
        (NotPermitted("x"), BackendVerdict.UNKNOWN),
        (Busy("x"), BackendVerdict.UNKNOWN),
        (CircuitOpen("x"), BackendVerdict.UNKNOWN),
        (RuntimeError("a bug"), BackendVerdict.UNKNOWN),
        (KeyboardInterrupt(), BackendVerdict.UNKNOWN),
    ],
    ids=repr,
)
def test_every_ending_has_its_verdict(
    ended: CallResult | BaseException, expected: BackendVerdict
) -> None:
    assert classify_outcome(make_call(), ended) is expected


@pytest.mark.anyio
async def test_cancellation_says_nothing() -> None:
    assert (
        classify_outcome(make_call(), anyio.get_cancelled_exc_class()()) is BackendVerdict.UNKNOWN
    )


@pytest.mark.parametrize(
    "text",
    [
        "connect ECONNREFUSED 127.0.0.1:5432",
        "Error: read ECONNRESET",
        "psycopg.OperationalError: connection refused",
        "Could not connect to the database",
        "Failed to connect to Redis",
        "[Errno 113] No route to host",
        "HTTP 503",
        "Request failed with status code 502",
        "503 Service Unavailable",
        "upstream is down",
        "The service is temporarily unavailable, try later",
        "504 Gateway Time-out",
        "Temporary failure in name resolution",
    ],
)
def test_errors_of_the_way_to_the_backend_count(text: str) -> None:
    result = CallResult.text(text, is_error=True)
    assert classify_outcome(make_call(), result) is BackendVerdict.TOOL_FAILED
    assert classify_outcome(make_call(), CallResult.text(text)) is BackendVerdict.ANSWERED, (
        "only with isError"
    )


@pytest.mark.parametrize(
    "text",
    [
        "Issue 503 not found",
        "Invalid argument: port must be below 65536",
        "No results for 'connection pooling'",
        "Permission denied",
        "Rate limit exceeded: 429",
        "Room 502 is not available",
        "The item is unavailable in your country",
        "File 'server-down.md' does not exist",
        "",
        "Traceback: " + "x" * 300 + " connection refused",
    ],
)
def test_ordinary_errors_do_not(text: str) -> None:
    assert (
        classify_outcome(make_call(), CallResult.text(text, is_error=True))
        is BackendVerdict.ANSWERED
    )


@pytest.mark.parametrize(
    ("structured", "counts"),
    [
        ({"error": {"kind": "unavailable"}}, True),
        ({"error": {"code": "SERVICE_UNAVAILABLE"}}, True),
        ({"error": {"status": 503}}, True),
        ({"status": 502}, True),
        ({"status": 404}, False),
        ({"error": {"kind": "invalid_arguments"}}, False),
        ({"error": "unavailable"}, False),
        ([503], False),
    ],
    ids=repr,
)
def test_structured_errors_are_read_by_their_codes(structured: Any, counts: bool) -> None:
    result = CallResult.text("failed", structured=structured, is_error=True)
    assert (classify_outcome(make_call(), result) is BackendVerdict.TOOL_FAILED) is counts


@pytest.mark.parametrize(
    "arguments",
    [{"url": "x"}, {"base_url": "x"}, {"hosts": ["a"]}, {"target": "https://example.org"}],
    ids=repr,
)
def test_where_the_caller_chose_the_place_a_dead_place_is_no_outage(
    arguments: dict[str, Any],
) -> None:
    call = make_call("fetch", arguments=arguments)
    result = CallResult.text("connect ECONNREFUSED", is_error=True)
    assert classify_outcome(call, result) is BackendVerdict.ANSWERED
