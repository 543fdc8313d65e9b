"""`pegboard call`: call one tool, as a client would."""

from __future__ import annotations

import json
from typing import Annotated

import anyio
import typer

from pegboard.cli.output import EXIT_FAILED, JsonOption, out, print_json
from pegboard.cli.targets import ConfigOption, open_config_board
from pegboard.core.json import JsonObject


def call(
    name: Annotated[str, typer.Argument(help="The name of a tool.")],
    config: ConfigOption = None,
    args: Annotated[str, typer.Option("--args", metavar="JSON", help="The arguments.")] = "{}",
    include: Annotated[
        str | None, typer.Option(metavar="A,B", help="Return only these fields of the result.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Call a tool. Its server is started for the call and stopped afterwards."""
    arguments = _parse_arguments(args)  # before a server is started
    fields = [field.strip() for field in include.split(",")] if include else None
    result = anyio.run(open_config_board(config).call, name, arguments, fields)
    if as_json:
        print_json(result.wire)
    else:
        for block in result.content:
            if isinstance(block.get("text"), str):
                out.print(block["text"], soft_wrap=True)
            else:
                out.print(f"({block.get('type')})", style="dim")  # an image, for example
        if not result.content:
            print_json(result.wire)
    if result.is_error:
        raise typer.Exit(EXIT_FAILED)


def _parse_arguments(text: str) -> JsonObject:
    try:
        value = json.loads(text)
    except ValueError as exc:
        raise typer.BadParameter(f"--args is not JSON: {exc}") from exc
    if not isinstance(value, dict):
        raise typer.BadParameter('--args must be a JSON object, such as \'{"query": "x"}\'')
    return value
