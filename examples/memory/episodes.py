"""Episodes: begin one, add steps, complete it with what was learned, find it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from pegboard import Example

from ..database import Database, Record, Refused, changed, unknown
from ..toolbox import ADDS, READS, REMOVES, SETS, Toolbox
from .episode import (
    FIELD_ALIASES,
    Artifact,
    Complexity,
    EpisodeAnswer,
    EpisodeBrief,
    EpisodeEndAnswer,
    EpisodeHeadAnswer,
    EpisodeId,
    NewStep,
    Outcome,
    Reflection,
    Status,
    TaskType,
    answer,
    brief,
    end,
    head,
    need,
    need_open,
    normalized,
    save,
)
from .lifecycle import StepAdded, add_steps, complete
from .recall import recall

episodes = Toolbox[Database](
    "episodes", "Episodes of work: create, add steps, complete with a reflection, query, delete."
)

Limit = Annotated[int, Field(ge=1, le=100)]


class Episodes(Record):
    episodes: list[EpisodeBrief]
    total: int


class Deleted(Record):
    deleted: str
    steps: int
    relationships: int


class Tags(Record):
    episode_id: str
    tags: list[str]


@episodes.tool(
    summary="Begin an episode: remember a task",
    annotations=ADDS,
    field_aliases=FIELD_ALIASES,
    aliases=("start task", "remember"),
    related=("add_episode_step", "complete_episode"),
    examples=[
        Example(
            "A bug hunt",
            {
                "task_description": "Find why nightly imports stop after 10,000 rows",
                "domain": "data-pipeline",
                "task_type": "debugging",
                "language": "python",
                "tags": ["import", "timeout"],
            },
        )
    ],
)
def create_episode(
    db: Database,
    task_description: Annotated[str, Field(min_length=3)],
    domain: Annotated[str, Field(min_length=1)],
    task_type: TaskType,
    complexity: Complexity = "moderate",
    language: str | None = None,
    framework: str | None = None,
    tags: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
) -> EpisodeHeadAnswer:
    """Create an episode for a task that begins now and return it with its new id.

    Query the memory first: an earlier episode may hold the answer.

    Args:
        task_description: What shall be achieved, in a sentence or two.
        domain: Area of work, such as web-api or data-pipeline.
        task_type: What kind of work it is.
        complexity: How hard it looks; the reward takes it into account.
        language: Main programming language.
        framework: Main framework or library.
        tags: Words to find it by; kept in lower case.
        metadata: Anything else worth keeping, as an object.
    """
    number = db.value("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'episodes'")
    episode_id = f"ep-{number + 1:04d}"
    db.insert(
        "episodes",
        id=episode_id,
        task_description=task_description,
        domain=domain.strip().lower(),
        task_type=task_type,
        complexity=complexity,
        language=language,
        framework=framework,
        created_at=db.stamp,
    )
    save(db, episode_id, tags=normalized(tags), metadata=dict(metadata or {}))
    return head(db, episode_id)


@episodes.tool(
    summary="Show one episode whole, with steps, patterns and reflection",
    annotations=READS,
    field_aliases=FIELD_ALIASES,
    related=("query_memory", "bulk_episodes"),
    examples=[Example("By id", {"episode_id": "ep-0001"})],
)
def get_episode(db: Database, episode_id: EpisodeId) -> EpisodeAnswer:
    """Show everything that is known of one episode: task, steps, outcome, patterns and reflection.

    A long episode is long to read; name the fields that you need where your client can.
    """
    return answer(db, episode_id)


@episodes.tool(
    summary="Recall the episode that fits a task best",
    annotations=READS,
    field_aliases=FIELD_ALIASES,
    aliases=("remember", "search memory", "have we done this before"),
    related=("recommend_patterns", "find_similar_episodes", "list_episodes"),
    examples=[
        Example("Before starting", {"query": "token refresh fails under load"}),
        Example("In one area", {"query": "slow query", "domain": "database"}),
    ],
)
def query_memory(
    db: Database,
    query: Annotated[str, Field(min_length=2)],
    domain: str | None = None,
    task_type: TaskType | None = None,
    outcome_type: Outcome | None = None,
) -> EpisodeAnswer:
    """Recall the one episode that fits a task in words best, whole, with its steps and reflection.

    Words are compared with tasks, labels, steps and reflections; of episodes that fit alike the
    more successful one is recalled. `find_similar_episodes` lists several in brief.

    Args:
        query: The task at hand, in your own words.
        domain: Only episodes of this area.
        task_type: Only this kind of work.
        outcome_type: Only episodes that ended like this.
    """
    found = recall(db, query, domain=domain, task_type=task_type, limit=100)
    fitting = [r for r in found if outcome_type in (None, r.row["outcome_type"])]
    if not fitting:
        domains = ", ".join(db.column("SELECT DISTINCT domain FROM episodes ORDER BY 1"))
        raise Refused(
            f"No episode shares a word with {query!r} under these filters. Try other words or "
            f"fewer filters; domains in memory: {domains or 'none yet'}."
        )
    return answer(db, fitting[0].row["id"])


@episodes.tool(
    summary="List episodes by domain, type or outcome",
    annotations=READS,
    field_aliases=FIELD_ALIASES,
    examples=[Example("What went wrong", {"outcome_type": "failure"})],
    related=(
        "query_memory",
        "bulk_episodes",
    ),
)
def list_episodes(
    db: Database,
    domain: str | None = None,
    task_type: TaskType | None = None,
    status: Status | None = None,
    outcome_type: Outcome | None = None,
    tag: str | None = None,
    limit: Limit = 20,
    offset: Annotated[int, Field(ge=0)] = 0,
) -> Episodes:
    """List episodes that fit every filter given, a page at a time, without steps and reflection.

    Args:
        domain: Only this area.
        task_type: Only this kind of work.
        status: Only episodes in progress, or only completed ones.
        outcome_type: Only episodes that ended like this.
        tag: Only episodes that carry this tag.
        limit: How many to return at most.
        offset: How many to skip, for the next page.
    """
    filters = {"domain": domain, "task_type": task_type, "status": status}
    filters |= {"outcome_type": outcome_type}
    given = {column: value for column, value in filters.items() if value is not None}
    where = " AND ".join(["1", *(f"{column} = ?" for column in given)])
    values = [*given.values()]
    if tag is not None:
        where += " AND ? IN (SELECT value FROM json_each(tags))"
        values.append(tag.lower())
    rows = db.rows(
        f"SELECT * FROM episodes WHERE {where} ORDER BY number DESC LIMIT ? OFFSET ?",
        *values,
        limit,
        offset,
    )
    total = db.value(f"SELECT count(*) FROM episodes WHERE {where}", *values)
    return Episodes(episodes=[brief(r) for r in rows], total=total)


@episodes.tool(
    summary="Correct the description or labels of an episode",
    annotations=SETS,
    field_aliases=FIELD_ALIASES,
    related=(
        "tag_episode",
        "get_episode",
    ),
    examples=[Example("A better label", {"episode_id": "ep-0002", "domain": "orders"})],
)
def update_episode(
    db: Database,
    episode_id: EpisodeId,
    task_description: Annotated[str | None, Field(min_length=3)] = None,
    domain: str | None = None,
    complexity: Complexity | None = None,
    language: str | None = None,
    framework: str | None = None,
) -> EpisodeHeadAnswer:
    """Change how an episode is described; whatever you leave out stays as it is.

    The complexity of a completed episode is fixed, because its reward was computed with it. Steps
    and outcome have their own tools.

    Args:
        episode_id: Id of the episode.
        task_description: New description of the task.
        domain: New area of work.
        complexity: New complexity, while the episode is in progress.
        language: New main language.
        framework: New main framework.
    """
    need_open(db, episode_id) if complexity else need(db, episode_id)
    values = changed(
        task_description=task_description,
        domain=domain.strip().lower() if domain else None,
        complexity=complexity,
        language=language,
        framework=framework,
    )
    save(db, episode_id, **values)
    return head(db, episode_id)


@episodes.tool(
    summary="Add a step to an episode in progress",
    annotations=ADDS,
    related=("batch_add_steps",),
    examples=[
        Example(
            "A failed attempt",
            {
                "episode_id": "ep-0013",
                "tool": "pytest",
                "action": "Run the import tests",
                "observation": "2 failed",
                "success": False,
            },
        )
    ],
)
def add_episode_step(
    db: Database,
    episode_id: EpisodeId,
    tool: Annotated[str, Field(min_length=1)],
    action: str,
    observation: str = "",
    success: bool = True,
    latency_ms: Annotated[int, Field(ge=0)] = 0,
) -> StepAdded:
    """Note one thing that was done in an episode, with what came of it.

    Failed steps are worth noting: recoveries are mined from them.

    Args:
        episode_id: Id of an episode in progress.
        tool: Tool that was used, such as grep.
        action: What was done with it and why.
        observation: What came of it.
        success: Whether it did what was wanted.
        latency_ms: How long it took, in milliseconds.
    """
    step = NewStep(
        tool=tool, action=action, observation=observation, success=success, latency_ms=latency_ms
    )
    return add_steps(db, episode_id, [step])


@episodes.tool(
    summary="Complete an episode with its outcome and what was learned",
    annotations=SETS,
    aliases=("finish task",),
    related=("batch_complete_episodes", "analyze_patterns"),
    examples=[
        Example(
            "It worked",
            {
                "episode_id": "ep-0013",
                "outcome_type": "success",
                "reflection": {
                    "summary": "The cursor was never closed.",
                    "insights": ["Look at open cursors when rows stop at a round number."],
                },
            },
        )
    ],
)
def complete_episode(
    db: Database,
    episode_id: EpisodeId,
    outcome_type: Outcome,
    reflection: Reflection | None = None,
    artifacts: Sequence[Artifact] = (),
) -> EpisodeEndAnswer:
    """End an episode: its duration and reward are computed and its patterns are mined.

    The reward is mostly the outcome, then the share of steps that worked, then how few there were
    for the complexity. A completed episode can be described and linked further, but its steps are
    fixed.

    Args:
        episode_id: Id of an episode in progress.
        outcome_type: How it ended.
        reflection: What went well, what did not, and what to remember.
        artifacts: What it produced: files, commits, reports.
    """
    complete(db, episode_id, outcome_type, reflection, artifacts)
    return end(db, episode_id)


@episodes.tool(
    summary="Add tags to an episode and take others off",
    annotations=SETS,
    examples=[Example("Two new ones", {"episode_id": "ep-0001", "add": ["oauth", "cache"]})],
    related=(
        "update_episode",
        "list_episodes",
    ),
)
def tag_episode(
    db: Database, episode_id: EpisodeId, add: Sequence[str] = (), remove: Sequence[str] = ()
) -> Tags:
    """Change the tags of an episode in one step; tags are kept in lower case, each once.

    Args:
        episode_id: Id of the episode.
        add: Tags to put on.
        remove: Tags to take off.
    """
    if not add and not remove:
        raise Refused("Nothing to change: give tags to add or to remove.")
    present = answer(db, episode_id).episode.tags
    gone = normalized(remove)
    if strangers := [tag for tag in gone if tag not in present]:
        raise unknown("tag on this episode", strangers[0], present)
    tags = [tag for tag in normalized([*present, *add]) if tag not in gone]
    save(db, episode_id, tags=tags)
    return Tags(episode_id=episode_id, tags=tags)


@episodes.tool(
    summary="Delete an episode with its steps, for good",
    annotations=REMOVES,
    aliases=("forget",),
    related=("prune_episodes",),
    examples=[Example("One that taught nothing", {"episode_id": "ep-0014"})],
)
def delete_episode(db: Database, episode_id: EpisodeId) -> Deleted:
    """Forget an episode for good, with its steps and relationships.

    Patterns that other episodes share stay, with fewer occurrences.
    """
    row = need(db, episode_id)
    steps = db.value("SELECT count(*) FROM steps WHERE episode = ?", episode_id)
    related = db.value(
        "SELECT count(*) FROM relationships WHERE source = ? OR target = ?", episode_id, episode_id
    )
    db.run("DELETE FROM episode_index WHERE rowid = ?", row["number"])
    db.run("DELETE FROM episodes WHERE id = ?", episode_id)
    return Deleted(deleted=episode_id, steps=steps, relationships=related)
