from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    rule,
)

from pegboard.core.circuit_breaker import CLOSED, Breaker, BreakerPolicy
from pegboard.errors import ConfigError

POLICY = BreakerPolicy()


def tripped(at: float = 100.0, policy: BreakerPolicy = POLICY) -> Breaker:
    breaker = CLOSED
    for _ in range(policy.failures):
        breaker = breaker.after_failure(policy, since=at - 1, now=at, reason="timeout")
    return breaker


def test_the_fifth_failure_in_a_run_opens_the_breaker() -> None:
    breaker = CLOSED
    for failure in range(1, 6):
        assert breaker.admit(POLICY, now=10.0)[1], f"refused before failure {failure}"
        breaker = breaker.after_failure(POLICY, since=10.0, now=10.0)
    assert breaker.state(POLICY, now=10.0) == "open"
    assert breaker.admit(POLICY, now=10.0) == (breaker, False)


def test_a_success_ends_the_run_of_failures() -> None:
    breaker = CLOSED
    for _ in range(4):
        breaker = breaker.after_failure(POLICY, since=1.0, now=1.0)
    breaker = breaker.after_success(since=1.0).after_failure(POLICY, since=2.0, now=2.0)
    assert breaker.failures == 1
    assert breaker.state(POLICY, now=2.0) == "closed"


def test_failures_further_apart_than_the_window_do_not_add_up() -> None:
    breaker = CLOSED
    now = 0.0
    for _ in range(20):
        now += POLICY.window + 1
        breaker = breaker.after_failure(POLICY, since=now, now=now)
    assert breaker.state(POLICY, now=now) == "closed"


def test_an_open_breaker_admits_one_probe_after_the_cooldown() -> None:
    breaker = tripped(at=100.0)
    assert not breaker.admit(POLICY, now=159.9)[1]
    probing, first = breaker.admit(POLICY, now=160.0)
    again, second = probing.admit(POLICY, now=160.1)
    assert (first, second) == (True, False)
    assert again == probing


def test_a_successful_probe_closes_the_breaker() -> None:
    probing, _ = tripped(at=100.0).admit(POLICY, now=161.0)
    assert probing.after_success(since=161.0) == CLOSED


def test_a_failed_probe_opens_the_breaker_afresh_and_keeps_since_when_it_is_down() -> None:
    probing, _ = tripped(at=100.0).admit(POLICY, now=161.0)
    breaker = probing.after_failure(POLICY, since=161.0, now=165.0, reason="unavailable")
    assert (breaker.opened_at, breaker.down_since, breaker.reason) == (165.0, 100.0, "unavailable")
    assert not breaker.admit(POLICY, now=224.0)[1]
    assert breaker.admit(POLICY, now=225.0)[1]


def test_a_lost_probe_is_given_up_so_that_the_breaker_is_not_wedged() -> None:
    probing, _ = tripped(at=100.0).admit(POLICY, now=160.0)
    assert not probing.admit(POLICY, now=160.0 + POLICY.probe - 0.1)[1]
    assert probing.admit(POLICY, now=160.0 + POLICY.probe)[1]


def test_an_abandoned_probe_makes_room_for_the_next_at_once() -> None:
    probing, _ = tripped(at=100.0).admit(POLICY, now=160.0)
    assert probing.after_cancellation(POLICY, since=160.0).admit(POLICY, now=160.0)[1]


def test_a_late_canceled_probe_does_not_release_its_successor() -> None:
    first, _ = tripped(at=100.0).admit(POLICY, now=160.0)
    second, admitted = first.admit(POLICY, now=160.0 + POLICY.probe)
    assert admitted
    assert second.after_cancellation(POLICY, since=160.0) == second


@pytest.mark.parametrize("verdict", ["succeeded", "failed", "abandoned"])
def test_what_was_admitted_before_the_opening_changes_nothing(verdict: str) -> None:
    probing, _ = tripped(at=100.0).admit(POLICY, now=160.0)
    after = {
        "succeeded": probing.after_success(since=99.0),
        "failed": probing.after_failure(POLICY, since=99.0, now=161.0),
        "abandoned": probing.after_cancellation(POLICY, since=99.0),
    }[verdict]
    assert after == probing


def test_retry_after_counts_down_the_cooldown_then_asks_for_a_short_wait() -> None:
    breaker = tripped(at=100.0)
    assert CLOSED.retry_after(POLICY, now=0.0) == 0.0
    assert breaker.retry_after(POLICY, now=130.0) == 30.0
    assert breaker.retry_after(POLICY, now=170.0) == 0.0
    probing, _ = breaker.admit(POLICY, now=170.0)
    assert 0.0 < probing.retry_after(POLICY, now=170.0) <= 1.0


