"""Finding episodes again: by words, weighed by how well they went."""

from __future__ import annotations

from dataclasses import dataclass

from ..database import Database, Row, Value
from ..fulltext import any_word

REWARD_WEIGHT = 0.2


@dataclass(frozen=True, slots=True)
class Recalled:
    """An episode that fits a query, and how well; 1 is the best that the words alone can give."""

    row: Row
    score: float


def recall(
    db: Database,
    query: str,
    *,
    domain: str | None = None,
    task_type: str | None = None,
    but: str | None = None,
    limit: int = 10,
) -> list[Recalled]:
    """The episodes that share words with a query, best first; empty when none does.

    Words in the task weigh most, then labels, then steps and reflection. Of two that fit alike, the
    one that went better comes first.
    """
    words = any_word(query)
    if not words:
        return []
    values: list[Value] = [words]
    values += [domain, domain, task_type, task_type, but]
    rows = db.rows(
        "SELECT episodes.*, -bm25(episode_index, 4.0, 2.0, 1.0) AS fit FROM episode_index "
        "JOIN episodes ON number = episode_index.rowid WHERE episode_index MATCH ? "
        "AND (? IS NULL OR domain = ?) AND (? IS NULL OR task_type = ?) AND id IS NOT ?",
        *values,
    )
    best = max((row["fit"] for row in rows), default=0.0) or 1.0
    found = [Recalled(row, _score(row, best)) for row in rows]
    return sorted(found, key=lambda r: (-r.score, r.row["id"]))[:limit]


def _score(row: Row, best: float) -> float:
    fit = max(row["fit"], 0.0) / best
    return round(fit * (1 - REWARD_WEIGHT + REWARD_WEIGHT * (row["reward_score"] or 0.0)), 3)
