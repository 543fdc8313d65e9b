from __future__ import annotations

import json
import random
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.observe.samples import finished, started

from pegboard.core.events import (
    BreakerChanged,
    CallRetried,
    DescribeAnswered,
    ListAnswered,
    SearchAnswered,
    StoreStateChanged,
    UpstreamStateChanged,
)
from pegboard.observe.statistics import OTHERS, Histogram, LiveStatistics


def test_calls_are_counted_by_tool_upstream_mode_and_outcome() -> None:
    live = LiveStatistics()
    live.record(finished(tool="a", mode="proxy"))
    live.record(finished(tool="a", outcome="failed", error="timeout"))
    live.record(finished(tool="b", upstream=None))
    shot = live.snapshot()
    assert shot["calls"]["calls"] == 3
    assert shot["tools"]["a"]["outcomes"] == {"ok": 1, "failed": 1}
    assert shot["tools"]["a"]["errors"] == {"timeout": 1}
    assert shot["upstreams"]["github"]["calls"] == 2
    assert shot["modes"]["proxy"]["calls"] == 1


def test_a_refused_call_is_counted_but_has_no_duration() -> None:
    live = LiveStatistics()
    live.record(finished(tool="a", duration=2.0))
    live.record(finished(tool="a", outcome="refused", duration=0.0001))
    tool = live.snapshot()["tools"]["a"]
    assert (tool["calls"], tool["outcomes"]["refused"]) == (2, 1)
    assert tool["p50_ms"] == pytest.approx(2000, rel=0.05)


def test_calls_in_flight_are_those_started_and_not_ended() -> None:
    live = LiveStatistics()
    live.record(started("a"))
    live.record(started("b"))
    live.record(finished("a"))
    assert live.snapshot()["in_flight"] == 1


def test_tokens_saved_are_what_the_tool_said_less_what_the_model_got() -> None:
    live = LiveStatistics()
    live.record(finished(tokens_in=10, tokens_out_before=2500, tokens_out=100, spilled=True))
    live.record(finished(tokens_out=50, cached=True, attempts=3))
    calls = live.snapshot()["calls"]
    assert (calls["tokens_in"], calls["tokens_out"], calls["tokens_saved"]) == (10, 150, 2400)
    assert (calls["spilled"], calls["cached"], calls["retries"]) == (1, 1, 2)


def test_a_listing_is_compared_with_what_listing_everything_would_have_cost() -> None:
    live = LiveStatistics()
    common: dict[str, Any] = {"at": 1.0, "mode": "proxy", "duration": 0.002}
    live.record(ListAnswered(tools=4, tokens=350, tokens_full=40_000, **common))
    live.record(ListAnswered(tools=4, **common))
    live.record(SearchAnswered(matches=3, tokens=200, **common))
    live.record(DescribeAnswered(tools=("a",), tokens=90, **common))
    shot = live.snapshot()
    assert (shot["list"]["count"], shot["list"]["tokens_saved"]) == (2, 39_650)
    assert shot["search"]["tokens"] == 200
    assert shot["describe"]["count"] == 1


def test_the_state_of_breakers_upstreams_and_store_is_the_last_one_heard() -> None:
    live = LiveStatistics()
    for state in ("open", "half_open"):
        live.record(BreakerChanged(at=1, scope="tool", name="a", state=state))
    live.record(BreakerChanged(at=1, scope="upstream", name="b", state="open"))
    live.record(BreakerChanged(at=2, scope="upstream", name="b", state="closed"))
    live.record(UpstreamStateChanged(at=1, upstream="github", state="ready"))
    live.record(StoreStateChanged(at=1, available=False))
    live.record(CallRetried(at=1, id="c", tool="t", attempt=1, error="timeout", delay=0.1))
    shot = live.snapshot()
    assert shot["breakers"] == {"tool:a": "half_open"}
    assert shot["upstream_states"] == {"github": "ready"}
    assert shot["store_available"] is False


def test_the_last_calls_are_kept_newest_first_and_no_more_of_them() -> None:
    live = LiveStatistics(recent=3)
    for n in range(5):
        live.record(finished(str(n)))
    assert [c.id for c in live.recent()] == ["4", "3", "2"]


def test_memory_is_bounded_however_many_names_there_are() -> None:
    live = LiveStatistics(max_groups=10)
    for n in range(1000):
        live.record(finished(tool=f"t{n}", upstream=f"u{n}"))
        live.record(BreakerChanged(at=1, scope="tool", name=f"t{n}", state="open"))
        live.record(UpstreamStateChanged(at=1, upstream=f"u{n}", state="ready"))
    shot = live.snapshot()
    assert len(shot["tools"]) == len(shot["upstreams"]) == 11
    assert shot["tools"][OTHERS]["calls"] == 990
    assert len(shot["breakers"]) == len(shot["upstream_states"]) == 10


def test_a_snapshot_is_json() -> None:
    live = LiveStatistics()
    live.record(finished())
    assert json.loads(json.dumps(live.snapshot())) == live.snapshot()


def test_percentiles_are_within_five_percent_of_the_truth() -> None:
    chance = random.Random(7)
    durations = [chance.lognormvariate(-4, 1.5) for _ in range(20_000)]
    histogram = Histogram()
    for seconds in durations:
        histogram.add(seconds)
    cuts = statistics.quantiles(durations, n=100)
    for percent in (50, 95, 99):
        assert histogram.percentile(percent) == pytest.approx(cuts[percent - 1], rel=0.05)


def test_an_empty_histogram_has_nothing_to_tell() -> None:
    assert Histogram().as_json() == {
        "mean_ms": 0.0, "p50_ms": 0.0, "p95_ms": 0.0, "p99_ms": 0.0, "max_ms": 0.0,
    }  # fmt: skip


@given(st.lists(st.floats(0, 1e5), min_size=1, max_size=50))
def test_percentiles_rise_and_never_exceed_the_longest(durations: list[float]) -> None:
    histogram = Histogram()
    for seconds in durations:
        histogram.add(seconds)
    p50, p95, p99 = (histogram.percentile(p) for p in (50, 95, 99))
    assert 0 <= p50 <= p95 <= p99 <= max(durations)


def test_each_principal_has_figures_of_their_own_in_bounded_memory() -> None:
    live = LiveStatistics()
    for number in range(300):
        live.record(finished(tool=f"t{number}", principal="bob"))
        live.record(finished(tool="other", principal=f"p{number}"))
    bob = live.snapshot_of("bob")
    assert bob["calls"]["calls"] == 300
    assert "other" not in bob["tools"]
    assert bob["tools"][OTHERS]["calls"] == 250
    assert live.snapshot()["calls"]["calls"] == 600
    assert live.snapshot_of("p0")["calls"]["calls"] == 0, "who was silent longest made room"
    assert [c.principal for c in live.recent_of("p299")] == ["p299"]
    assert live.recent_of("nobody") == live.recent_of("local") == []
