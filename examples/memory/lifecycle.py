"""How an episode goes on and ends, whichever tool says so, and what mining learns from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from ..database import Database, Record, moment
from . import mining
from .episode import Artifact, NewStep, Outcome, Reflection, index, need_open, save, steps_of


class StepAdded(Record):
    episode_id: str
    number: int
    steps: int = Field(description="How many the episode has now.")


def add_steps(db: Database, episode_id: str, steps: Sequence[NewStep]) -> StepAdded:
    """Append steps to an episode in progress; the number of the first of them."""
    need_open(db, episode_id)
    count = db.value("SELECT count(*) FROM steps WHERE episode = ?", episode_id)
    for number, step in enumerate(steps, start=count + 1):
        db.insert("steps", episode=episode_id, number=number, **step.model_dump())
    index(db, episode_id)
    return StepAdded(episode_id=episode_id, number=count + 1, steps=count + len(steps))


def complete(
    db: Database,
    episode_id: str,
    outcome: Outcome,
    reflection: Reflection | None,
    artifacts: Sequence[Artifact] = (),
) -> None:
    """Give an episode in progress its end."""
    row = need_open(db, episode_id)
    steps = steps_of(db, episode_id)
    elapsed = moment(db.stamp) - moment(row["created_at"])
    save(
        db,
        episode_id,
        status="completed",
        outcome_type=outcome,
        completed_at=db.stamp,
        duration_ms=int(elapsed.total_seconds() * 1000),
        reward_score=mining.reward(outcome, row["complexity"], steps),
        reflection=reflection,
        artifacts=list(artifacts),
    )
    save(db, episode_id, patterns=_patterns(db, mining.traces(steps)))


def _patterns(db: Database, traces: Sequence[mining.Trace]) -> list[Any]:
    """The patterns of one episode with figures over all completed ones."""
    known = {p.id: p for p in mining.mine(evidence(db), at_least=1)}
    return [known[trace.id].model_dump() for trace in traces]


def evidence(
    db: Database, domain: str | None = None, task_type: str | None = None
) -> list[mining.Evidence]:
    """The completed episodes, oldest first, as mining looks at them."""
    rows = db.rows(
        "SELECT id, outcome_type FROM episodes WHERE status = 'completed' AND (? IS NULL OR "
        "domain = ?) AND (? IS NULL OR task_type = ?) ORDER BY number",
        domain,
        domain,
        task_type,
        task_type,
    )
    return [
        mining.Evidence(r["id"], r["outcome_type"] == "success", steps_of(db, r["id"]))
        for r in rows
    ]
