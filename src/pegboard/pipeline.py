"""The path of a call, put together: which layers there are, and in which order.

    call
     │   observe      an id, a duration and an outcome for everything below
     │   (further)    permissions, locks and rate limits: `Parts.layers`
     │   enabled      refuses a tool that is switched off, warns of a deprecated one
     │   searches     learns which tools are called after which searches
     │   spill        stores a result that is too large; the caller gets a preview and a handle
     │   blobs        stores a large image or file, as a resource
     │   tables       writes records in fewer tokens
     │   compact      removes indentation from JSON in texts
     │   project      selects the requested fields; unknown ones are refused before the call
     │   shapes       learns the fields of results from tools that declare none
     │   sanitize     opt-in: removes invisible characters from results
     │   validate     checks the arguments against the schema
     │   cache        opt-in, read-only; the same call made twice at once runs once
     │   breaker      answers at once for a tool or server that keeps failing
     │   bulkhead     bounds the calls of each server at a time
     │   retry        repeats a call where that is safe
     ▼   timeout      bounds each attempt
    source            runs it: a function, an upstream server, an HTTP operation

`Dispatcher` holds the result for as long as options and parts stay the same, and builds the `View`
that a request gets.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from pegboard.core.calls import Caller, CallResult, ToolCall
from pegboard.core.circuit_breaker import BreakerPolicy
from pegboard.core.json import JsonObject
from pegboard.core.options import Options
from pegboard.core.results.result_pages import PageRequest
from pegboard.core.results.shapes import OutputContract
from pegboard.core.results.spill_notice import SpillPolicy
from pegboard.core.token_budget import Count
from pegboard.core.tools import Catalog, Schemas, Tool
from pegboard.dispatch.blobs import blob_layer, limit_blobs_together
from pegboard.dispatch.breaker import breaker
from pegboard.dispatch.bulkhead import Bound, BulkheadPolicy, bulkhead
from pegboard.dispatch.call_events import ObserveOptions, observe
from pegboard.dispatch.compact_text import compact_layer
from pegboard.dispatch.enabled import check_enabled
from pegboard.dispatch.fan_out import call_many
from pegboard.dispatch.learn_from_calls import learn_from_calls
from pegboard.dispatch.learned_searches import LearnedSearches
from pegboard.dispatch.learned_shapes import LearnedShapes
from pegboard.dispatch.project import projection_layer
from pegboard.dispatch.result_cache import CachePolicy, cache_layer
from pegboard.dispatch.retry import RetryPolicy, retry
from pegboard.dispatch.sanitize_results import sanitize_results
from pegboard.dispatch.spill import ValueStorage, read_result, read_stored, spill_layer
from pegboard.dispatch.tables import TablePolicy, table_layer
from pegboard.dispatch.timeout import TimeoutPolicy, timeout
from pegboard.dispatch.validate import validate
from pegboard.modes.mode import FanOut, View, ViewRequest
from pegboard.observe.call_history import CallHistory
from pegboard.observe.logs import EventLog
from pegboard.observe.otel import CallSpans, OtelMetrics
from pegboard.observe.statistics import CombinedObserver, InFlight, LiveStatistics
from pegboard.ports import Handler, Layer, Observer, Records, Sandbox, Store
from pegboard.store.memory import MemoryStore
from pegboard.tokens import count_or_estimate, count_tokens

if TYPE_CHECKING:
    from pegboard.core.search import SearchIndex
    from pegboard.programs.runner import ProgramRunner
    from pegboard.programs.scope import RunRequest

_EXACT_MODES = (None, "eager", "stub")
"""Modes, and the in-process call, in which a result must match its advertised output schema."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What the layers are built with, apart from the options."""

    store: Store = field(default_factory=MemoryStore)
    in_flight: InFlight = field(default_factory=InFlight)
    live: LiveStatistics = field(default_factory=LiveStatistics)
    history: CallHistory = field(default_factory=CallHistory)
    observers: tuple[Observer, ...] = ()
    """Receive every event, in addition to `in_flight`, `live`, `history`, the log and
    OpenTelemetry."""
    count: Callable[[str], int] | None = None
    """Counts the tokens of answers, where metrics or a rollout need them."""
    alternatives: Callable[[ToolCall], Iterable[Tool]] = lambda call: ()
    """Tools to suggest in place of one whose breaker is open."""
    is_closed: Callable[[Tool], bool] = lambda tool: False
    """Whether a tool is known to accept only the parameters that its schema names."""
    shapes: LearnedShapes = field(default_factory=LearnedShapes)
    """What was learned about the results of tools that declare no output schema."""
    sandbox: Sandbox | None = None
    """Where programs run; by default the bundled one, with the first program."""
    runs: Records | None = None
    """Where runs that wait for consent are stored, and what runs did; by default in `store`."""
    searches: LearnedSearches = field(default_factory=LearnedSearches)
    """What was learned about which tools are called after which searches."""
    layers: tuple[Layer, ...] = ()
    """Further layers, just inside `observe`: permissions, locks, rate limits."""

    @cached_property
    def observer(self) -> Observer:
        """All observers, combined into one."""
        return CombinedObserver(
            self.in_flight,
            self.live,
            self.history,
            EventLog(),
            CallSpans(),
            OtelMetrics(),
            *self.observers,
        )


