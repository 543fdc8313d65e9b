"""`pegboard search` and `pegboard try`: which tools a task finds, why, and the token cost."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import anyio
import typer
from rich.padding import Padding
from rich.table import Table

from pegboard.board import Pegboard
from pegboard.cli.boards import (
    CatalogOption,
    ConfigOption,
    JsonOption,
    open_cached_board,
    warn_missing_servers,
)
from pegboard.cli.output import EXIT_FAILED, NARROW, err, line, out, print_json
from pegboard.core.json import JsonObject
from pegboard.core.tools import RISKS
from pegboard.modes.search_tools import check_category
from pegboard.tokens import DEFAULT_TOKENIZER, count_tokens

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
    board = open_cached_board(catalog, config)
    group = check_category(board.catalog, category)
    matches = board.index.search(query, limit, group=group, risk=risk)
    warn_missing_servers(board)
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


_ENDS = ("quit", "exit", ":q")


def try_tasks(
    task: Annotated[
        str | None, typer.Argument(help="One task; without it, they are read line by line.")
    ] = None,
    config: ConfigOption = None,
    catalog: CatalogOption = None,
    limit: Annotated[int, typer.Option(min=1, max=50, help="At most so many tools.")] = 5,
    as_json: JsonOption = False,
) -> None:
    """Type tasks and see which tools they would find, why, and what it costs."""
    board = open_cached_board(catalog, config)
    tools = board.tools()
    tasks = iter([task]) if task is not None else _read_tasks(len(tools), quiet=as_json)
    warn_missing_servers(board)
    tried = (_match_task(board, words, limit) for words in tasks)
    if as_json:
        print_json({"tokenizer": DEFAULT_TOKENIZER, "tasks": [_task_json(one) for one in tried]})
        return
    for one in tried:
        _show_task(one)


def _read_tasks(tools: int, *, quiet: bool) -> Iterator[str]:
    """The tasks that somebody types, or that come down a pipe."""
    is_asked = sys.stdin.isatty() and not quiet
    if is_asked:
        out.print(f"{tools:,} tools. Type a task in your own words; an empty line ends.")
    while True:
        if is_asked:
            err.print("task> ", style="bold cyan", end="")
        line = sys.stdin.readline()
        if not line or (is_asked and not line.strip()) or line.strip() in _ENDS:
            return
        if line.strip():
            yield line.strip()


class TaskMatches:
    """One task: what was found, and what a model would have read."""

    def __init__(self, task: str, matches: list[Match], answer: str) -> None:
        self.task = task
        self.matches = matches
        self.tokens = count_tokens(answer)


def _match_task(board: Pegboard, task: str, limit: int) -> TaskMatches:
    return TaskMatches(task, board.search(task, limit), anyio.run(_answer, board, task, limit))


async def _answer(board: Pegboard, task: str, limit: int) -> str:
    """The text that a model reads when it searches for the task."""
    from pegboard.core.calls import Caller
    from pegboard.modes.auto import MODES_BY_NAME

    view = await board.view(Caller(mode="proxy"))
    search = MODES_BY_NAME["proxy"].builders(view)["search_tools"](view)
    found = await search.answer(view, {"query": task, "limit": limit})
    return "\n".join(block.get("text", "") for block in found.content)


def _show_task(tried: TaskMatches) -> None:
    out.print(tried.task, style="bold")
    if not tried.matches:
        out.print(Padding("No tool fits this.", (0, 0, 0, 2), expand=False), style="yellow")
    for match in tried.matches:
        tool = match.tool
        found = line((tool.id, "green"), f"  {match.score:.2f}  {tool.summary}")
        out.print(Padding(found, (0, 0, 0, 2), expand=False))
        why = f"{tool.risk}; {'; '.join(match.why)}"
        out.print(Padding(why, (0, 0, 0, 4), expand=False), style="dim")
    out.print(f"  {tried.tokens:,} tokens for the model to read", style="dim")


def _task_json(tried: TaskMatches) -> JsonObject:
    return {
        "task": tried.task,
        "tokens": tried.tokens,
        "matches": [
            {
                "id": match.tool.id,
                "score": match.score,
                "risk": match.tool.risk,
                "summary": match.tool.summary,
                "signature": match.tool.signature,
                "why": list(match.why),
            }
            for match in tried.matches
        ],
    }
