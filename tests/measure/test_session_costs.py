"""The model of a session, worked out by hand where that is possible, and its laws."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.errors import ConfigError
from pegboard.measure.session_costs import DiscoveryCost, Prices, SessionProfile, price_session

SMALL = st.integers(0, 5_000)
USES = st.integers(1, 30).flatmap(
    lambda turns: st.builds(
        SessionProfile, tools=st.integers(0, turns), turns=st.just(turns), conversation=SMALL
    )
)
FINDINGS = st.builds(
    DiscoveryCost, answers=st.lists(SMALL, max_size=3).map(tuple), growth=st.integers(0, 500)
)


def test_a_list_is_sent_with_every_request_and_read_back_from_the_cache() -> None:
    cost = price_session(1_000, DiscoveryCost(), SessionProfile(tools=3, turns=4), Prices())
    assert cost.requests == 4
    assert cost.sent == 4_000
    assert cost.cached == 1_000 * 1.25 + 3 * 1_000 * 0.1


def test_finding_a_tool_takes_requests_that_send_the_conversation_again() -> None:
    cost = price_session(
        100, DiscoveryCost((10.0,)), SessionProfile(tools=1, turns=2, conversation=50), Prices()
    )
    # search: list and conversation; then twice list and answer
    assert cost.requests == 3
    assert cost.sent == (100 + 50) + (100 + 10) * 2
    searched = 100 * 1.25 + 50 * 0.1
    first = 100 * 0.1 + 10 * 1.25
    assert cost.cached == pytest.approx(searched + first + 110 * 0.1)


def test_a_list_that_grows_voids_the_cache_of_the_whole_conversation() -> None:
    use = SessionProfile(tools=1, turns=2, conversation=1_000)
    grown = price_session(100, DiscoveryCost((10.0,), growth=40), use, Prices())
    kept = price_session(100, DiscoveryCost((10.0,)), use, Prices())
    assert grown.cached - kept.cached > 1_000


@given(SMALL, FINDINGS, USES)
def test_a_cache_that_costs_nothing_extra_never_costs_more(
    listed: int, finding: DiscoveryCost, use: SessionProfile
) -> None:
    steady = DiscoveryCost(finding.answers)
    cost = price_session(listed, steady, use, Prices(base=1, write=1, read=0.5))
    assert cost.cached <= cost.plain + 0.1


@given(SMALL, FINDINGS, USES)
def test_without_a_discount_the_cache_changes_nothing(
    listed: int, finding: DiscoveryCost, use: SessionProfile
) -> None:
    cost = price_session(listed, DiscoveryCost(finding.answers), use, Prices(1, 1, 1))
    assert cost.cached == pytest.approx(cost.plain, abs=0.2)


@given(SMALL, SMALL, FINDINGS, USES)
def test_a_longer_list_is_never_cheaper(
    one: int, more: int, finding: DiscoveryCost, use: SessionProfile
) -> None:
    short, long = (price_session(listed, finding, use, Prices()) for listed in (one, one + more))
    assert short.sent <= long.sent
    assert short.cached <= long.cached + 0.1


@given(SMALL, FINDINGS, USES)
def test_requests_are_turns_and_what_finding_takes(
    listed: int, finding: DiscoveryCost, use: SessionProfile
) -> None:
    cost = price_session(listed, finding, use, Prices())
    assert cost.requests == use.turns + use.tools * len(finding.answers)
    assert cost.context == listed + use.tools * (sum(finding.answers) + finding.growth)


@pytest.mark.parametrize("use", [{"tools": 3, "turns": 2}, {"turns": 0}, {"tools": -1}])
def test_a_session_that_cannot_be_is_refused(use: dict[str, int]) -> None:
    with pytest.raises(ConfigError):
        SessionProfile(**use)


def test_a_negative_price_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot be negative"):
        Prices(read=-1)
