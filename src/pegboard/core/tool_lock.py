"""The lock: which definition of each tool is approved, by a person or by its first use.

A server can change what a tool says after people came to trust it. So the definitions that servers
list are recorded with their digests, and a tool is usable only where the digest of the definition
*at hand* equals the approved one:

    never recorded     approved (`first-use`), or waiting for a person (`approve`)
    the approved one   usable
    any other          held, and waiting until a person approves or rejects it
    revoked            held, whatever is listed, until a person approves it again

Several processes share a record, and they may list different definitions: a replica that still has
the old one next to one that has the new one. So listing a definition only ever adds to what waits;
only a decision removes something. A record stays when its tool is gone, so that the tool cannot
come back with another definition.

Two digests are equal exactly when two definitions mean the same. Before hashing, object keys and
the keywords of JSON Schema that hold sets (`required`, `enum`, `type`, `dependentRequired`) are
sorted, because some servers build these from unordered sets and list them in another order after
every start. Data inside a schema (`default`, `const`, `examples`) is hashed as it is, because order
can matter there.

`words_digest` also ignores the order of words in texts. Another order can change what a sentence
means, so that digest only describes a difference; it never replaces the real one unless an operator
allowed it for a server.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from pegboard.core.json import Json, JsonObject, digest
from pegboard.core.sanitization import escape_hidden
from pegboard.core.tools import Tool, constant_definition
from pegboard.errors import NotPermitted, ToolNotFound

DIGEST_VERSION = 2
"""1 was the plain canonical JSON (RFC 8785) of the entry, `pegboard.core.json.digest`."""

_SETS = frozenset({"required", "enum", "type"})
_DATA = frozenset({"default", "const", "examples"})
_KEYED_BY_NAME = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)
"""Keywords whose keys are names that an author chose, not keywords."""
_TEXTS = frozenset({"title", "description"})
_WORDS = re.compile(r"\w+|[^\w\s]")

_TextChange: TypeAlias = Callable[[Json], Json]

TrustMode: TypeAlias = Literal["first-use", "approve"]
LockState: TypeAlias = Literal["usable", "new", "changed", "revoked"]
HoldReason: TypeAlias = Literal["new", "changed", "revoked", "unrecorded", "unknown"]
"""Why a tool is held."""
LockAction: TypeAlias = Literal["approve", "reject", "revoke"]

HELD_KEY = "io.github.pegboard/held"
FIRST_USE = "first use"
"""In place of a person: the definition was approved because it was the first one."""
MAX_WAITING = 8
"""Definitions of one tool that wait for a decision, so that a server cannot fill the record."""
_HOW_TO = (
    "An operator can see it with `pegboard lock diff` and allow it with `pegboard lock approve`."
)
_REASONS: dict[HoldReason, str] = {
    "new": f"nobody has approved it yet. {_HOW_TO}",
    "changed": f"its definition changed since it was approved. {_HOW_TO}",
    "revoked": f"an operator revoked it. {_HOW_TO}",
    "unrecorded": "its definition could not be recorded in the lock. The gateway's log says why.",
    "unknown": "operators' decisions about tools cannot be read at the moment. Try again later.",
}


@dataclass(frozen=True, slots=True)
class ListedDefinition:
    """One definition as a server lists it; the entry is parsed only when it is needed."""

    name: str
    digest: str
    entry: Callable[[], JsonObject]

    @classmethod
    def of(cls, entry: JsonObject) -> ListedDefinition:
        return cls(str(entry.get("name")), definition_digest(entry), lambda: entry)


@dataclass(frozen=True, slots=True)
class TrustRule:
    """Which definitions of a server are accepted without a person."""

    mode: TrustMode = "first-use"
    reordered: bool = False
    """Whether a definition stays approved when only the order of words in its texts changes."""


@dataclass(frozen=True, slots=True)
class RecordedDefinition:
    """One recorded definition; `at` is when it was first listed or approved, `by` who approved."""

    digest: str
    definition: JsonObject
    at: float
    by: str | None = None
    version: int = DIGEST_VERSION

    @classmethod
    def of(cls, listed: ListedDefinition, now: float, by: str | None = None) -> RecordedDefinition:
        return cls(listed.digest, listed.entry(), now, by)

    def matches(self, listed: ListedDefinition) -> bool:
        """Whether this is the same definition, by the version of digest that was recorded."""
        if not listed.digest:
            return False
        # An approval outlives changes to how digests are computed: it is compared by its own
        # version.
        if self.version == DIGEST_VERSION:
            return self.digest == listed.digest
        return self.digest == digest(listed.entry())

    def has_same_words(self, entry: JsonObject) -> bool:
        """Whether the two differ at most in the order of the words in their texts."""
        found = words_digest(entry)
        return bool(found) and found == words_digest(self.definition)

    def to_json(self) -> JsonObject:
        """The stored form."""
        return {
            "digest": self.digest,
            "digest_version": self.version,
            "at": self.at,
            **({"by": self.by} if self.by is not None else {}),
            "definition": self.definition,
        }

    @classmethod
    def from_json(cls, record: JsonObject) -> RecordedDefinition:
        """The stored definition; `ValueError`, `KeyError` or `TypeError` if it is not one."""
        version = record.get("digest_version", 1)
        if version not in (1, DIGEST_VERSION):
            raise ValueError(f"digests of version {version!r} are not supported")
        definition = record["definition"]
        if not isinstance(record["digest"], str) or not isinstance(definition, dict):
            raise TypeError("a digest must be a string, and a definition an object")
        return cls(record["digest"], definition, record["at"], record.get("by"), version)


@dataclass(frozen=True, slots=True)
class Revocation:
    """When a tool was revoked, and by whom."""

    at: float = 0.0
    by: str | None = None


@dataclass(frozen=True, slots=True)
class LockDecision:
    """A person's decision about one definition of a tool."""

    action: LockAction
    server: str
    tool: str
    by: str
    at: float
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class ToolLock:
    """The record of one tool: the approved definition, and those that wait for a person."""

    approved: RecordedDefinition | None = None
    waiting: tuple[RecordedDefinition, ...] = ()
    revoked: Revocation | None = None

    @property
    def state(self) -> LockState:
        """The state to show a person; `changed` where a process lists an unapproved definition."""
        if self.revoked is not None:
            return "revoked"
        if self.approved is None:
            return "new"
        return "changed" if self.waiting else "usable"

    @property
    def undecided(self) -> tuple[RecordedDefinition, ...]:
        """The definitions that could be approved."""
        approved = (self.approved,) if self.approved is not None and self.revoked else ()
        return (*approved, *self.waiting)

    def hold(self, listed: ListedDefinition, rule: TrustRule) -> HoldReason | None:
        """Why this definition may not be used; `None` if it may."""
        # Revoked first: an approved definition that was revoked stays recorded, to be approved
        # again.
        if self.revoked is not None:
            return "revoked"
        if self.approved is None:
            return "new"
        return None if self._accepts(listed, rule) else "changed"

    def record(self, listed: ListedDefinition, rule: TrustRule, now: float) -> ToolLock:
        """The record after a process listed this definition; the same object if nothing is new."""
        approved = self.approved
        if approved is not None and approved.matches(listed):
            if approved.version == DIGEST_VERSION or not listed.digest:
                return self
            # Approved by an older version of the digest: record it again by the current one.
            return replace(self, approved=RecordedDefinition.of(listed, approved.at, approved.by))
        # An entry that is nested too deeply has no digest, and is never recorded or approved.
        if not listed.digest or (approved is not None and self._accepts(listed, rule)):
            return self
        if self == _UNRECORDED and rule.mode == "first-use":
            return ToolLock(approved=RecordedDefinition.of(listed, now, FIRST_USE))
        # When the list is full, further definitions are held without being recorded.
        is_full = len(self.waiting) >= MAX_WAITING
        if is_full or any(recorded.matches(listed) for recorded in self.waiting):
            return self
        return replace(self, waiting=(*self.waiting, RecordedDefinition.of(listed, now)))

    def apply(self, decision: LockDecision) -> ToolLock:
        """The record after a decision.

        Raises:
            NotPermitted: The definition that it is about no longer waits for a decision.
        """
        if decision.action == "revoke":
            return replace(self, revoked=Revocation(decision.at, decision.by))
        # By digest and not by position: what was shown may have been decided or replaced since.
        known = (self.approved, *self.waiting)
        chosen = next((s for s in known if s is not None and s.digest == decision.digest), None)
        name = f"{decision.server}.{decision.tool}"
        if chosen is None:
            raise NotPermitted(
                f"{name} has changed again: the definition that was shown no longer waits for a "
                "decision. Look at the current one, then decide."
            )
        # Everything that waited is forgotten: what is still listed comes back with the next
        # listing.
        if decision.action == "approve":
            return ToolLock(approved=replace(chosen, at=decision.at, by=decision.by))
        if self.approved is None or chosen is self.approved:
            raise NotPermitted(f"{name} has no approved definition to go back to. Revoke it.")
        return replace(
            self, waiting=tuple(recorded for recorded in self.waiting if recorded is not chosen)
        )

    def is_reordered(self, recorded: RecordedDefinition) -> bool:
        """Whether a waiting definition has the same words as the approved one in another order."""
        return self.approved is not None and self.approved.has_same_words(recorded.definition)

    def diff(self, recorded: RecordedDefinition) -> list[str]:
        """The diff from the approved definition; hidden characters are shown as escapes."""
        before = _format_lines(self.approved.definition) if self.approved else []
        after = _format_lines(recorded.definition)
        return [
            line.rstrip("\n")
            for line in difflib.unified_diff(before, after, "approved", "now", n=2)
        ]

    def to_json(self) -> JsonObject:
        """The stored form."""
        record: JsonObject = {}
        if self.approved is not None:
            record["approved"] = self.approved.to_json()
        if self.waiting:
            record["waiting"] = [definition.to_json() for definition in self.waiting]
        if self.revoked is not None:
            record["revoked"] = {"at": self.revoked.at, "by": self.revoked.by}
        return record

    @classmethod
    def from_json(cls, record: JsonObject) -> ToolLock:
        """The stored record; `ValueError`, `KeyError` or `TypeError` if it is not one."""
        approved, revoked = record.get("approved"), record.get("revoked")
        waiting = record.get("waiting") or []
        # Files of the first version have one waiting definition, and not who revoked a tool.
        waiting = waiting if isinstance(waiting, list) else [waiting]
        return cls(
            RecordedDefinition.from_json(approved) if approved else None,
            tuple(RecordedDefinition.from_json(one) for one in waiting),
            Revocation(**(revoked if isinstance(revoked, dict) else {})) if revoked else None,
        )

    def _accepts(self, listed: ListedDefinition, rule: TrustRule) -> bool:
        if self.approved is None:
            return False
        if self.approved.matches(listed):
            return True
        return rule.reordered and self.approved.has_same_words(listed.entry())


