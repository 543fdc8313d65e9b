"""Addresses of tools: how a name finds its tool, and what was perhaps meant when it does not.

create_issue            bare, when only one tool has that name, here or at its own server
issues.create_issue     category (or server) and tool
issues/create_issue     the same
("issues", "create")    the pair, as some modes pass it
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pegboard.core.tools import Catalog, Tool, is_in_group
from pegboard.errors import AmbiguousName, ToolNotFound

NEAREST_LIMIT = 5
_SHOWN = 100
LONGEST_NAME = 1_000
"""Characters of a name that is looked for; no tool has a longer one, and comparing takes long."""
_LEAST_LIKENESS = 60.0
_SAME_BUT_FOR_A_SLIP = 80.0


def resolve(catalog: Catalog, name: str, category: str | None = None) -> Tool:
    """The one tool that `name` addresses, switched off or not.

    Raises:
        AmbiguousName: Several tools fit; the error lists an address for each.
        ToolNotFound: None fits; the error lists the nearest.
    """
    if len(name) > LONGEST_NAME:
        raise ToolNotFound(f"{name[:_SHOWN]}…")
    found = catalog.matching(name, category)
    if len(found) == 1:
        return found[0]
    if found:
        raise AmbiguousName(name, [catalog.address(t) for t in found])
    raise ToolNotFound(name, nearest_tools(catalog, name, category))


def nearest_tools(catalog: Catalog, name: str, category: str | None = None) -> list[str]:
    """Addresses of the enabled tools whose names are most like `name`, best first."""
    pool = [t for t in catalog.enabled if category is None or is_in_group(t, category)]
    return nearest(name, {catalog.address(t): t.name for t in pool or catalog.enabled})


def nearest(
    name: str, known: Iterable[str] | dict[str, str], limit: int = NEAREST_LIMIT
) -> list[str]:
    """The known words most like `name`; of a dict, values are compared, keys returned."""
    # Imported here: it is only needed when something was misspelt, and costs a third of our import.
    if len(name) > LONGEST_NAME:
        return []
    from rapidfuzz import process
    from rapidfuzz.utils import default_process

    choices = known if isinstance(known, dict) else {word: word for word in known}
    found = process.extract(
        name.replace("_", " "),
        {key: word.replace("_", " ") for key, word in choices.items()},
        scorer=_likeness,
        processor=default_process,
        limit=limit,
        score_cutoff=_LEAST_LIKENESS,
    )
    return [key for _, _, key in found]


def is_typo(name: str, known: Iterable[str]) -> bool:
    """Whether a name is one of these but for a letter or two: `titel`, `maxResult`, `max-results`.

    Stricter than `nearest`: that it shares words with one does not make it the same.
    """
    if len(name) > LONGEST_NAME:
        return False
    from rapidfuzz import fuzz

    plain = _letters(name)
    return any(fuzz.ratio(plain, _letters(word)) >= _SAME_BUT_FOR_A_SLIP for word in known)


def _letters(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())


def _likeness(one: str, other: str, **options: Any) -> float:
    """How alike two names are, of 100: by letters, by words in any order, or by shared words."""
    from rapidfuzz import fuzz

    return max(
        fuzz.ratio(one, other),
        fuzz.token_sort_ratio(one, other),
        0.85 * fuzz.token_set_ratio(one, other),
    )
