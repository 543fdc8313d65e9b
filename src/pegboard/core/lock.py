"""The lock: which definition of each tool is approved, by a person or by its first use.

A server can change what a tool says after people came to trust it. So the definitions that servers
list are recorded with their digests, and a tool is usable only where the digest of the definition
*at hand* equals the approved one:

    never recorded     approved (`first-use`), or waiting for a person (`approve`)
    the approved one   usable
    any other          held back, and waiting until a person approves or rejects it
    revoked            held back, whatever is listed, until a person approves it again

Several processes share a record, and they may list different definitions: a replica that still has
the old one next to one that has the new one. So listing a definition only ever adds to what waits;
only a decision removes something. A record stays when its tool is gone, so that the tool cannot
come back as another.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from pegboard.core.cleaning import escaped
from pegboard.core.digests import DIGEST_VERSION, definition_digest, normal_form, words_digest
from pegboard.core.json import Json, JsonObject, digest
from pegboard.core.tools import Tool, constant
from pegboard.errors import NotPermitted, ToolNotFound

TrustMode: TypeAlias = Literal["first-use", "approve"]
State: TypeAlias = Literal["usable", "new", "changed", "revoked"]
Hold: TypeAlias = Literal["new", "changed", "revoked", "unrecorded", "unknown"]
"""Why a tool is held back."""
Action: TypeAlias = Literal["approve", "reject", "revoke"]

HELD_KEY = "io.github.pegboard/held"
FIRST_USE = "first use"
"""Who approved a definition that no person has looked at."""
MOST_WAITING = 8
"""Definitions of one tool that wait at a time, so that a server cannot fill the record."""
_HOW = "An operator can see it with `pegboard lock diff` and allow it with `pegboard lock approve`."
_REASONS: dict[Hold, str] = {
    "new": f"nobody has approved it yet. {_HOW}",
    "changed": f"its definition changed since it was approved. {_HOW}",
    "revoked": f"an operator revoked it. {_HOW}",
    "unrecorded": "its definition could not be recorded in the lock. The gateway's log says why.",
    "unknown": "operators' decisions about tools cannot be read at the moment. Try again later.",
}


@dataclass(frozen=True, slots=True)
class Listed:
    """One definition as a server lists it; the entry is parsed when somebody needs it."""

    name: str
    digest: str
    entry: Callable[[], JsonObject]

    @classmethod
    def of(cls, entry: JsonObject) -> Listed:
        return cls(str(entry.get("name")), definition_digest(entry), lambda: entry)


@dataclass(frozen=True, slots=True)
class TrustRule:
    """How a server's definitions are judged."""

    mode: TrustMode = "first-use"
    reordered: bool = False
    """Whether a definition stays approved when only the order of words in its texts changes."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One recorded definition; `at` and `by` say when it was first listed, or approved by whom."""

    digest: str
    definition: JsonObject
    at: float
    by: str | None = None
    version: int = DIGEST_VERSION

    @classmethod
    def of(cls, listed: Listed, now: float, by: str | None = None) -> Seen:
        return cls(listed.digest, listed.entry(), now, by)

    def matches(self, listed: Listed) -> bool:
        """Whether this is the definition at hand, by the kind of digest that was recorded."""
        if not listed.digest:
            return False
        if self.version == DIGEST_VERSION:
            return self.digest == listed.digest
        return self.digest == digest(listed.entry())

    def has_words_of(self, entry: JsonObject) -> bool:
        """Whether the two differ at most in the order of words."""
        found = words_digest(entry)
        return bool(found) and found == words_digest(self.definition)