def test_a_healthy_breaker_keeps_nothing_in_the_store() -> None:
    assert CLOSED.to_json() is None
    assert Breaker.from_json(None) == CLOSED


@pytest.mark.parametrize("value", ["x", 3, [], {"failures": "many", "opened_at": []}, {"x": 1}])
def test_a_state_that_cannot_be_read_counts_as_closed(value: object) -> None:
    assert Breaker.from_json(value) == CLOSED


@pytest.mark.parametrize("wrong", [{"failures": 0}, {"cooldown": 0}, {"probe": -1}, {"window": 0}])
def test_a_policy_that_could_never_work_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="positive durations"):
        BreakerPolicy(**wrong)


times = st.none() | st.floats(0, 1e9)


@given(
    st.builds(
        Breaker,
        failures=st.integers(0, 99),
        failed_at=times,
        reason=st.text(),
        down_since=times,
        opened_at=times,
        probe_until=times,
    )
)
def test_a_breaker_survives_the_way_through_the_store(breaker: Breaker) -> None:
    assert Breaker.from_json(json.loads(json.dumps(breaker.to_json()))) == breaker


@dataclass(frozen=True)
class Running:
    """A call on its way: when it was admitted, and whether it was let through an open breaker."""

    since: float
    probe: bool


class BreakerLaws(RuleBasedStateMachine):
    """Any interleaving of calls and verdicts, checked against what a caller is promised."""

    running = Bundle("running")

    def __init__(self) -> None:
        super().__init__()
        self.policy = BreakerPolicy(failures=3, cooldown=10.0, probe=7.0, window=25.0)
        self.breaker = CLOSED
        self.now = 1000.0
        self.run = 0
        self.live_probes: list[float] = []

    @rule(seconds=st.sampled_from([0.0, 0.5, 3.0, 7.0, 10.0, 26.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(target=running)
    def ask(self) -> Running | None:
        state = self.breaker.state(self.policy, self.now)
        self.breaker, admitted = self.breaker.admit(self.policy, self.now)
        if state == "closed":
            assert admitted
        if state == "open":
            assert not admitted
        if not admitted:
            assert self.breaker.retry_after(self.policy, self.now) > 0
            return None
        if state == "half_open":
            assert not [t for t in self.live_probes if self.now < t + self.policy.probe]
            self.live_probes.append(self.now)
        return Running(self.now, probe=state == "half_open")

    @rule(call=consumes(running))
    def answer(self, call: Running | None) -> None:
        if call is None:
            return
        before = self.breaker
        self.breaker = before.after_success(call.since)
        if before.opened_at is not None and self.breaker == CLOSED:
            assert call.probe, "only a probe closes an open breaker"
        self._heard_of(call)

    @rule(call=consumes(running))
    def fail(self, call: Running | None) -> None:
        if call is None:
            return
        before = self.breaker
        self.breaker = before.after_failure(self.policy, since=call.since, now=self.now)
        opened = before.opened_at is None and self.breaker.opened_at is not None
        assert not opened or self.breaker.failures == self.policy.failures
        if before.opened_at is not None and self.breaker != before:
            assert call.probe, "only a probe keeps an open breaker open for longer"
        self._heard_of(call)

    @rule(call=consumes(running))
    def lose(self, call: Running | None) -> None:
        if call is not None:
            self.breaker = self.breaker.after_cancellation(self.policy, call.since)
            self.live_probes = [t for t in self.live_probes if t != call.since]

    @invariant()
    def open_means_refused_and_says_until_when(self) -> None:
        wait = self.breaker.retry_after(self.policy, self.now)
        assert 0.0 <= wait <= self.policy.cooldown
        assert (wait == 0.0) == self.breaker.admit(self.policy, self.now)[1]

    @invariant()
    def it_is_never_wedged(self) -> None:
        later = self.now + self.policy.cooldown + self.policy.probe
        assert self.breaker.admit(self.policy, later)[1]

    @invariant()
    def the_store_can_hold_it(self) -> None:
        assert Breaker.from_json(self.breaker.to_json()) == self.breaker

    def _heard_of(self, call: Running) -> None:
        # A verdict of any probe ends the probing: the breaker closes or opens afresh.
        if call.probe:
            self.live_probes.clear()


TestBreakerLaws = BreakerLaws.TestCase
