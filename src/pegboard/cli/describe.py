"""`pegboard describe` and `pegboard fields`: a tool, and the fields of its results."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import anyio
import typer
from rich.table import Table
from rich.text import Text

from pegboard.cli.output import EXIT_FAILED, JsonOption, out, print_json
from pegboard.cli.targets import CatalogOption, ConfigOption, open_read_only_board
from pegboard.core.calls import CallResult
from pegboard.core.json import Json, JsonObject
from pegboard.core.results.output_fields import (
    list_field_entries,
    render_fields_page,
    resolve_aliases,
    validate_fields,
)
from pegboard.core.results.paths import parse_fields
from pegboard.core.results.projection import measure_savings, project
from pegboard.core.results.shapes import find_payload
from pegboard.core.sanitization import escape_hidden
from pegboard.core.schemas import format_field_outline
from pegboard.core.tools import Tool, constant_definition
from pegboard.tokens import DEFAULT_TOKENIZER, count_tokens


def describe(
    names: Annotated[list[str], typer.Argument(help="The names of tools.")],
    config: ConfigOption = None,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show tools in full: description, parameters and result fields."""
    board = open_read_only_board(catalog, config)
    view = anyio.run(board.view)
    tools = [view.catalog.as_shown(tool) for tool in board.describe(*names)]
    if as_json:
        print_json({"tools": [t.wire() for t in tools]})
        return
    for tool in tools:
        out.print(tool.signature, style="bold")
        out.print(tool.description or tool.summary)
        if returns := view.returns(tool):
            out.print(Text(f"-> {returns}"), style="dim")
        out.print(f"{tool.risk}, category {tool.category or '-'}", style="dim")
        out.print()


def fields(
    name: Annotated[str | None, typer.Argument(help="The name of a tool.")] = None,
    config: ConfigOption = None,
    catalog: CatalogOption = None,
    result: Annotated[
        Path | None,
        typer.Option(
            "--try", metavar="FILE", exists=True, dir_okay=False, help="A saved result of the tool."
        ),
    ] = None,
    include: Annotated[
        str | None, typer.Option(metavar="A,B", help="The fields to select from that result.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Show every tool, as Markdown.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the fields of a tool's results. With --try, show what selecting fields saves."""
    if everything == (name is not None) or (everything and result is not None):
        raise typer.BadParameter("pass either NAME or --all")
    if (result is None) != (include is None):
        raise typer.BadParameter("--try FILE and --include A,B must be used together")
    board = open_read_only_board(catalog, config)
    if name is None:
        if as_json:
            print_json({"tools": [_fields_json(tool) for tool in board.tools()]})
        else:
            # Written as it is: a console would wrap the rows of Markdown tables.
            page = render_fields_page(board.name, board.tools(), {})
            sys.stdout.write(escape_hidden(page))
        return
    tool = board.describe(name)[0]
    schema, is_learned = anyio.run(board.view).result_schema(tool)
    if is_learned:
        # From here on, the names of fields are checked against what was learned.
        tool = replace(tool, definition=constant_definition(tool.input_schema, schema))
    if result is not None:
        _show_savings(tool, _read_result(result), include or "", as_json=as_json)
    elif as_json:
        print_json(_fields_json(tool))
    else:
        _show_fields(tool, is_learned=is_learned)


def _show_fields(tool: Tool, *, is_learned: bool) -> None:
    if not tool.output_fields:
        out.print(f"{tool.name} does not declare the fields of its result.")
        raise typer.Exit(EXIT_FAILED)
    outline = format_field_outline(tool.output_schema)
    out.print(f"{tool.name} -> {'~' if is_learned else ''}{{{outline}}}", style="bold")
    if is_learned:
        out.print("~ learned from earlier calls; there may be more fields.", style="dim")
    entries = list_field_entries(tool)
    heads = ["field", "type", "description"]
    # Most tools describe no fields; an empty column would only take room.
    heads = heads if any(entry.description for entry in entries) else heads[:2]
    table = Table(*heads, box=None, header_style="bold")
    # Users copy paths from here: a long one is folded, never cut off.
    table.columns[0].overflow = table.columns[1].overflow = "fold"
    for entry in entries:
        row = (entry.path, entry.type, entry.description)
        table.add_row(*row[: len(heads)])
    out.print(table)


def _fields_json(tool: Tool) -> JsonObject:
    entries = list_field_entries(tool)
    return {
        "tool": tool.name,
        "outline": format_field_outline(tool.output_schema) if entries else "",
        "fields": [entry.wire() for entry in entries],
    }


def _read_result(path: Path) -> Json:
    """The data of a saved result: a JSON value, or a whole `tools/call` result."""
    try:
        value = json.loads(path.read_text("utf-8"))
    except ValueError as exc:
        raise typer.BadParameter(f"{path} is not JSON: {exc}") from exc
    if isinstance(value, dict) and isinstance(value.get("content"), list):
        payload = find_payload(CallResult(value))
        if payload is None:
            raise typer.BadParameter(f"{path} is a result without fields to select from")
        return payload.value
    return value


def _show_savings(tool: Tool, value: Json, include: str, *, as_json: bool) -> None:
    """Show the tokens of a result before and after selecting fields."""
    schema, root = tool.output_schema, tool.projection_root
    selected = resolve_aliases(parse_fields(include), tool.field_aliases, schema, root)
    validate_fields(selected, schema, root)
    savings = measure_savings(value, selected, count_tokens, root)
    if as_json:
        print_json(
            {
                "tool": tool.name,
                "tokenizer": DEFAULT_TOKENIZER,
                "include_fields": list(selected),
                "before": savings.before,
                "after": savings.after,
                "saved": round(savings.saved, 4),
                "missing": list(savings.missing),
                "result": project(value, selected, root),
            }
        )
    else:
        table = Table("", "tokens", box=None, header_style="bold")
        table.columns[1].justify = "right"
        table.add_row("all fields", f"{savings.before:,}")
        table.add_row(", ".join(selected), f"{savings.after:,}")
        out.print(table)
        out.print(f"{savings.saved:.1%} saved ({DEFAULT_TOKENIZER})", style="bold green")
        if savings.missing:
            out.print(f"not in this result: {', '.join(savings.missing)}")
    # A script that tries a selection should notice that a part of it selects nothing.
    if savings.missing:
        raise typer.Exit(EXIT_FAILED)
