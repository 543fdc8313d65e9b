from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.calls import Caller
from pegboard.core.mode_rollout import ARMS, ArmStatistics, Comparison, Rollout
from pegboard.errors import ConfigError


def test_about_the_requested_share_of_principals_gets_the_mode() -> None:
    rollout = Rollout(mode="proxy", percent=10)
    switched = sum(rollout.mode_for(Caller(f"user{n}")) == "proxy" for n in range(10_000))
    assert 850 < switched < 1150


@given(st.text(), st.floats(0, 100), st.floats(0, 100))
def test_a_larger_share_only_adds_callers(principal: str, one: float, other: float) -> None:
    small, large = sorted((one, other))
    before = Rollout(mode="proxy", percent=small).arm(principal, None)
    after = Rollout(mode="proxy", percent=large).arm(principal, None)
    assert (before, after) != ("candidate", "control")


def test_no_caller_at_zero_and_every_caller_at_a_hundred_percent() -> None:
    for n in range(200):
        assert Rollout(mode="proxy", percent=0).mode_for(Caller(f"u{n}")) is None
        assert Rollout(mode="proxy", percent=100).mode_for(Caller(f"u{n}")) == "proxy"


def test_the_name_of_a_client_counts_only_in_the_legacy_era() -> None:
    """MCP 2026-07-28: `clientInfo` should not change behaviour."""
    rollout = Rollout(mode="proxy", percent=100, by="client")
    assert rollout.mode_for(Caller(era="legacy", client="cursor")) == "proxy"
    assert rollout.mode_for(Caller(era="modern", client="cursor")) is None
    assert rollout.mode_for(Caller(era="legacy")) is None


def test_invalid_rollouts_are_refused() -> None:
    with pytest.raises(ConfigError, match="Unknown mode"):
        Rollout(mode="prox", percent=1)
    with pytest.raises(ConfigError, match="percent"):
        Rollout(mode="proxy", percent=101)


figures = st.builds(
    ArmStatistics, st.integers(0, 99), st.integers(0, 99), st.floats(0, 9), st.integers(0, 99)
)


@given(st.lists(st.tuples(st.sampled_from(ARMS), figures), max_size=10))
def test_statistics_of_replicas_add_up(counted: list[tuple[str, ArmStatistics]]) -> None:
    whole, left, right = Comparison(), Comparison(), Comparison()
    for number, (arm, more) in enumerate(counted):
        assert arm in ("control", "candidate")
        whole = whole.add(arm, more)
        left, right = (left.add(arm, more), right) if number % 2 else (left, right.add(arm, more))
    together = Comparison.from_json((left + right).to_json())
    for arm in ARMS:
        assert together[arm].calls == whole[arm].calls
        assert together[arm].seconds == pytest.approx(whole[arm].seconds)


def test_a_summary_compares_what_sessions_cost() -> None:
    summary = ArmStatistics(calls=10, errors=1, seconds=2.0, lists=2, tokens=900).summary()
    assert summary["errors"] == 0.1
    assert summary["mean_ms"] == 200
    assert summary["tokens_per_session"] == 450
    assert ArmStatistics().summary()["errors"] is None