_UNRECORDED = ToolLock()


@dataclass(frozen=True, slots=True)
class ServerLock:
    """The records of one server's tools, by the server's own names."""

    tools: Mapping[str, ToolLock] = field(default_factory=dict[str, ToolLock])

    def hold(self, listed: ListedDefinition, rule: TrustRule) -> HoldReason | None:
        """Why a definition may not be used; `None` if it may."""
        record = self.tools.get(listed.name)
        if record is None:
            # On first use every listed tool is recorded at once, so recording must have failed.
            return "unrecorded" if rule.mode == "first-use" else "new"
        return record.hold(listed, rule)

    def record(self, listed: Iterable[ListedDefinition], rule: TrustRule, now: float) -> ServerLock:
        """The records after the server listed these; the same object when nothing is new."""
        found = {
            one.name: record
            for one in listed
            if (record := self._get_record(one.name).record(one, rule, now))
            is not self._get_record(one.name)
        }
        return ServerLock({**self.tools, **found}) if found else self

    def apply(self, decision: LockDecision) -> ServerLock:
        """The records after a decision.

        Raises:
            ToolNotFound: There is no record of the tool.
            NotPermitted: The definition that it is about no longer waits for a decision.
        """
        if decision.tool not in self.tools:
            raise ToolNotFound(f"{decision.server}.{decision.tool}", what="tool of the lock")
        record = self.tools[decision.tool].apply(decision)
        return ServerLock({**self.tools, decision.tool: record})

    @property
    def waiting(self) -> dict[str, ToolLock]:
        """The tools that need a decision: new, changed or revoked."""
        return {name: tool for name, tool in self.tools.items() if tool.state != "usable"}

    def undecided(self) -> Iterator[tuple[str, ToolLock, RecordedDefinition]]:
        """Each definition that could be approved, with its tool's name and record."""
        for name, tool in sorted(self.waiting.items()):
            for recorded in tool.undecided:
                yield name, tool, recorded

    def _get_record(self, name: str) -> ToolLock:
        return self.tools.get(name, _UNRECORDED)

    def to_json(self) -> JsonObject:
        """The stored form."""
        return {name: tool.to_json() for name, tool in sorted(self.tools.items())}

    @classmethod
    def from_json(cls, value: Json) -> ServerLock:
        """The stored records; none for `None`.

        Raises:
            ValueError: They cannot be read.
        """
        try:
            return cls({name: ToolLock.from_json(tool) for name, tool in (value or {}).items()})
        except (KeyError, TypeError, AttributeError) as exc:
            raise ValueError(f"not the record of a lock: {exc!r}") from exc


