"""How calls are governed, as a client sees it: shared, repeated, timed, cancelled, in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.server.mcpserver.context import Context
from tests.acceptance.support import call, in_both_eras, play
from tests.conformance.clients import Era

from pegboard import Pegboard, UpstreamUnavailable
from pegboard.server.serving import build_server

READ = {"readOnlyHint": True}


class Workshop:
    """A board that counts how often its functions run, and holds them until they may go on."""

    def __init__(self, **options: Any) -> None:
        self.ran: Counter[str] = Counter()
        self.go = anyio.Event()
        self.cancelled = anyio.Event()
        self.board = Pegboard("workshop", **options)
        self.board.tool(annotations=READ)(self.read)
        self.board.tool(annotations={"idempotentHint": True})(self.put)
        self.board.tool(self.add)
        self.board.tool(annotations=READ)(self.held)
        self.board.tool(annotations=READ, timeout=0.05)(self.late)
        self.board.tool(timeout=0.05)(self.late_add)
        self.board.tool(annotations=READ)(self.steps)

    async def read(self, n: int) -> int:
        """Give a number back."""
        self.ran["read"] += 1
        await anyio.lowlevel.checkpoint()
        return n

    def put(self) -> str:
        """Fail on the way; may be repeated."""
        self.ran["put"] += 1
        raise UpstreamUnavailable("Nobody answers.")

    def add(self) -> str:
        """Fail on the way; must not be repeated."""
        self.ran["add"] += 1
        raise UpstreamUnavailable("Nobody answers.")

    async def held(self, n: int = 0) -> int:
        """Wait to be let go."""
        self.ran["held"] += 1
        try:
            await self.go.wait()
        except anyio.get_cancelled_exc_class():
            self.cancelled.set()
            raise
        return n

    async def late(self) -> str:
        """Never answer."""
        self.ran["late"] += 1
        await anyio.Event().wait()
        return ""

    async def late_add(self) -> str:
        """Never answer, and change something."""
        self.ran["late_add"] += 1
        await anyio.Event().wait()
        return ""

    async def steps(self, ctx: Context[Any, Any]) -> str:
        """Show progress."""
        for step in range(3):
            await ctx.report_progress(step, 3, f"step {step}")
        return "done"


@asynccontextmanager
async def connected(board: Pegboard, era: Era) -> AsyncGenerator[Client]:
    negotiation = "legacy" if era == "legacy" else "auto"
    with anyio.fail_after(30):
        async with Client(build_server(board, environ={}), mode=negotiation) as client:
            yield client


@in_both_eras
@pytest.mark.anyio
async def test_like_reads_under_way_share_one_run(era: Era) -> None:
    workshop = Workshop()
    answers: list[Any] = []
    async with connected(workshop.board, era) as client, anyio.create_task_group() as tasks:

        async def ask() -> None:
            answers.append((await client.call_tool("held", {"n": 7})).structured_content)

        for _ in range(5):
            tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        workshop.go.set()
    assert answers == [{"result": 7}] * 5
    assert workshop.ran["held"] == 1


@in_both_eras
@pytest.mark.anyio
async def test_a_thousand_calls_at_once_each_get_their_own_answer(era: Era) -> None:
    workshop = Workshop()
    answers: dict[int, Any] = {}
    async with connected(workshop.board, era) as client, anyio.create_task_group() as tasks:

        async def ask(n: int) -> None:
            answers[n] = (await client.call_tool("read", {"n": n})).structured_content

        for n in range(1_000):
            tasks.start_soon(ask, n)
    assert answers == {n: {"result": n} for n in range(1_000)}
    assert workshop.ran["read"] == 1_000


@in_both_eras
def test_only_what_may_be_repeated_is_repeated(era: Era) -> None:
    workshop = Workshop(attempts=2)
    told = play(workshop.board, era, {"put": call("put"), "add": call("add")})
    assert told["put"].mendable["kind"] == told["add"].mendable["kind"] == "unavailable"
    assert workshop.ran == {"put": 2, "add": 1}


@in_both_eras
def test_a_call_that_takes_too_long_is_given_up_with_advice(era: Era) -> None:
    workshop = Workshop(attempts=1)
    told = play(workshop.board, era, {"read": call("late"), "add": call("late_add")})
    assert told["read"].mendable["kind"] == told["add"].mendable["kind"] == "timeout"
    assert "Try again" in told["read"].mendable["message"]
    assert "check before you repeat" in told["add"].mendable["message"]
    assert workshop.ran == {"late": 1, "late_add": 1}


@in_both_eras
@pytest.mark.anyio
async def test_progress_of_a_function_reaches_the_client(era: Era) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async with connected(Workshop().board, era) as client:
        result = await client.call_tool("steps", {}, progress_callback=note)
    assert result.structured_content == {"result": "done"}
    assert seen == [(0, 3, "step 0"), (1, 3, "step 1"), (2, 3, "step 2")]


@in_both_eras
@pytest.mark.anyio
async def test_a_function_that_shows_progress_is_given_more_time(era: Era) -> None:
    board = Pegboard("patient", attempts=1)

    @board.tool(annotations=READ, timeout=0.6)
    async def work(ctx: Context[Any, Any], shows: bool) -> str:
        """Take longer than its time."""
        for step in range(4):
            await anyio.sleep(0.2)
            if shows:
                await ctx.report_progress(step)
        return "done"

    async with connected(board, era) as client:
        silent = await client.call_tool("work", {"shows": False})
        shown = await client.call_tool("work", {"shows": True})
    assert silent.is_error
    assert shown.structured_content == {"result": "done"}


@in_both_eras
@pytest.mark.parametrize("mode", ["eager", "proxy"])
@pytest.mark.anyio
async def test_a_call_that_its_client_gives_up_is_cancelled_in_the_function(
    mode: str, era: Era
) -> None:
    workshop = Workshop(mode=mode)
    through = ("held", {}) if mode == "eager" else ("call_tool", {"name": "held", "arguments": {}})
    async with connected(workshop.board, era) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, *through)
            await anyio.wait_all_tasks_blocked()
            assert workshop.ran["held"] == 1
            tasks.cancel_scope.cancel()
        await workshop.cancelled.wait()
        result = await client.call_tool("read", {"n": 1})
    assert result.structured_content == {"result": 1}


@in_both_eras
def test_a_fan_out_keeps_order_whatever_finishes_first(era: Era) -> None:
    workshop = Workshop(mode="proxy")
    calls = [{"name": "read", "arguments": {"n": n}} for n in range(100)]
    told = play(
        workshop.board,
        era,
        {
            "all": call("call_tools", calls=calls),
            "too many": call("call_tools", calls=calls + calls[:1]),
        },
    )
    assert [r["result"] for r in told["all"].json["results"]] == [{"result": n} for n in range(100)]
    assert "at most 100" in told["too many"].mendable["message"]
