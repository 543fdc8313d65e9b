"""How to call a tool, on one line.

    create_issue(project: str, title: str, priority?: "low"|"medium"|"high" = "medium")

A line that would be long says less: nested objects shallower, enums shorter, at last only some of
the optional parameters. Required parameters are always named, and `…` marks everything left out.
"""

from __future__ import annotations

from pegboard.core.json import Json
from pegboard.core.schemas.reading import View, folded
from pegboard.core.schemas.scalars import MORE, Room
from pegboard.core.schemas.spelling import member, says_more, unnamed

LIMIT = 400
"""Characters that a signature may have before it says less."""

_ROOMS = (
    Room(depth=4, values=16, literal=80),
    Room(depth=3, values=8, literal=48),
    Room(depth=2, values=6, literal=32),
    Room(depth=1, values=4, literal=24),
    Room(depth=0, values=3, literal=16),
)


def signature(name: str, schema: Json, *, limit: int = LIMIT) -> str:
    """How to call a tool: names, types, defaults; `…` where its description has more."""
    view = parameters_of(schema)
    line = _Line(name, view, limit)
    texts = line.fitted()
    if view.cut or says_more(view):
        texts.append(MORE)
    return f"{name}({', '.join(texts)})"


def parameters_of(schema: Json) -> View:
    """The object of a tool's parameters, whichever branch of the schema names them."""
    return folded(View.of(schema))


class _Line:
    """The parameters of one signature, each with as much room as the line has for it."""

    def __init__(self, name: str, view: View, limit: int) -> None:
        self.view = view
        self.limit = limit - len(name) - len("()")
        self.required = set(view.required)
        self.rooms = dict.fromkeys(view.members, 0)
        self.texts = {name: self._spelled(name) for name in view.members}
        self.rest = list(unnamed(view, _ROOMS[-1]))

    def fitted(self) -> list[str]:
        """The texts of the parameters, the longest ones shortened first until the line fits."""
        while self._length() > self.limit:
            movable = [n for n, room in self.rooms.items() if room + 1 < len(_ROOMS)]
            if not movable:
                return self._without_some()
            longest = max(movable, key=lambda name: len(self.texts[name]))
            self.rooms[longest] += 1
            self.texts[longest] = self._spelled(longest)
        return [*filter(None, self.texts.values()), *self.rest]

    def _spelled(self, name: str) -> str:
        view = self.view.at(self.view.members[name])
        return member(view, name, name in self.required, _ROOMS[self.rooms[name]])

    def _length(self) -> int:
        return sum(len(text) + len(", ") for text in (*self.texts.values(), *self.rest) if text) - 2

    def _without_some(self) -> list[str]:
        """As many optional parameters as fit, and how many more there are."""
        texts = [text for text in self.texts.values() if text] + self.rest
        kept, left = len(self.required), self.limit - len(f"{MORE}999 more")
        left -= sum(len(text) + len(", ") for text in texts[:kept])
        while kept < len(texts) and left >= len(texts[kept]) + len(", "):
            left -= len(texts[kept]) + len(", ")
            kept += 1
        return [*texts[:kept], f"{MORE}{len(texts) - kept} more"] if kept < len(texts) else texts
