"""An episode: one task that an agent worked on, with its steps, outcome and what was learned.

create_episode -> in_progress --add_episode_step--> ... --complete_episode--> completed
(scored, mined)
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from ..database import Database, Record, Refused, Row, unknown

TaskType: TypeAlias = Literal[
    "code_generation", "debugging", "refactoring", "testing", "analysis", "documentation"
]
Complexity: TypeAlias = Literal["simple", "moderate", "complex"]
Status: TypeAlias = Literal["in_progress", "completed"]
Outcome: TypeAlias = Literal["success", "partial_success", "failure"]
PatternKind: TypeAlias = Literal["tool_sequence", "error_recovery"]
RelationshipKind: TypeAlias = Literal["follows", "depends_on", "similar_to", "supersedes"]

FIELD_ALIASES = {"description": "task_description"}
"""Episodes have the description of a task, and callers ask for a description."""

EpisodeId: TypeAlias = Annotated[str, Field(description="Id of the episode, such as ep-0001.")]


class NewStep(Record):
    """One step to add to an episode."""

    tool: str = Field(min_length=1, description="Tool that was used, such as grep.")
    action: str = Field(description="What was done with it and why.")
    observation: str = Field(default="", description="What came of it.")
    success: bool = Field(default=True, description="Whether it did what was wanted.")
    latency_ms: int = Field(default=0, ge=0, description="How long it took.")


class Step(Record):
    """One step of an episode."""

    number: int
    tool: str
    action: str
    observation: str
    success: bool
    latency_ms: int


class Pattern(Record):
    """Something that was done in one or more episodes, and how well it went."""

    id: str
    kind: PatternKind
    description: str
    tools: list[str]
    occurrences: int
    success_rate: float
    confidence: float


class Reflection(Record):
    """What was learned from an episode."""

    summary: str
    successes: list[str] = Field(default_factory=list)
    improvements: list[str] = Field(default_factory=list)
    insights: list[str] = Field(default_factory=list)


class Artifact(Record):
    """Something that an episode produced."""

    kind: str
    name: str
    location: str
    size_bytes: int = 0


class Relationship(Record):
    """How an episode stands to another one."""

    kind: RelationshipKind
    episode_id: str
    reason: str


class Episode(Record):
    """One task that an agent worked on."""

    id: str
    task_description: str
    domain: str
    task_type: TaskType
    complexity: Complexity
    language: str | None
    framework: str | None
    tags: list[str]
    status: Status
    outcome_type: Outcome | None
    created_at: datetime
    completed_at: datetime | None
    duration_ms: int | None
    reward_score: float | None
    steps: list[Step]
    patterns: list[Pattern]
    reflection: Reflection | None
    artifacts: list[Artifact]
    relationships: list[Relationship]
    metadata: dict[str, Any]


class EpisodeAnswer(Record):
    """One episode, whole."""

    episode: Episode


class EpisodeBrief(Record):
    """An episode as lists show it."""

    id: str
    task_description: str
    domain: str
    task_type: TaskType
    status: Status
    outcome_type: Outcome | None
    reward_score: float | None
    created_at: datetime


class EpisodeHead(EpisodeBrief):
    """What an episode is about, without what happened in it."""

    complexity: Complexity
    language: str | None
    framework: str | None
    tags: list[str]


class EpisodeHeadAnswer(Record):
    """An episode that was described: new, or described anew."""

    episode: EpisodeHead


class EpisodeEnd(Record):
    """How an episode ended."""

    id: str
    status: Status
    outcome_type: Outcome
    completed_at: datetime
    duration_ms: int
    reward_score: float
    patterns: list[Pattern]
    reflection: Reflection | None
    artifacts: list[Artifact]


class EpisodeEndAnswer(Record):
    """An episode that has just ended."""

    episode: EpisodeEnd


JSON_COLUMNS = ("tags", "patterns", "reflection", "artifacts", "metadata")


def need(db: Database, episode_id: str) -> Row:
    """The stored row of an episode."""
    row = db.row("SELECT * FROM episodes WHERE id = ?", episode_id)
    if row is None:
        raise unknown("episode", episode_id, db.column("SELECT id FROM episodes"))
    return row


def need_open(db: Database, episode_id: str) -> Row:
    """The stored row of an episode that is still in progress."""
    row = need(db, episode_id)
    if row["status"] == "completed":
        raise Refused(
            f"{episode_id} was completed at {row['completed_at']} and is fixed; create an episode "
            "that follows it (link_episodes)."
        )
    return row


def steps_of(db: Database, episode_id: str) -> list[Step]:
    """The steps of an episode, in order."""
    rows = db.rows("SELECT * FROM steps WHERE episode = ? ORDER BY number", episode_id)
    return [Step.model_validate(r) for r in rows]


def whole(db: Database, row: Row) -> Episode:
    """An episode with everything that belongs to it."""
    parsed = {name: json.loads(row[name] or "null") for name in JSON_COLUMNS}
    related = db.rows(
        "SELECT kind, target AS episode_id, reason FROM relationships WHERE source = ? "
        "ORDER BY kind, target",
        row["id"],
    )
    return Episode(
        **{**row, **parsed},
        steps=steps_of(db, row["id"]),
        relationships=[Relationship.model_validate(r) for r in related],
    )


def answer(db: Database, episode_id: str) -> EpisodeAnswer:
    """One episode in the envelope that tools give back."""
    return EpisodeAnswer(episode=whole(db, need(db, episode_id)))


def head(db: Database, episode_id: str) -> EpisodeHeadAnswer:
    """What an episode is about, in the same envelope."""
    episode = whole(db, need(db, episode_id))
    return EpisodeHeadAnswer(episode=EpisodeHead.model_validate(episode, from_attributes=True))


def end(db: Database, episode_id: str) -> EpisodeEndAnswer:
    """How an episode ended, in the same envelope."""
    episode = whole(db, need(db, episode_id))
    return EpisodeEndAnswer(episode=EpisodeEnd.model_validate(episode, from_attributes=True))


def brief(row: Row) -> EpisodeBrief:
    """An episode as lists show it."""
    return EpisodeBrief.model_validate(row)


def save(db: Database, episode_id: str, **values: object) -> None:
    """Set columns of an episode, lists and objects as JSON, and index it again."""
    stored: dict[str, Any] = {k: _stored(v) for k, v in values.items()}
    db.update("episodes", "id", episode_id, **stored)
    index(db, episode_id)


def index(db: Database, episode_id: str) -> None:
    """Bring the full-text index up to date with an episode."""
    row = need(db, episode_id)
    labels = [row["domain"], row["task_type"], row["language"], row["framework"]]
    labels += json.loads(row["tags"])
    learned = db.column("SELECT action FROM steps WHERE episode = ?", episode_id)
    learned += _texts(json.loads(row["reflection"] or "null"))
    db.run("DELETE FROM episode_index WHERE rowid = ?", row["number"])
    db.insert(
        "episode_index",
        rowid=row["number"],
        task=row["task_description"],
        labels=" ".join(label for label in labels if label),
        learned="\n".join(learned),
    )


def normalized(tags: Sequence[str]) -> list[str]:
    """Tags in lower case, each once, in the order given."""
    return list(dict.fromkeys(tag.strip().lower() for tag in tags if tag.strip()))


def _stored(value: object) -> object:
    if isinstance(value, Record):
        return value.model_dump_json()
    if isinstance(value, (list, dict)):
        return json.dumps(value, default=lambda v: v.model_dump(mode="json"))
    return value


def _texts(reflection: dict[str, Any] | None) -> list[str]:
    if reflection is None:
        return []
    lists = [reflection[name] for name in ("successes", "improvements", "insights")]
    return [reflection["summary"], *(text for texts in lists for text in texts)]
