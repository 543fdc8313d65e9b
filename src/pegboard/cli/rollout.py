"""`pegboard rollout`: try a mode with a share of the callers, compare, and go back at once."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, TypeAlias, TypeVar

import anyio
import typer
from rich.table import Table

from pegboard.cli.audit_log import audit_decision
from pegboard.cli.config_discovery import find_source
from pegboard.cli.help_pages import Command, Group, help_epilog
from pegboard.cli.output import JsonOption, line, out, print_json
from pegboard.config.settings import Settings, StoreSettings
from pegboard.core.json import JsonObject
from pegboard.core.mode_rollout import ARMS, Rollout
from pegboard.errors import ConfigError
from pegboard.gateway.config_source import ConfigSource
from pegboard.gateway.from_settings import close_store, open_store
from pegboard.observe import rollouts
from pegboard.ports import Store
from pegboard.store.fallback import decision_store

T = TypeVar("T")
app = typer.Typer(cls=Group, help="Try a mode with a share of the callers.")

ConfigArgument: TypeAlias = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="The configuration of the gateways."),
]
StoreArgument: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--store", metavar="URL", help="The store of your own boards, such as redis://host/0."
    ),
]


@app.command(cls=Command, epilog=help_epilog("rollout start"))
def start(
    mode: Annotated[str, typer.Argument(help="The mode to try.")],
    percent: Annotated[
        float,
        typer.Option(
            min=0, max=100, metavar="PERCENT", help="The percentage of callers that get the mode."
        ),
    ],
    config: ConfigArgument = None,
    store: StoreArgument = None,
    by: Annotated[
        str, typer.Option(metavar="KIND", help="Divide callers by principal or by client.")
    ] = "principal",
    as_json: JsonOption = False,
) -> None:
    """Start a rollout, or change its percentage. If it grows, no caller loses the mode."""
    if by not in ("principal", "client"):
        raise typer.BadParameter("--by must be principal or client")
    # The random name divides callers again; `rollouts.start` keeps that of a rollout in progress.
    rollout = Rollout(mode=mode, percent=percent, by=by, name=secrets.token_hex(4))
    source = _find_source(config, store)
    with audit_decision(source, "rollout.start", mode=mode, percent=percent, by=by):
        started = _with_store(source, store, lambda shared: rollouts.start(shared, rollout))
    if as_json:
        print_json(started.to_json())
    else:
        out.print(f"{started.percent:g}% of {started.by}s get {started.mode}.")


@app.command(cls=Command, epilog=help_epilog("rollout stop"))
def stop(
    config: ConfigArgument = None, store: StoreArgument = None, as_json: JsonOption = False
) -> None:
    """Give all callers the configured mode again, at once."""
    source = _find_source(config, store)
    with audit_decision(source, "rollout.stop"):
        _with_store(source, store, rollouts.stop)
    if as_json:
        print_json({"stopped": True})
    else:
        out.print("All callers get the configured mode.")


@app.command(cls=Command, epilog=help_epilog("rollout show"))
def show(
    config: ConfigArgument = None, store: StoreArgument = None, as_json: JsonOption = False
) -> None:
    """Compare both groups of callers."""
    rollout, comparison = _with_store(_find_source(config, store), store, rollouts.show)
    if as_json:
        arms: JsonObject = {arm: comparison[arm].summary() for arm in ARMS}
        print_json({"rollout": rollout.to_json() if rollout else None, "arms": arms})
    elif rollout is None:
        out.print("No rollout is active.")
    else:
        share = f"{rollout.percent:g}% of {rollout.by}s get "
        out.print(line(share, (rollout.mode, "bold"), "."))
        table = Table("", *ARMS, box=None, header_style="bold")
        summaries = [comparison[arm].summary() for arm in ARMS]
        for key in summaries[0]:
            cells = ["-" if s[key] is None else f"{s[key]:,}" for s in summaries]
            table.add_row(key.replace("_", " "), *cells)
        out.print(table)


def _find_source(config: Path | None, url: str | None) -> ConfigSource | None:
    if config is not None and url is not None:
        raise typer.BadParameter("pass either --config FILE or --store URL")
    return None if url is not None else find_source(config)


def _with_store(
    source: ConfigSource | None, url: str | None, work: Callable[[Store], Awaitable[T]]
) -> T:
    if source is not None:
        settings = source.read().settings
    else:
        settings = Settings(store=StoreSettings(url=url or ""))
    # The memory of this process ends with it, and no gateway could read it.
    if settings.store.url.startswith("memory:"):
        raise ConfigError("A rollout needs a store that all replicas share: set `url` in [store].")

    async def run() -> T:
        store = open_store(settings, None)
        try:
            # A decision reaches all replicas or fails: no fallback to this process's memory.
            return await work(decision_store(store))
        finally:
            await close_store(store)

    return anyio.run(run)
