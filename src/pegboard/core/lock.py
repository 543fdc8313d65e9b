"""The lock: which definition of each tool a person, or the first use, has let through.

A server can change what a tool says after people came to trust it. So the digest of every
definition that was seen is recorded, over the server's own entry as it came, and:

    seen for the first time    let through (`first-use`), or waiting (`approve`)
    the same again             let through
    changed                    waiting, until it is approved or changes back
    revoked                    waiting, until it is approved

A tool that waits is held back: it has a stand-in that nobody is shown, and a call of it is refused
with the reason. A record stays when its tool is gone, so that it cannot come back as another.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from pegboard.core.cleaning import escaped
from pegboard.core.json import Json, JsonObject, digest
from pegboard.core.tools import Tool, constant

TrustMode: TypeAlias = Literal["first-use", "approve"]
HELD_KEY = "io.github.pegboard/held"
_HOW = "An operator can see it with `pegboard lock diff` and allow it with `pegboard lock approve`."
_REASONS = {
    "new": f"nobody has approved it yet. {_HOW}",
    "changed": f"its definition changed since it was approved. {_HOW}",
    "revoked": f"an operator revoked it. {_HOW}",
    "unread": "whether it was approved is not known while the shared store is away. Try again.",
}


@dataclass(frozen=True, slots=True)
class Seen:
    """One definition of a tool, as its server gave it, and when it was first seen or approved."""

    digest: str
    definition: JsonObject
    at: float

    @classmethod
    def of(cls, entry: JsonObject, now: float) -> Seen:
        return cls(digest(entry), entry, now)


@dataclass(frozen=True, slots=True)
class Locked:
    """What is recorded of one tool: the definition let through, and one that waits."""

    approved: Seen | None = None
    waiting: Seen | None = None
    revoked: bool = False
    unread: bool = False
    """Whether the record itself could not be read; never kept."""

    @property
    def state(self) -> Literal["usable", "new", "changed", "revoked", "unread"]:
        if self.unread:
            return "unread"
        if self.revoked:
            return "revoked"
        if self.waiting is None:
            return "usable"
        return "new" if self.approved is None else "changed"

    def see(self, seen: Seen, mode: TrustMode) -> Locked:
        """The record after this definition was listed."""
        if self.approved is not None and self.approved.digest == seen.digest:
            return self if self.waiting is None else replace(self, waiting=None)
        if self.approved is None and not self.revoked and mode == "first-use":
            return Locked(approved=seen)
        if self.waiting is not None and self.waiting.digest == seen.digest:
            return self
        return replace(self, waiting=seen)

    def approve(self, now: float) -> Locked:
        """The record after a person let through what waits."""
        chosen = self.waiting or self.approved
        return Locked(approved=replace(chosen, at=now) if chosen else None)

    def diff(self) -> list[str]:
        """What changed, line by line; hidden characters are spelled out."""
        before = _lines(self.approved.definition) if self.approved else []
        after = _lines(self.waiting.definition) if self.waiting else before
        return [
            line.rstrip("\n")
            for line in difflib.unified_diff(before, after, "approved", "now", n=2)
        ]


@dataclass(frozen=True, slots=True)
class ServerLock:
    """What is recorded of one server's tools, by the server's own names."""

    tools: Mapping[str, Locked] = field(default_factory=dict[str, Locked])

    def see(self, entries: Iterable[JsonObject], mode: TrustMode, now: float) -> ServerLock:
        """The record after the server listed these; the same object when nothing is new."""
        tools = dict(self.tools)
        for entry in entries:
            name = str(entry.get("name"))
            tools[name] = tools.get(name, _UNSEEN).see(Seen.of(entry, now), mode)
        return self if tools == self.tools else ServerLock(tools)

    def approve(self, names: Iterable[str] | None, now: float) -> ServerLock:
        """The record after these, or all that wait, were approved."""
        chosen = set(self.waiting if names is None else names)
        return self._with({n: t.approve(now) for n, t in self.tools.items() if n in chosen})

    def revoke(self, names: Iterable[str]) -> ServerLock:
        """The record after these were taken back."""
        chosen = set(names)
        return self._with(
            {n: replace(t, revoked=True) for n, t in self.tools.items() if n in chosen}
        )

    @property
    def waiting(self) -> dict[str, Locked]:
        """What is held back."""
        return {name: tool for name, tool in self.tools.items() if tool.state != "usable"}

    def _with(self, changed: Mapping[str, Locked]) -> ServerLock:
        return ServerLock({**self.tools, **changed}) if changed else self

    def to_json(self) -> JsonObject:
        """What is kept of it."""
        return {name: _record(tool) for name, tool in sorted(self.tools.items())}

    @classmethod
    def from_json(cls, value: Json) -> ServerLock:
        """What was kept; an empty record when there is nothing."""
        return cls({name: _read(tool) for name, tool in (value or {}).items()})


_UNSEEN = Locked()


def held(tool: Tool, locked: Locked) -> Tool:
    """A stand-in for a tool that is held back: it has the name, and nothing of the definition."""
    reason = _REASONS[locked.state]
    return replace(
        tool,
        definition=constant({"type": "object"}),
        enabled=False,
        summary="Held back until an operator approves it",
        description=f"Held back: {reason}",
        title=None,
        annotations={},
        icons=(),
        examples=(),
        meta={HELD_KEY: reason},
    )


def held_because(tool: Tool) -> str | None:
    """Why a tool is held back, if it is."""
    return tool.meta.get(HELD_KEY) if tool.meta else None


def _lines(definition: JsonObject) -> list[str]:
    """A definition as a person reads it: keys in order, long texts on lines of their own."""
    text = json.dumps(definition, indent=2, sort_keys=True, ensure_ascii=False)
    return [f"{escaped(line)}\n" for line in text.replace("\\n", "\n").split("\n")]


def _record(tool: Locked) -> JsonObject:
    record: JsonObject = {}
    for key, seen in (("approved", tool.approved), ("waiting", tool.waiting)):
        if seen is not None:
            record[key] = {"digest": seen.digest, "at": seen.at, "definition": seen.definition}
    return {**record, "revoked": True} if tool.revoked else record


def _read(record: JsonObject) -> Locked:
    def seen(key: str) -> Seen | None:
        found = record.get(key)
        return Seen(found["digest"], found["definition"], found["at"]) if found else None

    return Locked(seen("approved"), seen("waiting"), bool(record.get("revoked")))
