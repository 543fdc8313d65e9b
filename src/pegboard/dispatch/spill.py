"""The spill layer, and how spilled results are read.

    result over its budget ──> the store, under a handle
                          └──> a notice with preview and handle ──> the model
    read_result(handle, ...), resources/read ──> the store ──> a page, or the whole result

A result that cannot be stored is sent whole: too much is better than nothing.
"""

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
    SpillPolicy,
    block_text,
    build_notice,
    is_binary,
    new_handle,
    read_contents,
    spill_key,
)
from pegboard.core.schemas import relax_output_schema
from pegboard.core.token_budget import Count, fits_token_budget, utf8_size
from pegboard.core.tools import Tool
from pegboard.core.validation.bounds import compile_validator, drop_unsafe_patterns
from pegboard.dispatch.call_events import call_notes, record_tokens_before
from pegboard.dispatch.expensive_work import run_count, run_find
from pegboard.errors import InvalidArguments, StoreError
from pegboard.ports import Handler, Layer, Store

SPILLED_KEY = "spilled"


@dataclass(frozen=True, slots=True)
class _Spill:
    """Stores large results, with everything that this takes."""

    store: Store
    clock: Callable[[], float]
    random: RandomBytes
    count: Count
    policy: SpillPolicy

    async def shorten(
        self, call: ToolCall, result: CallResult, budget: int, *, structured: bool, checked: bool
    ) -> CallResult:
        """A notice in place of a result over its budget.

        It is sent as structured content too if that is requested or `checked` by the client; a
        notice that would fail the client's check is not sent.
        """
        try:
            contents = read_contents(result)
        except (ValueError, RecursionError):  # circular, or too deep to be written
            return result
        tokens = await run_count(contents.texts, self.count)
        if tokens <= budget:
            return result
        handle, expires_at = new_handle(self.random), self.clock() + self.policy.ttl
        notice = build_notice(
            handle,
            contents.value,
            tokens=tokens,
            expires_at=expires_at,
            policy=self.policy,
            count=self.count,
        )
        if call.caller.mode == "code":
            notice["read"] = f'in a program: kept("{handle}")'
        # A notice is never larger than what it replaces, as it can be under a tiny budget.
        if self.count(compact(notice)) >= tokens:
            return result
        if checked and not notice_fits_schema(notice, call.tool):
            return result
        record: JsonObject = {"value": contents.value, "expires_at": expires_at}
        key = spill_key(call.caller.principal, handle)
        try:
            await self.store.update(key, lambda _: record, ttl=self.policy.ttl)
        except (StoreError, TypeError, ValueError):
            # Unavailable, or a value that it cannot take: a large result is better than none.
            return result
        notes = call_notes()
        notes.spilled, notes.handle = True, handle
        record_tokens_before(tokens)
        wire = {k: v for k, v in result.wire.items() if k != "structuredContent"}
        wire["content"] = [{"type": "text", "text": compact(notice)}, *contents.left]
        if structured or checked:
            wire["structuredContent"] = notice
        spilled = add_meta(CallResult(wire), SPILLED_KEY, handle)
        # The stored result may have been a table; the notice in its place is not.
        spilled.wire["_meta"].pop(META_PREFIX + TABLE_KEY, None)
        return spilled


def spill_layer(
    *,
    store: Store,
    clock: Callable[[], float],
    random: RandomBytes,
    count: Count,
    policy: SpillPolicy | None = None,
    structured: bool = False,
    contract: Callable[[ToolCall], OutputContract] = default_contract,
) -> Layer:
    """A layer that stores results over their token budget and sends a notice instead.

    `clock` is wall time in seconds. A result that the client will validate against an output schema
    (`contract`) is sent unchanged, and so is one that the store cannot take.
    """
    spill = _Spill(store, clock, random, count, policy or SpillPolicy())

    def layer(inner: Handler) -> Handler:
        async def handle(call: ToolCall) -> CallResult:
            result = await inner(call)
            budget = spill.policy.budget(call.tool, call.shape.max_tokens)
            if budget is None or not result.is_complete:
                return result
            # Most results end here, by their size alone.
            expected = contract(call)
            if expected == "exact" or is_within_budget(result, budget, count):
                return result
            return await spill.shorten(
                call,
                result,
                budget,
                structured=structured or wants_structured(call),
                checked=expected == "relaxed",
            )

        return handle

    return layer


