"""Permissions, locks and rates, as layers around a call."""

from __future__ import annotations

import anyio
import pytest

from pegboard.board import Pegboard
from pegboard.core.calls import Caller, CallResult, ToolCall
from pegboard.core.policy import Policy, Rule
from pegboard.core.token_bucket import RateLimit
from pegboard.core.tool_lock import make_placeholder
from pegboard.core.tools import Catalog, Tool, constant_definition
from pegboard.dispatch.permissions import check_permissions
from pegboard.dispatch.rate_limit import LimitRule, RateLimits, rate_limit
from pegboard.errors import Busy, NotPermitted, ToolNotFound
from pegboard.store.memory import MemoryStore

pytestmark = pytest.mark.anyio

ADD = Tool("add", constant_definition({"type": "object"}), risk_source="annotated")
DROP = Tool("drop", constant_definition({"type": "object"}), risk="destructive")
CATALOG = Catalog([ADD, DROP])
READ_ONLY = Policy([Rule(effect="deny", risks=("destructive",))])


async def done(call: ToolCall) -> CallResult:
    return CallResult.text("done")


async def test_a_call_of_a_hidden_tool_fails_as_that_of_an_unknown_one() -> None:
    handle = check_permissions(lambda: READ_ONLY, lambda: CATALOG)(done)
    assert (await handle(ToolCall(ADD, {}))).output == "done"
    with pytest.raises(ToolNotFound) as refused:
        await handle(ToolCall(DROP, {}))
    assert refused.value.message == ToolNotFound("drop").message


async def test_a_call_of_a_held_tool_says_why_and_what_to_do() -> None:
    handle = check_permissions(Policy, lambda: CATALOG)(done)
    with pytest.raises(NotPermitted, match=r"definition changed.*pegboard lock diff"):
        await handle(ToolCall(make_placeholder(ADD, "changed"), {}))


async def test_a_boards_own_calls_keep_to_its_policy() -> None:
    board = Pegboard()

    @board.tool(annotations={"destructiveHint": False})
    def add(a: int, b: int) -> int:
        return a + b

    @board.tool(annotations={"destructiveHint": True}, related=("add",))
    def drop() -> str:
        return "gone"

    board.policy = READ_ONLY
    assert (await board.call("add", {"a": 1, "b": 2})).output in (3, {"result": 3})
    with pytest.raises(ToolNotFound):
        await board.call("drop")
    with pytest.raises(ToolNotFound):
        await board.dispatch(ToolCall(board.find("drop"), {}))
    assert [t.name for t in (await board.view()).catalog] == ["add"]


async def test_each_principal_has_an_allowance_of_their_own() -> None:
    store, now = MemoryStore(), 1_000.0
    rules = [LimitRule(limit=RateLimit(calls=2, per=60))]
    handle = rate_limit(RateLimits(store=store, rules=rules, clock=lambda: now))(done)
    for _ in range(2):
        await handle(ToolCall(ADD, {}, caller=Caller("ann")))
    with pytest.raises(Busy, match=r"Try again in 30\.0 s") as refused:
        await handle(ToolCall(ADD, {}, caller=Caller("ann")))
    assert refused.value.details["retry_after"] == 30
    await handle(ToolCall(ADD, {}, caller=Caller("bob")))


async def test_the_first_rule_that_applies_decides() -> None:
    rules = [
        LimitRule(limit=RateLimit(calls=1), principals=("bot-*",)),
        LimitRule(limit=RateLimit(calls=2), groups=("staff",)),
    ]
    limits = RateLimits(store=MemoryStore(), rules=rules)
    staff = frozenset({"staff"})
    assert limits.find_rule(Caller("bot-7", groups=staff)) is rules[0]
    assert limits.find_rule(Caller("ann", groups=staff)) is rules[1]
    assert limits.find_rule(Caller("bob")) is None


async def test_calls_under_way_are_bounded_and_give_their_place_back_when_cancelled() -> None:
    store = MemoryStore()
    limits = RateLimits(store=store, rules=[LimitRule(limit=RateLimit(concurrent=1))])
    entered = anyio.Event()

    async def slow(call: ToolCall) -> CallResult:
        entered.set()
        await anyio.sleep_forever()
        raise AssertionError

    async def call_slow() -> None:
        await rate_limit(limits)(slow)(ToolCall(ADD, {}))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call_slow)
        await entered.wait()
        with pytest.raises(Busy, match="are running"):
            await rate_limit(limits)(done)(ToolCall(ADD, {}))
        tasks.cancel_scope.cancel()
    assert (await rate_limit(limits)(done)(ToolCall(ADD, {}))).output == "done"
