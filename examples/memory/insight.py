"""Insight: how good the memory is, whether it is sound, and how episodes compare."""

from __future__ import annotations

import statistics
from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import Field

from pegboard import Example

from ..database import Database, Record, Refused, Row, iso
from ..toolbox import READS, REMOVES, Toolbox
from . import mining
from .episode import Episode, EpisodeBrief, EpisodeId, TaskType, brief, need, whole
from .lifecycle import evidence

insight = Toolbox[Database](
    "insight", "How the memory is doing: quality metrics, health, comparison, timelines, pruning."
)


class Quality(Record):
    episodes: int
    completed: int
    success_rate: float | None
    mean_reward: float | None
    median_duration_ms: float | None
    mean_steps: float
    step_success_rate: float | None
    with_reflection: float = Field(description="Share of completed episodes.")
    recurring_patterns: int = Field(description="Patterns in at least two episodes.")
    reward_trend: float = Field(description="Change of the reward per episode.")
    by_task_type: dict[str, float] = Field(description="Success rate of each.")


class Check(Record):
    name: str
    ok: bool
    detail: str


class Health(Record):
    status: Literal["healthy", "degraded"]
    checks: list[Check]
    episodes: int
    steps: int
    size_bytes: int
    checked_at: datetime


class Difference(Record):
    field: str
    values: dict[str, str | float | int | None]


class Comparison(Record):
    differences: list[Difference]
    shared_patterns: list[str]
    better: str | None = Field(description="Id with the higher reward; null when equal.")


class Moment(Record):
    step: int
    tool: str
    action: str
    success: bool
    starts_after_ms: int
    share_of_time: float


class Timeline(Record):
    episode_id: str
    moments: list[Moment]
    slowest_step: int | None
    busy_ms: int = Field(description="Time spent in steps, of the whole duration.")


class Pruned(Record):
    pruned: list[EpisodeBrief]
    dry_run: bool


@insight.tool(
    summary="Measure how well episodes go and how well they are documented",
    annotations=READS,
    aliases=("kpi", "performance"),
    related=("advanced_pattern_analysis", "health_check"),
    examples=[Example("The last month", {"days": 30})],
)
def quality_metrics(
    db: Database,
    days: Annotated[int | None, Field(ge=1)] = None,
    domain: str | None = None,
) -> Quality:
    """Measure success, reward, duration, steps and documentation over episodes.

    The trend is the slope of the reward from the oldest to the newest completed episode.

    Args:
        days: Only episodes begun in the last days.
        domain: Only this area.
    """
    since = iso(db.now() - timedelta(days=days)) if days else ""
    rows = db.rows(
        "SELECT * FROM episodes WHERE created_at >= ? AND (? IS NULL OR domain = ?) "
        "ORDER BY number",
        since,
        domain,
        domain,
    )
    done = [r for r in rows if r["status"] == "completed"]
    ids = {r["id"] for r in done}
    seen = [e for e in evidence(db) if e.id in ids]
    steps = [step for e in seen for step in e.steps]
    rewards = [r["reward_score"] for r in done]
    return Quality(
        episodes=len(rows),
        completed=len(done),
        success_rate=_rate(done),
        mean_reward=round(statistics.fmean(rewards), 3) if rewards else None,
        median_duration_ms=statistics.median(r["duration_ms"] for r in done) if done else None,
        mean_steps=round(len(steps) / len(done), 2) if done else 0.0,
        step_success_rate=round(sum(s.success for s in steps) / len(steps), 3) if steps else None,
        with_reflection=round(sum(bool(r["reflection"]) for r in done) / len(done), 3)
        if done
        else 0.0,
        recurring_patterns=len(mining.mine(seen)),
        reward_trend=round(mining.slope(rewards), 4),
        by_task_type={
            kind: _rate([r for r in done if r["task_type"] == kind]) or 0.0
            for kind in sorted({r["task_type"] for r in done})
        },
    )


@insight.tool(
    summary="Check that the memory is sound",
    annotations=READS,
    aliases=("status", "diagnostics"),
    related=("quality_metrics",),
    examples=[Example("Forgotten after two days", {"stale_after_hours": 48})],
)
def health_check(db: Database, stale_after_hours: Annotated[int, Field(ge=1)] = 24) -> Health:
    """Check the database, the full-text index and episodes that were begun and never completed.

    The status is degraded when a check fails; each check says what it found.

    Args:
        stale_after_hours: An episode in progress for longer counts as forgotten.
    """
    counts = {t: db.value(f"SELECT count(*) FROM {t}") for t in ("episodes", "steps")}
    integrity = db.value("PRAGMA integrity_check")
    indexed = db.value("SELECT count(*) FROM episode_index")
    limit = iso(db.now() - timedelta(hours=stale_after_hours))
    stale = db.column(
        "SELECT id FROM episodes WHERE status = 'in_progress' AND created_at < ? ORDER BY id", limit
    )
    checks = [
        Check(name="database", ok=integrity == "ok", detail=integrity),
        Check(
            name="index",
            ok=indexed == counts["episodes"],
            detail=f"{indexed} of {counts['episodes']} episodes are indexed",
        ),
        Check(
            name="forgotten",
            ok=not stale,
            detail=f"in progress for too long: {', '.join(stale) or 'none'}",
        ),
    ]
    return Health(
        status="healthy" if all(check.ok for check in checks) else "degraded",
        checks=checks,
        episodes=counts["episodes"],
        steps=counts["steps"],
        size_bytes=db.value("PRAGMA page_count") * db.value("PRAGMA page_size"),
        checked_at=db.now(),
    )