@dataclass(frozen=True)
class Dispatcher:
    """What carries out the requests of a board, built once for its options and parts."""

    options: Options
    parts: Parts
    call: Handler
    """Carries out one call through every layer."""

    def view(
        self,
        catalog: Catalog,
        caller: Caller,
        request: ViewRequest,
        *,
        options: Options,
        index: Callable[[], SearchIndex],
        has_risk: bool,
        **known: Any,
    ) -> View:
        """What one caller may see and do during one request; the only place that builds a `View`.

        Args:
            catalog: The tools that the caller may see.
            caller: Who sent the request.
            request: What the request says apart from that.
            options: The options as they are now: pins may have changed since the layers were built.
            index: Gives the search index, for requests that search.
            has_risk: Whether any tool declares its risk: `risk = "auto"` then splits call tools.
            known: Further fields of `View`, as far as the board knows them.
        """
        return View(
            catalog=catalog,
            options=options,
            index=index,
            dispatch=self.call,
            fan_out=self.fan_out,
            read_result=self.read_result if self._stores_results else None,
            read_resource=self.read_resource if self._stores_results else None,
            run_program=self.run_program,
            session=request.get("session"),
            caller=caller,
            splits_risk=has_risk if options.risk == "auto" else options.risk == "split",
            observer=self.parts.observer,
            count=self.parts.count,
            shapes=self.parts.shapes if options.learn_shapes else None,
            searches=None if options.learn_searches == "off" else self.parts.searches,
            structured=request.get("structured", False) or options.structured,
            params=request.get("params") or {},
            request=request.get("request"),
            **known,
        )

    @cached_property
    def fan_out(self) -> FanOut | None:
        """Makes the calls of a batch, if that is offered at all."""
        options = self.options
        if not options.fan_out:
            return None
        run = partial(
            call_many,
            self.call,
            max_concurrency=options.max_parallel,
            deadline=options.fan_out_deadline,
            changes_in_order=True,
        )
        if not self._stores_results:
            return run
        # Each call has stored its own large blobs by now; many small ones may still be too much.
        return limit_blobs_together(
            run,
            store=self.parts.store,
            clock=time.time,
            random=os.urandom,
            policy=_spill_policy(options),
        )

    @cached_property
    def programs(self) -> ProgramRunner:
        """Runs programs; built with the first one."""
        # The extra `code` may be missing, and most boards never run a program.
        from pegboard.programs.runner import ProgramRunner
        from pegboard.sandbox.monty import MontySandbox

        code, parts = self.options.code, self.parts
        runs = parts.store if parts.runs is None else parts.runs
        return ProgramRunner(code, parts.sandbox or MontySandbox(code), runs, parts.observer)

    async def run_program(
        self, view: View, request: RunRequest, *, is_library: bool = False
    ) -> CallResult:
        """Run a program for the caller of a view, and answer as a tool would.

        `is_library` is for a caller in this process, who gets the value itself.
        """
        from pegboard.programs.client_consent import choose_consent, input_required
        from pegboard.programs.runner import (
            finish_result,
            stopped_result,
            value_result,
            wrap_value,
        )
        from pegboard.programs.scope import build_scope

        if request.may_write and not is_library:
            ask, channel = choose_consent(view)
            if request.resume is None:
                request = replace(request, consent=ask, channel=channel)
            else:
                request = replace(request, consent=ask)
        scope = build_scope(
            view, self.call, strict=self.options.strict_risk, storage=self._value_storage
        )
        report = await self.programs.run(scope, request)
        # The client asks its user itself and calls again. Any other way to ask is described in the
        # result.
        if report.ran == "waiting" and request.channel == "client":
            return input_required(report)
        if report.ran != "finished":
            structured = is_library or view.structured
            return finish_result(stopped_result(report, structured=structured), report)
        if is_library:
            wire = value_result(report).wire
            shaped = CallResult({**wire, "structuredContent": wrap_value(report.value)})
        else:
            shaped = await self._shape(value_result(report), view, request.via)
        return finish_result(shaped, report)

    async def replay_program(self, view: View, run: str) -> CallResult:
        """Repeat a recorded run of the caller of a view, without making any call."""
        from pegboard.programs.runner import finish_result, stopped_result, value_result
        from pegboard.programs.scope import build_scope

        scope = build_scope(
            view, self.call, strict=self.options.strict_risk, storage=self._value_storage
        )
        report = await self.programs.replay(scope, run)
        if report.ran != "finished":
            return finish_result(stopped_result(report, structured=True), report)
        return finish_result(value_result(report), report)

    @property
    def _value_storage(self) -> ValueStorage:
        policy = _spill_policy(self.options)
        return ValueStorage(self.parts.store, time.time, os.urandom, policy.ttl)

    async def _shape(self, result: CallResult, view: View, via: str) -> CallResult:
        """A value as any result: a table where that saves tokens, a preview where it is large."""

        async def return_value(call: ToolCall) -> CallResult:
            return result

        # A stand-in: the value of a program comes from many tools, and limits by tool do not apply
        # to it.
        tool = Tool(via, lambda: Schemas({}), id=via)
        call = ToolCall(tool, {}, caller=view.caller, via=via, params=view.params)
        return await compose(_result_layers(self.options, self.parts), return_value)(call)

    @property
    def _stores_results(self) -> bool:
        return self.options.spill_tokens is not None

    async def read_result(self, arguments: JsonObject, caller: Caller) -> CallResult:
        """Answer `read_result`: one page of a stored result."""
        page = await read_result(
            arguments["handle"],
            PageRequest(**{k: v for k, v in arguments.items() if k != "handle"}),
            store=self.parts.store,
            caller=caller,
            clock=time.time,
            count=_token_counter(self.options),
            policy=_spill_policy(self.options),
        )
        return CallResult.json(page, structured=self.options.structured)

    async def read_resource(self, uri: str, caller: Caller) -> JsonObject:
        """Answer `resources/read` for a stored result."""
        return await read_stored(uri, store=self.parts.store, caller=caller, clock=time.time)


