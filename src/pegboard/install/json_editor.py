"""Edits JSON with comments as text: what is not edited stays the same, to the character.

The text of a table is divided into segments, one for each member, with the comments that belong to
it: those above it, and the one after it on its line. Every edit removes or adds whole segments.

    { // head
      // above a             segment of a:
      "a": {...},  // by a   these two lines
      "b": {...}             segment of b
      // tail
    }
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pegboard.config.documents import blank_comments
from pegboard.core.json import Json, JsonObject

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"\s*")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|/\*.*?\*/|//[^\r\n]*\Z')
# One comment, not all from the first `/*` to the last `*/`: a member may be between them.
_REST_OF_LINE = re.compile(
    r"[^\S\r\n]*(?://[^\r\n]*|/\*(?:(?!\*/)[^\r\n])*\*/[^\S\r\n]*)?(?=\r?\n)"
)
_INDENTED = re.compile(r"^([ \t]+)\S", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Member:
    """One key of an object: the offsets of its segment, its key and its value."""

    key: str
    start: int
    key_at: int
    value_at: int
    value_end: int
    end: int
    """After its comma, if it has one, and the comment after it."""


@dataclass(frozen=True, slots=True)
class Table:
    """An object in the text: the offsets of its braces, and its members."""

    open: int
    close: int
    members: tuple[Member, ...]

    def member(self, key: str) -> Member | None:
        """The member with this key; of several with the same key, the last one counts in JSON."""
        return next((m for m in reversed(self.members) if m.key == key), None)


def put(text: str, table: str, name: str, value: JsonObject) -> str:
    """The text with one more member of the table, which is created where it is missing."""
    # An empty file: some clients create one.
    if not text.strip():
        return json.dumps({table: {name: value}}, ensure_ascii=False, indent="  ") + "\n"
    found = _table(text, table)
    if found is None:
        return _append(text, _root(text), table, {name: value})
    return _append(text, found, name, value)


def drop(text: str, table: str, names: Iterable[str]) -> str:
    """The text without these members of the table."""
    found = _table(text, table)
    removed = set(names)
    if found is None or not any(m.key in removed for m in found.members):
        return text
    rest = [m for m in found.members if m.key not in removed]
    pieces = [text[m.start : m.end] for m in rest]
    last = found.members[-1]
    # If the last member goes and had no comma, the new last one loses its own.
    if rest and rest[-1] is not last and _comma_at(text, last) is None:
        pieces[-1] = _without_comma(text, rest[-1])
    inside = _join([*pieces, text[last.end : found.close]], _newline(text))
    return text[: found.open + 1] + inside + text[found.close :]


def copy(text: str, table: str, source: str, names: Sequence[str]) -> str:
    """The text with members of another text's table, as they are written there."""
    found = _table(source, table)
    wanted = [m for m in (found.members if found else ()) if m.key in names]
    for member in wanted:
        above = source[member.start : member.key_at]
        raw = _without_comma(source, member)[len(above) :]
        inside = member.value_end - member.key_at
        newline = _newline(source)
        if not text.strip():
            # A new file is laid out like the source, on several lines or on one.
            several = f'{{{newline}  "{table}": {{}}{newline}}}{newline}'
            text = several if "\n" in above else "{}"
        target = _table(text, table)
        if target is None:
            text = _append(text, _root(text), table, {})
            target = _table(text, table)
        assert target is not None
        segment = _Segment(above, raw[:inside], raw[inside:])
        text = _append_segment(text, target, segment)
    return text


# --- parsing ------------------------------------------------------------------------------------


def _root(text: str) -> Table:
    plain = blank_comments(text)
    return _object(text, plain, _skip(plain, 0))


def _table(text: str, name: str) -> Table | None:
    if not text.strip():
        return None
    member = _root(text).member(name)
    return None if member is None else _object(text, blank_comments(text), member.value_at)


