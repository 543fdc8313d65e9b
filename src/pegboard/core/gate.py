"""The permission gate: whether a caller may know of something that is not a tool definition.

A catalog is cut down to what its caller may see before anything reads it (`policy`). Everything
else that shows something asks here, so that no place has rules of its own: the dashboard and its
live stream, notes about servers that fail, resources and prompts, subscriptions, tasks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pegboard.core.calls import Caller
from pegboard.core.policy import EVERYTHING, Policy
from pegboard.core.tools import Catalog

_SERVERS = "gate/servers"


@dataclass(frozen=True, slots=True)
class Gate:
    """The rules in force and the tools that they are about."""

    policy: Policy = EVERYTHING
    catalog: Catalog = field(default_factory=lambda: Catalog(()))

    def tool(self, caller: Caller, tool_id: str) -> bool:
        """Whether they may know of a tool, by its id."""
        if self.policy.is_open:
            return True
        return self.policy.visible(self.catalog, caller).get(tool_id) is not None

    def server(self, caller: Caller, name: str) -> bool:
        """Whether they may know that a server exists: they see one of its tools.

        Of a server whose tools are not known, the rules decide that speak of it as a whole.
        """
        if self.policy.is_open:
            return True
        if name in _servers(self.catalog):
            return name in _servers(self.policy.visible(self.catalog, caller))
        return self.policy.grant(caller).allows_group(name)

    def resources(self, caller: Caller, server: str) -> bool:
        """Whether they may use what a server offers beside tools: resources and prompts."""
        return self.policy.is_open or self.policy.grant(caller).allows_server(server)


def _servers(catalog: Catalog) -> frozenset[str]:
    """The servers that have tools in a catalog; catalogs are immutable, so found once for each."""
    found: frozenset[str] | None = catalog.memo.get(_SERVERS)
    if found is None:
        found = frozenset(tool.server for tool in catalog if tool.server is not None)
        catalog.memo[_SERVERS] = found
    return found
