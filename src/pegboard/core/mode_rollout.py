"""A rollout: a mode for a share of the callers, to measure it before everybody gets it.

    hash of (rollout, principal or client) < share -> candidate: the mode under trial >= -> control:
                                            the mode as configured

The same caller is always in the same arm, in every replica and after every restart, and raising the
share only moves callers to the candidate. The statistics of both arms are values that replicas add
to.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal, TypeAlias

from pegboard.core.calls import Caller
from pegboard.core.json import Json, JsonObject
from pegboard.core.options import check_mode
from pegboard.errors import ConfigError

ArmName: TypeAlias = Literal["control", "candidate"]
RolloutKey: TypeAlias = Literal["principal", "client"]
ARMS: tuple[ArmName, ...] = ("control", "candidate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """A mode, the share of callers that get it, and what identifies a caller.

    With `by="client"` only callers of the legacy era are switched: in the modern era the name of a
    client must not change the answers (MCP 2026-07-28).
    """

    mode: str
    percent: float
    by: RolloutKey = "principal"
    name: str = "1"

    def __post_init__(self) -> None:
        check_mode(self.mode)
        if not 0 <= self.percent <= 100:
            raise ConfigError(f"A share is between 0 and 100 percent, not {self.percent:g}.")

    def arm(self, principal: str, client: str | None) -> ArmName:
        """The arm of a caller."""
        key = principal if self.by == "principal" else client
        if key is None:  # a client without a name cannot be recognized the next time
            return "control"
        # Not `hash()`, which differs between processes. The name of the rollout is part of it, so
        # that another rollout draws another set of callers.
        hashed = hashlib.sha256(f"{self.name}\0{key}".encode()).digest()
        share = int.from_bytes(hashed[:8], "big") / 2**64
        return "candidate" if share * 100 < self.percent else "control"

    def mode_for(self, caller: Caller) -> str | None:
        """The candidate mode, for callers that get it."""
        if self.by == "client" and caller.era == "modern":
            return None
        return self.mode if self.arm(caller.principal, caller.client) == "candidate" else None

    def to_json(self) -> JsonObject:
        """The stored form."""
        return {"mode": self.mode, "percent": self.percent, "by": self.by, "name": self.name}

    @classmethod
    def from_json(cls, value: Json) -> Rollout | None:
        """The stored rollout, if there is one."""
        return cls(**value) if isinstance(value, dict) else None


@dataclass(frozen=True, slots=True)
class ArmStatistics:
    """What happened in one arm; `lists` counts the requested lists, one for each session."""

    calls: int = 0
    errors: int = 0
    seconds: float = 0.0
    lists: int = 0
    searches: int = 0
    tokens: int = 0

    def __add__(self, other: ArmStatistics) -> ArmStatistics:
        return ArmStatistics(
            *(getattr(self, f.name) + getattr(other, f.name) for f in fields(self))
        )

    def summary(self) -> JsonObject:
        """What is compared: means, and the cost of a session."""
        return {
            "calls": self.calls,
            "sessions": self.lists,
            "errors": _ratio(self.errors, self.calls),
            "mean_ms": _ratio(self.seconds * 1000, self.calls),
            "calls_per_session": _ratio(self.calls, self.lists),
            "searches_per_session": _ratio(self.searches, self.lists),
            "tokens_per_session": _ratio(self.tokens, self.lists),
        }

    def to_json(self) -> JsonObject:
        """The stored form."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


@dataclass(frozen=True, slots=True)
class Comparison:
    """The statistics of both arms."""

    arms: Mapping[ArmName, ArmStatistics] = field(default_factory=dict[ArmName, ArmStatistics])

    def __getitem__(self, arm: ArmName) -> ArmStatistics:
        return self.arms.get(arm, _EMPTY)

    def add(self, arm: ArmName, more: ArmStatistics) -> Comparison:
        """The comparison with these added to one arm."""
        return Comparison({**self.arms, arm: self[arm] + more})

    def __add__(self, other: Comparison) -> Comparison:
        return Comparison({arm: self[arm] + other[arm] for arm in ARMS})

    def to_json(self) -> JsonObject:
        """The stored form."""
        return {arm: self[arm].to_json() for arm in ARMS}

    @classmethod
    def from_json(cls, value: Json) -> Comparison:
        """The stored comparison; an empty one when there is none."""
        return cls({arm: ArmStatistics(**value[arm]) for arm in ARMS}) if value else cls()


_EMPTY = ArmStatistics()


def _ratio(part: float, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None
