"""Large results are kept whole, for the one who asked, and read back in parts."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from tests.dispatch.fakes import Clock, Recorder, Source

from pegboard.core.calls import Caller, CallResult, ResultShape, ToolCall
from pegboard.core.events import CallFinished
from pegboard.core.json import compact
from pegboard.core.results.result_pages import PageRequest
from pegboard.core.results.shapes import OutputContract
from pegboard.core.results.spill_notice import SpillPolicy
from pegboard.core.tools import Tool, constant_definition
from pegboard.dispatch.call_events import ObserveOptions, observe
from pegboard.dispatch.project import projection_layer
from pegboard.dispatch.spill import read_result, spill_layer
from pegboard.dispatch.tables import table_layer
from pegboard.errors import InvalidArguments, StoreError
from pegboard.ports import Change, Handler
from pegboard.store.memory import MemoryStore
from pegboard.tokens import count_tokens

pytestmark = pytest.mark.anyio

ROWS: list[Any] = [
    {"id": i, "title": f"Issue number {i}", "body": "word " * 20} for i in range(400)
]
BIG: dict[str, Any] = {"items": ROWS, "total": 400}
ANN = Caller(principal="ann")
TOOL = Tool("list", constant_definition({"type": "object"}))


class Bench:
    """A spill layer with a clock that stands still, over a store in memory."""

    def __init__(self, contract: OutputContract = "nothing", **policy: Any) -> None:
        self.clock = Clock()
        self.store = MemoryStore(clock=self.clock)
        self.policy = SpillPolicy(**policy)
        self.contract: OutputContract = contract

    def around(self, inner: Handler, **more: Any) -> Handler:
        settings: dict[str, Any] = {"store": self.store, "random": os.urandom} | more
        layer = spill_layer(
            clock=self.clock,
            count=count_tokens,
            policy=self.policy,
            contract=lambda call: self.contract,
            **settings,
        )
        return layer(inner)

    async def call(
        self, result: CallResult, shape: ResultShape | None = None, **more: Any
    ) -> CallResult:
        source = Source()
        source.queue.append(result)
        params = more.pop("params", {})
        call = ToolCall(TOOL, {}, shape=shape or ResultShape(), caller=ANN, params=params)
        return await self.around(source, **more)(call)

    async def read(self, handle: str, caller: Caller = ANN, **asked: Any) -> dict[str, Any]:
        return await read_result(
            handle,
            PageRequest(**asked),
            store=self.store,
            caller=caller,
            clock=self.clock,
            count=count_tokens,
            policy=self.policy,
        )


def said(result: CallResult) -> dict[str, Any]:
    return json.loads(result.content[0]["text"])


async def test_a_result_over_its_budget_is_stored_and_a_notice_is_sent_instead():
    bench = Bench()
    result = await bench.call(CallResult.json(BIG))
    notice = said(result)
    assert notice["tokens"] == count_tokens(compact(BIG))
    assert notice["rows"] == 400
    assert notice["preview"]["items"][0]["id"] == 0
    assert notice["fields"]["items[].title"] == "string"
    assert result.structured is None
    assert count_tokens(result.content[0]["text"]) < 800


async def test_nothing_is_lost_following_next_gives_every_row():
    bench = Bench()
    handle = said(await bench.call(CallResult.json(BIG)))["handle"]
    rows: list[Any] = []
    following: dict[str, Any] = {}
    while True:
        page = await bench.read(handle, **following)
        assert count_tokens(compact(page)) <= bench.policy.page_tokens + 100
        rows += page["value"]
        if "next" not in page:
            break
        following = page["next"]
    assert rows == ROWS
    assert (await bench.read(handle, path="total"))["value"] == 400


async def test_a_result_within_its_budget_is_untouched():
    small = CallResult.json({"items": ROWS[:20]})
    assert await Bench().call(small) is small


async def test_a_mirror_counts_once():
    value = {"items": ROWS[:90]}
    assert 2_000 < count_tokens(compact(value)) < 4_000
    both = CallResult.json(value)
    assert await Bench().call(both) is both


@pytest.mark.parametrize(
    ("policy", "shape"),
    [
        ({"tokens": None}, ResultShape()),
        ({"per_tool": {"list": 100_000}}, ResultShape()),
        ({}, ResultShape(max_tokens=100_000)),
        ({}, ResultShape(max_tokens=0)),
    ],
)
async def test_tools_and_calls_have_budgets_of_their_own(
    policy: dict[str, Any], shape: ResultShape
):
    whole = CallResult.json(BIG)
    assert await Bench(**policy).call(whole, shape) is whole


async def test_a_call_may_ask_for_less():
    result = await Bench().call(CallResult.json({"items": ROWS[:40]}), ResultShape(max_tokens=500))
    assert said(result)["rows"] == 40


async def test_a_notice_that_would_not_be_smaller_is_not_given():
    small = CallResult.json({"id": 1, "title": "A few words"})
    assert await Bench().call(small, ResultShape(max_tokens=1)) is small


async def test_unknown_expired_and_foreign_handles_are_indistinguishable():
    bench = Bench()
    handle = said(await bench.call(CallResult.json(BIG)))["handle"]
    failures: list[tuple[str, Any]] = []
    for wrong, caller in (("0" * 32, ANN), (handle, Caller(principal="bob"))):
        with pytest.raises(InvalidArguments) as caught:
            await bench.read(wrong, caller)
        failures.append((caught.value.message, caught.value.details))
    bench.clock.now += bench.policy.ttl + 1
    with pytest.raises(InvalidArguments) as caught:
        await bench.read(handle)
    failures.append((caught.value.message, caught.value.details))
    assert failures[0] == failures[1] == failures[2]


async def test_a_store_that_forgets_late_does_not_lengthen_a_handle():
    bench = Bench()
    lasting = MemoryStore(clock=lambda: 0.0)
    bench.store = lasting
    handle = said(await bench.call(CallResult.json(BIG)))["handle"]
    bench.clock.now += bench.policy.ttl
    with pytest.raises(InvalidArguments):
        await bench.read(handle)


async def test_images_stay_in_the_result():
    image = {"type": "image", "data": "A" * 100_000, "mimeType": "image/png"}
    given = CallResult.json(BIG)
    given.content.append(image)
    result = await Bench().call(given)
    assert "handle" in said(result)
    assert result.content[1] == image
    alone = CallResult({"content": [image]})
    assert await Bench().call(alone) is alone


async def test_long_prose_is_stored_too_and_read_by_lines():
    bench = Bench()
    log = "\n".join(f"line {i} of the log" for i in range(3_000))
    notice = said(await bench.call(CallResult.text(log)))
    assert notice["lines"] == 3_000
    page = await bench.read(notice["handle"], grep="line 2999 ")
    assert page["text"] == "2999: line 2999 of the log\n"


async def test_an_error_stays_an_error():
    result = await Bench().call(CallResult.text("trace\n" * 20_000, is_error=True))
    assert result.is_error
    assert "handle" in said(result)


async def test_structured_content_has_the_notice_if_it_is_requested():
    bench = Bench()
    asked = {"_meta": {"io.github.pegboard/structured": True}}
    for result in (
        await bench.call(CallResult.json(BIG), params=asked),
        await bench.call(CallResult.json(BIG), structured=True),
        await Bench(contract="relaxed").call(CallResult.json(BIG)),
    ):
        assert result.structured == said(result)


@pytest.mark.parametrize(
    ("schema", "given"),
    [
        (
            {"type": "object", "properties": {"items": {"type": "array"}}, "required": ["items"]},
            True,
        ),
        ({"type": "object", "additionalProperties": False}, True),
        ({"type": "object", "properties": {"rows": {"type": "array"}}}, False),
        ({"type": "object", "additionalProperties": {"type": "array"}}, False),
        ({"type": 7}, False),
    ],
    ids=["required", "closed", "a rows of its own", "arrays only", "no schema"],
)
async def test_a_notice_is_given_only_where_the_relaxed_schema_lets_it_pass(
    schema: dict[str, Any], given: bool
):
    source = Source()
    source.queue.append(CallResult.json(BIG))
    call = ToolCall(Tool("list", constant_definition({"type": "object"}, schema)), {}, caller=ANN)
    result = await Bench(contract="relaxed").around(source)(call)
    assert ("handle" in (result.structured or {})) == given
    assert result.structured == json.loads(result.content[0]["text"])


async def test_a_result_that_the_client_will_check_is_relayed_whole():
    whole = CallResult.json(BIG)
    assert await Bench(contract="exact").call(whole) is whole


async def test_a_tool_without_output_schema_is_bound_by_none_when_called_directly():
    source = Source()
    source.queue += [CallResult.json(BIG)] * 3
    layer = spill_layer(store=MemoryStore(), clock=Clock(), random=os.urandom, count=count_tokens)
    checked = Tool("list", constant_definition({"type": "object"}, {"type": "object"}))
    handler = layer(source)
    assert "handle" in said(await handler(ToolCall(TOOL, {})))
    assert (await handler(ToolCall(checked, {}))).structured == BIG
    assert "handle" in said(await handler(ToolCall(checked, {}, via="call_tool")))


class BrokenStore(MemoryStore):
    """A store that cannot be reached."""

    async def update(self, key: str, change: Change, *, ttl: float | None = None) -> Any:
        raise StoreError("down")


async def test_what_cannot_be_stored_is_sent_whole():
    whole = CallResult.json(BIG)
    assert await Bench().call(whole, store=BrokenStore()) is whole
    loop: dict[str, Any] = {"text": "word " * 9_000}
    loop["self"] = loop
    circular = CallResult({"content": [], "structuredContent": loop})
    assert await Bench().call(circular) is circular
    circular = CallResult.text("word " * 9_000, structured=loop)
    assert await Bench().call(circular) is circular


async def test_an_unfinished_result_is_untouched():
    asking = CallResult({"resultType": "input_required", "inputRequests": {"x": "y" * 90_000}})
    assert await Bench().call(asking) is asking


async def test_after_projection_and_tables_the_value_is_still_read_by_paths():
    bench, source = Bench(), Source()
    source.queue.append(CallResult.json(BIG))
    inner = projection_layer()(source)
    handler = bench.around(table_layer(count=count_tokens, contract=lambda call: "nothing")(inner))
    shape = ResultShape(include_fields=("id", "title", "body", "nope"))
    result = await handler(ToolCall(TOOL, {}, shape=shape, caller=ANN))
    notice = said(result)
    assert notice["rows"] == 400
    assert result.content[1]["text"].startswith("Missing fields: nope.")
    page = await bench.read(notice["handle"], path="items[399]")
    assert page["value"] == ROWS[399]


async def test_spilling_and_the_original_tokens_are_recorded():
    bench, recorder, source = Bench(), Recorder(), Source()
    source.queue.append(CallResult.json(BIG))
    await observe(ObserveOptions(observer=recorder, count=count_tokens))(bench.around(source))(
        ToolCall(TOOL, {}, caller=ANN)
    )
    (finished,) = recorder.of(CallFinished)
    assert finished.spilled
    assert finished.tokens_out_before == count_tokens(compact(BIG))
    assert finished.tokens_out is not None
    assert finished.tokens_out < 800
