from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from pegboard.core.events import (
    BreakerChanged,
    CallFinished,
    CallStarted,
    ListAnswered,
    StoreStateChanged,
    UpstreamStateChanged,
)
from pegboard.observe.prometheus import Prometheus


def figures(prometheus: Prometheus) -> dict[tuple[str, ...], float]:
    text = prometheus.exposition().decode()
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_calls_are_counted_by_face_server_and_outcome() -> None:
    prometheus = Prometheus()
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
            face="proxy",
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
    prometheus = Prometheus()
    assert figures(prometheus)[("pegboard_store_shared",)] == 1
    prometheus.record(StoreStateChanged(at=0, available=False))
    prometheus.record(UpstreamStateChanged(at=0, upstream="a", state="ready"))
    prometheus.record(BreakerChanged(at=0, scope="tool", name="a.b", state="open"))
    prometheus.record(ListAnswered(at=0, face="proxy", tools=4, duration=0.01, tokens=300))
    seen = figures(prometheus)
    assert seen[("pegboard_store_shared",)] == 0
    assert seen[("pegboard_upstream_up", "a")] == 1
    assert seen[("pegboard_breaker_open", "a.b", "tool")] == 1
    assert seen[("pegboard_tokens_total", "list", "proxy")] == 300


def test_no_figure_is_labelled_by_tool_or_person() -> None:
    prometheus = Prometheus()
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
