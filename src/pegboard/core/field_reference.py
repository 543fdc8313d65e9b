"""The fields of results as people look them up: path, type, description, example, in a page.

An example comes from the schema if it has one, else from a sample result; on a page also from a
field of the same name and type in a sample of another tool.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pegboard.core.json import Json, JsonObject
from pegboard.core.paths import Mark, Step, parse_path
from pegboard.core.schemas.fields import Field, fields_by_path
from pegboard.core.schemas.reading import View
from pegboard.core.schemas.scalars import MORE, Room, literal
from pegboard.core.schemas.spelling import literals, spelled
from pegboard.core.tools import Tool

_ROOM = Room(depth=0, values=12, literal=40)
_SHORT = Room(depth=0, values=0, literal=60)
_LONGEST_TEXT = 40


@dataclass(frozen=True, slots=True)
class FieldEntry:
    """One field that `include_fields` may name; `example` is JSON text, or empty."""

    path: str
    type: str
    description: str
    example: str

    def wire(self) -> JsonObject:
        """The entry as JSON."""
        return {
            "path": self.path,
            "type": self.type,
            "description": self.description,
            "example": self.example,
        }


def field_entries(tool: Tool, sample: Json = None) -> list[FieldEntry]:
    """All fields of a tool's results, parents before children."""
    if (schema := tool.output_schema) is None:
        return []
    return [_entry(tool, path, field, sample) for path, field in fields_by_path(schema)]


def fields_page(server: str, tools: Iterable[Tool], samples: Mapping[str, Json]) -> str:
    """The reference of all tools of a server, as Markdown; `samples` are results by tool id."""
    listed = sorted(tools, key=lambda t: (t.category or "", t.name))
    entries = {t.id: field_entries(t, samples.get(t.id)) for t in listed}
    known: dict[tuple[str, str], str] = {}
    for entry in (e for of_tool in entries.values() for e in of_tool if e.example):
        known.setdefault(_kind(entry), entry.example)
    parts = [f"# Fields of {server}\n", _INTRODUCTION]
    group = None
    for tool in listed:
        if tool.category != group:
            group = tool.category
            parts.append(f"## {group or 'other'}\n")
        rows = [e if e.example else _with_example(e, known) for e in entries[tool.id]]
        parts.append(_section(tool, rows))
    return "\n".join(parts)


def _kind(entry: FieldEntry) -> tuple[str, str]:
    """What tells one field from another across tools: its own name, and its type."""
    return entry.path.rpartition(".")[2], entry.type


def _with_example(entry: FieldEntry, known: Mapping[tuple[str, str], str]) -> FieldEntry:
    return replace(entry, example=known.get(_kind(entry), ""))


_INTRODUCTION = (
    "What the results of each tool hold. Every path can be given to `include_fields`; a parent\n"
    "keeps all that lies below it.\n"
)


def _section(tool: Tool, entries: Sequence[FieldEntry]) -> str:
    lines = [f"### {tool.name}\n", f"{tool.summary}.\n"]
    if not entries:
        return "\n".join([*lines, "Says nothing of its result.\n"])
    lines += ["| field | type | description | example |", "|---|---|---|---|"]
    lines += [_row(entry) for entry in entries]
    return "\n".join([*lines, ""])


def _row(entry: FieldEntry) -> str:
    cells = (_code(entry.path), _code(entry.type), entry.description, _code(entry.example))
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


def _code(text: str) -> str:
    return f"`{text}`" if text and "`" not in text else text


def _entry(tool: Tool, path: str, field: Field, sample: Json) -> FieldEntry:
    kinds = dict.fromkeys(_type(view) for view in field.views)
    written = next((view.description for view in field.views if view.description), "")
    description = written or _explained(tool, path)
    return FieldEntry(path, "|".join(kinds), description, _example(path, field.views, sample))


def _explained(tool: Tool, path: str) -> str:
    """What the author says of a field beside the schema: the longest end of its path decides.

    A path begins with the tool, so that `delete_issue.comments` means one field of one tool.
    """
    steps = [tool.name, *path.replace("[]", "").split(".")]
    ends = (".".join(steps[start:]) for start in range(len(steps)))
    return next((text for end in ends if (text := tool.field_descriptions.get(end))), "")


def _type(view: View) -> str:
    return spelled(view, _ROOM).replace(f"{{{MORE}}}", "object")


def _example(path: str, views: Sequence[View], sample: Json) -> str:
    for view in views:
        for value in (*_listed(view.schema.get("examples")), *(literals(view) or ())):
            if value is not None:
                return _short(value)
    found = (_short(v) for v in _at(sample, parse_path(path)) if v not in (None, [], {}))
    return next((text for text in found if text != MORE), "")


def _short(value: Json) -> str:
    """The text of a value; a long text with its beginning, other long values not at all."""
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        value = value[: _LONGEST_TEXT - 3] + "..."
    return literal(value, _SHORT)


def _listed(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _at(value: Json, path: Sequence[Step]) -> Iterator[Json]:
    """Every value that a path leads to; lists are looked through."""
    if not path:
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _at(item, path)
    elif path[0] is Mark.EACH:
        yield from _at(value, path[1:])
    elif isinstance(value, dict):
        step = path[0]
        inner = value.values() if step is Mark.ANY else [value[step]] if step in value else []
        for item in inner:
            yield from _at(item, path[1:])
