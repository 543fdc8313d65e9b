"""The fifth earlier system: four meta-tools, from categories to a dispatched call, and a breaker.

Theirs: `HierarchicalToolManager.dispatch`, `dispatch_parallel`, `_schema_cache`, `CircuitBreaker`.
"""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from mcp import Client
from tests.acceptance.support import LIST, as_read, call, in_both_eras, play, play_on_stdio
from tests.acceptance.support import tracker_board as tracker
from tests.conformance.clients import Era, Scenario, Transcript

from pegboard import Call, Pegboard, UpstreamUnavailable
from pegboard.server.serving import build_server
from pegboard.tokens import count_tokens

FOUR = ["tools_list_categories", "tools_list_tools", "tools_get_schema", "tools_dispatch"]
READ = {"readOnlyHint": True}
STEPS: Scenario = {
    "list": LIST,
    "categories": call("tools_list_categories"),
    "tools": call("tools_list_tools", category="projects"),
    "schema": call("tools_get_schema", category="projects", tool="get_project"),
    "dispatch": call("tools_dispatch", category="projects", tool="list_projects", params={}),
    "fields": call("tools_dispatch", tool="list_projects", params={}, include_fields=["key"]),
    "parallel": call(
        "tools_dispatch",
        calls=[
            {"category": "projects", "tool": "list_projects", "params": {}},
            {"category": "projects", "tool": "list_project", "params": {}},
            {"category": "issues", "tool": "get_issue", "params": {}},
            {"category": "workspace", "tool": "list_members", "params": {}},
        ],
    ),
    "dispatch_parallel": call(
        "tools_dispatch_parallel",
        calls=[{"tool": "list_members"}, {"tool": "list_projects"}],
    ),
    "unknown category": call("tools_list_tools", category="project"),
    "unknown tool": call("tools_dispatch", category="projects", tool="list_project", params={}),
    "wrong": call("tools_dispatch", category="issues", tool="create_issue", params={"title": 1}),
}


@pytest.fixture(scope="module", params=["legacy", "modern", "stdio"])
def told(request: pytest.FixtureRequest) -> Transcript:
    if request.param == "stdio":
        return play_on_stdio("examples.tracker", "legacy", STEPS, mode="hierarchy")
    return play(tracker(), request.param, STEPS, mode="hierarchy")


def test_four_schemas_stand_in_front_of_any_catalog(told: Transcript) -> None:
    listed = told["list"].ok["tools"]
    assert [tool["name"] for tool in listed[:4]] == FOUR
    assert as_read(listed[:4]) <= 400


def test_the_way_leads_from_categories_to_a_schema(told: Transcript) -> None:
    categories = {c["name"]: c["tool_count"] for c in told["categories"].json["categories"]}
    tools = told["tools"].json["tools"]
    assert categories["projects"] == len(tools)
    assert "get_project" in [tool["name"] for tool in tools]
    schema = told["schema"].json["schema"]
    assert schema["category"] == "projects"
    assert schema["inputSchema"]["required"]
    assert schema["outputSchema"]["properties"]


def test_a_dispatched_call_gives_the_tools_own_result(told: Transcript) -> None:
    assert "WEB" in told["dispatch"].text
    assert count_tokens(told["fields"].text) < 0.5 * count_tokens(told["dispatch"].text)


def test_outcomes_come_in_the_order_of_the_calls_each_with_its_own_error(told: Transcript) -> None:
    results = told["parallel"].json["results"]
    names = ["list_projects", "list_project", "get_issue", "list_members"]
    assert [r["name"] for r in results] == names
    assert [r["ok"] for r in results] == [True, False, False, True]
    assert results[1]["error"]["kind"] == "unknown_tool"
    assert results[2]["error"]["kind"] == "invalid_arguments"
    assert all(r["duration_ms"] >= 0 for r in results)
    assert [r["name"] for r in told["dispatch_parallel"].json["results"]] == [
        "list_members",
        "list_projects",
    ]


