"""The outermost layer: gives each call an id, times it, and records how it ended.

Inner layers leave what only they know (served from a cache, spilled, tokens before projection) in
`call_notes()`; it goes into the `CallFinished` of the current call:

    CallStarted ──> inner layers ──> CallFinished
                        └─ call_notes().cached = True ─┘
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable
from contextvars import ContextVar, Token
from dataclasses import dataclass, replace

from pegboard.core.call_preview import preview_arguments, preview_message
from pegboard.core.calls import CallResult, ToolCall
from pegboard.core.events import CallFinished, CallStarted, EventOutcome
from pegboard.core.json import compact
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
        """Whether one of the token numbers was not counted."""
        numbers = (self.tokens_in, self.tokens_out_before, self.tokens_out)
        return any(isinstance(number, Estimate) for number in numbers)


_current_notes: ContextVar[CallNotes | None] = ContextVar("pegboard_notes", default=None)


def call_notes() -> CallNotes:
    """The notes of the current call; outside of one, notes that are discarded."""
    return _current_notes.get() or CallNotes()


def record_tokens_before(tokens: int) -> None:
    """Record the tokens of a result before it shrank, unless an inner layer already has.

    The innermost layer sees the largest result.
    """
    notes = call_notes()
    if notes.tokens_out_before is None:
        notes.tokens_out_before = tokens


@dataclass(frozen=True, kw_only=True)
class ObserveOptions:
    """How calls are observed.

    Args:
        observer: Notified of every `CallStarted` and `CallFinished`, in the task of the call.
        clock: Seconds since the epoch.
        timer: Seconds since anything, for durations.
        new_id: A fresh id, for calls that have none.
        count: Tokens of a text, or an `Estimate`; without it, only what a layer has counted is
            reported.
        keep_arguments: Whether events carry the arguments. If not, no value leaves the call.
    """

    observer: Observer
    clock: Callable[[], float] = time.time
    timer: Callable[[], float] = time.perf_counter
    new_id: Callable[[], str] = lambda: secrets.token_hex(8)
    count: Callable[[str], int] | None = None
    keep_arguments: bool = False


def observe(options: ObserveOptions) -> Layer:
    """The outermost layer: records the start and the end of every call that enters it."""

    def layer(inner: Handler) -> Handler:
        async def handle(call: ToolCall) -> CallResult:
            if not call.id:
                call = replace(call, id=options.new_id())
            with _ObservedCall(options, call) as observed:
                observed.result = await inner(call)
                return observed.result

        return handle

    return layer


class _ObservedCall:
    """One call from its start to its end.

    A class, because `contextlib.contextmanager` costs more and this runs on every call.
    """

    __slots__ = ("_at", "_began", "_call", "_notes", "_options", "_token", "result")

    def __init__(self, options: ObserveOptions, call: ToolCall) -> None:
        self._options = options
        self._call = call
        self._notes = CallNotes()
        self.result: CallResult | None = None

    def __enter__(self) -> _ObservedCall:
        call, caller = self._call, self._call.caller
        # A context variable, since a fan-out runs several calls at once in tasks of their own.
        self._token: Token[CallNotes | None] = _current_notes.set(self._notes)
        self._at = self._options.clock()
        meta = call.params.get("_meta")
        trace = meta if isinstance(meta, dict) else {}  # W3C trace context, as MCP carries it
        started = CallStarted(
            at=self._at,
            id=call.id,
            tool=call.tool.id,
            upstream=call.tool.server,
            principal=caller.principal,
            client=caller.client,
            mode=caller.mode,
            via=call.via,
            parent=call.parent,
            trace={k: trace[k] for k in _TRACE_KEYS if isinstance(trace.get(k), str)},
        )
        record_event(self._options.observer, started)
        self._began = self._options.timer()
        return self

    def __exit__(self, _kind: object, exc: BaseException | None, _trace: object) -> None:
        duration = self._options.timer() - self._began  # first: counting is not part of the call
        # Before anything can fail: notes of this call must not leak into the next one.
        _current_notes.reset(self._token)
        if self._options.count is not None:
            self._count(self._options.count)
        call, caller, notes = self._call, self._call.caller, self._notes
        outcome, error = _classify_end(self.result, exc)
        finished = CallFinished(
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
            parent=call.parent,
            error=error,
            attempts=notes.attempts,
            cached=notes.cached,
            spilled=notes.spilled,
            projected=notes.projected,
            tokens_in=notes.tokens_in,
            tokens_out_before=notes.tokens_out_before,
            tokens_out=notes.tokens_out,
            tokens_estimated=notes.is_estimated,
            arguments=call.arguments if self._options.keep_arguments else None,
            handle=notes.handle,
            preview=preview_arguments(call.arguments),
            message=None if outcome == "ok" else _failure_message(self.result, exc),
        )
        record_event(self._options.observer, finished)

    def _count(self, count: Callable[[str], int]) -> None:
        """Count what no layer has counted; a failure to count must not fail the call."""
        notes = self._notes
        try:
            if notes.tokens_in is None:
                notes.tokens_in = count(compact(self._call.arguments))
            if notes.tokens_out is None and self.result is not None:
                notes.tokens_out = count(result_text(self.result))
        except Exception:
            logger.exception("The tokens of a call to %s could not be counted.", self._call.tool.id)
        if notes.tokens_out_before is None:
            notes.tokens_out_before = notes.tokens_out


def _classify_end(
    result: CallResult | None, exc: BaseException | None
) -> tuple[EventOutcome, str | None]:
    """The outcome of a call, and the kind of its error."""
    match exc:
        case None:
            if result is None or not result.is_error:
                return "ok", None
            match result.structured:
                case {"error": {"kind": str(kind)}}:
                    return "tool_error", kind
                case _:
                    return "tool_error", "tool_error"
        case ToolError():
            return "tool_error", exc.kind
        case UpstreamError():
            return "failed", exc.kind
        case PegboardError():
            return "refused", exc.kind
        case Exception():
            return "failed", type(exc).__name__
        case _:  # canceled: by the client, a deadline, or shutdown
            return "cancelled", None


def _failure_message(result: CallResult | None, exc: BaseException | None) -> str | None:
    if isinstance(exc, PegboardError):
        return preview_message(exc.message)
    if result is None:
        return None
    return preview_message(result_text(result)) or None


def result_text(result: CallResult) -> str:
    """The text that a model gets: the text blocks, or the structured content if there are none."""
    texts = [b["text"] for b in result.content if isinstance(b.get("text"), str)]
    if texts or result.structured is None:
        return "\n".join(texts)
    return compact(result.structured)
