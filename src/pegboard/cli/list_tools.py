"""`pegboard list`: the `tools/list` result that a client would get."""

from __future__ import annotations

import os
import textwrap
from typing import Annotated

import anyio
import typer
from rich.table import Table

from pegboard.cli.output import JsonOption, format_count, out, print_json
from pegboard.cli.targets import (
    CatalogOption,
    ConfigOption,
    ModeOption,
    open_read_only_board,
    warn_missing_servers,
)
from pegboard.core.calls import Caller
from pegboard.core.json import JsonObject
from pegboard.server.environment import mode_from_environ
from pegboard.tokens import count_entry_tokens


def list_tools(
    config: ConfigOption = None,
    catalog: CatalogOption = None,
    mode: ModeOption = None,
    era: Annotated[
        str,
        typer.Option(metavar="ERA", help="The protocol era of the client: modern or legacy."),
    ] = "modern",
    as_json: JsonOption = False,
) -> None:
    """Show the tools/list result that a client would get, and its token cost."""
    if era not in ("modern", "legacy"):
        raise typer.BadParameter("--era must be modern or legacy")
    from pegboard.server.tool_methods import ToolMethods, ToolRequest

    board = open_read_only_board(catalog, config, mode=mode)
    caller = Caller(era=era, mode=mode or mode_from_environ(os.environ))
    answer = anyio.run(ToolMethods(board).answer, ToolRequest("tools/list", {}, caller))
    result: JsonObject = dict(answer or {})
    if era == "modern":
        result["resultType"] = "complete"
    warn_missing_servers(board)
    if as_json:
        print_json(result)
        return
    table = Table("tool", "description", "tokens", box=None, header_style="bold")
    table.columns[0].overflow = "fold"  # a name that is cut cannot be called
    table.columns[2].justify = "right"
    total = 0
    for entry in result["tools"]:
        tokens = count_entry_tokens([entry])
        total += tokens
        first_line = (entry.get("description") or "").split("\n")[0]
        first_line = textwrap.shorten(first_line, 100, placeholder=" …")
        table.add_row(entry["name"], first_line, f"{tokens:,}")
    out.print(table)
    tools, tokens = format_count(len(result["tools"]), "tool"), format_count(total, "token")
    out.print(f"{tools}, {tokens} (o200k_base)", style="bold")
