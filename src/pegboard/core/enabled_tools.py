"""The tools enabled on a legacy session, as a value: the store holds it, a method returns the next.

Tools accumulate up to a cap; then the least recently used makes room. Pins are in every list
anyway: they take no room and are never evicted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pegboard.core import defaults
from pegboard.core.json import Json, JsonObject
from pegboard.errors import ConfigError


@dataclass(frozen=True, slots=True)
class EnabledToolsPolicy:
    """How many tools may be enabled beside the pins, and which tools are pinned."""

    cap: int = defaults.ENABLED_TOOLS_CAP
    pins: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.cap < 1:
            raise ConfigError(f"A session must be able to hold at least one tool; got {self.cap}.")


@dataclass(frozen=True, slots=True)
class EnabledTools:
    """Ids of enabled tools with the time of their last use, least recently used first."""

    enabled: Mapping[str, float] = field(default_factory=dict[str, float])

    def __contains__(self, tool_id: str) -> bool:
        return tool_id in self.enabled

    def enable(self, ids: Iterable[str], policy: EnabledToolsPolicy, now: float) -> EnabledTools:
        """The session with these tools enabled; of more than fit, the first ones stay.

        The ids come best first, so the first counts as the most recently used of them.
        """
        wanted = [i for i in dict.fromkeys(ids) if i not in policy.pins][: policy.cap]
        kept = {i: at for i, at in self.enabled.items() if i not in wanted and i not in policy.pins}
        for oldest in list(kept)[: max(0, len(kept) + len(wanted) - policy.cap)]:
            del kept[oldest]
        return EnabledTools(kept | dict.fromkeys(reversed(wanted), now))

    def used(self, tool_id: str, now: float) -> EnabledTools:
        """The session after a call of this tool; the same one if the tool is not enabled on it."""
        if tool_id not in self.enabled:
            return self
        rest = {i: at for i, at in self.enabled.items() if i != tool_id}
        return EnabledTools(rest | {tool_id: now})

    def evicted_since(self, before: EnabledTools) -> tuple[str, ...]:
        """What an earlier state had enabled and this one has not."""
        return tuple(i for i in before.enabled if i not in self.enabled)

    def to_json(self) -> JsonObject | None:
        """What the store keeps; nothing for a session with nothing enabled. Order is kept."""
        return {"enabled": [[i, at] for i, at in self.enabled.items()]} if self.enabled else None

    @classmethod
    def from_json(cls, value: Json) -> EnabledTools:
        """The session that was kept; an empty one when there is none or it cannot be read."""
        entries = value.get("enabled") if isinstance(value, dict) else None
        if not isinstance(entries, list):
            return cls()
        return cls({e[0]: float(e[1]) for e in entries if _is_entry(e)})


def _is_entry(entry: Json) -> bool:
    match entry:
        case [str(), int() | float()]:
            return True
        case _:
            return False
