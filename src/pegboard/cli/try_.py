"""`pegboard try`: type a task, see which tools would be found, why, and what that costs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import anyio
import typer
from rich.padding import Padding

from pegboard.board import Pegboard
from pegboard.cli.boards import CatalogOption, ConfigOption, JsonOption, read_board, tell_missing
from pegboard.cli.output import err, line, out, print_json
from pegboard.core.json import JsonObject
from pegboard.tokens import DEFAULT_TOKENIZER, count_tokens

if TYPE_CHECKING:
    from pegboard.core.search import Match

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
    board = read_board(catalog, config)
    tools = board.tools()
    tasks = iter([task]) if task is not None else _typed(len(tools), quiet=as_json)
    tell_missing(board)
    tried = (_tried(board, words, limit) for words in tasks)
    if as_json:
        print_json({"tokenizer": DEFAULT_TOKENIZER, "tasks": [_as_json(one) for one in tried]})
        return
    for one in tried:
        _show(one)


def _typed(tools: int, *, quiet: bool) -> Iterator[str]:
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


class Tried:
    """One task: what was found, and what a model would have read."""

    def __init__(self, task: str, matches: list[Match], answer: str) -> None:
        self.task = task
        self.matches = matches
        self.tokens = count_tokens(answer)


def _tried(board: Pegboard, task: str, limit: int) -> Tried:
    return Tried(task, board.search(task, limit), anyio.run(_answer, board, task, limit))


async def _answer(board: Pegboard, task: str, limit: int) -> str:
    """The text that a model reads when it searches for the task."""
    from pegboard.core.calls import Caller
    from pegboard.faces.registry import BY_NAME

    view = await board.view(Caller(face="proxy"))
    search = BY_NAME["proxy"].meta_tools(view)["search_tools"]
    found = await search.answer(view, {"query": task, "limit": limit})
    return "\n".join(block.get("text", "") for block in found.content)


def _show(tried: Tried) -> None:
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


def _as_json(tried: Tried) -> JsonObject:
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
