"""Several calls in parallel: outcomes in order, each with its own error, within one deadline.

A model that sends "post the message, then pin it" in one batch expects that order. So in
batches from models, calls that change something run one at a time, in the order given; only reads
between two changes run in parallel:

    read read | write | read | write | write
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence

import anyio

from pegboard.core import defaults
from pegboard.core.calls import Call, CallResult, Outcome, ToolCall
from pegboard.core.json import JsonObject
from pegboard.core.results.shapes import error_to_json
from pegboard.core.risk import surely_changes
from pegboard.errors import InvalidArguments, PegboardError, ToolError, UpstreamTimeout
from pegboard.ports import Handler

logger = logging.getLogger(__name__)

MAX_CALLS = 1_000


async def call_many(
    run: Handler,
    calls: Sequence[ToolCall],
    *,
    max_concurrency: int = defaults.FAN_OUT_CONCURRENCY,
    deadline: float | None = None,
    changes_in_order: bool = False,
    timer: Callable[[], float] = time.perf_counter,
) -> list[Outcome]:
    """One outcome per call, in the order of the calls.

    Args:
        run: Carries out one call, through all its layers.
        calls: At most `MAX_CALLS`.
        max_concurrency: How many run at a time.
        deadline: Seconds for all of them; a call that has not finished by then is canceled and its
            outcome says so, one that has finished keeps its outcome.
        changes_in_order: Whether a call that changes something waits for all calls before it, and
            those after it wait for it.
        timer: Seconds since anything, for durations.

    Raises:
        InvalidArguments: Too many calls, or limits that let none run.
    """
    if len(calls) > MAX_CALLS:
        raise InvalidArguments(
            f"{len(calls):,} calls at once are too many: at most {MAX_CALLS:,}. Send several "
            "smaller batches.",
            field="calls",
            expected=MAX_CALLS,
        )
    if max_concurrency < 1 or (deadline is not None and deadline <= 0):
        raise InvalidArguments(
            "`max_concurrency` must be at least 1 and `deadline` positive; got "
            f"max_concurrency={max_concurrency}, deadline={deadline}."
        )
    outcomes: list[Outcome | None] = [None] * len(calls)
    started: dict[int, float] = {}

    async def work(turns: Iterator[int]) -> None:
        # All workers share one iterator: each takes the next call as soon as it is free.
        for n in turns:
            started[n] = timer()
            outcomes[n] = await _run_one(run, calls[n], started[n], timer)

    # Not `fail_after`: what has finished by the deadline is still returned.
    with anyio.move_on_after(deadline):
        for stage in _split_at_changes(calls) if changes_in_order else [range(len(calls))]:
            turns = iter(stage)
            async with anyio.create_task_group() as workers:
                for _ in range(min(max_concurrency, len(stage))):
                    workers.start_soon(work, turns)
    ended = timer()
    return [
        outcome or _out_of_time(calls[n], deadline or 0.0, started.get(n), ended)
        for n, outcome in enumerate(outcomes)
    ]


def _split_at_changes(calls: Sequence[ToolCall]) -> Iterator[Sequence[int]]:
    """The numbers of the calls in stages, each of which may run in parallel."""
    start = 0
    for n, call in enumerate(calls):
        if surely_changes(call.tool):
            yield from (range(start, n), range(n, n + 1))
            start = n + 1
    yield range(start, len(calls))


async def call_requests(
    run: Handler,
    requests: Sequence[Call],
    make: Callable[[Call], ToolCall],
    *,
    max_concurrency: int,
    deadline: float | None,
) -> list[Outcome]:
    """One outcome per request, in order, also for a request that names no tool.

    Args:
        run: Carries out one call, through all its layers.
        requests: What is to be called.
        make: Resolves a request to a call, or raises the reason why it cannot.
        max_concurrency: How many run at a time.
        deadline: Seconds for all of them.
    """
    prepared: list[ToolCall | Outcome] = []
    for request in requests:
        try:
            prepared.append(make(request))
        except PegboardError as exc:
            prepared.append(failed_outcome(request.name, exc))
    # A request that names no tool is an outcome too, and must not stop the others.
    calls = [p for p in prepared if isinstance(p, ToolCall)]
    ran = iter(await call_many(run, calls, max_concurrency=max_concurrency, deadline=deadline))
    return [p if isinstance(p, Outcome) else next(ran) for p in prepared]


def failed_outcome(name: str, exc: PegboardError) -> Outcome:
    """The outcome of a call that could not be made."""
    return Outcome(name, ok=False, error=error_to_json(exc))


async def _run_one(
    run: Handler, call: ToolCall, began: float, timer: Callable[[], float]
) -> Outcome:
    result: CallResult | None = None
    error: JsonObject | None = None
    try:
        result = await run(call)
        if result.is_error:
            match result.structured:
                case {"error": {"kind": str(), "message": str()} as stated}:
                    error = stated
                case _:
                    texts = [b["text"] for b in result.content if isinstance(b.get("text"), str)]
                    error = {"kind": ToolError.kind, "message": "\n".join(texts)}
    except PegboardError as exc:
        error = error_to_json(exc)
    except Exception as exc:
        # A crash is the outcome of this call alone; raised here, it would cancel all others.
        logger.exception("A call to %s failed unexpectedly.", call.tool.id)
        error = {"kind": "error", "message": f"It failed unexpectedly ({type(exc).__name__})."}
    return Outcome(call.tool.name, error is None, result, error, (timer() - began) * 1000)


def _out_of_time(call: ToolCall, deadline: float, began: float | None, ended: float) -> Outcome:
    what = "was not started" if began is None else "did not finish"
    error = UpstreamTimeout(
        f"{call.tool.name} {what} within the {deadline:g} s given to all calls together. "
        "Make fewer calls at once, or allow more time.",
        tool=call.tool.name,
        timeout=deadline,
    )
    duration = 0.0 if began is None else (ended - began) * 1000
    return Outcome(call.tool.name, ok=False, error=error_to_json(error), duration_ms=duration)
