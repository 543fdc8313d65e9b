"""The spill layer and its other half: large results are kept, and `read_result` reads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jsonschema_rs import ReferencingError

from pegboard.core.blobs import handle_in, pointed_out
from pegboard.core.budget import Count, utf8_size, within
from pegboard.core.calls import Call, Caller, CallResult
from pegboard.core.json import Json, JsonObject, compact
from pegboard.core.reading import Budget, Reading, page
from pegboard.core.results import META, TABLE, Promise, promised, structured_asked, with_meta
from pegboard.core.schemas import relaxed_output
from pegboard.core.spill import (
    Contents,
    RandomBytes,
    SpillPolicy,
    contents_of,
    is_binary,
    new_handle,
    notice,
    readable,
    spill_key,
)
from pegboard.core.tools import Tool
from pegboard.core.validation.patterns import compiled, without_unchecked
from pegboard.dispatch.heavy import count_in, find_in
from pegboard.dispatch.observe import note_tokens_before, notes
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
        self, call: Call, result: CallResult, budget: int, *, structured: bool, checked: bool
    ) -> CallResult:
        """A notice in place of a result over its budget.

        It comes as structured content too where that is asked for or `checked` by the client; a
        notice that could not pass is not given.
        """
        try:
            contents = contents_of(result)
        except (ValueError, RecursionError):  # circular, or too deep to be written
            return result
        tokens = await count_in(contents.texts, self.count)
        if tokens <= budget:
            return result
        expires_at = self.clock() + self.policy.ttl
        said = self._said(contents.value, tokens, expires_at)
        if self.count(compact(said)) >= tokens or (checked and not passes(said, call.tool)):
            return result
        key = spill_key(call.caller.principal, said["handle"])
        if not await self._kept(key, {"value": contents.value, "expires_at": expires_at}):
            return result
        noted = notes()
        noted.spilled, noted.handle = True, said["handle"]
        note_tokens_before(tokens)
        return _noticed(result, said, contents, both=structured or checked)

    def _said(self, value: Json, tokens: int, expires_at: float) -> JsonObject:
        return notice(
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
    promise: Callable[[Call], Promise] = promised,
) -> Layer:
    """A layer that keeps results over their token budget and gives a notice instead.

    `clock` is wall time in seconds. A result that the client will check against an output schema
    (`promise`) is relayed as it came, and so is one that the store cannot take.
    """
    spill = _Spill(store, clock, random, count, policy or SpillPolicy())

    def layer(inner: Handler) -> Handler:
        async def handle(call: Call) -> CallResult:
            result = await inner(call)
            budget = spill.policy.budget(call.tool, call.shape.max_tokens)
            if budget is None or not result.is_complete:
                return result
            kind = promise(call)
            if kind == "exact" or fits(result, budget, count):
                return result
            return await spill.shorten(
                call,
                result,
                budget,
                structured=structured or structured_asked(call),
                checked=kind == "relaxed",
            )

        return handle

    return layer


def fits(result: CallResult, budget: int, count: Count) -> bool:
    """Whether a result is certainly within a budget, by its bytes or by its only text."""
    texts = [readable(block) for block in result.content if not is_binary(block)]
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


def passes(said: JsonObject, tool: Tool) -> bool:
    """Whether a client that was told the relaxed output schema of a tool takes a notice for it."""
    try:
        schema, _ = without_unchecked(relaxed_output(tool.output_schema or {}))
        return compiled(schema).is_valid(said)
    except (ValueError, TypeError, ReferencingError):  # the schema is not valid
        return False


def _noticed(result: CallResult, said: JsonObject, contents: Contents, *, both: bool) -> CallResult:
    wire = {k: v for k, v in result.wire.items() if k != "structuredContent"}
    wire["content"] = [{"type": "text", "text": compact(said)}, *contents.left]
    if both:
        wire["structuredContent"] = said
    noticed = with_meta(CallResult(wire), SPILLED, said["handle"])
    noticed.wire["_meta"].pop(META + TABLE, None)  # a kept table: the notice is none
    return noticed


async def read_result(
    handle: str,
    reading: Reading | None = None,
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
        return pointed_out(handle, record)
    found = await find_in(record["value"], reading or Reading(), chosen.page_tokens)
    return page(found, Budget(chosen.page_tokens, count))


async def read_kept(
    uri: str, *, store: Store, caller: Caller, clock: Callable[[], float]
) -> JsonObject:
    """The contents of a kept result, as `resources/read` gives them: whole, text or binary.

    Raises:
        InvalidArguments: It is unknown, expired or somebody else's, which look the same.
    """
    record = await _record(handle_in(uri) or "", store, caller, clock)
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
