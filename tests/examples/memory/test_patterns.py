"""Patterns: mining, search, recommendation, statistics."""

from __future__ import annotations

import pytest
from examples.memory.episode import Complexity, Outcome, Step
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.examples.world import Caller

from examples.memory import mining

pytestmark = pytest.mark.anyio


async def test_patterns_are_ranked_by_how_far_they_can_be_trusted(recall: Caller) -> None:
    found = await recall("analyze_patterns")

    confidence = [p["confidence"] for p in found["patterns"]]
    assert confidence == sorted(confidence, reverse=True)
    best = found["patterns"][0]
    assert (best["description"], best["occurrences"], best["success_rate"]) == (
        "Use read_file, then edit_file",
        10,
        0.9,
    )
    assert (found["episodes"], found["base_success_rate"]) == (12, 0.75)


async def test_filters_narrow_what_is_mined(recall: Caller) -> None:
    debugging = await recall("analyze_patterns", task_type="debugging", min_occurrences=2)
    none = await recall("analyze_patterns", domain="nowhere")
    sure = await recall("analyze_patterns", min_success_rate=1.0)

    assert debugging["episodes"] == 3
    assert all(p["occurrences"] >= 2 for p in debugging["patterns"])
    assert (none["patterns"], none["base_success_rate"]) == ([], None)
    assert {p["success_rate"] for p in sure["patterns"]} == {1.0}


async def test_deleting_an_episode_lowers_the_count_of_its_patterns(recall: Caller) -> None:
    await recall("delete_episode", episode_id="ep-0002")

    best = (await recall("analyze_patterns"))["patterns"][0]

    assert best["occurrences"] == 9


async def test_patterns_are_searched_by_all_words(recall: Caller) -> None:
    fails = await recall("search_patterns", query="pytest fails")
    sequences = await recall("search_patterns", query="pytest", kind="tool_sequence", limit=3)

    assert {p["tools"][0] for p in fails["patterns"]} == {"pytest"}
    assert {p["kind"] for p in fails["patterns"]} == {"error_recovery"}
    assert len(sequences["patterns"]) == 3 < sequences["total"]
    assert (await recall("search_patterns", query="nothing like it"))["patterns"] == []


async def test_recommendations_come_from_similar_completed_episodes(recall: Caller) -> None:
    advice = await recall("recommend_patterns", task_description="Why do nightly imports stop?")

    similar = [e["id"] for e in advice["similar_episodes"]]
    assert similar[0] == "ep-0011"
    assert "ep-0013" not in similar  # still in progress
    scores = [r["score"] for r in advice["recommendations"]]
    assert scores == sorted(scores, reverse=True)
    assert all(set(r["seen_in"]) <= set(similar) for r in advice["recommendations"])
    assert "Compare two heap snapshots before reading code." in advice["insights"]


async def test_an_unheard_of_task_gets_no_advice(recall: Caller) -> None:
    advice = await recall("recommend_patterns", task_description="zebra stripes")

    assert advice == {"recommendations": [], "similar_episodes": [], "insights": []}


async def test_statistics_show_trends_outliers_and_influence(recall: Caller) -> None:
    analysis = await recall("advanced_pattern_analysis")

    trends = {t["metric"]: t for t in analysis["trends"]}
    assert trends["steps"]["direction"] == "falling"
    assert ("ep-0001", "steps") in [(o["episode_id"], o["metric"]) for o in analysis["outliers"]]
    first = analysis["influences"][0]
    assert first["success_with"] == 0.9
    assert (first["success_without"], first["lift"]) == (0.0, None)


async def test_statistics_take_three_episodes(recall: Caller) -> None:
    why = await recall.refused("advanced_pattern_analysis", task_type="documentation")

    assert "1 fit these filters" in why


STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=12).map(
    lambda given: [
        Step(number=n, tool=tool, action="", observation="", success=ok, latency_ms=0)
        for n, (tool, ok) in enumerate(given, start=1)
    ]
)


@settings(deadline=None)
@given(st.sampled_from(["success", "partial_success", "failure"]), STEPS)
def test_a_better_outcome_never_earns_less(outcome: Outcome, steps: list[Step]) -> None:
    complexity: Complexity = "moderate"
    reward = mining.reward(outcome, complexity, steps)

    assert 0 <= mining.reward("failure", complexity, steps) <= reward
    assert reward <= mining.reward("success", complexity, steps) <= 1


@settings(deadline=None)
@given(st.lists(STEPS, max_size=6))
def test_a_pattern_counts_once_per_episode(episodes: list[list[Step]]) -> None:
    seen = [mining.Evidence(f"e{n}", True, steps) for n, steps in enumerate(episodes)]

    for pattern in mining.mine(seen, at_least=1):
        having = [e for e in seen if pattern.id in {t.id for t in mining.traces(e.steps)}]
        assert pattern.occurrences == len(having) <= len(seen)


@settings(deadline=None)
@example(wins=0, more=11)
@given(st.integers(0, 50), st.integers(1, 50))
def test_confidence_stays_below_the_rate_and_grows_with_evidence(wins: int, more: int) -> None:
    total = wins + more

    assert 0 <= mining.wilson(wins, total) <= wins / total
    assert mining.wilson(wins * 10, total * 10) >= mining.wilson(wins, total)
