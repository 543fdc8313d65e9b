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
    """Where blobs are put, and for how long."""

    store: Store
    clock: Callable[[], float]
    random: RandomBytes
    ttl: float

    async def put_aside(self, call: ToolCall, result: CallResult, budget: int) -> CallResult:
        """The result with links for what is over the budget; what cannot be kept stays."""
        links: dict[int, JsonObject] = {}
        for blob in find_oversized(find_blobs(result), budget):
            handle, expires_at = new_handle(self.random), self.clock() + self.ttl
            key = spill_key(call.caller.principal, handle)
            if await self._kept(key, blob.record(expires_at)):
                links[blob.position] = blob.link(handle, format_expiry(expires_at))
        if not links:
            return result
        call_notes().spilled = True
        return replace_with_links(result, links)

    async def put_aside_together(
        self, calls: Sequence[ToolCall], outcomes: Sequence[Outcome], budget: int
    ) -> list[Outcome]:
        """The outcomes of calls of one caller, within one budget for all of them."""
        contents = [[] if o.result is None else o.result.content for o in outcomes]
        whole = CallResult({"content": [block for content in contents for block in content]})
        bounded = await self.put_aside(calls[0], whole, budget)
        if bounded is whole:
            return list(outcomes)
        blocks = iter(bounded.content)
        return [
            _with_content(outcome, list(islice(blocks, len(content))))
            for outcome, content in zip(outcomes, contents, strict=True)
        ]

    async def _kept(self, key: str, record: JsonObject) -> bool:
        try:
            await self.store.update(key, lambda _: record, ttl=self.ttl)
        except StoreError:
            return False  # out of reach, or larger than all that it holds: better sent than lost
        return True


def blob_layer(
    *,
    store: Store,
    clock: Callable[[], float],
    random: RandomBytes,
    policy: SpillPolicy,
    promise: Callable[[ToolCall], OutputContract] = default_contract,
) -> Layer:
    """A layer that keeps binary content over `policy.blob_bytes` and gives links instead.

    `clock` is wall time in seconds. Where nothing is kept back of a result's text, because the
    client expects the result as it is or the call asks for all of it, blobs stay in it too.
    """
    shelf = _BlobStorage(store, clock, random, policy.ttl)

    def layer(inner: Handler) -> Handler:
        async def handle(call: ToolCall) -> CallResult:
            result = await inner(call)
            if policy.blob_bytes is None or not result.is_complete or promise(call) == "exact":
                return result
            if policy.budget(call.tool, call.shape.max_tokens) is None:
                return result
            return await shelf.put_aside(call, result, policy.blob_bytes)

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
    """A fan-out whose results share one budget of `policy.blob_bytes`: they travel as one result.

    Calls that ask for all of their result are not counted, and keep it.
    """
    shelf = _BlobStorage(store, clock, random, policy.ttl)

    async def handle(calls: Sequence[ToolCall]) -> list[Outcome]:
        outcomes = await run(calls)
        if policy.blob_bytes is None:
            return outcomes
        counted = [
            n for n, c in enumerate(calls) if policy.budget(c.tool, c.shape.max_tokens) is not None
        ]
        if counted:
            bounded = await shelf.put_aside_together(
                [calls[n] for n in counted], [outcomes[n] for n in counted], policy.blob_bytes
            )
            for n, outcome in zip(counted, bounded, strict=True):
                outcomes[n] = outcome
        return outcomes

    return handle


def _with_content(outcome: Outcome, content: list[JsonObject]) -> Outcome:
    if outcome.result is None or not content:
        return outcome
    return replace(outcome, result=CallResult({**outcome.result.wire, "content": content}))
