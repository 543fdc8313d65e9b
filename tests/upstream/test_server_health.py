from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pegboard.upstream.server_health import MAX_DELAY, STABLE_AFTER, Backoff


def failed(times: int, *, roll: float = 0.5, lived: float = 0.0) -> Backoff:
    health = Backoff()
    for _ in range(times):
        health = health.after_failure("broke", now=100.0, lived=lived, roll=roll)
    return health


def test_the_first_retry_is_free_and_then_the_pause_doubles() -> None:
    assert [failed(n).wait(100.0) for n in range(1, 6)] == [0.0, 1.0, 2.0, 4.0, 8.0]


@given(st.integers(1, 2000), st.floats(0, 0.999))
def test_the_pause_stays_within_a_quarter_of_its_bound(times: int, roll: float) -> None:
    assert 0.0 <= failed(times, roll=roll).wait(100.0) <= MAX_DELAY * 1.25


def test_the_dice_spread_the_retries() -> None:
    assert failed(3, roll=0.0).wait(100.0) == 1.5
    assert failed(3, roll=1.0).wait(100.0) == 2.5


def test_a_server_that_lived_for_long_is_tried_again_at_once() -> None:
    assert (
        failed(5).after_failure("old", now=100.0, lived=STABLE_AFTER, roll=0.5).wait(100.0) == 0.0
    )


def test_coming_up_clears_the_error_but_not_the_count() -> None:
    up = failed(3).after_success()
    assert (up.last_error, up.wait(100.0)) == (None, 0.0)
    assert up.after_failure("again", now=100.0, lived=1.0, roll=0.5).failures == 4
