"""Names of tools: how a name is resolved to its tool, and similar tools when it is not.

create_issue            bare, when only one tool has that name, here or at its own server
issues.create_issue     category (or server) and tool
issues/create_issue     the same
("issues", "create")    the pair, as some modes pass it
"""

from __future__ import annotations

from pegboard.core.similar_names import MAX_NAME_LENGTH, nearest
from pegboard.core.tools import Catalog, Tool, is_in_group
from pegboard.errors import AmbiguousName, ToolNotFound

_MAX_SHOWN = 100


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
