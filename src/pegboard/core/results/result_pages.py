"""Reading a kept result: one part, one page, or what matches, never more than a budget of tokens.

A value is read as a sequence: a list by its elements, an object by its members, a text by its
lines (a line longer than `LINE` characters counts as several, so that even one endless line can be
paged). What does not fit is never dropped silently: `next` has the arguments that continue,
`shortened` the paths of what was too large to show even alone.

Reading has two steps: `find` may take long in a large value and can be done in another process,
`page` counts tokens of what was found.

Patterns run in the regex engine of `jsonschema-rs`, which takes linear time and a bounded size for
any pattern: no look-around, but no expression that hangs either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Literal, TypeAlias

from jsonschema_rs import Draft202012Validator, RegexOptions, ValidationError

from pegboard.core.json import Json, JsonObject, compact, measure_json
from pegboard.core.results.paths import (
    Mark,
    Step,
    invalid_field,
    join_path,
    list_field_paths,
    parse_path,
)
from pegboard.core.results.spill_notice import build_preview, find_rows, split_lines
from pegboard.core.token_budget import Count, within
from pegboard.errors import InvalidArguments

if TYPE_CHECKING:
    from pegboard.core.results.selection import SelectionLimits

MAX_PATTERN = 200
MAX_LIMIT = 10_000
QUICK_VALUES = 2_000
QUICK_CHARACTERS = 10_000
"""Size of a value that `find` takes a moment for, whatever the pattern or expression."""
_REGEX_BYTES = 100_000

TextMatcher: TypeAlias = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class PageRequest:
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
class PageBudget:
    """How many tokens a page may have, and who counts them."""

    tokens: int
    count: Count


@dataclass(frozen=True, slots=True)
class LocatedValue:
    """A value somewhere inside another, with the steps that lead to it."""

    at: tuple[Step, ...]
    value: Json


@dataclass(frozen=True, slots=True)
class FoundItems:
    """What a page can be made of: the entries, lines or plain value that it starts with.

    `items` holds no more than a page can show, of `total` that were found; the first of them is the
    one at `offset`.
    """

    kind: Literal["value", "members", "matches", "text", "plain"]
    items: Sequence[Json]
    offset: int = 0
    total: int = 0
    notes: JsonObject = field(default_factory=dict[str, Json])


def read_page(value: Json, reading: PageRequest, budget: PageBudget) -> JsonObject:
    """The page that was asked for: `{value | text | matches, offset, total, next?, shortened?}`.

    Raises:
        InvalidArguments: A number or pattern is out of bounds.
        InvalidField: The path leads nowhere, or the expression cannot be run.
    """
    return build_page(find_items(value, reading, budget.tokens), budget)


def is_expensive(value: Json, reading: PageRequest) -> bool:
    """Whether `find` may take so long that others would notice."""
    if reading.select is None and reading.grep is None:
        return False
    size = measure_json(value, QUICK_VALUES)
    return size is None or size.characters > QUICK_CHARACTERS


def find_items(
    value: Json, reading: PageRequest, most: int, limits: SelectionLimits | None = None
) -> FoundItems:
    """What was asked for, up to `most` items of it, since each takes a token at least.

    Raises:
        InvalidArguments: A number or pattern is out of bounds.
        InvalidField: The path leads nowhere, or the expression cannot be run.
        TooExpensive: The expression takes more than these `limits`; without them, it is invalid.
    """
    reading.check()
    path = reading.path or _rows_path(value, reading)
    entries, many = locate(value, path)
    if reading.select is not None:
        subject = [entry.value for entry in entries] if many else entries[0].value
        from pegboard.core.results.selection import (  # few select, and it costs an import
            evaluate,
            select,
        )

        run = select if limits is None else partial(evaluate, limits=limits)
        entries, many = [LocatedValue((), run(subject, reading.select))], False
    found = _found(entries, many, reading)
    offset, end = _window(found.total, reading, most)
    notes = {"path": path} if path and not reading.path else {}
    return replace(
        found,
        items=list(found.items[offset:end]),
        offset=offset,
        notes=notes | found.notes,
    )


def _found(entries: Sequence[LocatedValue], many: bool, reading: PageRequest) -> FoundItems:
    only = None if many else entries[0]
    if only is not None and isinstance(only.value, str):
        return _found_lines(only.value, reading)
    if reading.grep is not None:
        match, note = _matcher(reading.grep)
        rows = entries if only is None else _rows_or_leaves(only)
        matching = [row for row in rows if match(_searched(row.value))]
        return FoundItems("matches", matching, total=len(matching), notes=note)
    if only is None:
        return FoundItems("value", entries, total=len(entries))
    if not isinstance(only.value, (dict, list)):
        return FoundItems("plain", [only.value], total=1)
    kind = "members" if isinstance(only.value, dict) else "value"
    return FoundItems(kind, list(_members(only)), total=len(only.value))


def _found_lines(text: str, reading: PageRequest) -> FoundItems:
    lines, note = split_lines(text), {}
    if reading.grep is not None:
        match, note = _matcher(reading.grep)
        lines = [f"{i}: {line.rstrip()}\n" for i, line in enumerate(lines) if match(line)]
    return FoundItems("text", lines, total=len(lines), notes=note)


def build_page(found: FoundItems, budget: PageBudget) -> JsonObject:
    """As much of what was found as the budget allows, and how to go on."""
    if found.kind == "plain":
        return found.notes | {"value": found.items[0]}
    if found.kind == "text":
        return _text_page(found, budget)
    shown, shortened = _fitting(found.items, budget)
    value: Json
    if found.kind == "matches":
        value = [{"at": join_path(e.at), "value": e.value} for e in shown]
    elif found.kind == "members":
        value = {e.at[-1]: e.value for e in shown}
    else:
        value = [e.value for e in shown]
    key = "matches" if found.kind == "matches" else "value"
    return _page(key, value, found, len(shown), shortened)


def _rows_path(value: Json, reading: PageRequest) -> str:
    """Without a path, an envelope is read by its rows."""
    rows = None if reading.select is not None else find_rows(value)
    return join_path([rows[0]]) if rows is not None and rows[0] else ""


def locate(value: Json, path: str) -> tuple[list[LocatedValue], bool]:
    """What a path leads to, and whether to several: so through lists without a number.

    Raises:
        InvalidField: It leads nowhere.
    """
    found, many = [LocatedValue((), value)], False
    for step in parse_path(path) if path else ():
        if not isinstance(step, int) and (step is Mark.EACH or _any_list(found)):
            found = [inner for entry in found for inner in _elements(entry)]
            many = True
        if step is Mark.EACH:
            continue
        before, many = found, many or step is Mark.ANY
        found = [inner for entry in before for inner in _follow(entry, step)]
        if before and not found:
            raise invalid_field(path, "It leads nowhere in this result.", list_field_paths(value))
    return found, many


def _any_list(entries: Sequence[LocatedValue]) -> bool:
    return any(isinstance(entry.value, list) for entry in entries)


def _elements(entry: LocatedValue) -> Iterator[LocatedValue]:
    """The elements of a list; anything else is its own only element."""
    return _members(entry) if isinstance(entry.value, list) else iter((entry,))


def _members(entry: LocatedValue) -> Iterator[LocatedValue]:
    inner = entry.value.items() if isinstance(entry.value, dict) else enumerate(entry.value)
    return (LocatedValue((*entry.at, step), value) for step, value in inner)


def _follow(entry: LocatedValue, step: Step) -> Iterator[LocatedValue]:
    value = entry.value
    if isinstance(value, dict):
        if step is Mark.ANY:
            yield from _members(entry)
        elif step in value:
            yield LocatedValue((*entry.at, step), value[step])
    elif isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
        yield LocatedValue((*entry.at, step % len(value)), value[step])


def _rows_or_leaves(only: LocatedValue) -> Iterator[LocatedValue]:
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


def _text_page(found: FoundItems, budget: PageBudget) -> JsonObject:
    shown: list[str] = []
    left = budget.tokens
    for line in found.items:
        left -= budget.count(line)
        if left < 0 and shown:
            break
        shown.append(line)
    return _page("text", "".join(shown), found, len(shown), [])


def _window(total: int, reading: PageRequest, most: int) -> tuple[int, int]:
    """Where the page starts, and where it ends at the latest."""
    offset = reading.offset if reading.offset >= 0 else max(0, total + reading.offset)
    return offset, offset + min(most, most if reading.limit is None else reading.limit)


def _fitting(
    entries: Sequence[LocatedValue], budget: PageBudget
) -> tuple[list[LocatedValue], list[str]]:
    """As many entries as fit; a first one that is too large alone is shortened, and named."""
    shown: list[LocatedValue] = []
    left = budget.tokens
    for entry in entries:
        text = compact({join_path(entry.at[-1:]): entry.value})
        if not within(text, left, budget.count):
            if shown:
                break
            small = build_preview(entry.value, budget.tokens, budget.count)
            return [LocatedValue(entry.at, small)], [join_path(entry.at)]
        left -= budget.count(text)
        shown.append(entry)
    return shown, []


def _page(
    kind: str, value: Json, found: FoundItems, shown: int, shortened: list[str]
) -> JsonObject:
    made: JsonObject = {kind: value, "offset": found.offset, "total": found.total}
    if shortened:
        made["shortened"] = shortened
    if shown and found.offset + shown < found.total:
        made["next"] = {"offset": found.offset + shown}
    return found.notes | made


def _searched(value: Json) -> str:
    return value if isinstance(value, str) else compact(value)


@lru_cache(maxsize=64)
def _matcher(pattern: str) -> tuple[TextMatcher, JsonObject]:
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
