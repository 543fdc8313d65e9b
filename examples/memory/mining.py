"""What episodes teach: scores, patterns of tools, similarity, trends. Pure functions over values.

A pattern is counted once per episode, however often it occurs in it. Its rate of success is trusted
only as far as the number of episodes allows: `confidence` is the lower end of the Wilson interval.
"""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .episode import Complexity, Outcome, Pattern, PatternKind, Step

OUTCOME_SCORE: Mapping[Outcome, float] = {"success": 1.0, "partial_success": 0.5, "failure": 0.0}
EXPECTED_STEPS: Mapping[Complexity, int] = {"simple": 4, "moderate": 8, "complex": 15}


@dataclass(frozen=True, slots=True)
class Evidence:
    """One completed episode, as far as mining looks at it."""

    id: str
    succeeded: bool
    steps: Sequence[Step]


@dataclass(frozen=True, slots=True)
class Trace:
    """A pattern as it occurs in the steps of one episode."""

    kind: PatternKind
    tools: tuple[str, ...]

    @property
    def id(self) -> str:
        text = f"{self.kind}:{'>'.join(self.tools)}"
        return "pt-" + hashlib.sha256(text.encode()).hexdigest()[:8]

    @property
    def description(self) -> str:
        if self.kind == "error_recovery":
            return f"When {self.tools[0]} fails, go on with {self.tools[1]}"
        return "Use " + ", then ".join(self.tools)


def reward(outcome: Outcome, complexity: Complexity, steps: Sequence[Step]) -> float:
    """How good an episode was, 0 to 1: mostly its outcome, then clean steps, then few of them."""
    if not steps:
        return round(0.7 * OUTCOME_SCORE[outcome], 3)
    clean = sum(step.success for step in steps) / len(steps)
    short = min(1.0, EXPECTED_STEPS[complexity] / len(steps))
    return round(0.7 * OUTCOME_SCORE[outcome] + 0.2 * clean + 0.1 * short, 3)


def traces(steps: Sequence[Step]) -> list[Trace]:
    """The patterns in one episode: sequences of two or three tools that worked, and recoveries."""
    found: dict[Trace, None] = {}
    for size in (2, 3):
        for start in range(len(steps) - size + 1):
            part = steps[start : start + size]
            tools = tuple(step.tool for step in part)
            if len(set(tools)) > 1 and all(step.success for step in part):
                found[Trace("tool_sequence", tools)] = None
    for failed, following in pairwise(steps):
        if not failed.success and following.success and failed.tool != following.tool:
            found[Trace("error_recovery", (failed.tool, following.tool))] = None
    return list(found)


def mine(episodes: Iterable[Evidence], at_least: int = 2) -> list[Pattern]:
    """The patterns of several episodes, most trustworthy first."""
    seen: dict[Trace, list[bool]] = {}
    for episode in episodes:
        for trace in traces(episode.steps):
            seen.setdefault(trace, []).append(episode.succeeded)
    patterns = [pattern(trace, wins) for trace, wins in seen.items() if len(wins) >= at_least]
    return sorted(patterns, key=lambda p: (-p.confidence, -p.occurrences, p.id))


def pattern(trace: Trace, wins: Sequence[bool]) -> Pattern:
    """A pattern with its figures; `wins` says of each episode whether it succeeded."""
    return Pattern(
        id=trace.id,
        kind=trace.kind,
        description=trace.description,
        tools=list(trace.tools),
        occurrences=len(wins),
        success_rate=round(sum(wins) / len(wins), 3),
        confidence=round(wilson(sum(wins), len(wins)), 3),
    )


def wilson(wins: int, total: int, z: float = 1.96) -> float:
    """The lower bound of a rate at 95 % confidence."""
    if wins == 0:
        return 0.0  # by the formula too, but for rounding
    rate, square = wins / total, z * z
    centre = rate + square / (2 * total)
    margin = z * math.sqrt(rate * (1 - rate) / total + square / (4 * total * total))
    return (centre - margin) / (1 + square / total)


def slope(values: Sequence[float]) -> float:
    """Change per episode along a series, by least squares."""
    if len(values) < 2:
        return 0.0
    return statistics.linear_regression(range(len(values)), values).slope


def correlation(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """Pearson's coefficient, or `None` where one side does not vary."""
    if len(xs) < 3 or len(set(xs)) < 2 or len(set(ys)) < 2:
        return None
    return round(statistics.correlation(xs, ys), 3)


def outliers(values: Sequence[float], limit: float = 3.5) -> list[int]:
    """The positions of values far from the median, by the modified z-score."""
    if len(values) < 4:
        return []
    middle = statistics.median(values)
    spread = statistics.median(abs(value - middle) for value in values)
    if spread == 0:
        return []
    return [i for i, value in enumerate(values) if 0.6745 * abs(value - middle) / spread > limit]
