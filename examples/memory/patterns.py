"""Patterns: which sequences of tools and which recoveries worked, and which to use next."""

from __future__ import annotations

import statistics
from typing import Annotated, Literal

from pydantic import Field

from pegboard import Example

from ..database import Database, Record, Refused, Row
from ..fulltext import WORD
from ..toolbox import READS, Toolbox
from . import mining
from .episode import EpisodeBrief, Pattern, PatternKind, TaskType, brief
from .lifecycle import evidence
from .recall import recall

patterns = Toolbox[Database](
    "patterns", "What works: patterns mined from episodes, searched, recommended, analysed."
)

Metric = Literal["reward_score", "duration_ms", "steps"]
Rate = Annotated[float, Field(ge=0, le=1)]


class Patterns(Record):
    patterns: list[Pattern]
    episodes: int = Field(description="Completed episodes that were looked at.")
    base_success_rate: float | None = Field(description="Share of them that succeeded.")


class Found(Record):
    patterns: list[Pattern]
    total: int


class Recommendation(Record):
    pattern: Pattern
    score: float
    seen_in: list[str] = Field(description="Similar episodes that used it.")


class Recommendations(Record):
    recommendations: list[Recommendation]
    similar_episodes: list[EpisodeBrief]
    insights: list[str] = Field(description="What reflections on those episodes say.")


class Trend(Record):
    metric: Metric
    mean: float
    median: float
    slope_per_episode: float
    direction: Literal["rising", "falling", "steady"]


class Correlation(Record):
    between: str
    coefficient: float | None = Field(description="-1 to 1; null where one does not vary.")


class Outlier(Record):
    episode_id: str
    metric: Metric
    value: float


class Influence(Record):
    pattern: str
    success_with: float
    success_without: float | None
    lift: float | None = Field(description="Rate with the pattern by rate without it.")


class Analysis(Record):
    episodes: int
    trends: list[Trend]
    correlations: list[Correlation]
    outliers: list[Outlier]
    influences: list[Influence]


@patterns.tool(
    summary="Mine episodes for sequences and recoveries that work",
    annotations=READS,
    projection_root="patterns",
    aliases=("what works", "lessons learned"),
    related=("recommend_patterns", "advanced_pattern_analysis"),
    examples=[Example("In debugging", {"task_type": "debugging", "min_occurrences": 2})],
)
def analyze_patterns(
    db: Database,
    domain: str | None = None,
    task_type: TaskType | None = None,
    min_occurrences: Annotated[int, Field(ge=1)] = 2,
    min_success_rate: Rate = 0.0,
    limit: Annotated[int, Field(ge=1, le=100)] = 10,
) -> Patterns:
    """Find what recurs in completed episodes: sequences of tools, recoveries from failure.

    Patterns come with how often they occur and how often those episodes succeeded, the most
    trustworthy first: a high rate over many episodes beats a perfect one over two.

    Args:
        domain: Only episodes of this area.
        task_type: Only this kind of work.
        min_occurrences: Leave out what occurs in fewer episodes.
        min_success_rate: Leave out what succeeded less often.
        limit: How many patterns to return at most.
    """
    seen = evidence(db, domain, task_type)
    found = mining.mine(seen, min_occurrences)
    return Patterns(
        patterns=[p for p in found if p.success_rate >= min_success_rate][:limit],
        episodes=len(seen),
        base_success_rate=_share([e.succeeded for e in seen]),
    )


@patterns.tool(
    summary="Search mined patterns by tool or words",
    annotations=READS,
    examples=[Example("With pytest", {"query": "pytest", "min_success_rate": 0.6})],
    related=(
        "analyze_patterns",
        "recommend_patterns",
    ),
)
def search_patterns(
    db: Database,
    query: Annotated[str, Field(min_length=1)],
    kind: PatternKind | None = None,
    min_success_rate: Rate = 0.0,
    limit: Annotated[int, Field(ge=1, le=100)] = 10,
) -> Found:
    """Find patterns whose tools or description contain all words of a query.

    It looks at every pattern, also those seen only once.

    Args:
        query: Names of tools, or words such as "fails".
        kind: Only sequences, or only recoveries.
        min_success_rate: Leave out what succeeded less often.
        limit: How many to return at most.
    """
    words = [w.lower() for w in WORD.findall(query)]
    found = [
        p
        for p in mining.mine(evidence(db), at_least=1)
        if p.success_rate >= min_success_rate and kind in (None, p.kind)
        if all(w in p.description.lower() for w in words)
    ]
    return Found(patterns=found[:limit], total=len(found))


