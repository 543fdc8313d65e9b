from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.token_bucket import RateLimit, TokenBucket
from pegboard.errors import ConfigError


def test_a_burst_is_let_through_and_then_the_rate_counts() -> None:
    limit = RateLimit(calls=60, per=60, burst=3)
    allowance = TokenBucket()
    outcomes: list[bool] = []
    for number in range(5):
        allowance, refusal = allowance.admit(limit, str(number), now=0.0)
        outcomes.append(refusal is None)
    assert outcomes == [True, True, True, False, False]
    refused = allowance.admit(limit, "x", now=0.25)[1]
    assert refused is not None
    assert refused.retry_after == pytest.approx(0.75)
    assert allowance.admit(limit, "x", now=1.0)[1] is None


def test_a_place_is_free_again_when_its_call_ends_or_its_lease_does() -> None:
    limit = RateLimit(concurrent=1, lease=10)
    busy, refusal = TokenBucket().admit(limit, "a", 0.0)
    assert refusal is None
    assert busy.admit(limit, "b", 1.0)[1] is not None
    assert busy.release("a").admit(limit, "b", 1.0)[1] is None
    assert busy.admit(limit, "b", 11.0)[1] is None


@given(
    st.integers(1, 50),
    st.lists(st.floats(0, 5, allow_nan=False), max_size=60),
)
def test_no_more_calls_pass_than_burst_and_rate_together_allow(
    calls: int, pauses: list[float]
) -> None:
    limit = RateLimit(calls=calls, per=10.0, burst=5)
    allowance, now, passed = TokenBucket(), 0.0, 0
    for pause in pauses:
        now += pause
        allowance, refusal = allowance.admit(limit, "c", now)
        passed += refusal is None
        allowance = TokenBucket.from_json(allowance.to_json())
    assert passed <= 5 + now * calls / 10.0 + 1e-6


def test_a_limit_that_lets_nothing_through_is_a_mistake() -> None:
    with pytest.raises(ConfigError):
        RateLimit(calls=0)
    with pytest.raises(ConfigError):
        RateLimit(concurrent=0)
