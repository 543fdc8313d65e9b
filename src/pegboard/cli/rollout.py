"""`pegboard rollout`: give a mode to a share of the callers, compare, and go back at once."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, TypeAlias, TypeVar

import anyio
import typer
from rich.table import Table

from pegboard.cli.audit_log import audit_decision
from pegboard.cli.boards import JsonOption
from pegboard.cli.output import line, out, print_json
from pegboard.config.settings import Settings, StoreSettings
from pegboard.core.json import JsonObject
from pegboard.core.mode_rollout import ARMS, Comparison, Rollout
from pegboard.errors import ConfigError
from pegboard.gateway.config_source import ConfigSource
from pegboard.gateway.from_settings import close_store, open_store
from pegboard.observe import rollouts
from pegboard.ports import Store
from pegboard.store.fallback import decision_store

T = TypeVar("T")
app = typer.Typer(help="A mode for a share of the callers.")

ConfigArgument: TypeAlias = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="The gateways' configuration.")
]
StoreArgument: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--store", metavar="URL", help="The store of boards of your own, such as redis://host/0."
    ),
]


@app.command()
def start(
    mode: Annotated[str, typer.Argument(help="The mode under trial.")],
    percent: Annotated[float, typer.Option(min=0, max=100, help="The share that gets it.")],
    config: ConfigArgument = None,
    store: StoreArgument = None,
    by: Annotated[str, typer.Option(help="Told apart by: principal or client.")] = "principal",
    as_json: JsonOption = False,
) -> None:
    """Begin, or change the share; callers who have it keep it when the share grows."""
    if by not in ("principal", "client"):
        raise typer.BadParameter("--by is principal or client")
    rollout = Rollout(mode=mode, percent=percent, by=by, name=secrets.token_hex(4))
    with audit_decision(config, "rollout.start", mode=mode, percent=percent, by=by):
        begun = _with_store(config, store, lambda shared: rollouts.start(shared, rollout))
    if as_json:
        print_json(begun.to_json())
    else:
        out.print(f"{begun.percent:g} % of {begun.by}s get {begun.mode}.")


@app.command()
def stop(
    config: ConfigArgument = None, store: StoreArgument = None, as_json: JsonOption = False
) -> None:
    """Give everybody the configured mode again, at once."""
    with audit_decision(config, "rollout.stop"):
        _with_store(config, store, rollouts.stop)
    if as_json:
        print_json({"stopped": True})
    else:
        out.print("Everybody gets the configured mode.")


@app.command()
def show(
    config: ConfigArgument = None, store: StoreArgument = None, as_json: JsonOption = False
) -> None:
    """Compare both arms."""
    rollout, comparison = _with_store(config, store, rollouts.show)
    if as_json:
        arms: JsonObject = {arm: comparison[arm].summary() for arm in ARMS}
        print_json({"rollout": rollout.to_json() if rollout else None, "arms": arms})
    elif rollout is None:
        out.print("No rollout is under way.")
    else:
        _show(rollout, comparison)


def _with_store(config: Path | None, url: str | None, work: Callable[[Store], Awaitable[T]]) -> T:
    if (config is None) == (url is None):
        raise typer.BadParameter("say which servers: --config FILE or --store URL")
    if config is not None:
        settings = ConfigSource.of(config).read().settings
    else:
        settings = Settings(store=StoreSettings(url=url or ""))
    if settings.store.url.startswith("memory:"):
        raise ConfigError("A rollout needs a store that all replicas share: set `url` in [store].")

    async def run() -> T:
        store = open_store(settings, None)
        try:
            return await work(
                decision_store(store)
            )  # a decision is kept for all replicas, or refused
        finally:
            await close_store(store)

    return anyio.run(run)


def _show(rollout: Rollout, comparison: Comparison) -> None:
    out.print(line(f"{rollout.percent:g} % of {rollout.by}s get ", (rollout.mode, "bold"), "."))
    table = Table("", *ARMS, box=None, header_style="bold")
    summaries = [comparison[arm].summary() for arm in ARMS]
    for key in summaries[0]:
        cells = ["-" if s[key] is None else f"{s[key]:,}" for s in summaries]
        table.add_row(key.replace("_", " "), *cells)
    out.print(table)
