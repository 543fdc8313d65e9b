from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from pegboard.core.events import (
    AnswerSent,
    BreakerChanged,
    CallFinished,
    CallRejected,
    CallStarted,
    ListAnswered,
    StoreStateChanged,
    UpstreamStateChanged,
)
from pegboard.core.mode_rollout import ArmStatistics, Rollout
from pegboard.observe.prometheus import PrometheusMetrics


def figures(prometheus: PrometheusMetrics) -> dict[tuple[str, ...], float]:
    text = prometheus.exposition().decode()
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_calls_are_counted_by_mode_server_and_outcome() -> None:
    prometheus = PrometheusMetrics()
    prometheus.record(CallStarted(at=0, id="1", tool="a.b"))
    assert figures(prometheus)[("pegboard_calls_running",)] == 1
    prometheus.record(
        CallFinished(
            at=0,
            id="1",
            tool="a.b",
            duration=0.2,
            outcome="failed",
            error="timeout",
            upstream="a",
            mode="proxy",
            tokens_out=10,
            tokens_out_before=100,
        )
    )
    seen = figures(prometheus)
    assert seen[("pegboard_calls_running",)] == 0
    assert seen[("pegboard_calls_total", "a", "failed", "proxy", "timeout")] == 1
    assert seen[("pegboard_call_seconds_sum", "a", "proxy")] == 0.2
    assert seen[("pegboard_tokens_total", "proxy", "saved")] == 90


def test_states_are_gauges() -> None:
    prometheus = PrometheusMetrics()
    assert figures(prometheus)[("pegboard_store_shared",)] == 1
    prometheus.record(StoreStateChanged(at=0, available=False))
    prometheus.record(UpstreamStateChanged(at=0, upstream="a", state="ready"))
    prometheus.record(BreakerChanged(at=0, scope="tool", name="a.b", state="open"))
    prometheus.record(ListAnswered(at=0, mode="proxy", tools=4, duration=0.01))
    prometheus.record(AnswerSent(at=0, mode="proxy", what="tools/list", tokens=300))
    seen = figures(prometheus)
    assert seen[("pegboard_store_shared",)] == 0
    assert seen[("pegboard_upstream_up", "a")] == 1
    assert seen[("pegboard_breaker_open", "a.b", "tool")] == 1
    assert seen[("pegboard_questions_total", "list", "proxy")] == 1
    assert seen[("pegboard_tokens_total", "proxy", "tools/list")] == 300


def test_a_call_that_was_not_made_counts_as_refused() -> None:
    prometheus = PrometheusMetrics()
    prometheus.record(CallRejected(at=0, name="x", error="not_found", arguments="", mode="proxy"))
    assert figures(prometheus)[("pegboard_calls_total", "", "not_found", "proxy", "refused")] == 1


def test_the_arms_of_a_rollout_stand_side_by_side() -> None:
    prometheus = PrometheusMetrics()
    rollout = Rollout(mode="index", percent=50)
    prometheus.arms(rollout, "control", ArmStatistics(lists=1, tokens=40))
    prometheus.arms(rollout, "candidate", ArmStatistics(calls=1, errors=1, seconds=0.2))
    prometheus.arms(rollout, "candidate", ArmStatistics(searches=1, tokens=7))
    seen = figures(prometheus)
    assert seen[("pegboard_rollout_sessions_total", "control", "index")] == 1
    assert seen[("pegboard_rollout_tokens_total", "control", "index")] == 40
    assert seen[("pegboard_rollout_tokens_total", "candidate", "index")] == 7
    assert seen[("pegboard_rollout_calls_total", "candidate", "index")] == 1
    assert seen[("pegboard_rollout_errors_total", "candidate", "index")] == 1
    assert seen[("pegboard_rollout_searches_total", "candidate", "index")] == 1
    assert seen[("pegboard_rollout_call_seconds_sum", "candidate", "index")] == 0.2
    assert seen[("pegboard_rollout_call_seconds_count", "candidate", "index")] == 1


def test_no_figure_is_labelled_by_tool_or_person() -> None:
    prometheus = PrometheusMetrics()
    for number in range(50):
        prometheus.record(
            CallFinished(
                at=0,
                id="1",
                tool=f"a.t{number}",
                duration=0.1,
                outcome="ok",
                upstream="a",
                principal=f"user{number}",
            )
        )
    assert b"user1" not in prometheus.exposition()
    assert b"a.t1" not in prometheus.exposition()
