from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.enabled_tools import EnabledTools, EnabledToolsPolicy
from pegboard.errors import ConfigError

THREE = EnabledToolsPolicy(cap=3)


def test_enabled_tools_accumulate() -> None:
    session = EnabledTools().enable(["a"], THREE, now=1.0).enable(["b"], THREE, now=2.0)
    assert list(session.enabled) == ["a", "b"]


def test_over_the_cap_the_least_recently_used_tool_makes_room() -> None:
    before = (
        EnabledTools().enable(["a"], THREE, 1.0).enable(["b"], THREE, 2.0).enable(["c"], THREE, 3.0)
    )
    after = before.mark_used("a", now=4.0).enable(["d"], THREE, now=5.0)
    assert "a" in after
    assert "b" not in after
    assert [i for i in before.enabled if i not in after.enabled] == ["b"]


def test_enabling_again_counts_as_use() -> None:
    session = EnabledTools().enable(["a", "b", "c"], THREE, now=1.0).enable(["c"], THREE, now=2.0)
    assert list(session.enable(["d"], THREE, now=3.0).enabled) == ["a", "c", "d"]


def test_of_more_matches_than_fit_the_best_stay_and_the_best_is_evicted_last() -> None:
    session = EnabledTools().enable(["best", "second", "third", "fourth"], THREE, now=1.0)
    assert set(session.enabled) == {"best", "second", "third"}
    assert list(session.enable(["x", "y"], THREE, now=2.0).enabled) == ["best", "y", "x"]


def test_pins_take_no_room_and_are_never_evicted_because_they_are_never_enabled() -> None:
    policy = EnabledToolsPolicy(cap=2, pins=frozenset({"pin"}))
    session = EnabledTools().enable(["pin", "a", "b"], policy, now=1.0)
    assert set(session.enabled) == {"a", "b"}


def test_a_tool_that_became_a_pin_gives_its_room_back() -> None:
    session = EnabledTools().enable(["a", "b"], THREE, now=1.0)
    policy = EnabledToolsPolicy(cap=3, pins=frozenset({"a"}))
    assert set(session.enable(["c"], policy, now=2.0).enabled) == {"b", "c"}


def test_using_a_tool_that_is_not_enabled_changes_nothing() -> None:
    session = EnabledTools().enable(["a"], THREE, now=1.0)
    assert session.mark_used("hidden", now=2.0) == session


def test_an_empty_session_keeps_nothing_in_the_store() -> None:
    assert EnabledTools().to_json() is None


@pytest.mark.parametrize("value", [None, "x", {}, {"enabled": 3}, {"enabled": [["a"], 7, [1, 2]]}])
def test_a_session_that_cannot_be_read_is_empty(value: object) -> None:
    assert EnabledTools.from_json(value) == EnabledTools()


def test_a_cap_below_one_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least one"):
        EnabledToolsPolicy(cap=0)


names = st.sampled_from("abcdefgh")
steps = st.lists(st.tuples(st.sampled_from(["enable", "use"]), st.lists(names, max_size=8)))


@given(steps, st.integers(1, 5), st.frozensets(names, max_size=3))
def test_a_session_keeps_its_invariants(
    history: list[tuple[str, list[str]]], cap: int, pins: frozenset[str]
) -> None:
    policy = EnabledToolsPolicy(cap, pins)
    session = EnabledTools()
    for now, (verb, ids) in enumerate(history):
        before = session
        if verb == "enable":
            session = session.enable(ids, policy, float(now))
            fresh = [i for i in dict.fromkeys(ids) if i not in pins][:cap]
            assert all(i in session for i in fresh)
        else:
            for i in ids:
                session = session.mark_used(i, float(now))
            assert set(session.enabled) == set(before.enabled)
        assert len(session.enabled) <= cap
        assert not pins & set(session.enabled)
        stamps = list(session.enabled.values())
        assert stamps == sorted(stamps)
        kept = json.loads(json.dumps(session.to_json()))
        assert list(EnabledTools.from_json(kept).enabled.items()) == list(session.enabled.items())
