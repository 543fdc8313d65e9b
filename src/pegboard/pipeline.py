"""A call's whole way, put together: which layers there are, and in which order.

observe          an id, a duration and an outcome for everything below
permit         switched on? deprecated?
spill        too large a result stays here, with a preview and a handle
blobs       and too large an image as a resource
tables     records in fewer tokens
project  the fields that were asked for; unknown ones are refused before the call
clean   opt-in: no invisible characters in results
validate    arguments against the schema
cache     opt-in, read-only; the same call twice at once runs once
breaker   a tool or upstream that keeps failing answers at once
bulkhead  so many calls per upstream at a time
retry     where repeating is safe
timeout   each attempt
run
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property, partial

from pegboard.core.breaker import BreakerPolicy
from pegboard.core.calls import Caller, CallResult, ToolCall
from pegboard.core.json import JsonObject
from pegboard.core.options import Options
from pegboard.core.results.result_pages import PageRequest
from pegboard.core.results.shapes import OutputContract
from pegboard.core.results.spill_notice import SpillPolicy
from pegboard.core.token_budget import Count
from pegboard.core.tools import Tool
from pegboard.dispatch.blobs import FanOut, blob_layer, limit_blobs_together
from pegboard.dispatch.breaker import breaker
from pegboard.dispatch.bulkhead import Bound, BulkheadPolicy, bulkhead
from pegboard.dispatch.call_events import ObserveOptions, observe
from pegboard.dispatch.enabled import check_enabled
from pegboard.dispatch.fan_out import call_many
from pegboard.dispatch.layers import compose
from pegboard.dispatch.project import projection_layer
from pegboard.dispatch.result_cache import CachePolicy, cache_layer
from pegboard.dispatch.retry import RetryPolicy, retry
from pegboard.dispatch.sanitize_results import sanitize_results
from pegboard.dispatch.spill import read_result, read_stored, spill_layer
from pegboard.dispatch.tables import TablePolicy, table_layer
from pegboard.dispatch.timeout import TimeoutPolicy, timeout
from pegboard.dispatch.validate import validate
from pegboard.observe.logs import EventLog
from pegboard.observe.observers import CombinedObserver, InFlight
from pegboard.observe.otel import CallSpans, OtelMetrics
from pegboard.observe.statistics import LiveStatistics
from pegboard.ports import Handler, Layer, Observer, Store
from pegboard.store.memory import MemoryStore
from pegboard.tokens import count_or_estimate, count_tokens

_AS_TODAY = (None, "eager", "stub")
"""Modes, and the in-process call, whose results nobody expects in another form."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What the layers are made with, beside the options."""

    store: Store = field(default_factory=MemoryStore)
    in_flight: InFlight = field(default_factory=InFlight)
    live: LiveStatistics = field(default_factory=LiveStatistics)
    observers: tuple[Observer, ...] = ()
    """Told of every event beside `in_flight`, `live`, the log and OpenTelemetry."""
    count: Callable[[str], int] | None = None
    """Counts the tokens of what is answered, where somebody wants to know them."""
    alternatives: Callable[[ToolCall], Iterable[Tool]] = lambda call: ()
    is_closed: Callable[[Tool], bool] = lambda tool: False
    """Whether a tool is known to take no parameters but those that its schema names."""
    layers: tuple[Layer, ...] = ()
    """Further layers, just inside `observe`: permissions, locks, rate limits."""

    @cached_property
    def observer(self) -> Observer:
        """Everyone who is told of events, as one."""
        told = (self.in_flight, self.live, EventLog(), CallSpans(), OtelMetrics(), *self.observers)
        return CombinedObserver(*told)


def build_pipeline(options: Options, run: Handler, parts: Parts) -> Handler:
    """The handler that carries out a call through every layer."""
    layers: list[Layer] = [
        observe(
            ObserveOptions(
                observer=parts.observer,
                count=partial(count_or_estimate, tokenizer=options.tokenizer),
            )
        ),
        *parts.layers,
        check_enabled,
        *_result_layers(options, parts),
        validate(coerce=options.coerce, is_closed=parts.is_closed),
        *_running_layers(options, parts),
    ]
    return compose(layers, run)