@dataclass(frozen=True, slots=True)
class Revocation:
    """When a tool was revoked, and by whom."""

    at: float = 0.0
    by: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person decided about one tool, and about which definition of it."""

    action: Action
    server: str
    tool: str
    by: str
    at: float
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class Locked:
    """The record of one tool: the approved definition, and those that wait for a person."""

    approved: Seen | None = None
    waiting: tuple[Seen, ...] = ()
    revoked: Revocation | None = None

    @property
    def state(self) -> State:
        """What a person has to know; `changed` where some process lists an unapproved one."""
        if self.revoked is not None:
            return "revoked"
        if self.approved is None:
            return "new"
        return "changed" if self.waiting else "usable"

    @property
    def undecided(self) -> tuple[Seen, ...]:
        """The definitions that an approval could be about."""
        approved = (self.approved,) if self.approved is not None and self.revoked else ()
        return (*approved, *self.waiting)

    def hold(self, listed: Listed, rule: TrustRule) -> Hold | None:
        """Why this definition may not be used; `None` where it may."""
        if self.revoked is not None:
            return "revoked"
        if self.approved is None:
            return "new"
        return None if self._accepts(listed, rule) else "changed"

    def see(self, listed: Listed, rule: TrustRule, now: float) -> Locked:
        """The record after a process listed this definition; the same object if it knew it."""
        approved = self.approved
        if approved is not None and approved.matches(listed):
            if approved.version == DIGEST_VERSION or not listed.digest:
                return self
            return replace(self, approved=Seen.of(listed, approved.at, approved.by))
        if not listed.digest or (approved is not None and self._accepts(listed, rule)):
            return self
        if self == _UNSEEN and rule.mode == "first-use":
            return Locked(approved=Seen.of(listed, now, FIRST_USE))
        is_full = len(self.waiting) >= MOST_WAITING
        if is_full or any(seen.matches(listed) for seen in self.waiting):
            return self
        return replace(self, waiting=(*self.waiting, Seen.of(listed, now)))

    def decided(self, decision: Decision) -> Locked:
        """The record after a decision.

        Raises:
            NotPermitted: The definition that it is about does not wait any more.
        """
        if decision.action == "revoke":
            return replace(self, revoked=Revocation(decision.at, decision.by))
        known = (self.approved, *self.waiting)
        chosen = next((s for s in known if s is not None and s.digest == decision.digest), None)
        name = f"{decision.server}.{decision.tool}"
        if chosen is None:
            raise NotPermitted(
                f"{name} has changed again: the definition that was shown does not wait any more. "
                "Look at it once more, and decide then."
            )
        if decision.action == "approve":
            return Locked(approved=replace(chosen, at=decision.at, by=decision.by))
        if self.approved is None or chosen is self.approved:
            raise NotPermitted(f"{name} has no approved definition to go back to. Revoke it.")
        return replace(self, waiting=tuple(seen for seen in self.waiting if seen is not chosen))

    def is_reordered(self, seen: Seen) -> bool:
        """Whether a waiting definition has the words of the approved one in another order."""
        return self.approved is not None and self.approved.has_words_of(seen.definition)

    def diff(self, seen: Seen) -> list[str]:
        """How a definition differs from the approved one; hidden characters are spelled out."""
        before = _lines(self.approved.definition) if self.approved else []
        after = _lines(seen.definition)
        return [
            line.rstrip("\n")
            for line in difflib.unified_diff(before, after, "approved", "now", n=2)
        ]

    def _accepts(self, listed: Listed, rule: TrustRule) -> bool:
        if self.approved is None:
            return False
        if self.approved.matches(listed):
            return True
        return rule.reordered and self.approved.has_words_of(listed.entry())


_UNSEEN = Locked()


@dataclass(frozen=True, slots=True)
class ServerLock:
    """The records of one server's tools, by the server's own names."""

    tools: Mapping[str, Locked] = field(default_factory=dict[str, Locked])

    def hold(self, listed: Listed, rule: TrustRule) -> Hold | None:
        """Why a definition may not be used; `None` where it may."""
        record = self.tools.get(listed.name)
        if record is None:
            return "unrecorded" if rule.mode == "first-use" else "new"
        return record.hold(listed, rule)

    def see(self, listed: Iterable[Listed], rule: TrustRule, now: float) -> ServerLock:
        """The record after the server listed these; the same object when nothing is new."""
        found = {
            one.name: record
            for one in listed
            if (record := self._of(one.name).see(one, rule, now)) is not self._of(one.name)
        }
        return ServerLock({**self.tools, **found}) if found else self

    def decided(self, decision: Decision) -> ServerLock:
        """The record after a decision.

        Raises:
            ToolNotFound: There is no record of the tool.
            NotPermitted: The definition that it is about does not wait any more.
        """
        if decision.tool not in self.tools:
            raise ToolNotFound(f"{decision.server}.{decision.tool}", what="tool of the lock")
        record = self.tools[decision.tool].decided(decision)
        return ServerLock({**self.tools, decision.tool: record})

    @property
    def waiting(self) -> dict[str, Locked]:
        """The tools that need a decision: new, changed or revoked."""
        return {name: tool for name, tool in self.tools.items() if tool.state != "usable"}

    def undecided(self) -> Iterator[tuple[str, Locked, Seen]]:
        """Each definition that an approval could be about, with its tool's name and record."""
        for name, tool in sorted(self.waiting.items()):
            for seen in tool.undecided:
                yield name, tool, seen

    def _of(self, name: str) -> Locked:
        return self.tools.get(name, _UNSEEN)

    def to_json(self) -> JsonObject:
        """The record as it is stored."""
        return {name: _record(tool) for name, tool in sorted(self.tools.items())}

    @classmethod
    def from_json(cls, value: Json) -> ServerLock:
        """A stored record; an empty one for `None`.

        Raises:
            ValueError: It is not one.
        """
        try:
            return cls({name: _locked(tool) for name, tool in (value or {}).items()})
        except (KeyError, TypeError, AttributeError) as exc:
            raise ValueError(f"not a record of a lock: {exc!r}") from exc


