"""Relationships: which episode follows, needs, resembles or replaces which."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pegboard import Example

from ..database import Database, Record, Refused
from ..toolbox import READS, REMOVES, SETS, Toolbox
from .episode import (
    EpisodeBrief,
    EpisodeId,
    Relationship,
    RelationshipKind,
    brief,
    need,
)
from .recall import recall

relationships = Toolbox[Database](
    "relationships", "How episodes stand to each other: link, unlink, follow, find similar ones."
)


class Related(Record):
    episode_id: str
    outgoing: list[Relationship]
    incoming: list[Relationship]


class Node(Record):
    episode: EpisodeBrief
    distance: int


class Edge(Record):
    source: str
    kind: RelationshipKind
    target: str


class Graph(Record):
    nodes: list[Node]
    edges: list[Edge]


class Match(Record):
    episode: EpisodeBrief
    score: float


class Similar(Record):
    matches: list[Match]


@relationships.tool(
    summary="Link two episodes, such as one that follows another",
    annotations=SETS,
    related=("unlink_episodes", "get_episode_graph"),
    examples=[
        Example(
            "A second attempt",
            {"source": "ep-0002", "kind": "follows", "target": "ep-0001", "reason": "Same bug"},
        )
    ],
)
def link_episodes(
    db: Database, source: EpisodeId, kind: RelationshipKind, target: EpisodeId, reason: str = ""
) -> Related:
    """Relate one episode to another; linking again replaces the reason.

    Episodes that depend on each other in a circle are refused.

    Args:
        source: Episode that follows, depends on, resembles or supersedes.
        kind: How it stands to the other one.
        target: The other episode.
        reason: Why, in a few words.
    """
    for episode_id in (source, target):
        need(db, episode_id)
    if source == target:
        raise Refused(f"{source} cannot be linked to itself; give two episodes.")
    if kind == "depends_on" and source in _needs(db, target):
        raise Refused(f"{target} depends on {source} already; this is a circle.")
    db.run(
        "INSERT INTO relationships VALUES (?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET reason = excluded.reason",
        source,
        kind,
        target,
        reason,
    )
    return _related(db, source)


@relationships.tool(
    summary="Remove a link between two episodes",
    annotations=REMOVES,
    related=("link_episodes",),
    examples=[Example("All links between two", {"source": "ep-0013", "target": "ep-0011"})],
)
def unlink_episodes(
    db: Database, source: EpisodeId, target: EpisodeId, kind: RelationshipKind | None = None
) -> Related:
    """Remove the links that lead from one episode to another, or only those of one kind.

    Args:
        source: Episode that the link starts at.
        target: Episode that the link leads to.
        kind: Only links of this kind.
    """
    for episode_id in (source, target):
        need(db, episode_id)
    gone = db.run(
        "DELETE FROM relationships WHERE source = ? AND target = ? AND (? IS NULL OR kind = ?)",
        source,
        target,
        kind,
        kind,
    )
    if not gone:
        raise Refused(f"No such link leads from {source} to {target}; see get_episode_graph.")
    return _related(db, source)


@relationships.tool(
    summary="Show the episodes around one, as nodes and edges",
    annotations=READS,
    related=(
        "link_episodes",
        "find_similar_episodes",
    ),
    examples=[Example("Two steps around one", {"episode_id": "ep-0001", "depth": 2})],
)
def get_episode_graph(
    db: Database, episode_id: EpisodeId, depth: Annotated[int, Field(ge=1, le=5)] = 2
) -> Graph:
    """Show episodes that links in either direction lead to, and the links between them.

    Args:
        episode_id: Episode to start from.
        depth: How many links to follow at most.
    """
    need(db, episode_id)
    distance = {episode_id: 0}
    frontier = [episode_id]
    edges = [
        Edge.model_validate(r) for r in db.rows("SELECT * FROM relationships ORDER BY 1, 2, 3")
    ]
    for step in range(1, depth + 1):
        ends = [(e.source, e.target) for e in edges] + [(e.target, e.source) for e in edges]
        frontier = [far for near, far in ends if near in frontier and far not in distance]
        distance |= dict.fromkeys(frontier, step)
    return Graph(
        nodes=[Node(episode=brief(need(db, i)), distance=d) for i, d in distance.items()],
        edges=[e for e in edges if e.source in distance and e.target in distance],
    )


@relationships.tool(
    summary="List episodes similar to one, in brief",
    annotations=READS,
    related=("query_memory",),
    examples=[Example("The three nearest", {"episode_id": "ep-0001", "limit": 3})],
)
def find_similar_episodes(
    db: Database, episode_id: EpisodeId, limit: Annotated[int, Field(ge=1, le=20)] = 5
) -> Similar:
    """List episodes whose tasks, labels and lessons share words with an episode, closest first.

    Args:
        episode_id: Episode to compare with.
        limit: How many to return at most.
    """
    row = need(db, episode_id)
    query = f"{row['task_description']} {row['domain']} {row['tags']}"
    found = recall(db, query, but=episode_id, limit=limit)
    return Similar(matches=[Match(episode=brief(r.row), score=r.score) for r in found])


def _related(db: Database, episode_id: str) -> Related:
    def ends(near: str, far: str) -> list[Relationship]:
        rows = db.rows(
            f"SELECT kind, {far} AS episode_id, reason FROM relationships WHERE {near} = ? "
            "ORDER BY 1, 2",
            episode_id,
        )
        return [Relationship.model_validate(r) for r in rows]

    return Related(
        episode_id=episode_id,
        outgoing=ends("source", "target"),
        incoming=ends("target", "source"),
    )


def _needs(db: Database, episode_id: str) -> list[str]:
    """Everything that an episode depends on, directly or through others, itself included."""
    return db.column(
        "WITH RECURSIVE needs (id) AS (SELECT ? UNION SELECT target FROM relationships "
        "JOIN needs ON source = needs.id WHERE kind = 'depends_on') SELECT id FROM needs",
        episode_id,
    )
