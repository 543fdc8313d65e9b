"""Batches: many episodes in one call, all or nothing where it writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from pegboard import Example

from ..database import Database, Record, Refused
from ..toolbox import ADDS, READS, SETS, Toolbox
from .episode import (
    FIELD_ALIASES,
    Complexity,
    Episode,
    NewStep,
    Outcome,
    Reflection,
    TaskType,
    need,
    whole,
)
from .episodes import create_episode
from .lifecycle import add_steps, complete

batch = Toolbox[Database]("batch", "Many episodes in one call: read, create, add steps, complete.")


class NewEpisode(Record):
    """One episode to create."""

    task_description: str = Field(min_length=3, description="What shall be achieved.")
    domain: str = Field(min_length=1, description="Area of work.")
    task_type: TaskType
    complexity: Complexity = "moderate"
    language: str | None = None
    framework: str | None = None
    tags: list[str] = Field(default_factory=list)
    metadata: dict[str, Any] = Field(default_factory=dict)


class StepsFor(Record):
    """Steps to add to one episode."""

    episode_id: str
    steps: list[NewStep] = Field(min_length=1)


class Completion(Record):
    """The end of one episode."""

    episode_id: str
    outcome_type: Outcome
    reflection: Reflection | None = None


class Found(Record):
    episodes: list[Episode]
    missing: list[str]


class Created(Record):
    ids: list[str]


class Extended(Record):
    steps_added: int
    steps_by_episode: dict[str, int] = Field(description="How many each has now.")


class Completed(Record):
    rewards: dict[str, float]
    mean_reward: float


@batch.tool(
    summary="Read several episodes by id",
    annotations=READS,
    projection_root="episodes",
    field_aliases=FIELD_ALIASES,
    related=("get_episode", "list_episodes"),
    examples=[Example("Two of them", {"episode_ids": ["ep-0001", "ep-0002"]})],
)
def bulk_episodes(
    db: Database, episode_ids: Annotated[Sequence[str], Field(min_length=1, max_length=50)]
) -> Found:
    """Read up to 50 episodes whole, in the order asked for; unknown ids are listed as missing.

    Args:
        episode_ids: Ids of the episodes.
    """
    known = set(db.column("SELECT id FROM episodes"))
    return Found(
        episodes=[whole(db, need(db, i)) for i in episode_ids if i in known],
        missing=[i for i in episode_ids if i not in known],
    )


@batch.tool(
    summary="Create several episodes at once",
    annotations=ADDS,
    related=("create_episode",),
    examples=[
        Example(
            "Two tasks",
            {
                "episodes": [
                    {
                        "task_description": "Write tests for the parser",
                        "domain": "cli",
                        "task_type": "testing",
                    },
                    {
                        "task_description": "Document the flags",
                        "domain": "cli",
                        "task_type": "documentation",
                    },
                ]
            },
        )
    ],
)
def batch_create_episodes(
    db: Database, episodes: Annotated[Sequence[NewEpisode], Field(min_length=1, max_length=100)]
) -> Created:
    """Create up to 100 episodes that begin now, and return their ids in order; all or none.

    Args:
        episodes: What `create_episode` takes, once per episode.
    """
    return Created(ids=[create_episode(db, **dict(episode)).episode.id for episode in episodes])


@batch.tool(
    summary="Add steps to one or several episodes at once",
    annotations=ADDS,
    related=("add_episode_step",),
    examples=[
        Example(
            "Two steps",
            {
                "batches": [
                    {
                        "episode_id": "ep-0013",
                        "steps": [
                            {"tool": "grep", "action": "Look for the limit"},
                            {"tool": "read_file", "action": "Read the importer"},
                        ],
                    }
                ]
            },
        )
    ],
)
def batch_add_steps(
    db: Database, batches: Annotated[Sequence[StepsFor], Field(min_length=1, max_length=50)]
) -> Extended:
    """Add steps to episodes in progress, in the order given; if one is completed, none is added.

    Args:
        batches: For each episode the steps to add to it.
    """
    counts: dict[str, int] = {}
    for part in batches:
        counts[part.episode_id] = add_steps(db, part.episode_id, part.steps).steps
    return Extended(steps_added=sum(len(p.steps) for p in batches), steps_by_episode=counts)


@batch.tool(
    summary="Complete several episodes at once",
    annotations=SETS,
    related=("complete_episode",),
    examples=[
        Example(
            "Both failed",
            {
                "completions": [
                    {"episode_id": "ep-0013", "outcome_type": "failure"},
                    {"episode_id": "ep-0014", "outcome_type": "failure"},
                ]
            },
        )
    ],
)
def batch_complete_episodes(
    db: Database, completions: Annotated[Sequence[Completion], Field(min_length=1, max_length=50)]
) -> Completed:
    """End several episodes, each with its outcome; rewards and patterns are computed for each.

    All of them or none: an id that is unknown, named twice or completed already stops the batch.

    Args:
        completions: For each episode how it ended and what was learned.
    """
    ids = [c.episode_id for c in completions]
    if twice := sorted({i for i in ids if ids.count(i) > 1}):
        raise Refused(f"Each episode ends once; {', '.join(twice)} is named more than once.")
    for part in completions:
        complete(db, part.episode_id, part.outcome_type, part.reflection)
    rewards = {i: need(db, i)["reward_score"] for i in ids}
    return Completed(rewards=rewards, mean_reward=round(sum(rewards.values()) / len(ids), 3))
