"""Calls that wait for a modern client to come back with answers for a legacy server."""

from __future__ import annotations

from typing import Any

import anyio
import mcp_types as t
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from tests.upstream.support import everything_behind, gateway, said, script
from tests.upstream.test_eras import answer_form, list_roots

from pegboard.upstream import inbound_router, suspended_calls

pytestmark = pytest.mark.anyio


async def ask(client: Client, tool: str = "e.ask", **retry: Any) -> Any:
    """One leg of a call, without the client's own driver."""
    return await client.session.call_tool(tool, {}, allow_input_required=True, **retry)


def accepted(required: Any, name: str = "me") -> dict[str, Any]:
    answer = t.ElicitResult(action="accept", content={"name": name})
    return dict.fromkeys(required.input_requests, answer)


async def test_the_call_goes_on_at_the_server_while_the_client_is_away() -> None:
    async with everything_behind("legacy", "modern", elicitation_callback=answer_form) as (
        _,
        client,
        through,
    ):
        required = await ask(client)
        [question] = required.input_requests.values()
        assert question.params.message == "e asks: your name?"
        assert through.pool.status()[0].in_flight == 1
        result = await ask(
            client, input_responses=accepted(required), request_state=required.request_state
        )
        assert said(result) == "accept {'name': 'me'}"
        assert through.pool.status()[0].in_flight == 0


async def test_a_client_that_comes_back_without_the_answer_gets_the_input_request_again() -> None:
    async with everything_behind("legacy", "modern", elicitation_callback=answer_form) as (
        _,
        client,
        _g,
    ):
        first = await ask(client)
        second = await ask(client, request_state=first.request_state)
        assert second.input_requests == first.input_requests
        assert second.request_state == first.request_state


@pytest.mark.parametrize("state", ["pegboard.made-up", "something else"])
async def test_a_state_that_is_not_ours_is_refused_with_what_to_do(state: str) -> None:
    async with everything_behind("legacy", "modern", elicitation_callback=answer_form) as (
        _,
        client,
        _g,
    ):
        with pytest.raises(MCPError, match="Make the call again without it") as caught:
            await ask(client, request_state=state)
        assert caught.value.code == t.INVALID_PARAMS


async def test_a_state_is_good_for_its_own_tool_only() -> None:
    async with everything_behind("legacy", "modern", elicitation_callback=answer_form) as (
        _,
        client,
        _g,
    ):
        required = await ask(client)
        with pytest.raises(MCPError, match="No call with this `requestState`"):
            await ask(client, "e.ask_twice", request_state=required.request_state)


async def test_a_question_that_nobody_answers_ends_with_its_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inbound_router, "ANSWER_TIMEOUT", 0.1)
    async with everything_behind("legacy", "modern", elicitation_callback=answer_form) as (
        _,
        client,
        through,
    ):
        required = await ask(client)
        with anyio.fail_after(5):
            while through.pool.status()[0].in_flight:
                await anyio.lowlevel.checkpoint()
        with pytest.raises(MCPError, match="its question to the user was not answered in time"):
            await ask(client, request_state=required.request_state)


async def test_too_many_waiting_calls_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suspended_calls, "MAX_SUSPENDED_CALLS", 2)
    async with everything_behind("legacy", "modern", elicitation_callback=answer_form) as (
        _,
        client,
        _g,
    ):
        await ask(client)
        required = await ask(client)
        with pytest.raises(MCPError, match="busy: 2 calls are already waiting"):
            await ask(client)
        await ask(client, input_responses=accepted(required), request_state=required.request_state)
        assert (await ask(client)).input_requests


async def test_a_server_that_dies_while_the_client_is_gone_is_reported_on_return() -> None:
    async with everything_behind("legacy", "modern", elicitation_callback=answer_form) as (
        _,
        client,
        through,
    ):
        required = await ask(client)
        await through.pool.stop("e")
        with pytest.raises(MCPError, match="unavailable: e stopped before it answered"):
            await ask(client, request_state=required.request_state)


async def test_a_page_that_a_legacy_server_requires_becomes_an_input_request() -> None:
    visited: list[str] = []

    async def visit(context: Any, params: Any) -> t.ElicitResult:
        visited.append(params.url)
        return t.ElicitResult(action="accept")

    async with everything_behind("legacy", "modern", elicitation_callback=visit) as (_, client, _g):
        assert said(await client.call_tool("e.page_first", {})) == "welcome"
    assert visited == ["https://example.test/login"]


async def test_one_who_declines_the_page_gets_the_servers_error() -> None:
    async def decline(context: Any, params: Any) -> t.ElicitResult:
        return t.ElicitResult(action="decline")

    async with everything_behind("legacy", "modern", elicitation_callback=decline) as (
        it,
        client,
        _g,
    ):
        required = await ask(client, "e.page_first")
        it.signed_in = False
        answers = dict.fromkeys(required.input_requests, t.ElicitResult(action="decline"))
        with pytest.raises(MCPError) as caught:
            await ask(client, "e.page_first", input_responses=answers)
        assert caught.value.code == t.URL_ELICITATION_REQUIRED


async def test_a_legacy_client_gets_the_demand_for_a_page_as_it_came() -> None:
    async with everything_behind("legacy", "legacy", elicitation_callback=answer_form) as (
        _,
        client,
        _g,
    ):
        with pytest.raises(MCPError) as caught:
            await client.call_tool("e.page_first", {})
        assert caught.value.code == t.URL_ELICITATION_REQUIRED
        data: Any = caught.value.data
        assert data["elicitations"][0]["elicitationId"] == "e1"


async def test_a_person_who_thinks_does_not_use_up_the_time_of_the_call() -> None:
    """The clock of a call stands while a question is open, in front of a legacy client too."""

    async def slow_roots(context: Any) -> t.ListRootsResult:
        await anyio.sleep(0.4)
        return await list_roots(context)

    asking = script("misbehaving", "asks", server="asks", timeout=0.3)
    async with (
        gateway(asking) as through,
        through.client("legacy", list_roots_callback=slow_roots) as client,
    ):
        assert "file:///work" in said(await client.call_tool("asks.go", {}))
