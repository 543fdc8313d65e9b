"""Which scope of an access token a call needs, by the risk of its tool."""

from __future__ import annotations

from dataclasses import dataclass

from pegboard.core.risk import strict_risk
from pegboard.core.tools import RISKS, Risk, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskScopes:
    """A scope for each risk; one that is not given needs that of the next lower risk.

    The scope of a higher risk includes the lower ones: who may delete may read.
    """

    read: str | None = None
    write: str | None = None
    destructive: str | None = None

    @property
    def in_order(self) -> tuple[str | None, ...]:
        """The scopes from the lowest risk to the highest."""
        return (self.read, self.write, self.destructive)

    def needed(self, risk: Risk) -> str | None:
        """The scope for tools of a risk; `None` where none is needed."""
        given = [scope for scope in self.in_order[: RISKS.index(risk) + 1] if scope]
        return given[-1] if given else None

    def missing(self, tool: Tool, scopes: frozenset[str]) -> str | None:
        """The scope that a call of this tool needs and a token with these scopes does not have."""
        # As for a denial: a tool of unknown risk, or whose annotations contradict its name, counts
        # as destructive.
        risk = strict_risk(tool)
        needed = self.needed(risk)
        if needed is None or needed in scopes:
            return None
        broader = {scope for scope in self.in_order[RISKS.index(risk) :] if scope}
        return None if broader & scopes else needed
