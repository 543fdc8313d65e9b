"""`pegboard search`: which tools a task would find."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.padding import Padding
from rich.table import Table

from pegboard.cli.boards import CatalogOption, ConfigOption, JsonOption, read_board, tell_missing
from pegboard.cli.output import EXIT_FAILED, NARROW, line, out, print_json
from pegboard.core.json import JsonObject
from pegboard.core.tools import RISKS
from pegboard.faces.searching import checked_category

if TYPE_CHECKING:
    from pegboard.core.search import Match


def search(
    query: Annotated[str, typer.Argument(help="A task in your own words.")],
    config: ConfigOption = None,
    catalog: CatalogOption = None,
    limit: Annotated[int, typer.Option(min=1, max=50, help="At most so many.")] = 10,
    category: Annotated[
        str | None, typer.Option(help="Only tools of this category or server.")
    ] = None,
    risk: Annotated[
        str | None, typer.Option(metavar="RISK", help="Only read, write or destructive tools.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Find tools by what you want to do."""
    if risk is not None and risk not in RISKS:
        raise typer.BadParameter(f"--risk is {', '.join(RISKS[:-1])} or {RISKS[-1]}")
    board = read_board(catalog, config)
    group = checked_category(board.catalog, category)
    matches = board.index.search(query, limit, group=group, risk=risk)
    tell_missing(board)
    if as_json:
        print_json({"matches": [_as_json(match) for match in matches], "total": len(matches)})
    elif matches:
        _show(matches)
    else:
        out.print("No tool fits this.")
    if not matches:
        raise typer.Exit(EXIT_FAILED)


def _show(matches: list[Match]) -> None:
    if out.width < NARROW:
        for m in matches:
            out.print(line((m.tool.id, "bold"), f"  {m.score:.2f}"))
            out.print(Padding(m.tool.summary, (0, 0, 0, 2), expand=False))
        return
    table = Table("tool", "score", "summary", "why", box=None, header_style="bold")
    for m in matches:
        table.add_row(m.tool.id, f"{m.score:.2f}", m.tool.summary, "; ".join(m.why))
    out.print(table)


def _as_json(match: Match) -> JsonObject:
    tool = match.tool
    return {
        "id": tool.id,
        "name": tool.name,
        "category": tool.category,
        "server": tool.server,
        "signature": tool.signature,
        "summary": tool.summary,
        "score": match.score,
        "risk": tool.risk,
        "why": list(match.why),
    }
