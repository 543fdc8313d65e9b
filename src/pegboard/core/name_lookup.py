"""Names of tools: how a name is resolved to its tool, and similar names when it is not.

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
MAX_NAME_LENGTH = 1_000
"""Characters of a name that is looked up: no tool has a longer one, and comparing is slow."""
_MAX_SHOWN = 100
# Similarities of rapidfuzz, of 100.
_MIN_SIMILARITY = 60.0
_TYPO_SIMILARITY = 80.0


def resolve(catalog: Catalog, name: str, category: str | None = None) -> Tool:
    """The one tool that `name` means, enabled or not.

    Raises:
        AmbiguousName: Several tools match; the error lists a unique name for each.
        ToolNotFound: None matches; the error lists similar names.
    """
    if len(name) > MAX_NAME_LENGTH:  # also keeps a flood out of the error message
        raise ToolNotFound(f"{name[:_MAX_SHOWN]}…")
    found = catalog.matching(name, category)
    if len(found) == 1:
        return found[0]
    if found:
        raise AmbiguousName(name, [catalog.address(t) for t in found])
    raise ToolNotFound(name, nearest_tools(catalog, name, category))


def nearest_tools(catalog: Catalog, name: str, category: str | None = None) -> list[str]:
    """Unique names of the enabled tools whose names are most similar to `name`, best first."""
    pool = [t for t in catalog.enabled if category is None or is_in_group(t, category)]
    # In an empty or unknown category, suggest from the whole catalog: the category may be wrong.
    return nearest(name, {catalog.address(t): t.name for t in pool or catalog.enabled})


def nearest(
    name: str, known: Iterable[str] | dict[str, str], limit: int = NEAREST_LIMIT
) -> list[str]:
    """The known words most similar to `name`; of a dict, values are compared, keys returned."""
    if len(name) > MAX_NAME_LENGTH:
        return []
    # Imported here: it is only needed for a misspelled name, and takes a third of our import time.
    from rapidfuzz import process
    from rapidfuzz.utils import default_process

    choices = known if isinstance(known, dict) else {word: word for word in known}
    found = process.extract(
        name.replace("_", " "),
        {key: word.replace("_", " ") for key, word in choices.items()},
        scorer=_similarity,
        processor=default_process,
        limit=limit,
        score_cutoff=_MIN_SIMILARITY,
    )
    return [key for _, _, key in found]


def is_typo(name: str, known: Iterable[str]) -> bool:
    """Whether a name is one of these except for a letter or two: `titel`, `max-results`.

    Stricter than `nearest`: sharing words with a name does not make it that name.
    """
    if len(name) > MAX_NAME_LENGTH:
        return False
    from rapidfuzz import fuzz

    # `maxResults`, `max_results` and `max-results` are the same letters.
    plain = _letters(name)
    return any(fuzz.ratio(plain, _letters(word)) >= _TYPO_SIMILARITY for word in known)


def _letters(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())


def _similarity(one: str, other: str, **options: Any) -> float:
    """How similar two names are, of 100: by letters, by words in any order, or by shared words."""
    from rapidfuzz import fuzz

    return max(
        fuzz.ratio(one, other),
        fuzz.token_sort_ratio(one, other),
        0.85 * fuzz.token_set_ratio(one, other),  # 100 if one has all words of the other
    )
