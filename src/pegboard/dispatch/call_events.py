"""Around all other layers: gives each call an id, times it, and tells what became of it.

Inner layers leave what only they know (served from a cache, spilled, tokens before projection) in
`notes()`; it goes into the `CallFinished` of the call under way.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar, Token
from dataclasses import dataclass, replace

from pegboard.core.calls import CallResult, ToolCall
from pegboard.core.events import CallFinished, CallStarted, EventOutcome
from pegboard.core.json import Json, compact
from pegboard.core.token_budget import Estimate
from pegboard.errors import PegboardError, ToolError, UpstreamError
from pegboard.ports import Handler, Layer, Observer, record_event

logger = logging.getLogger(__name__)

_TRACE_KEYS = ("traceparent", "tracestate", "baggage")


@dataclass(slots=True)
class CallNotes:
    """What the layers found out about one call; filled in while it runs."""

    attempts: int = 1
    cached: bool = False
    spilled: bool = False
    handle: str | None = None
    projected: bool = False
    tokens_in: int | None = None
    tokens_out_before: int | None = None
    tokens_out: int | None = None

    @property
    def is_estimated(self) -> bool:
        """Whether one of the numbers of tokens was not counted."""
        numbers = (self.tokens_in, self.tokens_out_before, self.tokens_out)
        return any(isinstance(number, Estimate) for number in numbers)


_current_notes: ContextVar[CallNotes | None] = ContextVar("pegboard_notes", default=None)


def call_notes() -> CallNotes:
    """The notes of the call under way; a blank sheet that nobody reads outside of one."""
    return _current_notes.get() or CallNotes()


def record_tokens_before(tokens: int) -> None:
    """Note what a result would have cost, unless a layer further in has seen it larger."""
    noted = call_notes()
    if noted.tokens_out_before is None:
        noted.tokens_out_before = tokens


@dataclass(frozen=True, kw_only=True)
class ObserveOptions:
    """How calls are watched.

    Args:
        observer: Told of every `CallStarted` and `CallFinished`, in the task of the call.
        clock: Seconds since the epoch.
        timer: Seconds since anything, for durations.
        new_id: A fresh id, for calls that have none.
        count: Tokens of a text, or an `Estimate`; without it, only what a layer has counted is
            reported.
        keep_arguments: Whether events carry the arguments. Off, no value leaves the call.
    """

    observer: Observer
    clock: Callable[[], float] = time.time
    timer: Callable[[], float] = time.perf_counter
    new_id: Callable[[], str] = lambda: secrets.token_hex(8)
    count: Callable[[str], int] | None = None
    keep_arguments: bool = False


def observe(watching: ObserveOptions) -> Layer:
    """The outermost layer: every call that enters it is told of when it starts and when it ends."""

    def layer(handler: Handler) -> Handler:
        async def observed(call: ToolCall) -> CallResult:
            if not call.id:
                call = replace(call, id=watching.new_id())
            with _Watch(watching, call) as watch:
                watch.result = await handler(call)
                return watch.result

        return observed

    return layer


class _Watch:
    """One call from its start to its end."""

    __slots__ = ("_at", "_began", "_call", "_notes", "_token", "_watching", "result")

    def __init__(self, watching: ObserveOptions, call: ToolCall) -> None:
        self._watching = watching
        self._call = call
        self._notes = CallNotes()
        self.result: CallResult | None = None

    def __enter__(self) -> _Watch:
        self._token: Token[CallNotes | None] = _current_notes.set(self._notes)
        self._at = self._watching.clock()
        record_event(self._watching.observer, self._started())
        self._began = self._watching.timer()
        return self

    def __exit__(self, _kind: object, exc: BaseException | None, _trace: object) -> None:
        duration = self._watching.timer() - self._began
        _current_notes.reset(self._token)
        if self._watching.count is not None:
            self._count(self._watching.count)
        record_event(self._watching.observer, self._finished(duration, exc))

    def _started(self) -> CallStarted:
        call, caller = self._call, self._call.caller
        return CallStarted(
            at=self._at,
            id=call.id,
            tool=call.tool.id,
            upstream=call.tool.server,
            principal=caller.principal,
            client=caller.client,
            mode=caller.mode,
            via=call.via,
            trace=_trace(call.params),
        )

    def _finished(self, duration: float, exc: BaseException | None) -> CallFinished:
        call, caller, noted = self._call, self._call.caller, self._notes
        outcome, error = _ending(self.result, exc)
        return CallFinished(
            at=self._at,
            id=call.id,
            tool=call.tool.id,
            duration=duration,
            outcome=outcome,
            upstream=call.tool.server,
            principal=caller.principal,
            client=caller.client,
            mode=caller.mode,
            via=call.via,
            error=error,
            attempts=noted.attempts,
            cached=noted.cached,
            spilled=noted.spilled,
            projected=noted.projected,
            tokens_in=noted.tokens_in,
            tokens_out_before=noted.tokens_out_before,
            tokens_out=noted.tokens_out,
            tokens_estimated=noted.is_estimated,
            arguments=call.arguments if self._watching.keep_arguments else None,
            handle=noted.handle,
        )

    def _count(self, count: Callable[[str], int]) -> None:
        """Count what no layer has counted; a text that cannot be counted is not worth a call."""
        noted = self._notes
        try:
            if noted.tokens_in is None:
                noted.tokens_in = count(compact(self._call.arguments))
            if noted.tokens_out is None and self.result is not None:
                noted.tokens_out = count(result_text(self.result))
        except Exception:
            logger.exception("The tokens of a call of %s could not be counted.", self._call.tool.id)
        if noted.tokens_out_before is None:
            noted.tokens_out_before = noted.tokens_out


def _ending(
    result: CallResult | None, exc: BaseException | None
) -> tuple[EventOutcome, str | None]:
    match exc:
        case None:
            failed = result is not None and result.is_error
            return ("tool_error", _error_kind(result)) if failed else ("ok", None)
        case ToolError():
            return "tool_error", exc.kind
        case UpstreamError():
            return "failed", exc.kind
        case PegboardError():
            return "refused", exc.kind
        case Exception():
            return "failed", type(exc).__name__
        case _:  # cancelled: by the client, a deadline, or the end of the process
            return "cancelled", None


def _error_kind(result: CallResult | None) -> str:
    match result and result.structured:
        case {"error": {"kind": str(kind)}}:
            return kind
        case _:
            return "tool_error"


def result_text(result: CallResult) -> str:
    """The text that a model is given: the text blocks, or the structured content without any."""
    texts = [b["text"] for b in result.content if isinstance(b.get("text"), str)]
    if texts or result.structured is None:
        return "\n".join(texts)
    return compact(result.structured)


def _trace(params: Mapping[str, Json]) -> dict[str, str]:
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        return {}
    return {k: meta[k] for k in _TRACE_KEYS if isinstance(meta.get(k), str)}
