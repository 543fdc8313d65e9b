"""Tables: lists of similar records as rows under one header, so that no key is repeated.

    {"total": 2, "items": [{"id": 1, "user": {"login": "ann"}, "note": null},
                           {"id": 2, "user": {"login": "bob"}, "tags": ["x"]}]}

    total: 2
    items[2]{id,user.login,note,tags}:
    1,ann,null,
    2,bob,,["x"]

A cell is JSON, except that a text is unquoted where it cannot be mistaken, and an empty cell is a
key that the record does not have. `decode_table` returns exactly the value that was encoded.

Why not TOON, whose header this is: on ordinary listings it takes 2-15% more tokens (its rows are
indented and its times quoted), and it falls back to a list form, longer than JSON, as soon as one
record lacks a key or holds a list. `benchmarks/results_tables.py` has the numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias, cast

from pegboard.core.json import Json, JsonObject, compact

MIN_ROWS = 2  # a header does not pay for a single row
MAX_COLUMNS = 100
_MAX_DEPTH = 3  # what is deeper stays one cell, as JSON

Column: TypeAlias = tuple[str, ...]
"""The keys that lead to a cell: one, or several where records contain similar records."""

_PLAIN_NAME = re.compile(r"[\w$@/-]+")
_HEADER = re.compile(r"\[(\d+)\]\{")
_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_LITERAL = re.compile(rf"(?:true|false|null|NaN|-?Infinity|{_NUMBER})\Z")
_BARE = re.compile(rf"(?!{_LITERAL.pattern})[^\s\"\[{{,](?:[^,\n\r]*[^\s,])?")
"""A text that cannot be mistaken for a number, a literal, a list or an object."""

_DECODER = json.JSONDecoder()  # for `raw_decode`, which says where a value ends
_ABSENT = object()


def encode_table(value: Json) -> str | None:
    """The value as text with its lists of records as tables; `None` when it has no such list.

    The value is such a list itself, or an object with at least one among its members.
    """
    if isinstance(value, list):
        return _table("", value)
    if not isinstance(value, dict):
        return None
    lines: list[str] = []
    tables = 0
    for key, item in value.items():
        table = _table(_name(key), item) if isinstance(item, list) else None
        tables += table is not None
        lines.append(f"{_name(key)}: {compact(item)}" if table is None else table)
    return "\n".join(lines) if tables else None


def decode_table(text: str) -> Json:
    """The value that `encode_table` was given.

    Raises:
        ValueError: The text is not a table.
    """
    try:
        lines = iter(text.split("\n"))
        value: JsonObject = {}
        for line in lines:
            key, at = _read_name(line, 0)
            header = _HEADER.match(line, at)
            if header is None:
                value[key] = json.loads(line[at + 2 :])
                continue
            columns: list[Column] = []
            column: Column = ()
            at_key = header.end()
            while line[at_key - 1] != "}":
                part, at_key = _read_name(line, at_key)
                column = (*column, part)
                if line[at_key] != ".":  # a dot continues into a nested record
                    columns.append(column)
                    column = ()
                at_key += 1
            rows = [_read_row(next(lines), columns) for _ in range(int(header[1]))]
            if at == 0:  # a header without a name: the whole value is this list
                return rows
            value[key] = rows
        return value
    except (StopIteration, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("Not a table.") from error


def _table(name: str, rows: Sequence[Json]) -> str | None:
    if len(rows) < MIN_ROWS or not all(isinstance(row, dict) for row in rows):
        return None
    records = cast("Sequence[JsonObject]", rows)
    columns = list(_columns(records))
    if not 0 < len(columns) <= MAX_COLUMNS:
        return None
    header = ",".join(".".join(map(_name, column)) for column in columns)
    body = (",".join([_cell(row, column) for column in columns]) for row in records)
    return "\n".join((f"{name}[{len(rows)}]{{{header}}}:", *body))


def _columns(records: Sequence[JsonObject], within: Column = ()) -> Iterator[Column]:
    """The columns, in the order in which the records first have them.

    A member that is a record wherever it is present gets a column for each of its keys. An empty
    record would leave no trace in them, so its column stays whole.
    """
    for key in dict.fromkeys(key for record in records for key in record):
        members = [record[key] for record in records if key in record]
        column = (*within, key)
        if len(column) < _MAX_DEPTH and all(isinstance(m, dict) and m for m in members):
            yield from _columns(members, column)
        else:
            yield column


def _cell(row: Json, column: Column) -> str:
    for key in column:
        if key not in row:
            return ""
        row = row[key]
    if isinstance(row, str) and _BARE.fullmatch(row):
        return row
    return str(row) if type(row) is int else compact(row)  # `str` is faster, and most cells are


def _name(key: str) -> str:
    return key if _PLAIN_NAME.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def _read_name(line: str, at: int) -> tuple[str, int]:
    """A key, and the position after it."""
    if line.startswith('"', at):
        return _DECODER.raw_decode(line, at)
    plain = _PLAIN_NAME.match(line, at)
    return (plain[0], plain.end()) if plain else ("", at)


def _read_row(line: str, columns: Sequence[Column]) -> JsonObject:
    row: JsonObject = {}
    at = 0
    for column in columns:
        cell: Json
        if line[at : at + 1] in ('"', "[", "{"):
            cell, at = _DECODER.raw_decode(line, at)
        else:
            end = line.find(",", at)
            text = line[at:end] if end >= 0 else line[at:]
            cell = json.loads(text) if _LITERAL.match(text) else text or _ABSENT
            at += len(text)
        at += 1  # the comma
        if cell is _ABSENT:
            continue
        record = row
        for key in column[:-1]:
            record = record.setdefault(key, {})
        record[column[-1]] = cell
    return row
