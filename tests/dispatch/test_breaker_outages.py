from __future__ import annotations

from typing import Any

import anyio
import pytest
from tests.dispatch.fakes import make_call

from pegboard.core.calls import CallResult
from pegboard.dispatch.outages import Verdict, verdict
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
        (CallResult.text("fine"), Verdict.ANSWERED),
        (CallResult({"resultType": "input_required", "inputRequests": {}}), Verdict.ANSWERED),
        (UpstreamUnavailable("x"), Verdict.UPSTREAM_AWAY),
        (ConnectionResetError("x"), Verdict.UPSTREAM_AWAY),
        (UpstreamTimeout("x"), Verdict.TOOL_FAILED),
        (TimeoutError(), Verdict.TOOL_FAILED),
        (UpstreamError("internal", code=-32603), Verdict.TOOL_FAILED),
        (UpstreamError("no such tool", code=-32601), Verdict.ANSWERED),
        (ToolError("no such issue"), Verdict.ANSWERED),
        (ToolError("connection refused"), Verdict.TOOL_FAILED),
        (InvalidArguments("x"), Verdict.UNTOLD),
        (NotPermitted("x"), Verdict.UNTOLD),
        (Busy("x"), Verdict.UNTOLD),
        (CircuitOpen("x"), Verdict.UNTOLD),
        (RuntimeError("a bug"), Verdict.UNTOLD),
        (KeyboardInterrupt(), Verdict.UNTOLD),
    ],
    ids=repr,
)
def test_every_ending_has_its_verdict(ended: CallResult | BaseException, expected: Verdict) -> None:
    assert verdict(make_call(), ended) is expected


@pytest.mark.anyio
async def test_cancellation_says_nothing() -> None:
    assert verdict(make_call(), anyio.get_cancelled_exc_class()()) is Verdict.UNTOLD


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
    assert verdict(make_call(), result) is Verdict.TOOL_FAILED
    assert verdict(make_call(), CallResult.text(text)) is Verdict.ANSWERED, "only with isError"


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
    assert verdict(make_call(), CallResult.text(text, is_error=True)) is Verdict.ANSWERED


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
    assert (verdict(make_call(), result) is Verdict.TOOL_FAILED) is counts


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
    assert verdict(call, result) is Verdict.ANSWERED
