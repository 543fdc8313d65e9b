"""Episodes to look at: what an agent did on a software project in February 2026, always the same.

They are made through the tools themselves, so that rewards and patterns are computed, not written
down. `RICH_EPISODE` is long on purpose: an episode as it comes out of a hard task.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ..database import Database
from .episode import Artifact, NewStep, Reflection
from .episodes import create_episode
from .lifecycle import add_steps, complete
from .relationships import link_episodes

START = datetime(2026, 2, 2, 9, tzinfo=UTC)
STORY = Path(__file__).with_name("seed.json")
RICH_EPISODE = "ep-0001"


def seed(db: Database) -> None:
    """Fill an empty memory with the demo episodes; one with episodes in it is left alone."""
    with db.transaction():
        if db.value("SELECT count(*) FROM episodes"):
            return
        story = json.loads(STORY.read_text(encoding="utf-8"))
        for day, told in enumerate(story["episodes"]):
            _relive(db, told, START + timedelta(days=day))
        for link in story["relationships"]:
            link_episodes(db, **link)


def _relive(db: Database, told: Mapping[str, Any], start: datetime) -> None:
    """Make one episode happen: begin it, take its steps, and end it if it ended."""
    then = replace(db, now=lambda: start)
    steps = [_step(*parts) for parts in told["steps"]]
    episode_id = create_episode(then, **told["task"]).episode.id
    if steps:
        add_steps(then, episode_id, steps)
    if "outcome_type" in told:
        end = start + timedelta(milliseconds=sum(s.latency_ms for s in steps) + told["idle_ms"])
        reflection = told.get("reflection")
        complete(
            replace(db, now=lambda: end),
            episode_id,
            told["outcome_type"],
            Reflection.model_validate(reflection) if reflection else None,
            _artifacts(told.get("artifacts", ())),
        )


def _step(tool: str, success: bool, latency_ms: int, action: str, observation: str) -> NewStep:
    return NewStep(
        tool=tool, action=action, observation=observation, success=success, latency_ms=latency_ms
    )


def _artifacts(told: Sequence[Mapping[str, Any]]) -> list[Artifact]:
    return [Artifact.model_validate(artifact) for artifact in told]
