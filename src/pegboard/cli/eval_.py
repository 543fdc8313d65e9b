"""`pegboard eval`: how often search finds the right tool, ours and the peers' side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from pegboard.board import Pegboard
from pegboard.cli.boards import (
    CatalogOption,
    ConfigOption,
    JsonOption,
    open_board,
    warn_missing_servers,
)
from pegboard.cli.index import build_vectors, progress_bar
from pegboard.cli.output import out, print_json, print_warning
from pegboard.core.json import JsonObject
from pegboard.errors import ConfigError

if TYPE_CHECKING:
    from pegboard.measure.search_quality import JudgedQuery, QualityMetrics

NARROW = 72
"""Columns below which only the most telling figures are shown."""


def evaluate(
    queries: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help='Lines of {"query": "...", "relevant": ["tool", ...]}; "relevant": [] where no '
            "tool answers.",
        ),
    ],
    config: ConfigOption = None,
    catalog: CatalogOption = None,
    sample: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Ask so many of them, always the same."),
    ] = None,
    misses: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Show so many that found no right tool in five."),
    ] = 0,
    as_json: JsonOption = False,
) -> None:
    """Measure how well search finds the right tools, beside other rankers."""
    from pegboard.measure.search_quality import (
        PEERS,
        find_misses,
        rankers,
        read_queries,
        resolve_judgments,
        sample_queries,
    )
    from pegboard.measure.search_quality import evaluate as evaluated

    judged = read_queries(queries)
    if sample is not None:
        judged = sample_queries(judged, sample)
    board = open_board(catalog, config)
    judged = resolve_judgments(judged, board.catalog)
    _check(judged, board, queries)
    warn_missing_servers(board)
    build_vectors(board)
    known = rankers(board.index)
    with progress_bar("Asking") as tell:
        figures = evaluated(judged, known, tell)
    missing = [name for name in PEERS if name not in known]
    lost = list(islice(find_misses(judged, known["pegboard"]), misses))
    if as_json:
        print_json(
            {
                "tools": len(board.tools()),
                "queries": len(judged),
                "rankers": {name: found.as_json() for name, found in figures.items()},
                "missing": missing,
                "misses": [_miss(one, found) for one, found in lost],
            }
        )
    else:
        _show(figures, len(judged), len(board.tools()))
        for one, found in lost:
            _show_miss(one, found)
    if missing:
        print_warning("missing", f"{', '.join(missing)}: FastMCP is not installed.")


def _check(judged: Sequence[JudgedQuery], board: Pegboard, path: Path) -> None:
    """Judgements about other tools would count against every ranker."""
    known = {tool.id for tool in board.tools()}
    answered = [one for one in judged if one.relevant]
    unknown = [one for one in answered if not one.relevant & known]
    if not unknown:
        return
    example = f"{path}:{unknown[0].line} ({', '.join(sorted(unknown[0].relevant)[:3])})"
    if len(unknown) == len(answered):
        raise ConfigError(
            f"None of these queries is about tools of the catalogue, such as {example}: "
            f"`relevant` holds ids or names of tools, as `pegboard search --json` shows them."
        )
    print_warning(
        "warning",
        f"{len(unknown):,} of {len(answered):,} queries are about tools that are not in the "
        f"catalogue, such as {example}; nobody can find these.",
    )


def _miss(judged: JudgedQuery, found: Sequence[str]) -> JsonObject:
    right = sorted(judged.relevant)
    return {"line": judged.line, "query": judged.query, "relevant": right, "found": list(found)}


def _show_miss(judged: JudgedQuery, found: Sequence[str]) -> None:
    wanted = ", ".join(sorted(judged.relevant)) or "nothing"
    out.print(f"\n{judged.query}", style="bold")
    out.print(f"  wanted: {wanted}")
    out.print(f"  found:  {', '.join(found) or 'nothing'}")


def _show(figures: Mapping[str, QualityMetrics], queries: int, tools: int) -> None:
    names = ["recall@1", "recall@3", "recall@5", "recall@10", "ndcg@10", "mrr"]
    times = ["p50_ms", "p95_ms"]
    if out.width < NARROW:
        names, times = ["recall@5", "ndcg@10"], ["p50_ms"]
    heads = [name.replace("ndcg", "nDCG").replace("mrr", "MRR") for name in names]
    heads += [name.replace("_", " ") for name in times]
    unanswerable = next(iter(figures.values())).unanswerable
    if unanswerable:
        heads.append("refused")
    table = Table("ranker", *heads, box=None, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    for name, found in figures.items():
        value = found.as_json()
        cells = [f"{value[n] * 100:.1f}" for n in names] + [f"{value[n]:.2f}" for n in times]
        if unanswerable:
            cells.append(f"{found.refused}/{unanswerable}")
        table.add_row(name, *cells, style="green" if name == "pegboard" else "")
    out.print(table)
    out.print(f"{queries:,} queries over {tools:,} tools; in percent.", style="dim")
    if unanswerable:
        out.print(
            f"refused: nothing found, of the {unanswerable:,} that no tool answers; "
            "not part of the other figures.",
            style="dim",
        )
