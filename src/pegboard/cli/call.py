"""`pegboard call`: one call of one tool, as a client would make it."""

from __future__ import annotations

import json
from typing import Annotated

import anyio
import typer

from pegboard.board import Pegboard
from pegboard.cli.boards import ConfigOption, JsonOption, open_config_board
from pegboard.cli.output import EXIT_FAILED, out, print_json
from pegboard.core.calls import CallResult
from pegboard.core.json import JsonObject


def call(
    name: Annotated[str, typer.Argument(help="The name of a tool.")],
    config: ConfigOption = None,
    args: Annotated[str, typer.Option("--args", metavar="JSON", help="Its arguments.")] = "{}",
    include: Annotated[
        str | None, typer.Option(metavar="A,B", help="Only these fields of the result.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Call a tool: its server is started, asked, and ended."""
    arguments = _arguments(args)
    fields = [field.strip() for field in include.split(",")] if include else None
    result = anyio.run(_called, open_config_board(config), name, arguments, fields)
    if as_json:
        print_json(result.wire)
    else:
        _show(result)
    if result.is_error:
        raise typer.Exit(EXIT_FAILED)


async def _called(
    board: Pegboard, name: str, arguments: JsonObject, fields: list[str] | None
) -> CallResult:
    return await board.call(name, arguments, fields)


def _arguments(text: str) -> JsonObject:
    try:
        value = json.loads(text)
    except ValueError as exc:
        raise typer.BadParameter(f"--args is not JSON: {exc}") from exc
    if not isinstance(value, dict):
        raise typer.BadParameter('--args is a JSON object, such as \'{"query": "x"}\'')
    return value


def _show(result: CallResult) -> None:
    for block in result.content:
        if isinstance(block.get("text"), str):
            out.print(block["text"], soft_wrap=True)
        else:
            out.print(f"({block.get('type')})", style="dim")
    if not result.content:
        print_json(result.wire)
