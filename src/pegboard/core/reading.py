"""Reading a kept result: one part, one page, or what matches, never more than a budget of tokens.

A value is read as a sequence: a list by its elements, an object by its members, a text by its
lines (a line longer than `LINE` characters counts as several, so that even one endless line can be
paged). What does not fit is never dropped silently: `next` has the arguments that continue,
`shortened` the paths of what was too large to show even alone.

Patterns run in the regex engine of `jsonschema-rs`, which takes linear time and a bounded size for
any pattern: no look-around, but no expression that hangs either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from jsonschema_rs import Draft202012Validator, RegexOptions, ValidationError

from pegboard.core.budget import Count, within
from pegboard.core.json import Json, JsonObject, compact
from pegboard.core.outline import field_paths
from pegboard.core.paths import Mark, Step, invalid_field, join_path, parse_path
from pegboard.core.preview import preview
from pegboard.core.spill import lines_of, rows_of
from pegboard.errors import InvalidArguments

MAX_PATTERN = 200
MAX_LIMIT = 10_000
_REGEX_BYTES = 1_000_000

Match: TypeAlias = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Reading:
    """What to read: `path`, then `select` inside it, then what matches `grep`, then a page of that.

    A negative `offset` counts from the end.
    """

    path: str | None = None
    offset: int = 0
    limit: int | None = None
    grep: str | None = None
    select: str | None = None

    def check(self) -> None:
        """Raise `InvalidArguments` for what makes no page."""
        if self.limit is not None and not 1 <= self.limit <= MAX_LIMIT:
            raise InvalidArguments(
                f"limit must be from 1 to {MAX_LIMIT:,}, not {self.limit}.", field="limit"
            )
        if self.grep is not None and not 0 < len(self.grep) <= MAX_PATTERN:
            raise InvalidArguments(
                f"grep must have from 1 to {MAX_PATTERN} characters, not {len(self.grep)}.",
                field="grep",
            )


@dataclass(frozen=True, slots=True)
class Budget:
    """How many tokens a page may have, and who counts them."""

    tokens: int
    count: Count


@dataclass(frozen=True, slots=True)
class Entry:
    """A value somewhere inside another, with the steps that lead to it."""

    at: tuple[Step, ...]
    value: Json


def read(value: Json, reading: Reading, budget: Budget) -> JsonObject:
    """The page that was asked for: `{value | text | matches, offset, total, next?, shortened?}`.

    Raises:
        InvalidArguments: A number or pattern is out of bounds.
        InvalidField: The path leads nowhere, or the expression cannot be run.
    """
    reading.check()
    path = reading.path or _rows_path(value, reading)
    entries, many = locate(value, path)
    if reading.select is not None:
        subject = [entry.value for entry in entries] if many else entries[0].value
        from pegboard.core.selection import select  # few select, and it costs an import

        entries, many = [Entry((), select(subject, reading.select))], False
    page: JsonObject = {"path": path} if path and not reading.path else {}
    only = None if many else entries[0]
    if only is not None and isinstance(only.value, str):
        return page | _text_page(only.value, reading, budget)
    if reading.grep is not None:
        rows = entries if only is None else list(_rows_or_leaves(only))
        return page | _matches_page(rows, reading, budget)
    if only is not None and not isinstance(only.value, (dict, list)):
        return page | {"value": only.value}
    keyed = only is not None and isinstance(only.value, dict)
    return page | _value_page(
        entries if only is None else list(_members(only)), keyed, reading, budget
    )


def _rows_path(value: Json, reading: Reading) -> str:
    """Without a path, an envelope is read by its rows."""
    rows = None if reading.select is not None else rows_of(value)
    return join_path([rows[0]]) if rows is not None and rows[0] else ""


def locate(value: Json, path: str) -> tuple[list[Entry], bool]:
    """What a path leads to, and whether to several: so through lists without a number.

    Raises:
        InvalidField: It leads nowhere.
    """
    found, many = [Entry((), value)], False
    for step in parse_path(path) if path else ():
        if not isinstance(step, int) and (step is Mark.EACH or _any_list(found)):
            found = [inner for entry in found for inner in _elements(entry)]
            many = True
        if step is Mark.EACH:
            continue
        before, many = found, many or step is Mark.ANY
        found = [inner for entry in before for inner in _follow(entry, step)]
        if before and not found:
            raise invalid_field(path, "It leads nowhere in this result.", field_paths(value))
    return found, many


def _any_list(entries: Sequence[Entry]) -> bool:
    return any(isinstance(entry.value, list) for entry in entries)


def _elements(entry: Entry) -> Iterator[Entry]:
    """The elements of a list; anything else is its own only element."""
    return _members(entry) if isinstance(entry.value, list) else iter((entry,))


def _members(entry: Entry) -> Iterator[Entry]:
    inner = entry.value.items() if isinstance(entry.value, dict) else enumerate(entry.value)
    return (Entry((*entry.at, step), value) for step, value in inner)


def _follow(entry: Entry, step: Step) -> Iterator[Entry]:
    value = entry.value
    if isinstance(value, dict):
        if step is Mark.ANY:
            yield from _members(entry)
        elif step in value:
            yield Entry((*entry.at, step), value[step])
    elif isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
        yield Entry((*entry.at, step % len(value)), value[step])


def _rows_or_leaves(only: Entry) -> Iterator[Entry]:
    """What a pattern is tried on: the elements of a list, else every plain value inside."""
    if isinstance(only.value, list):
        yield from _members(only)
        return
    queue = [only]
    while queue:
        entry = queue.pop()
        if isinstance(entry.value, (dict, list)):
            queue.extend(reversed(list(_members(entry))))
        else:
            yield entry


def _value_page(
    entries: Sequence[Entry], keyed: bool, reading: Reading, budget: Budget
) -> JsonObject:
    offset, wanted = _window(entries, reading)
    shown, shortened = _fitting(wanted, budget)
    value: Json = {e.at[-1]: e.value for e in shown} if keyed else [e.value for e in shown]
    return _page("value", value, offset, len(shown), len(entries), shortened)


def _matches_page(rows: Sequence[Entry], reading: Reading, budget: Budget) -> JsonObject:
    match, note = _matcher(reading.grep or "")
    matching = [row for row in rows if match(_searched(row.value))]
    offset, wanted = _window(matching, reading)
    shown, shortened = _fitting(wanted, budget)
    found = [{"at": join_path(e.at), "value": e.value} for e in shown]
    return _page("matches", found, offset, len(shown), len(matching), shortened) | note


def _text_page(text: str, reading: Reading, budget: Budget) -> JsonObject:
    lines, note = lines_of(text), {}
    if reading.grep is not None:
        match, note = _matcher(reading.grep)
        lines = [f"{i}: {line.rstrip()}\n" for i, line in enumerate(lines) if match(line)]
    offset, wanted = _window(lines, reading)
    shown: list[str] = []
    left = budget.tokens
    for line in wanted:
        left -= budget.count(line)
        if left < 0 and shown:
            break
        shown.append(line)
    return _page("text", "".join(shown), offset, len(shown), len(lines), []) | note


def _window(items: Sequence[Json], reading: Reading) -> tuple[int, Sequence[Json]]:
    """Where the page starts, and what it would show if all of it fits."""
    offset = reading.offset if reading.offset >= 0 else max(0, len(items) + reading.offset)
    end = None if reading.limit is None else offset + reading.limit
    return offset, items[offset:end]


def _fitting(entries: Sequence[Entry], budget: Budget) -> tuple[list[Entry], list[str]]:
    """As many entries as fit; a first one that is too large alone is shortened, and named."""
    shown: list[Entry] = []
    left = budget.tokens
    for entry in entries:
        text = compact({join_path(entry.at[-1:]): entry.value})
        if not within(text, left, budget.count):
            if shown:
                break
            small = preview(entry.value, budget.tokens, budget.count)
            return [Entry(entry.at, small)], [join_path(entry.at)]
        left -= budget.count(text)
        shown.append(entry)
    return shown, []


def _page(
    kind: str, value: Json, offset: int, shown: int, total: int, shortened: list[str]
) -> JsonObject:
    page: JsonObject = {kind: value, "offset": offset, "total": total}
    if shortened:
        page["shortened"] = shortened
    if shown and offset + shown < total:
        page["next"] = {"offset": offset + shown}
    return page


def _searched(value: Json) -> str:
    return value if isinstance(value, str) else compact(value)


@lru_cache(maxsize=64)
def _matcher(pattern: str) -> tuple[Match, JsonObject]:
    """Whether a text matches; in any case of letters unless the pattern has a capital one."""
    any_case = re.search(r"(?<!\\)[A-Z]", pattern) is None
    schema = {"pattern": f"(?i){pattern}" if any_case else pattern}
    options = RegexOptions(size_limit=_REGEX_BYTES, dfa_size_limit=_REGEX_BYTES)
    try:
        matches = Draft202012Validator(schema, pattern_options=options).is_valid
    except ValidationError:
        note = {"note": "grep is no regular expression we can run; it was searched as plain text."}
        if not any_case:
            return (lambda text: pattern in text), note
        lowered = pattern.lower()
        return (lambda text: lowered in text.lower()), note
    return (lambda text: matches(_encodable(text))), {}


def _encodable(text: str) -> str:
    """The text with halves of surrogate pairs, which JSON can spell and UTF-8 cannot, replaced."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