def build_pipeline(options: Options, run: Handler, parts: Parts) -> Handler:
    """The handler that carries out a call through every layer; `run` is the innermost."""
    layers: list[Layer] = [
        observe(
            ObserveOptions(
                observer=parts.observer,
                count=partial(count_or_estimate, tokenizer=options.tokenizer),
            )
        ),
        *parts.layers,  # inside `observe`, so that refused calls are recorded too
        check_enabled,
        *([] if options.learn_searches == "off" else [learn_from_calls(parts.searches)]),
        *_result_layers(options, parts),
        # Outside the cache and the breaker: an invalid call must neither be cached nor count as
        # a failure of the tool.
        validate(coerce=options.coerce, is_closed=parts.is_closed),
        # Outside the breaker: a cached result is served even while the tool is failing.
        cache_layer(clock=time.monotonic, policy=CachePolicy(ttl=options.cache)),
        breaker(
            store=parts.store,
            policy=BreakerPolicy(
                failures=options.breaker_failures, cooldown=options.breaker_cooldown
            ),
            observer=parts.observer,
            alternatives=parts.alternatives,
        ),
        bulkhead(
            BulkheadPolicy(
                default=Bound(running=options.upstream_concurrency, waiting=options.upstream_queue)
            )
        ),
        # Inside the breaker and the bulkhead: a retried call counts once, and holds one slot.
        retry(policy=RetryPolicy(attempts=options.attempts), observer=parts.observer),
        timeout(TimeoutPolicy(default=options.timeout)),
    ]
    return compose(layers, run)


def compose(layers: Sequence[Layer], handler: Handler) -> Handler:
    """The handler inside all layers; the first layer sees a call first and its result last."""
    # From the inside out: each layer wraps everything that was composed before it.
    for layer in reversed(layers):
        handler = layer(handler)
    return handler


def _result_layers(options: Options, parts: Parts) -> list[Layer]:
    layers: list[Layer] = []
    if options.spill_tokens is not None:
        layers.append(
            spill_layer(
                store=parts.store,
                clock=time.time,
                random=os.urandom,
                count=_token_counter(options),
                policy=_spill_policy(options),
                structured=options.structured,
                contract=_output_contract,
            )
        )
        layers.append(
            blob_layer(
                store=parts.store,
                clock=time.time,
                random=os.urandom,
                policy=_spill_policy(options),
                contract=_output_contract,
            )
        )
    if options.tables:
        layers.append(
            table_layer(
                count=_token_counter(options),
                policy=TablePolicy(saving=options.table_saving),
                structured=options.structured,
                contract=_output_contract,
            )
        )
    layers.append(
        compact_layer(
            count=_token_counter(options), structured=options.structured, contract=_output_contract
        )
    )
    layers.append(projection_layer(count=_token_counter(options)))
    if options.learn_shapes:
        layers.append(learn_from_calls(parts.shapes))  # inside the projection: from whole results
    return [*layers, sanitize_results] if options.clean_results else layers


def _output_contract(call: ToolCall) -> OutputContract:
    """What the client knows about the form of a result: the listed schema, or nothing at all."""
    if call.via is not None:
        return "nothing"  # a meta-tool has no output schema of its own
    if call.caller.mode in _EXACT_MODES:
        return "exact"
    return "relaxed" if call.tool.output_schema is not None else "nothing"


def _token_counter(options: Options) -> Count:
    return partial(count_tokens, tokenizer=options.tokenizer)


def _spill_policy(options: Options) -> SpillPolicy:
    return SpillPolicy(
        tokens=options.spill_tokens,
        per_tool=options.spill_per_tool,
        ttl=options.spill_ttl,
        blob_bytes=options.spill_bytes,
    )
