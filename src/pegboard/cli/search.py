"""`pegboard search` and `pegboard try`: which tools a task finds, why, and the token cost."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Self

import anyio
import typer
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pegboard.board import Pegboard
from pegboard.cli.output import EXIT_FAILED, JsonOption, err, format_count, line, out, print_json
from pegboard.cli.targets import (
    CatalogOption,
    ConfigOption,
    open_read_only_board,
    warn_missing_servers,
)
from pegboard.core.calls import LOCAL_CALLER
from pegboard.core.json import JsonObject
from pegboard.core.tools import RISKS
from pegboard.modes.search_tools import check_category
from pegboard.tokens import DEFAULT_TOKENIZER, count_tokens

if TYPE_CHECKING:
    from pegboard.core.search import Match
    from pegboard.modes.mode import View

_SHAPE_LENGTH = 60
_NEXT_TO_ID = 50
"""Columns of the terminal for the score, the summary and the reasons of a match."""
_QUIT = ("quit", "exit", ":q")


def search(
    words: Annotated[
        list[str], typer.Argument(metavar="QUERY", help="The task in your own words.")
    ],
    config: ConfigOption = None,
    catalog: CatalogOption = None,
    limit: Annotated[
        int, typer.Option(min=1, max=50, metavar="N", help="The maximum number of tools.")
    ] = 10,
    category: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only tools of this category or server.")
    ] = None,
    risk: Annotated[
        str | None, typer.Option(metavar="RISK", help="Only read, write or destructive tools.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Find tools for a task, or for several: "create an issue; who is on call"."""
    if risk is not None and risk not in RISKS:
        raise typer.BadParameter(f"--risk must be {', '.join(RISKS[:-1])} or {RISKS[-1]}")
    query = " ".join(words)  # with or without quotation marks
    board = open_read_only_board(catalog, config)
    group = check_category(board.catalog, category)
    view = anyio.run(board.view)
    needs = [need for need in map(str.strip, query.split(";")) if need] or [query]
    allowed = None if board.policy.is_open else partial(board.policy.allows, LOCAL_CALLER)
    found = {
        need: board.index.search(need, limit, group=group, risk=risk, allowed=allowed)
        for need in needs
    }
    warn_missing_servers(board)
    if as_json:
        answers = [
            {"matches": [_match_json(view, match) for match in matches], "total": len(matches)}
            for matches in found.values()
        ]
        several = [{"query": n, **a} for n, a in zip(found, answers, strict=True)]
        print_json(answers[0] if len(answers) == 1 else {"needs": several})
    for need, matches in () if as_json else found.items():
        if len(found) > 1:
            out.print(need, style="bold")
        _show_matches(view, matches)
    if not any(found.values()):
        raise typer.Exit(EXIT_FAILED)


def _show_matches(view: View, matches: list[Match]) -> None:
    """The matches as a table, or as lines where the terminal is narrow."""
    if not matches:
        out.print("No tool matches.")
        return
    shapes = [view.returns(match.tool, limit=_SHAPE_LENGTH) for match in matches]
    longest = max(len(match.tool.id) for match in matches)
    # The name is what the user types next: it is never cut, and the other columns need room too.
    if out.width < longest + (_NEXT_TO_ID + _SHAPE_LENGTH if any(shapes) else _NEXT_TO_ID):
        for match in matches:
            out.print(line((match.tool.id, "bold"), f"  {match.score:.2f}"))
            out.print(Padding(match.tool.summary, (0, 0, 0, 2), expand=False))
        return
    heads = ["tool", "score", "summary", "why", "returns"]
    columns = len(heads) if any(shapes) else len(heads) - 1
    table = Table(*heads[:columns], box=None, header_style="bold")
    table.columns[0].min_width = longest
    for match, shape in zip(matches, shapes, strict=True):
        row = (match.tool.id, f"{match.score:.2f}", match.tool.summary, "; ".join(match.why))
        # As text, because a console would read `[]` as its own markup.
        table.add_row(*[Text(cell) for cell in (*row, shape)[:columns]])
    out.print(table)