def is_within_budget(result: CallResult, budget: int, count: Count) -> bool:
    """Whether a result is certainly within a budget, by its bytes or by its only text.

    Cheap, since it runs on every result and nearly all are small; `False` means "count it".
    """
    texts = [block_text(block) for block in result.content if not is_binary(block)]
    if result.structured is None and len(texts) == 1:
        return fits_token_budget(texts[0], budget, count)
    size = sum(map(utf8_size, texts))
    if size > budget:
        return False
    if result.structured is None:
        return True
    try:
        return size + utf8_size(compact(result.structured)) <= budget
    except (ValueError, RecursionError):
        return True  # circular or too deep: it can be neither counted nor stored


def notice_fits_schema(notice: JsonObject, tool: Tool) -> bool:
    """Whether a client that was shown the relaxed output schema of a tool accepts a notice."""
    try:
        schema, _ = drop_unsafe_patterns(relax_output_schema(tool.output_schema or {}))
        return compile_validator(schema).is_valid(notice)
    except (ValueError, TypeError, ReferencingError):  # the schema is not valid
        return False


async def read_result(
    handle: str,
    request: PageRequest | None = None,
    *,
    store: Store,
    caller: Caller,
    clock: Callable[[], float],
    count: Count,
    policy: SpillPolicy | None = None,
) -> JsonObject:
    """A page of a stored result, as JSON of at most about `policy.page_tokens` tokens.

    Raises:
        InvalidArguments: The handle is unknown, expired or somebody else's, which look the same,
            or a number is out of bounds.
        InvalidField: The path leads nowhere, or the expression cannot be run.
    """
    chosen = policy or SpillPolicy()
    record = await _load_record(handle, store, caller, clock)
    if "blob" in record:
        return describe_blob(handle, record)
    found = await run_find(record["value"], request or PageRequest(), chosen.page_tokens)
    return build_page(found, PageBudget(chosen.page_tokens, count))


async def read_stored(
    uri: str, *, store: Store, caller: Caller, clock: Callable[[], float]
) -> JsonObject:
    """A stored result, as `resources/read` returns it: whole, text or binary.

    Raises:
        InvalidArguments: It is unknown, expired or somebody else's, which look the same.
    """
    record = await _load_record(uri_to_handle(uri) or "", store, caller, clock)
    if "blob" in record:
        return {"uri": uri, "mimeType": record["mimeType"], "blob": record["blob"]}
    value = record["value"]
    if isinstance(value, str):
        return {"uri": uri, "mimeType": "text/plain", "text": value}
    return {"uri": uri, "mimeType": "application/json", "text": compact(value)}


@dataclass(frozen=True, slots=True)
class ValueStorage:
    """Values of programs, stored like large results: same handles, same time, same owner."""

    store: Store
    clock: Callable[[], float]
    random: RandomBytes
    ttl: float

    async def save(self, caller: Caller, value: Json) -> str:
        """Store a value, and give its handle. Raises `StoreError`."""
        handle = new_handle(self.random)
        record: JsonObject = {"value": value, "expires_at": self.clock() + self.ttl}
        key = spill_key(caller.principal, handle)
        await self.store.update(key, lambda _: record, ttl=self.ttl)
        return handle

    async def load(self, caller: Caller, handle: str) -> Json:
        """A stored value or result.

        Raises:
            InvalidArguments: It is unknown, expired or somebody else's, which look the same; or it
                is an image or a file.
        """
        record = await _load_record(handle, self.store, caller, self.clock)
        if "blob" in record:
            raise InvalidArguments("This handle is of a file, which programs cannot read.")
        return record["value"]


async def _load_record(
    handle: str, store: Store, caller: Caller, clock: Callable[[], float]
) -> JsonObject:
    record: Json = await store.get(spill_key(caller.principal, handle))
    # Also compared here, since a store may keep an expired value for a while.
    if not isinstance(record, dict) or record["expires_at"] <= clock():
        raise InvalidArguments(
            "Unknown or expired handle. Call the tool again for a new one.", field="handle"
        )
    return record
