"""`pegboard search`: which tools a task would find."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.padding import Padding
from rich.table import Table

from pegboard.cli.boards import CatalogOption, ConfigOption, JsonOption, read_board, tell_slow
from pegboard.cli.output import EXIT_FAILED, NARROW, out, plain, print_json

if TYPE_CHECKING:
    from pegboard.core.search import Match


def search(
    query: Annotated[str, typer.Argument(help="A task in your own words.")],
    config: ConfigOption = None,
    catalog: CatalogOption = None,
    limit: Annotated[int, typer.Option(min=1, max=50, help="At most so many.")] = 10,
    category: Annotated[str | None, typer.Option(help="Only tools of this category.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Find tools by what you want to do."""
    board = read_board(catalog, config)
    matches = board.search(query, limit, category=category)
    tell_slow(board)
    if as_json:
        print_json(
            {
                "matches": [
                    {
                        "id": m.tool.id,
                        "name": m.tool.name,
                        "category": m.tool.category,
                        "server": m.tool.server,
                        "signature": m.tool.signature,
                        "summary": m.tool.summary,
                        "score": m.score,
                        "risk": m.tool.risk,
                        "why": list(m.why),
                    }
                    for m in matches
                ],
                "total": len(matches),
            }
        )
    elif matches:
        _show(matches)
    else:
        out.print("No tool fits this.")
    if not matches:
        raise typer.Exit(EXIT_FAILED)


def _show(matches: list[Match]) -> None:
    if out.width < NARROW:
        for m in matches:
            out.print(f"[bold]{plain(m.tool.id)}[/]  {m.score:.2f}", highlight=False)
            out.print(Padding(plain(m.tool.summary), (0, 0, 0, 2), expand=False), highlight=False)
        return
    table = Table("tool", "score", "summary", "why", box=None, header_style="bold")
    for m in matches:
        table.add_row(plain(m.tool.id), f"{m.score:.2f}", plain(m.tool.summary), "; ".join(m.why))
    out.print(table)
