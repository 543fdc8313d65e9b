"""`pegboard describe`: all that is known of some tools."""

from __future__ import annotations

from typing import Annotated

import typer

from pegboard.cli.boards import CatalogOption, ConfigOption, JsonOption, read_board
from pegboard.cli.output import out, print_json


def describe(
    names: Annotated[list[str], typer.Argument(help="Names of tools.")],
    config: ConfigOption = None,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show tools whole: description, parameters, result fields."""
    tools = read_board(catalog, config).describe(*names)
    if as_json:
        print_json({"tools": [t.wire() for t in tools]})
        return
    for tool in tools:
        out.print(tool.signature, style="bold")
        out.print(tool.description or tool.summary)
        if tool.output_fields:
            out.print("result: " + ", ".join(tool.output_fields), style="dim")
        out.print(f"{tool.risk}, category {tool.category or '-'}", style="dim")
        out.print()
