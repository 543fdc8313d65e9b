"""The blob layer: images, audio and files over a number of bytes become resources of ours."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeAlias

from pegboard.core.calls import CallResult, Outcome, ToolCall
from pegboard.core.json import JsonObject
from pegboard.core.results.blob_links import find_blobs, find_oversized, replace_with_links
from pegboard.core.results.shapes import OutputContract, default_contract
from pegboard.core.results.spill_notice import (
    RandomBytes,
    SpillPolicy,
    format_expiry,
    new_handle,
    spill_key,
)
from pegboard.dispatch.call_events import call_notes
from pegboard.errors import StoreError
from pegboard.ports import Handler, Layer, Store

FanOut: TypeAlias = Callable[[Sequence[ToolCall]], Awaitable[list[Outcome]]]


@dataclass(frozen=True, slots=True)
class _BlobStorage:
    """Where blobs are stored, and for how long."""

    store: Store
    clock: Callable[[], float]
    random: RandomBytes
    ttl: float

    async def limit(self, principal: str, result: CallResult, budget: int) -> CallResult:
        """The result with links for the blobs over the budget; one that cannot be stored stays."""
        links: dict[int, JsonObject] = {}
        for blob in find_oversized(find_blobs(result), budget):
            handle, expires_at = new_handle(self.random), self.clock() + self.ttl
            record = blob.record(expires_at)
            try:
                await self.store.update(
                    spill_key(principal, handle), lambda _, record=record: record, ttl=self.ttl
                )
            except StoreError:
                continue  # unavailable, or the blob is larger than the store: sent, not lost
            links[blob.position] = blob.link(handle, format_expiry(expires_at))
        if not links:
            return result
        call_notes().spilled = True
        return replace_with_links(result, links)

    async def limit_together(
        self, principal: str, outcomes: Sequence[Outcome], budget: int
    ) -> list[Outcome]:
        """The outcomes of calls by one caller, within one budget for all of them."""
        contents = [[] if o.result is None else o.result.content for o in outcomes]
        whole = CallResult({"content": [block for content in contents for block in content]})
        bounded = await self.limit(principal, whole, budget)
        if bounded is whole:
            return list(outcomes)
        blocks = iter(bounded.content)
        limited: list[Outcome] = []
        for outcome, content in zip(outcomes, contents, strict=True):
            if outcome.result is not None and content:
                wire = {**outcome.result.wire, "content": list(islice(blocks, len(content)))}
                outcome = replace(outcome, result=CallResult(wire))
            limited.append(outcome)
        return limited


def blob_layer(
    *,
    store: Store,
    clock: Callable[[], float],
    random: RandomBytes,
    policy: SpillPolicy,
    contract: Callable[[ToolCall], OutputContract] = default_contract,
) -> Layer:
    """A layer that stores binary content over `policy.blob_bytes` and sends links instead.

    `clock` is wall time in seconds. Blobs stay in results whose text stays too, because the client
    expects the result unchanged or the call requests all of it.
    """
    storage = _BlobStorage(store, clock, random, policy.ttl)

    def layer(inner: Handler) -> Handler:
        async def handle(call: ToolCall) -> CallResult:
            result = await inner(call)
            if policy.blob_bytes is None or not result.is_complete or contract(call) == "exact":
                return result
            if policy.budget(call.tool, call.shape.max_tokens) is None:
                return result
            return await storage.limit(call.caller.principal, result, policy.blob_bytes)

        return handle

    return layer


def limit_blobs_together(
    run: FanOut,
    *,
    store: Store,
    clock: Callable[[], float],
    random: RandomBytes,
    policy: SpillPolicy,
) -> FanOut:
    """A fan-out whose results share one budget of `policy.blob_bytes`: they are sent as one result.

    Calls that request all of their result are not counted, and keep it.
    """
    storage = _BlobStorage(store, clock, random, policy.ttl)

    async def handle(calls: Sequence[ToolCall]) -> list[Outcome]:
        outcomes = await run(calls)
        if policy.blob_bytes is None:
            return outcomes
        counted = [
            n for n, c in enumerate(calls) if policy.budget(c.tool, c.shape.max_tokens) is not None
        ]
        if counted:
            principal = calls[counted[0]].caller.principal  # one request, so one caller
            limited = await storage.limit_together(
                principal, [outcomes[n] for n in counted], policy.blob_bytes
            )
            for n, outcome in zip(counted, limited, strict=True):
                outcomes[n] = outcome
        return outcomes

    return handle
