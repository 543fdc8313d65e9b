"""Several calls side by side: outcomes in order, each with its own error, within one deadline."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

import anyio

from pegboard.core import defaults
from pegboard.core.calls import Call, CallResult, Outcome, ToolCall
from pegboard.core.json import JsonObject
from pegboard.core.results.shapes import error_to_json
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
    timer: Callable[[], float] = time.perf_counter,
) -> list[Outcome]:
    """One outcome per call, in the order of the calls.

    Args:
        run: Carries out one call, through all its layers.
        calls: At most `MOST_CALLS`.
        max_concurrency: How many run at a time.
        deadline: Seconds for all of them; what has not finished by then is given up and its outcome
            says so, what has finished keeps its outcome.
        timer: Seconds since anything, for durations.

    Raises:
        InvalidArguments: Too many calls, or a bound that lets none run.
    """
    _check(len(calls), max_concurrency, deadline)
    outcomes: list[Outcome | None] = [None] * len(calls)
    started: dict[int, float] = {}
    turns = iter(range(len(calls)))

    async def work() -> None:
        for n in turns:
            started[n] = timer()
            outcomes[n] = await _outcome(run, calls[n], started[n], timer)

    with anyio.move_on_after(deadline):
        async with anyio.create_task_group() as workers:
            for _ in range(min(max_concurrency, len(calls))):
                workers.start_soon(work)
    ended = timer()
    return [
        outcome or _out_of_time(calls[n], deadline or 0.0, started.get(n), ended)
        for n, outcome in enumerate(outcomes)
    ]


async def call_requests(
    run: Handler,
    requests: Sequence[Call],
    make: Callable[[Call], ToolCall],
    *,
    max_concurrency: int,
    deadline: float | None,
) -> list[Outcome]:
    """One outcome per request, in their order, whether or not a call can be made of it.

    Args:
        run: Carries out one call, through all its layers.
        requests: What is to be called.
        make: Gives the call of a request, or raises why there is none.
        max_concurrency: How many run at a time.
        deadline: Seconds for all of them.
    """
    prepared: list[ToolCall | Outcome] = []
    for asked in requests:
        try:
            prepared.append(make(asked))
        except PegboardError as exc:
            prepared.append(failed_outcome(asked.name, exc))
    made = [p for p in prepared if isinstance(p, ToolCall)]
    ran = iter(await call_many(run, made, max_concurrency=max_concurrency, deadline=deadline))
    return [p if isinstance(p, Outcome) else next(ran) for p in prepared]


def failed_outcome(name: str, exc: PegboardError) -> Outcome:
    """The outcome of a call that could not even be made."""
    return Outcome(name, ok=False, error=error_to_json(exc))


async def _outcome(
    run: Handler, call: ToolCall, began: float, timer: Callable[[], float]
) -> Outcome:
    result: CallResult | None = None
    error: JsonObject | None = None
    try:
        result = await run(call)
        if result.is_error:
            error = _error_in(result)
    except PegboardError as exc:
        error = error_to_json(exc)
    except Exception as exc:
        # One call's crash is that call's outcome; the others have theirs.
        logger.exception("A call of %s failed unexpectedly.", call.tool.id)
        error = {"kind": "error", "message": f"It failed unexpectedly ({type(exc).__name__})."}
    return Outcome(call.tool.name, error is None, result, error, (timer() - began) * 1000)


def _error_in(result: CallResult) -> JsonObject:
    """What a result with `isError` says: our own shape where it has one, else its text."""
    match result.structured:
        case {"error": {"kind": str(), "message": str()} as error}:
            return error
        case _:
            texts = [b["text"] for b in result.content if isinstance(b.get("text"), str)]
            return {"kind": ToolError.kind, "message": "\n".join(texts)}


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


def _check(calls: int, max_concurrency: int, deadline: float | None) -> None:
    if calls > MAX_CALLS:
        raise InvalidArguments(
            f"{calls:,} calls at once are too many: at most {MAX_CALLS:,}. Send them in parts.",
            field="calls",
            expected=MAX_CALLS,
        )
    if max_concurrency < 1 or (deadline is not None and deadline <= 0):
        raise InvalidArguments(
            "At least one call must be able to run, in more than no time; got "
            f"max_concurrency={max_concurrency}, deadline={deadline}."
        )
