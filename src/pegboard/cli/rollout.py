"""`pegboard rollout`: give a face to a share of the callers, compare, and go back at once."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, TypeAlias, TypeVar

import anyio
import typer
from rich.table import Table

from pegboard.cli.boards import JsonOption
from pegboard.cli.output import out, print_json
from pegboard.cli.recording import recorded
from pegboard.core.json import JsonObject
from pegboard.core.rollout import ARMS, Comparison, Rollout
from pegboard.errors import ConfigError
from pegboard.gateway import rollouts
from pegboard.gateway.governing import close_store, store_of
from pegboard.gateway.opening import Opening
from pegboard.ports import Store
from pegboard.store.fallback import strict

T = TypeVar("T")
app = typer.Typer(help="A face for a share of the callers.")

ConfigArgument: TypeAlias = Annotated[
    Path, typer.Option("--config", metavar="FILE", help="The gateways' configuration.")
]


@app.command()
def start(
    face: Annotated[str, typer.Argument(help="The face under trial.")],
    config: ConfigArgument,
    percent: Annotated[float, typer.Option(min=0, max=100, help="The share that gets it.")],
    by: Annotated[str, typer.Option(help="Told apart by: principal or client.")] = "principal",
    as_json: JsonOption = False,
) -> None:
    """Begin, or change the share; callers who have it keep it when the share grows."""
    if by not in ("principal", "client"):
        raise typer.BadParameter("--by is principal or client")
    rollout = Rollout(face=face, percent=percent, by=by, name=secrets.token_hex(4))
    with recorded(config, "rollout.start", face=face, percent=percent, by=by):
        begun = _with_store(config, lambda store: rollouts.start(store, rollout))
    if as_json:
        print_json(begun.to_json())
    else:
        out.print(f"{begun.percent:g} % of {begun.by}s get {begun.face}.")


@app.command()
def stop(config: ConfigArgument, as_json: JsonOption = False) -> None:
    """Give everybody the configured face again, at once."""
    with recorded(config, "rollout.stop"):
        _with_store(config, rollouts.stop)
    if as_json:
        print_json({"stopped": True})
    else:
        out.print("Everybody gets the configured face.")


@app.command()
def show(config: ConfigArgument, as_json: JsonOption = False) -> None:
    """Compare both arms."""
    rollout, comparison = _with_store(config, rollouts.show)
    if as_json:
        arms: JsonObject = {arm: comparison[arm].summary() for arm in ARMS}
        print_json({"rollout": rollout.to_json() if rollout else None, "arms": arms})
    elif rollout is None:
        out.print("No rollout is under way.")
    else:
        _show(rollout, comparison)


def _with_store(config: Path, work: Callable[[Store], Awaitable[T]]) -> T:
    settings = Opening.of(config).read().settings
    if settings.store.url.startswith("memory:"):
        raise ConfigError("A rollout needs a store that all replicas share: set `url` in [store].")

    async def run() -> T:
        store = store_of(settings, None)
        try:
            return await work(strict(store))  # a decision is kept for all replicas, or refused
        finally:
            await close_store(store)

    return anyio.run(run)


def _show(rollout: Rollout, comparison: Comparison) -> None:
    out.print(f"{rollout.percent:g} % of {rollout.by}s get [bold]{rollout.face}[/].")
    table = Table("", *ARMS, box=None, header_style="bold")
    summaries = [comparison[arm].summary() for arm in ARMS]
    for key in summaries[0]:
        cells = ["-" if s[key] is None else f"{s[key]:,}" for s in summaries]
        table.add_row(key.replace("_", " "), *cells)
    out.print(table)
