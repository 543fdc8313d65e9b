"""OpenTelemetry metrics: the figures of `/metrics`, for those who collect them by OTLP.

Needs `opentelemetry-api` alone; without an SDK, set up by the application or by `otel_setup`, every
instrument is a no-op. Attributes are faces, servers and outcomes, never tools or people.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pegboard.core.events import (
    AnswerSent,
    BreakerChanged,
    CallFinished,
    CallRetried,
    CallStarted,
    CallUnmade,
    DescribeAnswered,
    Event,
    ListAnswered,
    SearchAnswered,
    StoreStateChanged,
    UpstreamStateChanged,
)
from pegboard.core.rollout import ArmName, Figures, Rollout

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter


class Meters:
    """An observer that records what happens on OpenTelemetry's instruments."""

    def __init__(self, meter: Meter | None = None) -> None:
        made = meter or _meter()
        self._calls = made.create_counter("pegboard.calls", "{call}", "Calls that ended.")
        self._seconds = made.create_histogram("pegboard.call.duration", "s", "How long calls took.")
        self._running = made.create_up_down_counter(
            "pegboard.calls.running", "{call}", "Calls under way."
        )
        self._retries = made.create_counter("pegboard.retries", "{call}", "Calls made again.")
        self._tokens = made.create_counter(
            "pegboard.tokens", "{token}", "Tokens sent to models, and kept from them."
        )
        self._asked = made.create_histogram(
            "pegboard.question.duration", "s", "How long lists, searches and descriptions took."
        )
        self._open = made.create_gauge("pegboard.breaker.open", "1", "Whether a breaker is open.")
        self._up = made.create_gauge("pegboard.upstream.up", "1", "Whether a server is ready.")
        self._store = made.create_gauge(
            "pegboard.store.shared", "1", "Whether the shared store answers."
        )

    def record(self, event: Event) -> None:
        """Record one event."""
        match event:
            case CallStarted():
                self._running.add(1)
            case CallFinished():
                self._finished(event)
            case CallUnmade():
                said = {"outcome": "refused", "error.type": event.error}
                self._calls.add(1, {"pegboard.face": event.face or "", **said})
            case CallRetried():
                self._retries.add(1, {"pegboard.upstream": event.upstream or ""})
            case AnswerSent():
                self._tokens.add(event.tokens, {"pegboard.face": event.face, "kind": event.what})
            case ListAnswered() | SearchAnswered() | DescribeAnswered():
                kind = event.kind.partition(".")[0]
                self._asked.record(event.duration, {"pegboard.face": event.face, "kind": kind})
            case BreakerChanged() | UpstreamStateChanged() | StoreStateChanged():
                self._state(event)
            case _:
                pass

    def _finished(self, event: CallFinished) -> None:
        where = {"pegboard.face": event.face or "", "pegboard.upstream": event.upstream or ""}
        self._running.add(-1)
        self._calls.add(1, {**where, "outcome": event.outcome, "error.type": event.error or ""})
        self._seconds.record(event.duration, where)
        if event.tokens_out is not None and event.tokens_out_before is not None:
            saved = max(0, event.tokens_out_before - event.tokens_out)
            self._tokens.add(saved, {"pegboard.face": event.face or "", "kind": "saved"})

    def _state(self, event: BreakerChanged | UpstreamStateChanged | StoreStateChanged) -> None:
        match event:
            case BreakerChanged():
                about = {"scope": event.scope, "name": event.name}
                self._open.set(int(event.state != "closed"), about)
            case UpstreamStateChanged():
                self._up.set(int(event.state == "ready"), {"pegboard.upstream": event.upstream})
            case StoreStateChanged():
                self._store.set(int(event.available))


class ArmMeters:
    """The figures of a rollout's arms on OpenTelemetry's instruments."""

    def __init__(self, meter: Meter | None = None) -> None:
        made = meter or _meter()
        self._calls = made.create_counter("pegboard.rollout.calls", "{call}", "Calls of an arm.")
        self._errors = made.create_counter("pegboard.rollout.errors", "{call}", "Failed ones.")
        self._seconds = made.create_histogram(
            "pegboard.rollout.call.duration", "s", "How long they took."
        )
        self._sessions = made.create_counter(
            "pegboard.rollout.sessions", "{session}", "Times that clients asked for the list."
        )
        self._searches = made.create_counter("pegboard.rollout.searches", "{search}", "Searches.")
        self._tokens = made.create_counter(
            "pegboard.rollout.tokens", "{token}", "Tokens sent to models."
        )

    def __call__(self, rollout: Rollout, arm: ArmName, figures: Figures) -> None:
        """Record what one arm did."""
        which = {"pegboard.face": rollout.face, "arm": arm}
        self._calls.add(figures.calls, which)
        self._errors.add(figures.errors, which)
        self._sessions.add(figures.lists, which)
        self._searches.add(figures.searches, which)
        self._tokens.add(figures.tokens, which)
        if figures.calls:
            self._seconds.record(figures.seconds, which)


def _meter() -> Meter:
    from opentelemetry import metrics

    return metrics.get_meter("pegboard")
