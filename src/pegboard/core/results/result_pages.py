"""Pages of a stored result: one part, one page, or what matches, within a budget of tokens.

A value is read as a sequence: a list by its elements, an object by its members, a text by its
lines (a line longer than `LINE_LENGTH` characters counts as several, so that even one endless line
can be paged). Nothing is dropped silently: `next` has the arguments that continue, `shortened` the
paths of values that were too large to show even alone.

Reading has two steps, because only the first can be slow and is then run in a worker process:

    find_items    goes to the path, runs `select` and `grep`, cuts out the window
    build_page    counts the tokens of what was found, and says how to continue

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
from pegboard.core.token_budget import Count, fits_token_budget
from pegboard.errors import InvalidArguments

if TYPE_CHECKING:
    from pegboard.core.results.selection import SelectionLimits

MAX_PATTERN = 200
MAX_LIMIT = 10_000
QUICK_VALUES = 2_000
QUICK_CHARACTERS = 10_000
"""The size of a value for which `find_items` is quick, whatever the pattern or expression."""
_MAX_REGEX_BYTES = 100_000

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
        """Raise `InvalidArguments` if a number or the pattern is out of bounds."""
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
    """How many tokens a page may have, and the function that counts them."""

    tokens: int
    count: Count


@dataclass(frozen=True, slots=True)
class LocatedValue:
    """A value somewhere inside another, with the steps that lead to it."""

    at: tuple[Step, ...]
    value: Json


@dataclass(frozen=True, slots=True)
class FoundItems:
    """What a page can be made of: located values, lines, or one plain value.

    `items` has no more than a page can show, of `total` that were found; the first of them is the
    one at `offset`.
    """

    kind: Literal["value", "members", "matches", "text", "plain"]
    items: Sequence[Json]
    offset: int = 0
    total: int = 0
    notes: JsonObject = field(default_factory=dict[str, Json])


def is_expensive(value: Json, request: PageRequest) -> bool:
    """Whether `find_items` may take so long that other clients would notice."""
    if request.select is None and request.grep is None:
        return False
    size = measure_json(value, QUICK_VALUES)
    return size is None or size.characters > QUICK_CHARACTERS


# --- finding --------------------------------------------------------------------------------------


def find_items(
    value: Json, request: PageRequest, most: int, limits: SelectionLimits | None = None
) -> FoundItems:
    """What was requested, at most `most` items of it, since each takes at least one token.

    Raises:
        InvalidArguments: A number or pattern is out of bounds.
        InvalidField: The path leads nowhere, or the expression cannot be run.
        TooExpensive: The expression exceeds these `limits`; without them, that is `InvalidField`.
    """
    request.check()
    path = request.path or ""
    if not path and request.select is None:
        rows = find_rows(value)
        path = join_path([rows[0]]) if rows is not None and rows[0] else ""
    entries, is_many = locate(value, path)
    if request.select is not None:
        subject = [entry.value for entry in entries] if is_many else entries[0].value
        # Most requests have no `select`, and the import takes milliseconds.
        from pegboard.core.results.selection import evaluate_expression, select

        run = select if limits is None else partial(evaluate_expression, limits=limits)
        entries, is_many = [LocatedValue((), run(subject, request.select))], False
    found = _match_items(entries, None if is_many else entries[0], request.grep)
    start = request.offset if request.offset >= 0 else max(0, found.total + request.offset)
    end = start + min(most, most if request.limit is None else request.limit)
    # An envelope is read by its rows: the page says which path it chose.
    notes = {"path": path} if path and not request.path else {}
    return replace(
        found, items=list(found.items[start:end]), offset=start, notes=notes | found.notes
    )


def locate(value: Json, path: str) -> tuple[list[LocatedValue], bool]:
    """The values that a path leads to, and whether there can be several.

    There can be several if the path goes through a list without a number, or through `*`.

    Raises:
        InvalidField: It leads nowhere.
    """
    found, is_many = [LocatedValue((), value)], False
    for step in parse_path(path) if path else ():
        through_lists = any(isinstance(entry.value, list) for entry in found)
        if not isinstance(step, int) and (step is Mark.EACH or through_lists):
            found = [
                inner
                for entry in found
                for inner in (_members(entry) if isinstance(entry.value, list) else (entry,))
            ]
            is_many = True
        if step is Mark.EACH:
            continue
        before, is_many = found, is_many or step is Mark.ANY
        found = [inner for entry in before for inner in _follow_step(entry, step)]
        if before and not found:
            raise invalid_field(path, "It leads nowhere in this result.", list_field_paths(value))
    return found, is_many


def _follow_step(entry: LocatedValue, step: Step) -> Iterator[LocatedValue]:
    value = entry.value
    if isinstance(value, dict):
        if step is Mark.ANY:
            yield from _members(entry)
        elif step in value:
            yield LocatedValue((*entry.at, step), value[step])
    elif isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
        yield LocatedValue((*entry.at, step % len(value)), value[step])


def _members(entry: LocatedValue) -> Iterator[LocatedValue]:
    inner = entry.value.items() if isinstance(entry.value, dict) else enumerate(entry.value)
    return (LocatedValue((*entry.at, step), value) for step, value in inner)


def _match_items(
    entries: Sequence[LocatedValue], only: LocatedValue | None, grep: str | None
) -> FoundItems:
    """The located values as a sequence, reduced to those that match a pattern."""
    matches, note = (None, {}) if grep is None else _compile_pattern(grep)
    if only is not None and isinstance(only.value, str):
        lines = split_lines(only.value)
        if matches is not None:
            lines = [f"{i}: {line.rstrip()}\n" for i, line in enumerate(lines) if matches(line)]
        return FoundItems("text", lines, total=len(lines), notes=note)
    if matches is not None:
        rows = entries if only is None else _rows_or_leaves(only)
        texts = ((r, r.value if isinstance(r.value, str) else compact(r.value)) for r in rows)
        matching = [row for row, text in texts if matches(text)]
        return FoundItems("matches", matching, total=len(matching), notes=note)
    if only is None:
        return FoundItems("value", entries, total=len(entries))
    if not isinstance(only.value, (dict, list)):
        return FoundItems("plain", [only.value], total=1)
    kind = "members" if isinstance(only.value, dict) else "value"
    return FoundItems(kind, list(_members(only)), total=len(only.value))


def _rows_or_leaves(only: LocatedValue) -> Iterator[LocatedValue]:
    """What a pattern is tried on: the elements of a list, otherwise every plain value inside."""
    if isinstance(only.value, list):
        yield from _members(only)
        return
    queue = [only]  # a stack, reversed below, so that leaves come in the order of the value
    while queue:
        entry = queue.pop()
        if isinstance(entry.value, (dict, list)):
            queue.extend(reversed(list(_members(entry))))
        else:
            yield entry


@lru_cache(maxsize=64)
def _compile_pattern(pattern: str) -> tuple[TextMatcher, JsonObject]:
    """A function that tests a text, and a note for the page.

    Case is ignored unless the pattern has a capital letter.
    """
    ignore_case = re.search(r"(?<!\\)[A-Z]", pattern) is None
    # The engine is only reachable as a JSON Schema `pattern`.
    schema = {"pattern": f"(?i){pattern}" if ignore_case else pattern}
    options = RegexOptions(size_limit=_MAX_REGEX_BYTES, dfa_size_limit=_MAX_REGEX_BYTES)
    try:
        is_valid = Draft202012Validator(schema, pattern_options=options).is_valid
    except ValidationError:
        note = {"note": "grep is not a regular expression we can run; it was used as plain text."}
        if not ignore_case:
            return (lambda text: pattern in text), note
        lowered = pattern.lower()
        return (lambda text: lowered in text.lower()), note

    def matches(text: str) -> bool:
        # JSON can spell half of a surrogate pair, which UTF-8 and so the engine cannot take.
        return is_valid(text if text.isascii() else text.encode("utf-8", "replace").decode())

    return matches, {}


# --- the page -------------------------------------------------------------------------------------


def build_page(found: FoundItems, budget: PageBudget) -> JsonObject:
    """As much of what was found as the budget allows, and how to continue."""
    if found.kind == "plain":
        return found.notes | {"value": found.items[0]}
    shortened: list[str] = []
    content: Json
    if found.kind == "text":
        shown: list[Json] = []
        left = budget.tokens
        for line in found.items:
            left -= budget.count(line)
            if left < 0 and shown:  # at least one: a line is never longer than `LINE_LENGTH`
                break
            shown.append(line)
        content = "".join(shown)
    else:
        shown, shortened = _fit_values(found.items, budget)
        if found.kind == "matches":
            content = [{"at": join_path(entry.at), "value": entry.value} for entry in shown]
        elif found.kind == "members":
            content = {entry.at[-1]: entry.value for entry in shown}
        else:
            content = [entry.value for entry in shown]
    key = found.kind if found.kind in ("text", "matches") else "value"
    page: JsonObject = {key: content, "offset": found.offset, "total": found.total}
    if shortened:
        page["shortened"] = shortened
    if shown and found.offset + len(shown) < found.total:
        page["next"] = {"offset": found.offset + len(shown)}
    return found.notes | page


def _fit_values(
    entries: Sequence[LocatedValue], budget: PageBudget
) -> tuple[list[LocatedValue], list[str]]:
    """As many values as fit; if even the first is too large, a preview of it, and its path."""
    shown: list[LocatedValue] = []
    left = budget.tokens
    for entry in entries:
        # With its key, which costs tokens too when the page shows members or matches.
        text = compact({join_path(entry.at[-1:]): entry.value})
        if not fits_token_budget(text, left, budget.count):
            if shown:
                break
            small = build_preview(entry.value, budget.tokens, budget.count)
            return [LocatedValue(entry.at, small)], [join_path(entry.at)]
        left -= budget.count(text)
        shown.append(entry)
    return shown, []
