"""The tools enabled on a session of the `dynamic` mode, as a value that the store updates.

A search enables the tools that it finds, up to a cap; then the least recently used ones are
evicted. Pins are in every list anyway: they do not count and are never evicted. Only sessions of
the legacy era have enabled tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pegboard.core import defaults
from pegboard.core.json import Json, JsonObject
from pegboard.errors import ConfigError


@dataclass(frozen=True, slots=True)
class EnabledToolsPolicy:
    """How many tools may be enabled besides the pins, and which tools are pinned."""

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
        """The state with these tools enabled; if they are more than fit, the first ones.

        The ids come best first, so the first one counts as the most recently used.
        """
        # Pins are in the list anyway, and would take slots from other tools.
        wanted = [i for i in dict.fromkeys(ids) if i not in policy.pins][: policy.cap]
        rest = {i: at for i, at in self.enabled.items() if i not in wanted and i not in policy.pins}
        for oldest in list(rest)[: max(0, len(rest) + len(wanted) - policy.cap)]:
            del rest[oldest]
        # Order is age: the last one is evicted last, so the best match goes to the end.
        return EnabledTools(rest | dict.fromkeys(reversed(wanted), now))

    def mark_used(self, tool_id: str, now: float) -> EnabledTools:
        """The state after a call to this tool; the same object if the tool is not enabled."""
        if tool_id not in self.enabled:
            return self
        rest = {i: at for i, at in self.enabled.items() if i != tool_id}  # moves it to the end
        return EnabledTools(rest | {tool_id: now})

    def to_json(self) -> JsonObject | None:
        """The stored form, a list because order matters; nothing if no tool is enabled."""
        return {"enabled": [[i, at] for i, at in self.enabled.items()]} if self.enabled else None

    @classmethod
    def from_json(cls, value: Json) -> EnabledTools:
        """The stored state; an empty one when there is none or it cannot be read."""
        entries = value.get("enabled") if isinstance(value, dict) else None
        if not isinstance(entries, list):
            return cls()
        enabled: dict[str, float] = {}
        for entry in entries:
            match entry:
                case [str(tool_id), int(used_at) | float(used_at)]:
                    enabled[tool_id] = float(used_at)
                case _:
                    continue  # not written by us, or by another version: the rest is still valid
        return cls(enabled)
