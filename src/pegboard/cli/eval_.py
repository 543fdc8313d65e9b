"""`pegboard eval`: how often search finds the right tool, compared with a textbook baseline."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from pegboard.board import Pegboard
from pegboard.cli.index import build_vectors, progress_bar
from pegboard.cli.output import NARROW, JsonOption, out, print_json, print_warning
from pegboard.cli.targets import CatalogOption, ConfigOption, open_board, warn_missing_servers
from pegboard.errors import ConfigError

_EXPLAINED = 10
"""Misses that are explained if their number is not given."""
_RIVALS = 3
"""Tools that were found instead of the wanted ones, and are explained beside them."""

if TYPE_CHECKING:
    from pegboard.core.json import JsonObject
    from pegboard.core.search import ScoreParts
    from pegboard.measure.search_quality import JudgedQuery, QualityMetrics


_Queries = Annotated[
    Path,
    typer.Option(
        metavar="FILE",
        help='Lines of {"query": "...", "relevant": ["tool", ...]}, with "relevant": [] if no '
        "tool answers the query.",
    ),
]
_Explain = Annotated[
    bool,
    typer.Option(
        "--explain",
        help="For each miss, show why the expected and the found tools rank where they do "
        f"(the misses that --misses shows, or {_EXPLAINED}).",
    ),
]


def evaluate(
    queries: _Queries,
    config: ConfigOption = None,
    catalog: CatalogOption = None,
    sample: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Use a fixed random sample of N queries."),
    ] = None,
    misses: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", help="Show N queries without a right tool among the first five."
        ),
    ] = 0,
    explain: _Explain = False,
    as_json: JsonOption = False,
) -> None:
    """Measure how well search finds the right tools, compared with textbook BM25."""
    from pegboard.measure.search_quality import (
        build_rankers,
        evaluate_rankers,
        find_misses,
        read_queries,
        resolve_judgments,
        sample_queries,
    )

    judged = read_queries(queries)
    if sample is not None:
        judged = sample_queries(judged, sample)
    board = open_board(catalog, config)
    # Judgments may use plain names; rankers return ids.
    judged = resolve_judgments(judged, board.catalog)
    _check_judgments(judged, board, queries)
    warn_missing_servers(board)
    # Otherwise the first queries would be ranked without vectors.
    build_vectors(board)
    rankers = build_rankers(board.index)
    with progress_bar("Evaluating queries") as advance:
        metrics = evaluate_rankers(judged, rankers, advance)
    shown = misses or (_EXPLAINED if explain else 0)
    missed: list[tuple[JudgedQuery, Sequence[str], list[ScoreParts]]] = []
    for one, found in islice(find_misses(judged, rankers["pegboard"]), shown):
        # The wanted tools, and the best of those that were found in their place.
        rivals = [tool for tool in found if tool not in one.relevant][:_RIVALS]
        why = board.index.explain(one.query, [*one.relevant, *rivals]) if explain else []
        missed.append((one, found, sorted(why, key=lambda part: part.rank)))
    if as_json:
        print_json(
            {
                "tools": len(board.tools()),
                "queries": len(judged),
                "rankers": {name: found.as_json() for name, found in metrics.items()},
                "misses": [_miss_to_json(*miss) for miss in missed],
            }
        )
        return
    _show(metrics, len(judged), len(board.tools()))
    for one, found, why in missed:
        out.print(f"\n{one.query}", style="bold")
        out.print(f"  expected: {', '.join(sorted(one.relevant)) or 'nothing'}")
        out.print(f"  found:    {', '.join(found) or 'nothing'}")
        _show_parts(why, one.relevant)


def _miss_to_json(
    one: JudgedQuery, found: Sequence[str], explained: Sequence[ScoreParts]
) -> JsonObject:
    shape: JsonObject = {
        "line": one.line,
        "query": one.query,
        "relevant": sorted(one.relevant),
        "found": list(found),
    }
    if explained:
        shape["explained"] = [
            {
                "tool": parts.tool.id,
                "rank": parts.rank,
                "is_relevant": parts.is_relevant,
                "score": parts.score,
                "meaning": parts.meaning,
                "words": parts.words,
                "why": list(parts.why),
            }
            for parts in explained
        ]
    return shape


def _show_parts(parts: Sequence[ScoreParts], wanted: Collection[str]) -> None:
    if not parts:
        return
    table = Table("  place", "tool", "score", "meaning", "words", "why", box=None)
    for one in parts:
        left_out = "" if one.is_relevant else " (left out)"
        table.add_row(
            f"  {one.rank:,}{left_out}",
            one.tool.id,
            f"{one.score:.2f}",
            f"{one.meaning:.2f}",
            f"{one.words:.2f}",
            "; ".join(one.why),
            style="green" if one.tool.id in wanted else "",
        )
    out.print(table)


def _check_judgments(judged: Sequence[JudgedQuery], board: Pegboard, path: Path) -> None:
    """Reject or report queries about other tools: no ranker could find those."""
    known = {tool.id for tool in board.tools()}
    answered = [one for one in judged if one.relevant]
    unknown = [one for one in answered if not one.relevant & known]
    if not unknown:
        return
    example = f"{path}:{unknown[0].line} ({', '.join(sorted(unknown[0].relevant)[:3])})"
    if len(unknown) == len(answered):
        raise ConfigError(
            f"No query names a tool of this catalog in `relevant`, for example {example}. Use ids "
            "or names of tools, as `pegboard search --json` shows them."
        )
    print_warning(
        "warning",
        f"{len(unknown):,} of {len(answered):,} queries expect only tools that are not in the "
        f"catalog, for example {example}. No ranker can find these.",
    )


def _show(metrics: Mapping[str, QualityMetrics], queries: int, tools: int) -> None:
    names = ["recall@1", "recall@3", "recall@5", "recall@10", "ndcg@10", "mrr"]
    times = ["p50_ms", "p95_ms"]
    if out.width < NARROW:
        names, times = ["recall@5", "ndcg@10"], ["p50_ms"]
    heads = [name.replace("ndcg", "nDCG").replace("mrr", "MRR") for name in names]
    heads += [name.replace("_", " ") for name in times]
    # The same number for all of them, since every ranker gets the same queries.
    unanswerable = next(iter(metrics.values())).unanswerable
    if unanswerable:
        heads.append("refused")
    table = Table("ranker", *heads, box=None, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    for name, found in metrics.items():
        value = found.as_json()
        cells = [f"{value[n] * 100:.1f}" for n in names] + [f"{value[n]:.2f}" for n in times]
        if unanswerable:
            cells.append(f"{found.refused}/{unanswerable}")
        table.add_row(name, *cells, style="green" if name == "pegboard" else "")
    out.print(table)
    out.print(f"{queries:,} queries over {tools:,} tools. Quality in percent.", style="dim")
    if unanswerable:
        out.print(
            f"refused: queries for which nothing was found, of {unanswerable:,} that no tool "
            "answers. The other columns do not include these queries.",
            style="dim",
        )