def held(tool: Tool, hold: Hold) -> Tool:
    """A stand-in for a tool that is held back: it has the name, and nothing of the definition."""
    reason = _REASONS[hold]
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
        related=(),
        aliases=(),
        tags=(),
        section=None,
        deprecated=None,
        meta={HELD_KEY: reason},
    )


def held_because(tool: Tool) -> str | None:
    """Why a tool is held back, if it is."""
    return tool.meta.get(HELD_KEY) if tool.meta else None


def _lines(definition: JsonObject) -> list[str]:
    """A definition as a person reads it: keys in order, long texts on lines of their own."""
    text = json.dumps(normal_form(definition), indent=2, sort_keys=True, ensure_ascii=False)
    return [f"{escaped(line)}\n" for line in text.replace("\\n", "\n").split("\n")]


def _record(tool: Locked) -> JsonObject:
    record: JsonObject = {}
    if tool.approved is not None:
        record["approved"] = _seen_record(tool.approved)
    if tool.waiting:
        record["waiting"] = [_seen_record(seen) for seen in tool.waiting]
    if tool.revoked is not None:
        record["revoked"] = {"at": tool.revoked.at, "by": tool.revoked.by}
    return record


def _seen_record(seen: Seen) -> JsonObject:
    return {
        "digest": seen.digest,
        "digest_version": seen.version,
        "at": seen.at,
        **({"by": seen.by} if seen.by is not None else {}),
        "definition": seen.definition,
    }


def _locked(record: JsonObject) -> Locked:
    approved = record.get("approved")
    waiting = record.get("waiting") or []
    revoked = record.get("revoked")
    return Locked(
        _seen(approved) if approved else None,
        # Files of the first version have one definition, and no word of who revoked a tool.
        tuple(_seen(one) for one in (waiting if isinstance(waiting, list) else [waiting])),
        Revocation(**(revoked if isinstance(revoked, dict) else {})) if revoked else None,
    )


def _seen(record: JsonObject) -> Seen:
    version = record.get("digest_version", 1)
    if version not in (1, DIGEST_VERSION):
        raise ValueError(f"digests of version {version!r} are not known here")
    definition = record["definition"]
    if not isinstance(record["digest"], str) or not isinstance(definition, dict):
        raise TypeError("a digest is a text, and a definition is an object")
    return Seen(record["digest"], definition, record["at"], record.get("by"), version)
