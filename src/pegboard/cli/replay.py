"""`pegboard replay`: repeat a recorded run of a program, without calling any tool."""

from __future__ import annotations

from typing import Annotated

import anyio
import typer

from pegboard.cli.config_discovery import find_source
from pegboard.cli.output import JsonOption
from pegboard.cli.run_ import print_run
from pegboard.cli.targets import ConfigOption, open_config_board
from pegboard.core.calls import LOCAL_CALLER, Caller, CallResult


def replay(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The id of a run, such as r-5f2c....")],
    config: ConfigOption = None,
    principal: Annotated[
        str, typer.Option(metavar="NAME", help="Who ran it.")
    ] = LOCAL_CALLER.principal,
    as_json: JsonOption = False,
) -> None:
    """Repeat a recorded run: its calls are answered from the record, and none is made.

    Needs `store_programs` in [code], and a store that outlives the gateway.
    """
    board = open_config_board(find_source(config))

    async def work() -> CallResult:
        async with board:
            view = await board.view(Caller(principal))
            return await board.dispatcher.replay_program(view, run)

    print_run(anyio.run(work), as_json=as_json)
