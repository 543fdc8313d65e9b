"""Prometheus metrics: calls, lists, searches, tokens, breakers, upstreams, the store, rollouts.

Needs `prometheus-client`. Labels are modes, servers and outcomes, whose number the configuration
bounds; tools and principals are not used as labels. With several workers
(`PROMETHEUS_MULTIPROC_DIR` is set) each of them answers with the sum of all.
"""

from __future__ import annotations

import os
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from pegboard.core.events import (
    AnswerSent,
    BreakerChanged,
    CallFinished,
    CallRejected,
    CallRetried,
    CallStarted,
    DescribeAnswered,
    Event,
    ListAnswered,
    SearchAnswered,
    StoreStateChanged,
    UpstreamStateChanged,
)
from pegboard.core.mode_rollout import ArmName, ArmStatistics, Rollout

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class PrometheusMetrics:
    """An observer that counts; `exposition` is what `/metrics` answers."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self._registry = registry or CollectorRegistry()
        own: dict[str, Any] = {"registry": self._registry}
        by_call = ["mode", "server"]
        self._calls = Counter(
            "pegboard_calls", "Calls that ended.", [*by_call, "outcome", "error"], **own
        )
        self._seconds = Histogram(
            "pegboard_call_seconds", "How long calls took.", by_call, buckets=_SECONDS, **own
        )
        self._running = Gauge(
            "pegboard_calls_running", "Calls in progress.", multiprocess_mode="livesum", **own
        )
        self._retries = Counter("pegboard_retries", "Calls made again.", ["server"], **own)
        self._tokens = Counter(
            "pegboard_tokens", "Tokens sent to models, and tokens saved.", ["mode", "kind"], **own
        )
        self._queries = Counter(
            "pegboard_questions", "Lists, searches and descriptions.", ["mode", "kind"], **own
        )
        self._query_seconds = Histogram(
            "pegboard_question_seconds", "How long these took.", ["kind"], buckets=_SECONDS, **own
        )
        self._open = Gauge(
            "pegboard_breaker_open", "Whether a breaker is open.", ["scope", "name"],
            multiprocess_mode="livemax", **own,
        )  # fmt: skip
        self._upstreams = Gauge(
            "pegboard_upstream_up", "Whether a server is running and ready.", ["server"],
            multiprocess_mode="livemax", **own,
        )  # fmt: skip
        self._store = Gauge(
            "pegboard_store_shared", "Whether the shared store answers.",
            multiprocess_mode="livemin", **own,
        )  # fmt: skip
        self._store.set(1)  # an event comes only when this changes
        self.arms = _RolloutMetrics(self._registry)
        """Called with the figures of a rollout's arms."""

    def record(self, event: Event) -> None:
        """Count one event."""
        match event:
            case CallStarted():
                self._running.inc()
            case CallFinished():
                mode, server = event.mode or "", event.upstream or ""
                self._running.dec()
                self._calls.labels(mode, server, event.outcome, event.error or "").inc()
                self._seconds.labels(mode, server).observe(event.duration)
                if event.tokens_out is not None and event.tokens_out_before is not None:
                    saved = max(0, event.tokens_out_before - event.tokens_out)
                    self._tokens.labels(mode, "saved").inc(saved)
            case CallRejected():
                self._calls.labels(event.mode or "", "", "refused", event.error).inc()
            case CallRetried():
                self._retries.labels(event.upstream or "").inc()
            case ListAnswered() | SearchAnswered() | DescribeAnswered():
                kind = event.kind.partition(".")[0]
                self._queries.labels(event.mode, kind).inc()
                self._query_seconds.labels(kind).observe(event.duration)
            case AnswerSent():
                self._tokens.labels(event.mode, event.what).inc(event.tokens)
            case BreakerChanged():
                self._open.labels(event.scope, event.name).set(event.state != "closed")
            case UpstreamStateChanged():
                self._upstreams.labels(event.upstream).set(event.state == "ready")
            case StoreStateChanged():
                self._store.set(event.available)
            case _:
                pass

    def exposition(self) -> bytes:
        """All metrics in Prometheus' text format."""
        if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
            together = CollectorRegistry()
            MultiProcessCollector(together)
            return generate_latest(together)
        return generate_latest(self._registry)


class _RolloutMetrics:
    """Both arms of a rollout; the cost of a session is one counter divided by another."""

    def __init__(self, registry: CollectorRegistry) -> None:
        own: dict[str, Any] = {"labelnames": ["mode", "arm"], "registry": registry}
        self._calls = Counter("pegboard_rollout_calls", "Calls of an arm.", **own)
        self._errors = Counter("pegboard_rollout_errors", "Failed ones.", **own)
        self._seconds = Histogram(
            "pegboard_rollout_call_seconds", "How long they took.", buckets=_SECONDS, **own
        )
        self._sessions = Counter(
            "pegboard_rollout_sessions", "Times that clients requested the list.", **own
        )
        self._searches = Counter("pegboard_rollout_searches", "Searches.", **own)
        self._tokens = Counter("pegboard_rollout_tokens", "Tokens sent to models.", **own)

    def __call__(self, rollout: Rollout, arm: ArmName, figures: ArmStatistics) -> None:
        """Add the figures of one arm."""
        which = (rollout.mode, arm)
        self._calls.labels(*which).inc(figures.calls)
        self._errors.labels(*which).inc(figures.errors)
        self._sessions.labels(*which).inc(figures.lists)
        self._searches.labels(*which).inc(figures.searches)
        self._tokens.labels(*which).inc(figures.tokens)
        if figures.calls:
            self._seconds.labels(*which).observe(figures.seconds)