def _object(text: str, plain: str, at: int) -> Table:
    members: list[Member] = []
    start = position = at + 1
    while plain[position := _skip(plain, position)] != "}":
        key_at = position
        key, position = _DECODER.raw_decode(plain, position)
        value_at = _skip(plain, _skip(plain, position) + 1)
        _, value_end = _DECODER.raw_decode(plain, value_at)
        position = _comma(text, plain, value_end)
        # A comment on the rest of the line belongs to the member, unless another one follows it.
        rest = _REST_OF_LINE.match(text, position)
        end = rest.end() if rest else position
        members.append(Member(key, start, key_at, value_at, value_end, end))
        start = position = end
    return Table(at, position, tuple(members))


def _skip(plain: str, at: int) -> int:
    found = _SPACE.match(plain, at)
    return found.end() if found else at


def _comma(text: str, plain: str, at: int) -> int:
    """The offset after a value's comma, also a trailing one, which `blank_comments` removes."""
    after = _skip(plain, at)
    if plain[after] == ",":
        return after + 1
    # Blank comments too, or a comma inside one would be taken for the real one.
    between = _COMMENT.sub(lambda m: " " * len(m[0]), text[at:after])
    return at + between.index(",") + 1 if "," in between else at


# --- editing ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Segment:
    """A member as text: the comments above it, the member, and the comment after it."""

    above: str
    member: str
    after: str


def _comma_at(text: str, member: Member) -> int | None:
    plain = blank_comments(text)
    after = _comma(text, plain, member.value_end)
    return after - 1 if after > member.value_end else None


def _without_comma(text: str, member: Member) -> str:
    at = _comma_at(text, member)
    if at is None:
        return text[member.start : member.end]
    return text[member.start : at] + text[at + 1 : member.end]


def _append(text: str, table: Table, key: str, value: Json) -> str:
    newline = _newline(text)
    # A file on one line stays on one line.
    if "\n" not in text.strip() and blank_comments(text).strip() != "{}":
        member = f"{json.dumps(key, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}"
        return _append_segment(text, table, _Segment(" " if table.members else "", member, ""))
    indented = _INDENTED.search(blank_comments(text))
    unit = indented[1] if indented else "  "
    outer = _indent_of_line(text, table.open)
    indent = _indent_of_members(text, table) or outer + unit
    body = json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", newline + indent)
    member = f"{json.dumps(key, ensure_ascii=False)}: {body}"
    return _append_segment(text, table, _Segment(newline + indent, member, ""))


def _append_segment(text: str, table: Table, segment: _Segment) -> str:
    """The text with one more member at the end of the table."""
    newline = _newline(text)
    before, after = text[: table.open + 1], text[table.close :]
    if not table.members:
        inside = text[table.open + 1 : table.close]
        closing = inside[inside.rfind("\n") :] if "\n" in inside else ""
        head = inside[: len(inside) - len(closing)]
        if "\n" in segment.above and not closing:
            closing = newline + _indent_of_line(text, table.open)
        parts = [
            head if head.strip() else "",
            segment.above + segment.member + segment.after,
            closing,
        ]
        return before + _join(parts, newline) + after
    last = table.members[-1]
    # Some files have a comma after the last member too: the new last one gets it then.
    comma = "," if _comma_at(text, last) is not None else ""
    own = text[last.value_end : last.end] if comma else "," + text[last.value_end : last.end]
    parts = [
        text[table.open + 1 : last.value_end] + own,
        segment.above + segment.member + comma + segment.after,
        text[last.end : table.close],
    ]
    return before + _join(parts, newline) + after


def _join(parts: Iterable[str], newline: str) -> str:
    """The parts as one text. A `//` comment at the end of a part gets a line break after it."""
    whole = ""
    for part in parts:
        whole += newline if part and _ends_in_comment(whole) and part[0] not in "\r\n" else ""
        whole += part
    return whole + newline if _ends_in_comment(whole) else whole


def _ends_in_comment(text: str) -> bool:
    last_line = text[text.rfind("\n") + 1 :]
    return any(piece[0].startswith("//") for piece in _PIECE.finditer(last_line))


# --- style --------------------------------------------------------------------------------------


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent_of_line(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _indent_of_members(text: str, table: Table) -> str | None:
    for member in table.members:
        before = text[text.rfind("\n", 0, member.key_at) + 1 : member.key_at]
        if not before.strip() and "\n" in text[table.open : member.key_at]:
            return before
    return None