def build_fan_out(options: Options, dispatch: Handler, parts: Parts) -> FanOut | None:
    """What makes several calls side by side, if that is offered at all."""
    if not options.fan_out:
        return None
    run = partial(
        call_many,
        dispatch,
        max_concurrency=options.max_parallel,
        deadline=options.fan_out_deadline,
    )
    if options.spill_tokens is None:
        return run
    return limit_blobs_together(
        run,
        store=parts.store,
        clock=time.time,
        random=os.urandom,
        policy=_spill_policy(options),
    )


def build_result_reader(
    options: Options, parts: Parts
) -> Callable[[JsonObject, Caller], Awaitable[CallResult]] | None:
    """What answers `read_result`, if results are kept back at all."""
    if options.spill_tokens is None:
        return None

    async def read(arguments: JsonObject, caller: Caller) -> CallResult:
        reading = PageRequest(**{k: v for k, v in arguments.items() if k != "handle"})
        page = await read_result(
            arguments["handle"],
            reading,
            store=parts.store,
            caller=caller,
            clock=time.time,
            count=token_counter(options),
            policy=_spill_policy(options),
        )
        return CallResult.json(page, structured=options.structured)

    return read


def build_resource_reader(
    options: Options, parts: Parts
) -> Callable[[str, Caller], Awaitable[JsonObject]] | None:
    """What answers `resources/read` for results that were kept, if any are."""
    if options.spill_tokens is None:
        return None

    async def read(uri: str, caller: Caller) -> JsonObject:
        return await read_stored(uri, store=parts.store, caller=caller, clock=time.time)

    return read


def _result_layers(options: Options, parts: Parts) -> list[Layer]:
    layers: list[Layer] = []
    if options.spill_tokens is not None:
        layers.append(
            spill_layer(
                store=parts.store,
                clock=time.time,
                random=os.urandom,
                count=token_counter(options),
                policy=_spill_policy(options),
                structured=options.structured,
                promise=promise_for,
            )
        )
        layers.append(
            blob_layer(
                store=parts.store,
                clock=time.time,
                random=os.urandom,
                policy=_spill_policy(options),
                promise=promise_for,
            )
        )
    if options.tables:
        layers.append(
            table_layer(
                count=token_counter(options),
                policy=TablePolicy(saving=options.table_saving),
                structured=options.structured,
                promise=promise_for,
            )
        )
    layers.append(projection_layer(count=token_counter(options)))
    return [*layers, sanitize_results] if options.clean_results else layers


def _running_layers(options: Options, parts: Parts) -> list[Layer]:
    return [
        cache_layer(clock=time.monotonic, policy=CachePolicy(ttl=options.cache)),
        breaker(
            store=parts.store,
            policy=BreakerPolicy(
                failures=options.breaker_failures, cooldown=options.breaker_cooldown
            ),
            observer=parts.observer,
            alternatives=parts.alternatives,
        ),
        bulkhead(BulkheadPolicy(default=_bound(options))),
        retry(policy=RetryPolicy(attempts=options.attempts), observer=parts.observer),
        timeout(TimeoutPolicy(default=options.timeout)),
    ]


def promise_for(call: ToolCall) -> OutputContract:
    """What the client knows of a result's form: what was listed, or nothing behind a meta-tool."""
    if call.via is not None:
        return "nothing"
    if call.caller.mode in _AS_TODAY:
        return "exact"
    return "relaxed" if call.tool.output_schema is not None else "nothing"


def token_counter(options: Options) -> Count:
    """What counts tokens on this board."""
    return partial(count_tokens, tokenizer=options.tokenizer)


def _bound(options: Options) -> Bound:
    return Bound(running=options.upstream_concurrency, waiting=options.upstream_queue)


def _spill_policy(options: Options) -> SpillPolicy:
    return SpillPolicy(
        tokens=options.spill_tokens,
        per_tool=options.spill_per_tool,
        ttl=options.spill_ttl,
        blob_bytes=options.spill_bytes,
    )
