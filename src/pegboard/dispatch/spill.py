"""The spill layer and its other half: large results are kept, and `read_result` reads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jsonschema_rs import ReferencingError

from pegboard.core.calls import Caller, CallResult, ToolCall
from pegboard.core.json import Json, JsonObject, compact
from pegboard.core.results.blob_links import describe_blob, uri_to_handle
from pegboard.core.results.result_pages import PageBudget, PageRequest, build_page
from pegboard.core.results.shapes import (
    META_PREFIX,
    TABLE_KEY,
    OutputContract,
    add_meta,
    default_contract,
    wants_structured,
)
from pegboard.core.results.spill_notice import (
    RandomBytes,
    ResultContents,
    SpillPolicy,
    block_text,
    build_notice,
    is_binary,
    new_handle,
    read_contents,
    spill_key,
)
from pegboard.core.schemas import relax_output_schema
from pegboard.core.token_budget import Count, utf8_size, within
from pegboard.core.tools import Tool
from pegboard.core.validation.bounds import compiled, without_unchecked
from pegboard.dispatch.call_events import call_notes, record_tokens_before
from pegboard.dispatch.expensive_work import run_count, run_find
from pegboard.errors import InvalidArguments, StoreError
from pegboard.ports import Handler, Layer, Store

SPILLED = "spilled"


@dataclass(frozen=True, slots=True)
class _Spill:
    """What the layer needs of the world."""

    store: Store
    clock: Callable[[], float]
    random: RandomBytes
    count: Count
    policy: SpillPolicy

    async def shorten(
        self, call: ToolCall, result: CallResult, budget: int, *, structured: bool, checked: bool
    ) -> CallResult:
        """A notice in place of a result over its budget.

        It comes as structured content too where that is asked for or `checked` by the client; a
        notice that could not pass is not given.
        """
        try:
            contents = read_contents(result)
        except (ValueError, RecursionError):  # circular, or too deep to be written
            return result
        tokens = await run_count(contents.texts, self.count)
        if tokens <= budget:
            return result
        expires_at = self.clock() + self.policy.ttl
        said = self._said(contents.value, tokens, expires_at)
        if self.count(compact(said)) >= tokens or (
            checked and not notice_fits_schema(said, call.tool)
        ):
            return result
        key = spill_key(call.caller.principal, said["handle"])
        if not await self._kept(key, {"value": contents.value, "expires_at": expires_at}):
            return result
        noted = call_notes()
        noted.spilled, noted.handle = True, said["handle"]
        record_tokens_before(tokens)
        return _noticed(result, said, contents, both=structured or checked)

    def _said(self, value: Json, tokens: int, expires_at: float) -> JsonObject:
        return build_notice(
            new_handle(self.random),
            value,
            tokens=tokens,
            expires_at=expires_at,
            policy=self.policy,
            count=self.count,
        )

    async def _kept(self, key: str, record: JsonObject) -> bool:
        try:
            await self.store.update(key, lambda _: record, ttl=self.policy.ttl)
        except (StoreError, TypeError, ValueError):
            return False  # out of reach, or a value that it cannot hold: better too much than lost
        return True


def spill_layer(
    *,
    store: Store,
    clock: Callable[[], float],
    random: RandomBytes,
    count: Count,
    policy: SpillPolicy | None = None,
    structured: bool = False,
    promise: Callable[[ToolCall], OutputContract] = default_contract,
) -> Layer:
    """A layer that keeps results over their token budget and gives a notice instead.

    `clock` is wall time in seconds. A result that the client will check against an output schema
    (`promise`) is relayed as it came, and so is one that the store cannot take.
    """
    spill = _Spill(store, clock, random, count, policy or SpillPolicy())

    def layer(inner: Handler) -> Handler:
        async def handle(call: ToolCall) -> CallResult:
            result = await inner(call)
            budget = spill.policy.budget(call.tool, call.shape.max_tokens)
            if budget is None or not result.is_complete:
                return result
            kind = promise(call)
            if kind == "exact" or fits_budget(result, budget, count):
                return result
            return await spill.shorten(
                call,
                result,
                budget,
                structured=structured or wants_structured(call),
                checked=kind == "relaxed",
            )

        return handle

    return layer


def fits_budget(result: CallResult, budget: int, count: Count) -> bool:
    """Whether a result is certainly within a budget, by its bytes or by its only text."""
    texts = [block_text(block) for block in result.content if not is_binary(block)]
    if result.structured is None and len(texts) == 1:
        return within(texts[0], budget, count)
    size = sum(map(utf8_size, texts))
    if size > budget:
        return False
    if result.structured is None:
        return True
    try:
        return size + utf8_size(compact(result.structured)) <= budget
    except (ValueError, RecursionError):
        return True  # no text of it can be counted, or kept


def notice_fits_schema(said: JsonObject, tool: Tool) -> bool:
    """Whether a client that was told the relaxed output schema of a tool takes a notice for it."""
    try:
        schema, _ = without_unchecked(relax_output_schema(tool.output_schema or {}))
        return compiled(schema).is_valid(said)
    except (ValueError, TypeError, ReferencingError):  # the schema is not valid
        return False


def _noticed(
    result: CallResult, said: JsonObject, contents: ResultContents, *, both: bool
) -> CallResult:
    wire = {k: v for k, v in result.wire.items() if k != "structuredContent"}
    wire["content"] = [{"type": "text", "text": compact(said)}, *contents.left]
    if both:
        wire["structuredContent"] = said
    noticed = add_meta(CallResult(wire), SPILLED, said["handle"])
    noticed.wire["_meta"].pop(META_PREFIX + TABLE_KEY, None)  # a kept table: the notice is none
    return noticed


async def read_result(
    handle: str,
    reading: PageRequest | None = None,
    *,
    store: Store,
    caller: Caller,
    clock: Callable[[], float],
    count: Count,
    policy: SpillPolicy | None = None,
) -> JsonObject:
    """A page of a kept result, as JSON of at most about `policy.page_tokens` tokens.

    Raises:
        InvalidArguments: The handle is unknown, expired or somebody else's, which look the same,
            or the numbers make no page.
        InvalidField: The path leads nowhere, or the expression cannot be run.
    """
    chosen = policy or SpillPolicy()
    record = await _record(handle, store, caller, clock)
    if "blob" in record:
        return describe_blob(handle, record)
    found = await run_find(record["value"], reading or PageRequest(), chosen.page_tokens)
    return build_page(found, PageBudget(chosen.page_tokens, count))


async def read_stored(
    uri: str, *, store: Store, caller: Caller, clock: Callable[[], float]
) -> JsonObject:
    """The contents of a kept result, as `resources/read` gives them: whole, text or binary.

    Raises:
        InvalidArguments: It is unknown, expired or somebody else's, which look the same.
    """
    record = await _record(uri_to_handle(uri) or "", store, caller, clock)
    if "blob" in record:
        return {"uri": uri, "mimeType": record["mimeType"], "blob": record["blob"]}
    value = record["value"]
    if isinstance(value, str):
        return {"uri": uri, "mimeType": "text/plain", "text": value}
    return {"uri": uri, "mimeType": "application/json", "text": compact(value)}


async def _record(
    handle: str, store: Store, caller: Caller, clock: Callable[[], float]
) -> JsonObject:
    record: Json = await store.get(spill_key(caller.principal, handle))
    if not isinstance(record, dict) or record["expires_at"] <= clock():
        raise InvalidArguments(
            "Unknown or expired handle. Call the tool again for a new one.", field="handle"
        )
    return record