def make_placeholder(tool: Tool, hold: HoldReason) -> Tool:
    """A placeholder for a held tool: it has the name, and nothing of the definition.

    The model must not read a text that nobody has approved, so even the description is ours.
    """
    reason = _REASONS[hold]
    return replace(
        tool,
        definition=constant_definition({"type": "object"}),
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


def hold_reason(tool: Tool) -> str | None:
    """Why a tool is held, if it is."""
    return tool.meta.get(HELD_KEY) if tool.meta else None


def _format_lines(definition: JsonObject) -> list[str]:
    """A definition for a person to read: keys in order, long texts on lines of their own."""
    # In normal form, so that the diff shows only differences that changed the digest.
    text = json.dumps(normal_form(definition), indent=2, sort_keys=True, ensure_ascii=False)
    return [f"{escape_hidden(line)}\n" for line in text.replace("\\n", "\n").split("\n")]


def definition_digest(entry: JsonObject) -> str:
    """SHA-256 over a `tools/list` entry in normal form.

    Empty for an entry nested too deeply to be hashed: an empty digest matches no approval.
    """
    return _hash(normal_form(entry))


def words_digest(entry: JsonObject) -> str:
    """Equal for all entries whose titles, descriptions and defaults differ only in word order."""
    return _hash(normal_form(entry, _sorted_words))


def normal_form(entry: JsonObject, text: _TextChange | None = None) -> JsonObject:
    """The entry with set-like keywords sorted; `text`, if given, is applied to its texts.

    An entry nested too deeply to be walked comes back as it is.
    """
    made: JsonObject = {}
    try:
        for key, value in entry.items():
            made[key] = value
            if key in ("inputSchema", "outputSchema"):
                made[key] = _schema(value, text)
            elif text is not None and key in _TEXTS:
                made[key] = text(value)
            elif text is not None and key == "annotations" and isinstance(value, dict):
                # They may have a title.
                made[key] = {k: text(v) if k in _TEXTS else v for k, v in value.items()}
    except RecursionError:
        return entry
    return made


def _hash(value: Json) -> str:
    import hashlib  # here, because most processes that import this never need it

    try:
        encoded = json.dumps(value, sort_keys=True, separators=(",", ":"))
    except RecursionError:
        return ""
    return hashlib.sha256(encoded.encode()).hexdigest()


def _schema(value: Json, text: _TextChange | None) -> Json:
    if isinstance(value, list):
        return [_schema(part, text) for part in value]
    if not isinstance(value, dict):
        return value
    return {key: _keyword(key, part, text) for key, part in value.items()}


def _keyword(key: str, value: Json, text: _TextChange | None) -> Json:
    if isinstance(value, str):
        return text(value) if text is not None and (key in _TEXTS or key == "default") else value
    if key in _SETS and isinstance(value, list):
        return _sorted(value)
    if key in _DATA:
        return text(value) if text is not None and key == "default" else value
    if isinstance(value, dict) and key == "dependentRequired":
        return {k: _sorted(v) if isinstance(v, list) else v for k, v in value.items()}
    if isinstance(value, dict) and key in _KEYED_BY_NAME:
        return {name: _schema(part, text) for name, part in value.items()}
    return _schema(value, text)


def _sorted(values: list[Json]) -> list[Json]:
    if all(isinstance(value, str) for value in values):
        return sorted(values)
    return sorted(values, key=lambda value: json.dumps(value, sort_keys=True))


def _sorted_words(value: Json) -> Json:
    if isinstance(value, str):
        return sorted(_WORDS.findall(value))
    if isinstance(value, list):
        return _sorted([_sorted_words(part) for part in value])
    return value
