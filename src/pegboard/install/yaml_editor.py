"""Edits YAML as text: the parser reports the lines of each member, and only those are changed.

In a mapping in block style, a member is its lines and the comments directly above it. A table in
flow style (`{a: 1}`) is rejected, because it cannot be edited line by line.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pegboard.core.json import JsonObject
from pegboard.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Member:
    """A key of the table and its lines, the end excluded."""

    key: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Table:
    """The table: the position of its key, its members, and their indentation."""

    line: int
    column: int
    empty_value: tuple[int, int] | None
    """The columns of `{}` or `null` on the key's line, if there are no members."""
    members: tuple[Member, ...]
    indent: int


def put(text: str, table: str, name: str, value: JsonObject) -> str:
    """The text with one more member of the table, which is created where it is missing."""
    from ruamel.yaml import YAML

    out = io.StringIO()
    yaml = YAML()
    yaml.width = 4096  # never fold a long value: the diff should show one line
    yaml.dump({name: value}, out)
    return _with_lines(text, table, partial(_reindent, out.getvalue(), 0))


def drop(text: str, table: str, names: Iterable[str]) -> str:
    """The text without these members of the table."""
    found = _table(text, table)
    removed = [m for m in found.members if m.key in set(names)] if found else []
    if found is None or not removed:
        return text
    lines = text.splitlines(keepends=True)
    # From the end, so that the numbers of the other lines stay valid.
    for member in reversed(removed):
        del lines[member.start : member.end]
    if len(removed) == len(found.members):
        # A key without a value would be null, which clients may reject.
        key_line = lines[found.line]
        bare = key_line.rstrip("\r\n")
        code, mark, comment = bare.partition(" #")
        lines[found.line] = f"{code.rstrip()} {{}}{mark}{comment}{key_line[len(bare) :]}"
    return "".join(lines)


def copy(text: str, table: str, source: str, names: Sequence[str]) -> str:
    """The text with members of another text's table, as they are written there."""
    found = _table(source, table)
    lines = source.splitlines(keepends=True)
    for member in found.members if found else ():
        if found and member.key in names:
            body = "".join(lines[member.start : member.end])
            body = body if body.endswith("\n") else body + _newline(source)
            text = _with_lines(text, table, partial(_reindent, body, found.indent))
    return text


def _with_lines(text: str, table: str, body: Callable[[int], str]) -> str:
    newline = _newline(text)
    found = _table(text, table)
    if found is None:
        start = text if not text or text.endswith("\n") else text + newline
        return start + f"{table}:{newline}" + _line_ends(body(2), newline)
    lines = text.splitlines(keepends=True)
    # Otherwise the new lines would continue the last one.
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += newline
    if found.empty_value:
        start, end = found.empty_value
        line = lines[found.line]
        lines[found.line] = line[:start].rstrip() + line[end:]
    at = found.members[-1].end if found.members else found.line + 1
    lines.insert(at, _line_ends(body(found.indent), newline))
    return "".join(lines)


def _table(text: str, name: str) -> Table | None:
    from ruamel.yaml import YAML

    root: Any = YAML(typ="safe", pure=True).compose(text)
    if root is None:
        return None
    _refuse_braces(root)
    at = next((i for i, (key, _) in enumerate(root.value) if key.value == name), None)
    if at is None:
        return None
    key, value = root.value[at]
    line, column = key.start_mark.line, key.start_mark.column
    children: list[Any] = value.value if value.id == "mapping" else []
    if not children:
        empty = (value.start_mark.column, value.end_mark.column)
        on_line = value.start_mark.line == line and empty[1] > empty[0]
        return Table(line, column, empty if on_line else None, (), column + 2)
    _refuse_braces(value)
    lines = text.splitlines(keepends=True)
    indent = children[0][0].start_mark.column
    starts = [_first_comment(lines, child.start_mark.line, line, indent) for child, _ in children]
    # A table reaches to the next key of the file, or to its end.
    following = root.value[at + 1][0].start_mark.line if at + 1 < len(root.value) else len(lines)
    ends = [*starts[1:], _trim_end(lines, following, indent)]
    members = tuple(
        Member(str(child.value), start, end)
        for (child, _), start, end in zip(children, starts, ends, strict=True)
    )
    return Table(line, column, None, members, indent)


def _first_comment(lines: list[str], line: int, bound: int, indent: int) -> int:
    """The first of the comment lines directly above a member with the same indentation."""
    while line - 1 > bound and lines[line - 1].startswith(" " * indent + "#"):
        line -= 1
    return line


def _trim_end(lines: list[str], end: int, indent: int) -> int:
    """The end of the table, without blank lines and comments that belong to what follows."""
    while end > 0:
        line = lines[end - 1]
        stripped = line.lstrip(" ")
        is_outside = stripped.startswith("#") and len(line) - len(stripped) < indent
        if stripped.strip() and not is_outside:
            return end
        end -= 1
    return end


def _refuse_braces(node: Any) -> None:
    if node.id != "mapping" or node.flow_style:
        raise ConfigError(
            "A table in braces cannot be edited line by line: write it in block style."
        )


def _reindent(body: str, before: int, indent: int) -> str:
    """The lines with another indentation."""
    shift = indent - before
    return "".join(
        (" " * shift + line if shift >= 0 else line[-shift:]) if line.strip() else line
        for line in body.splitlines(keepends=True)
    )


def _line_ends(text: str, newline: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", newline)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
