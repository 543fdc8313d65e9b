"""OpenTelemetry metrics by the real SDK, read in memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from pegboard.core.events import (
    AnswerSent,
    BreakerChanged,
    CallFinished,
    CallRejected,
    CallRetried,
    CallStarted,
    Event,
    SearchAnswered,
    StoreStateChanged,
    UpstreamStateChanged,
)
from pegboard.core.mode_rollout import ArmStatistics, Rollout
from pegboard.errors import ConfigError
from pegboard.observe.otel import OtelMetrics, OtelRolloutMetrics, configure_otel

Point = tuple[str, Mapping[str, object], float]


class Measured:
    """A meter of the SDK, and what it has been given."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self.meter = MeterProvider([self._reader]).get_meter("test")

    @property
    def points(self) -> list[Point]:
        """Name, attributes, and the value; of a histogram, its sum."""
        data = self._reader.get_metrics_data()
        return [
            (metric.name, dict(point.attributes or {}), getattr(point, "value", None) or
             getattr(point, "sum", 0))
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            for point in metric.data.data_points
        ]  # fmt: skip


FINISHED = CallFinished(
    at=0, id="1", tool="a.b", duration=0.25, outcome="failed", error="timeout", upstream="a",
    mode="proxy", principal="ann", tokens_out=10, tokens_out_before=100,
)  # fmt: skip
PROXY = {"pegboard.mode": "proxy"}


@pytest.mark.parametrize(
    ("event", "point"),
    [
        (
            FINISHED,
            (
                "pegboard.calls",
                {
                    **PROXY,
                    "pegboard.upstream": "a",
                    "outcome": "failed",
                    "error.type": "timeout",
                },
                1,
            ),
        ),
        (FINISHED, ("pegboard.call.duration", {**PROXY, "pegboard.upstream": "a"}, 0.25)),
        (FINISHED, ("pegboard.tokens", {**PROXY, "kind": "saved"}, 90)),
        (
            CallRejected(at=0, name="x", error="not_found", arguments="", mode="proxy"),
            ("pegboard.calls", {**PROXY, "outcome": "refused", "error.type": "not_found"}, 1),
        ),
        (
            CallRetried(at=0, id="1", tool="a.b", attempt=1, error="x", delay=0.1, upstream="a"),
            ("pegboard.retries", {"pegboard.upstream": "a"}, 1),
        ),
        (
            AnswerSent(at=0, mode="proxy", what="search_tools", tokens=55),
            ("pegboard.tokens", {**PROXY, "kind": "search_tools"}, 55),
        ),
        (
            SearchAnswered(at=0, mode="proxy", matches=1, duration=0.5),
            ("pegboard.question.duration", {**PROXY, "kind": "search"}, 0.5),
        ),
        (
            BreakerChanged(at=0, scope="tool", name="a.b", state="open"),
            ("pegboard.breaker.open", {"scope": "tool", "name": "a.b"}, 1),
        ),
        (
            UpstreamStateChanged(at=0, upstream="a", state="ready"),
            ("pegboard.upstream.up", {"pegboard.upstream": "a"}, 1),
        ),
        (StoreStateChanged(at=0, available=True), ("pegboard.store.shared", {}, 1)),
    ],
)
def test_an_event_is_recorded_with_what_it_is_about(event: Event, point: Point) -> None:
    measured = Measured()
    OtelMetrics(measured.meter).record(event)
    assert point in measured.points


def test_calls_under_way_are_those_begun_and_not_ended() -> None:
    measured = Measured()
    meters = OtelMetrics(measured.meter)
    for number in range(3):
        meters.record(CallStarted(at=0, id=str(number), tool="a.b"))
    meters.record(FINISHED)
    assert ("pegboard.calls.running", {}, 2) in measured.points


def test_no_attribute_names_a_tool_or_a_person() -> None:
    measured = Measured()
    OtelMetrics(measured.meter).record(FINISHED)
    said = str(measured.points)
    assert "a.b" not in said
    assert "ann" not in said


def test_the_arms_of_a_rollout_are_recorded_apart() -> None:
    measured = Measured()
    told, rollout = OtelRolloutMetrics(measured.meter), Rollout(mode="index", percent=10)
    told(rollout, "control", ArmStatistics(lists=1, tokens=40))
    told(rollout, "candidate", ArmStatistics(calls=1, errors=1, seconds=0.5))
    control = {"pegboard.mode": "index", "arm": "control"}
    candidate = {"pegboard.mode": "index", "arm": "candidate"}
    recorded = measured.points
    for point in [
        ("pegboard.rollout.tokens", control, 40),
        ("pegboard.rollout.sessions", control, 1),
        ("pegboard.rollout.calls", candidate, 1),
        ("pegboard.rollout.errors", candidate, 1),
        ("pegboard.rollout.call.duration", candidate, 0.5),
    ]:
        assert point in recorded


def test_without_an_sdk_nothing_is_recorded_and_nothing_fails() -> None:
    root = Path(__file__).parents[2]
    code = """
from opentelemetry import metrics
from tests.observe.test_otel_metrics import FINISHED, ArmStatistics, Rollout
from pegboard.observe.otel import OtelMetrics, OtelRolloutMetrics
OtelMetrics().record(FINISHED)
OtelRolloutMetrics()(Rollout(mode="index", percent=10), "control", ArmStatistics(calls=1))
print(type(metrics.get_meter_provider()).__name__)
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=root
    )
    assert (ended.stdout, ended.stderr) == ("_ProxyMeterProvider\n", "")


def test_an_exporter_that_is_not_installed_is_an_error_that_says_how_to_get_it() -> None:
    with pytest.raises(ConfigError, match=r"'smoke_signals' for traces.*pegboard\[otel\]"):
        configure_otel({"OTEL_TRACES_EXPORTER": "smoke_signals"})


def test_importing_the_module_does_not_import_opentelemetry() -> None:
    code = "import sys, pegboard.observe.otel; sys.exit('opentelemetry' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
