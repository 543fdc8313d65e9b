"""Which servers handed a resource out to whom: in links of results, listed nowhere else.

Each principal has links of their own, so that nobody's results decide where somebody else's reads
go. A link is only ever a hint: `Addresses` prefers the servers that declare a resource.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from pegboard.core.json import Json

MOST_LINKS: Final = 500
"""Links that are remembered of one principal."""
MOST_PRINCIPALS: Final = 500
_LONGEST_URI: Final = 1_000


class Links:
    """The links that servers have given, the oldest making room for new ones."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, OrderedDict[str, frozenset[str]]] = OrderedDict()

    def note(self, principal: str, server: str, content: Json) -> None:
        """Remember the links among the content blocks of a result."""
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") == "resource_link":
                self._remember(principal, server, str(block.get("uri")))

    def servers(self, principal: str, uri: str) -> frozenset[str]:
        """The servers that gave this principal a link to a URI."""
        return self._known.get(principal, {}).get(uri, frozenset())

    def _remember(self, principal: str, server: str, uri: str) -> None:
        if len(uri) > _LONGEST_URI:
            return
        links = self._known.setdefault(principal, OrderedDict())
        self._known.move_to_end(principal)
        links[uri] = links.get(uri, frozenset()) | {server}
        links.move_to_end(uri)
        if len(links) > MOST_LINKS:
            links.popitem(last=False)
        if len(self._known) > MOST_PRINCIPALS:
            self._known.popitem(last=False)