def _match_json(view: View, match: Match) -> JsonObject:
    tool = view.catalog.as_shown(match.tool)
    return {
        "id": tool.id,
        "name": tool.name,
        "category": tool.category,
        "server": tool.server,
        "signature": tool.signature,
        "summary": tool.summary,
        "score": match.score,
        "risk": tool.risk,
        "returns": view.returns(tool) or None,
        "why": list(match.why),
    }


def try_tasks(
    task: Annotated[
        str | None, typer.Argument(help="One task. Without it, tasks are read line by line.")
    ] = None,
    config: ConfigOption = None,
    catalog: CatalogOption = None,
    limit: Annotated[
        int, typer.Option(min=1, max=50, metavar="N", help="The maximum number of tools.")
    ] = 5,
    as_json: JsonOption = False,
) -> None:
    """Type tasks and see which tools they find, why, and the token cost."""
    board = open_read_only_board(catalog, config)
    tools = board.tools()
    tasks = iter([task]) if task is not None else _read_tasks(len(tools), quiet=as_json)
    warn_missing_servers(board)
    results = (TaskMatches.find(board, words, limit) for words in tasks)
    if as_json:
        found = [result.to_json() for result in results]
        print_json({"tokenizer": DEFAULT_TOKENIZER, "tasks": found})
        return
    for result in results:
        result.show()


def _read_tasks(tools: int, *, quiet: bool) -> Iterator[str]:
    """The tasks that a user types, or that come through a pipe."""
    is_interactive = sys.stdin.isatty() and not quiet
    if is_interactive:
        out.print(
            f"{format_count(tools, 'tool')}. Type a task in your own words. An empty line quits."
        )
    while True:
        if is_interactive:
            err.print("task> ", style="bold cyan", end="")
        typed = sys.stdin.readline()
        task = typed.strip()
        # In a pipe an empty line is just skipped; for a person it is the way out.
        if not typed or (is_interactive and not task) or task in _QUIT:
            return
        if task:
            yield task


@dataclass(frozen=True, slots=True)
class TaskMatches:
    """The matches of one task, and the tokens that a model would read."""

    task: str
    matches: list[Match]
    tokens: int

    @classmethod
    def find(cls, board: Pegboard, task: str, limit: int) -> Self:
        """Search for a task as a model does, and count the tokens of the answer."""
        from pegboard.core.calls import Caller
        from pegboard.modes.auto import MODES_BY_NAME

        # Through the meta-tool, not the index: its answer is what the model pays for.
        async def search_as_model() -> str:
            view = await board.view(Caller(mode="proxy"))
            search = MODES_BY_NAME["proxy"].builders(view)["search_tools"](view)
            answer = await search.answer(view, {"query": task, "limit": limit})
            return "\n".join(block.get("text", "") for block in answer.content)

        tokens = count_tokens(anyio.run(search_as_model))
        return cls(task, board.search(task, limit), tokens)

    def show(self) -> None:
        out.print(self.task, style="bold")
        if not self.matches:
            out.print(Padding("No tool matches.", (0, 0, 0, 2), expand=False), style="yellow")
        for match in self.matches:
            tool = match.tool
            summary = line((tool.id, "green"), f"  {match.score:.2f}  {tool.summary}")
            out.print(Padding(summary, (0, 0, 0, 2), expand=False))
            why = f"{tool.risk}; {'; '.join(match.why)}"
            out.print(Padding(why, (0, 0, 0, 4), expand=False), style="dim")
        out.print(f"  {self.tokens:,} tokens for the model to read", style="dim")

    def to_json(self) -> JsonObject:
        return {
            "task": self.task,
            "tokens": self.tokens,
            "matches": [
                {
                    "id": match.tool.id,
                    "score": match.score,
                    "risk": match.tool.risk,
                    "summary": match.tool.summary,
                    "signature": match.tool.signature,
                    "why": list(match.why),
                }
                for match in self.matches
            ],
        }
