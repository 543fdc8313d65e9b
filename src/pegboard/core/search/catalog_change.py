"""What an index keeps when its catalog changes, and what it has to read again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pegboard.core.search.relevance import ToolVectors, Vectorizer
from pegboard.core.search.searchable_fields import (
    SearchableFields,
    build_passage,
    read_searchable_fields,
)
from pegboard.core.tools import Catalog


@dataclass(frozen=True, slots=True)
class CatalogChange:
    """The difference between two catalogs: which tools stay, and the fields of the new ones."""

    keys: tuple[bytes, ...]
    moved: NDArray[np.int32]
    """The new number of each old tool; -1 for removed or changed ones."""
    added: Mapping[int, SearchableFields]

    @classmethod
    def between(cls, old_keys: Sequence[bytes], old: Catalog, new: Catalog) -> CatalogChange:
        """The change from one catalog, whose tools have these keys, to another."""
        old_tools = old.tools
        before = {tool.id: number for number, tool in enumerate(old_tools)}
        moved = np.full(len(old_tools), -1, np.int32)
        keys: list[bytes] = []
        added: dict[int, SearchableFields] = {}
        last = -1
        for number, tool in enumerate(new):
            at = before.get(tool.id, -1)
            same = at >= 0 and old_tools[at] is tool
            fields = None if same else read_searchable_fields(tool)
            keys.append(old_keys[at] if fields is None else fields.key)
            # Postings stay sorted only if tools keep their order: one that moved back is new.
            if at > last and old_keys[at] == keys[-1]:
                moved[at], last = number, at
            else:
                added[number] = fields or read_searchable_fields(tool)
        return cls(tuple(keys), moved, added)

    def update_vectors(self, before: ToolVectors, vectorizer: Vectorizer) -> ToolVectors:
        """The vectors of the new catalog; those of tools that stay are not computed again."""
        stay = np.flatnonzero(self.moved >= 0)
        rough, exact = before.moved(stay, self.moved[stay].astype(np.intp), len(self.keys))
        if self.added:
            new = list(self.added)
            passages = [build_passage(fields) for fields in self.added.values()]
            rough[new] = vectorizer.rough_vectors(passages)
            new_exact = vectorizer.exact_vectors([self.keys[n] for n in new])
            exact.rows[new], exact.scales[new] = new_exact
        return ToolVectors(rough, exact)