def test_a_wrong_turn_is_answered_with_what_would_be_right(told: Transcript) -> None:
    assert told["unknown category"].mendable["nearest"][0] == "projects"
    assert told["unknown tool"].mendable["nearest"][0] == "list_projects"
    error = told["wrong"].mendable
    assert "title" in error["message"]
    assert error["signature"].startswith("create_issue(")


def test_sixteen_slow_calls_take_little_more_than_one() -> None:
    board = Pegboard("slow", mode="hierarchy", max_parallel=16)
    running: list[int] = []
    most = 0

    @board.tool(annotations=READ)
    async def wait(number: int) -> int:
        """Wait until all sixteen are under way."""
        nonlocal most
        running.append(number)
        most = max(most, len(running))
        with anyio.fail_after(5):
            await together.wait() if len(running) < 16 else together.set()
        return number

    together = anyio.Event()
    calls = [{"tool": "wait", "params": {"number": n}} for n in range(16)]
    told = play(board, "modern", {"all": call("tools_dispatch", calls=calls)})
    assert [r["result"] for r in told["all"].json["results"]] == [{"result": n} for n in range(16)]
    assert most == 16


@pytest.mark.anyio
async def test_the_same_in_process_keeps_the_order() -> None:
    board = tracker()
    calls = [Call(name) for name in ("list_members", "list_projects") * 3]
    outcomes = await board.call_many(calls, max_concurrency=3)
    assert [o.name for o in outcomes] == ["list_members", "list_projects"] * 3
    assert all(o.ok for o in outcomes)


class Backend:
    """Something that is away until it comes back."""

    def __init__(self, **options: Any) -> None:
        self.away = True
        self.asked = 0
        self.board = Pegboard("shaky", mode="hierarchy", **options)
        self.board.tool("fetch", related=["cached"])(self.fetch)
        self.board.tool("cached", annotations=READ)(self.cached)

    def fetch(self) -> str:
        """Fetch from the backend."""
        self.asked += 1
        if self.away:
            raise UpstreamUnavailable("The backend cannot be reached.")
        return "fresh"

    def cached(self) -> str:
        """Fetch what is there."""
        return "stale"


FETCH = call("tools_dispatch", tool="fetch", params={})


@in_both_eras
def test_after_five_failures_the_breaker_answers_at_once_with_what_works(era: Era) -> None:
    backend = Backend()
    told = play(backend.board, era, {str(n): FETCH for n in range(7)} | {"direct": call("fetch")})
    assert [told[str(n)].mendable["kind"] for n in range(7)] == ["unavailable"] * 5 + [
        "circuit_open"
    ] * 2
    error = told["direct"].mendable
    assert backend.asked == 5
    assert error["kind"] == "circuit_open"
    assert 0 < error["retry_after"] <= 60
    assert error["related"] == ["cached"]
    assert "since" in error


@in_both_eras
def test_wrong_input_opens_no_breaker(era: Era) -> None:
    backend = Backend()
    backend.away = False
    wrong = call("tools_dispatch", tool="fetch", params={"what": 1})
    told = play(backend.board, era, {str(n): wrong for n in range(8)} | {"right": FETCH})
    assert {told[str(n)].mendable["kind"] for n in range(8)} == {"invalid_arguments"}
    assert told["right"].ok["structuredContent"] == {"result": "fresh"}


@pytest.mark.anyio
async def test_a_breaker_recovers_by_itself_when_the_backend_is_back() -> None:
    backend = Backend(breaker_failures=2, breaker_cooldown=0.02)
    async with Client(build_server(backend.board, environ={})) as client:
        for _ in range(2):
            assert (await client.call_tool("fetch", {})).is_error
        backend.away = False
        with anyio.fail_after(5):
            while (result := await client.call_tool("fetch", {})).is_error:
                assert result.structured_content
                assert result.structured_content["error"]["kind"] == "circuit_open"
        assert result.structured_content == {"result": "fresh"}
        assert not (await client.call_tool("fetch", {})).is_error