@patterns.tool(
    summary="Recommend how to go about a task",
    annotations=READS,
    aliases=("how should I start", "advice"),
    related=("query_memory", "analyze_patterns"),
    examples=[Example("A flaky test", {"task_description": "Make the login test stable"})],
)
def recommend_patterns(
    db: Database,
    task_description: Annotated[str, Field(min_length=3)],
    domain: str | None = None,
    task_type: TaskType | None = None,
    limit: Annotated[int, Field(ge=1, le=20)] = 5,
) -> Recommendations:
    """Recommend patterns for a new task, drawn from similar episodes that were completed.

    A pattern scores by how similar those episodes are, how well they went, and how far its rate of
    success can be trusted. Insights of their reflections come along.

    Args:
        task_description: The task at hand.
        domain: Only learn from this area.
        task_type: Only learn from this kind of work.
        limit: How many patterns to return at most.
    """
    similar = [
        r
        for r in recall(db, task_description, domain=domain, task_type=task_type, limit=8)
        if r.row["status"] == "completed"
    ]
    completed = evidence(db)
    steps = {e.id: mining.traces(e.steps) for e in completed}
    known = {p.id: p for p in mining.mine(completed, at_least=1)}
    scores: dict[str, float] = {}
    seen: dict[str, list[str]] = {}
    for found in similar:
        for trace in steps[found.row["id"]]:
            weight = found.score * found.row["reward_score"] * known[trace.id].confidence
            scores[trace.id] = scores.get(trace.id, 0.0) + weight
            seen.setdefault(trace.id, []).append(found.row["id"])
    best = sorted(scores, key=lambda i: (-scores[i], i))[:limit]
    return Recommendations(
        recommendations=[
            Recommendation(pattern=known[i], score=round(scores[i], 3), seen_in=seen[i])
            for i in best
        ],
        similar_episodes=[brief(r.row) for r in similar],
        insights=_insights(db, [r.row["id"] for r in similar]),
    )


@patterns.tool(
    summary="Analyze trends, correlations and outliers",
    annotations=READS,
    aliases=("statistics",),
    related=("quality_metrics",),
    examples=[Example("One kind of work", {"task_type": "debugging"})],
)
def advanced_pattern_analysis(
    db: Database,
    domain: str | None = None,
    task_type: TaskType | None = None,
    min_occurrences: Annotated[int, Field(ge=1)] = 2,
) -> Analysis:
    """Look at completed episodes as series: trends, correlations, outliers, influence of patterns.

    Trends are least-squares slopes from the oldest to the newest episode; outliers lie far from the
    median; an influence compares success with and without a pattern. It takes at least three
    episodes.

    Args:
        domain: Only this area.
        task_type: Only this kind of work.
        min_occurrences: Leave out the influence of rarer patterns.
    """
    seen = evidence(db, domain, task_type)
    if len(seen) < 3:
        raise Refused(f"Statistics take three completed episodes; {len(seen)} fit these filters.")
    series = _series(db, seen)
    return Analysis(
        episodes=len(seen),
        trends=[_trend(metric, values) for metric, values in series.items()],
        correlations=[
            Correlation(
                between=f"{one} and {other}",
                coefficient=mining.correlation(series[one], series[other]),
            )
            for one, other in _COMPARED
        ],
        outliers=[
            Outlier(episode_id=seen[i].id, metric=metric, value=values[i])
            for metric, values in series.items()
            for i in mining.outliers(values)
        ],
        influences=[_influence(p, seen) for p in mining.mine(seen, min_occurrences)[:10]],
    )


_COMPARED: tuple[tuple[Metric, Metric], ...] = (
    ("steps", "reward_score"),
    ("duration_ms", "reward_score"),
)


def _series(db: Database, seen: list[mining.Evidence]) -> dict[Metric, list[float]]:
    rows: dict[str, Row] = {r["id"]: r for r in db.rows("SELECT * FROM episodes")}
    return {
        "reward_score": [rows[e.id]["reward_score"] for e in seen],
        "duration_ms": [float(rows[e.id]["duration_ms"]) for e in seen],
        "steps": [float(len(e.steps)) for e in seen],
    }


def _trend(metric: Metric, values: list[float]) -> Trend:
    mean, slope = statistics.fmean(values), mining.slope(values)
    moved = abs(slope) * (len(values) - 1)
    steady = moved < 0.1 * (abs(mean) or 1.0)
    return Trend(
        metric=metric,
        mean=round(mean, 3),
        median=round(statistics.median(values), 3),
        slope_per_episode=round(slope, 4),
        direction="steady" if steady else "rising" if slope > 0 else "falling",
    )


def _influence(pattern: Pattern, seen: list[mining.Evidence]) -> Influence:
    having = {e.id for e in seen if pattern.id in {trace.id for trace in mining.traces(e.steps)}}
    with_it = _share([e.succeeded for e in seen if e.id in having]) or 0.0
    without = _share([e.succeeded for e in seen if e.id not in having])
    return Influence(
        pattern=pattern.description,
        success_with=with_it,
        success_without=without,
        lift=round(with_it / without, 3) if without else None,
    )


def _share(wins: list[bool]) -> float | None:
    return round(sum(wins) / len(wins), 3) if wins else None


def _insights(db: Database, ids: list[str]) -> list[str]:
    found: list[str] = []
    for episode_id in ids:
        found += db.column(
            "SELECT value FROM episodes, json_each(episodes.reflection, '$.insights') "
            "WHERE episodes.id = ?",
            episode_id,
        )
    return list(dict.fromkeys(found))[:10]
