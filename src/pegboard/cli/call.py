"""`pegboard call`: call one tool, as a client would."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Annotated

import anyio
import typer

from pegboard.cli.config_discovery import find_source
from pegboard.cli.output import EXIT_FAILED, JsonOption, err, out, print_json
from pegboard.cli.targets import ConfigOption, open_config_board
from pegboard.core.json import JsonObject


def call(
    name: Annotated[str, typer.Argument(help="The name of a tool.")],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[JSON | KEY=VALUE ...]",
            help="The arguments: one JSON object, or a KEY=VALUE word for each.",
            show_default=False,
        ),
    ] = None,
    config: ConfigOption = None,
    args: Annotated[
        str | None, typer.Option("--args", metavar="JSON", help="The arguments as a JSON object.")
    ] = None,
    include: Annotated[
        str | None, typer.Option(metavar="A,B", help="Return only these fields of the result.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Call a tool. Its server is started for the call and stopped afterwards."""
    given = parse_arguments(arguments or [], args)  # before a server is started
    fields = [field.strip() for field in include.split(",")] if include else None
    board = open_config_board(find_source(config))
    board.tools()  # servers that were never listed report their own progress
    with err.status(f"Calling {name} ..."):
        result = anyio.run(board.call, name, given, fields)
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


def parse_arguments(words: list[str], text: str | None) -> JsonObject:
    """The arguments of a call: `KEY=VALUE` words, one word that is a JSON object, or its text.

    Raises:
        typer.BadParameter: They are something else.
    """
    if words and text is not None:
        raise typer.BadParameter("pass the arguments either after the name or with --args")
    if text is None and len(words) == 1 and words[0].lstrip().startswith("{"):
        text = words[0]
    if text is None:
        given: JsonObject = {}
        for word in words:
            key, equals, value = word.partition("=")
            if not key or not equals:
                raise typer.BadParameter(
                    f"{word!r} is neither a JSON object nor KEY=VALUE, such as query=x"
                )
            given[key] = value
            # Numbers and booleans stay text: the tool's schema says what they should become.
            if value.startswith(("{", "[")):
                with suppress(ValueError):  # a text that begins with a bracket
                    given[key] = json.loads(value)
        return given
    try:
        value = json.loads(text)
    except ValueError as exc:
        raise typer.BadParameter(f"the arguments are not JSON: {exc}") from exc
    if not isinstance(value, dict):
        raise typer.BadParameter('the arguments must be a JSON object, such as \'{"query": "x"}\'')
    return value