@insight.tool(
    summary="Compare two episodes field by field",
    annotations=READS,
    examples=[Example("Two attempts", {"first": "ep-0001", "second": "ep-0002"})],
    related=("find_similar_episodes",),
)
def compare_episodes(db: Database, first: EpisodeId, second: EpisodeId) -> Comparison:
    """Show in what two episodes differ, which patterns they share, and which went better.

    Args:
        first: Id of one episode.
        second: Id of the other one.
    """
    if first == second:
        raise Refused("Give two different episodes to compare.")
    one, other = (whole(db, need(db, i)) for i in (first, second))
    differences = [
        Difference(field=name, values={first: a, second: b})
        for name, a, b in zip(_COMPARED, _figures(one), _figures(other), strict=True)
        if a != b
    ]
    shared = {p.description for p in one.patterns} & {p.description for p in other.patterns}
    rewards = (one.reward_score or 0.0, other.reward_score or 0.0)
    better = None if rewards[0] == rewards[1] else first if rewards[0] > rewards[1] else second
    return Comparison(differences=differences, shared_patterns=sorted(shared), better=better)


@insight.tool(
    summary="Show where the time of an episode went, step by step",
    annotations=READS,
    related=(
        "get_episode",
        "compare_episodes",
    ),
    examples=[Example("By id", {"episode_id": "ep-0001"})],
)
def get_episode_timeline(db: Database, episode_id: EpisodeId) -> Timeline:
    """Lay the steps of an episode out in time, with the share of each and the slowest one.

    Args:
        episode_id: Id of the episode.
    """
    steps = whole(db, need(db, episode_id)).steps
    busy = sum(step.latency_ms for step in steps)
    moments: list[Moment] = []
    passed = 0
    for step in steps:
        share = round(step.latency_ms / busy, 3) if busy else 0.0
        moments.append(
            Moment(
                step=step.number,
                tool=step.tool,
                action=step.action,
                success=step.success,
                starts_after_ms=passed,
                share_of_time=share,
            )
        )
        passed += step.latency_ms
    slowest = max(steps, key=lambda s: s.latency_ms, default=None) if busy else None
    return Timeline(
        episode_id=episode_id,
        moments=moments,
        slowest_step=slowest.number if slowest else None,
        busy_ms=busy,
    )


@insight.tool(
    summary="Delete old episodes of little reward",
    annotations=REMOVES,
    aliases=("clean up", "forget old"),
    examples=[Example("Only look", {"older_than_days": 180, "max_reward": 0.3})],
    related=(
        "delete_episode",
        "list_episodes",
    ),
)
def prune_episodes(
    db: Database,
    older_than_days: Annotated[int, Field(ge=1)],
    max_reward: Annotated[float, Field(ge=0, le=1)] = 0.3,
    task_type: TaskType | None = None,
    dry_run: bool = True,
) -> Pruned:
    """Forget completed episodes that are old and taught little; by default only lists them.

    Episodes that others depend on are kept.

    Args:
        older_than_days: Only episodes completed longer ago.
        max_reward: Only episodes with at most this reward.
        task_type: Only this kind of work.
        dry_run: True only shows what would go.
    """
    rows = db.rows(
        "SELECT * FROM episodes WHERE status = 'completed' AND completed_at < ? "
        "AND reward_score <= ? AND (? IS NULL OR task_type = ?) AND id NOT IN "
        "(SELECT target FROM relationships WHERE kind = 'depends_on') ORDER BY number",
        iso(db.now() - timedelta(days=older_than_days)),
        max_reward,
        task_type,
        task_type,
    )
    if not dry_run:
        for row in rows:
            db.run("DELETE FROM episode_index WHERE rowid = ?", row["number"])
            db.run("DELETE FROM episodes WHERE id = ?", row["id"])
    return Pruned(pruned=[brief(r) for r in rows], dry_run=dry_run)


_COMPARED = (
    "domain",
    "task_type",
    "complexity",
    "language",
    "framework",
    "outcome_type",
    "duration_ms",
    "reward_score",
    "steps",
    "failed_steps",
)


def _figures(episode: Episode) -> list[str | float | int | None]:
    own = [getattr(episode, name) for name in _COMPARED[:-2]]
    return [*own, len(episode.steps), sum(not step.success for step in episode.steps)]


def _rate(rows: list[Row]) -> float | None:
    if not rows:
        return None
    return round(sum(r["outcome_type"] == "success" for r in rows) / len(rows), 3)
