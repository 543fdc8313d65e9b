"""`pegboard lock`: look at tool definitions that are held back, and decide about them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import anyio
import typer

from pegboard.cli.boards import JsonOption
from pegboard.cli.output import EXIT_FAILED, out, plain, print_json
from pegboard.cli.recording import recorded
from pegboard.core.cleaning import flags_of
from pegboard.core.json import JsonObject
from pegboard.core.lock import Locked, ServerLock
from pegboard.errors import ConfigError, ToolNotFound
from pegboard.gateway.governing import close_store, store_of
from pegboard.gateway.locks import Locks
from pegboard.gateway.opening import Opening
from pegboard.gateway.trust import locks_of

app = typer.Typer(help="Tool definitions that people have seen, and those that wait for it.")

ConfigArgument: TypeAlias = Annotated[
    Path,
    typer.Option("--config", metavar="FILE", help="The configuration with a trust table."),
]
Names: TypeAlias = Annotated[
    list[str] | None, typer.Argument(help="`server` or `server.tool`; all where none is given.")
]
_Decision: TypeAlias = Callable[[ServerLock, Sequence[str]], ServerLock]


@app.command()
def diff(config: ConfigArgument, names: Names = None, as_json: JsonOption = False) -> None:
    """Show what is held back and how it changed; exits with 1 where there is anything."""
    waiting = anyio.run(_waiting, config, names or [])
    if as_json:
        print_json({"held": [_shape(*item) for item in waiting]})
    else:
        for item in waiting:
            _show(*item)
        if not waiting:
            out.print("Nothing is held back.")
    if waiting:
        raise typer.Exit(EXIT_FAILED)


@app.command()
def approve(config: ConfigArgument, names: Names = None, as_json: JsonOption = False) -> None:
    """Let held definitions through: those named, or all of them."""
    now = time.time()

    def change(lock: ServerLock, tools: Sequence[str]) -> ServerLock:
        return lock.approve(tools, now)

    with recorded(config, "lock.approve") as tools:
        tools += anyio.run(_decide, config, names or [], change)
    _report("approved", tools, as_json)


@app.command()
def revoke(
    config: ConfigArgument,
    names: Annotated[list[str], typer.Argument(help="`server` or `server.tool`.")],
    as_json: JsonOption = False,
) -> None:
    """Hold tools back from now on, whatever their servers list."""
    with recorded(config, "lock.revoke") as tools:
        tools += anyio.run(_decide, config, names, ServerLock.revoke)
    _report("revoked", tools, as_json)


class _Opened:
    """The lock of a configuration, open for the block."""

    def __init__(self, config: Path) -> None:
        configuration = Opening.of(config).read()
        self._store = store_of(configuration.settings, None)
        found = locks_of(configuration.settings, config.parent, self._store)
        if found is None:
            raise ConfigError(f"{config} has no lock: set `lock` under [trust].")
        self._locks = found

    async def __aenter__(self) -> Locks:
        return self._locks

    async def __aexit__(self, *_: object) -> None:
        await close_store(self._store)


async def _waiting(config: Path, names: list[str]) -> list[tuple[str, str, Locked]]:
    async with _Opened(config) as locks:
        records = await locks.all()
    return [
        (server, tool, record.tools[tool])
        for server, record in sorted(records.items())
        for tool in sorted(record.waiting)
        if not names or server in names or f"{server}.{tool}" in names
    ]


async def _decide(config: Path, names: list[str], change: _Decision) -> list[str]:
    async with _Opened(config) as locks:
        records = await locks.all()
        chosen = _chosen(records, names)
        for server, tools in chosen.items():
            await locks.update(server, lambda kept, tools=tools: change(kept, tools))
    return [f"{server}.{tool}" for server, tools in chosen.items() for tool in tools]


def _chosen(records: dict[str, ServerLock], names: list[str]) -> dict[str, list[str]]:
    """The tools that names mean, by server; without names, all that wait."""
    if not names:
        return {server: sorted(r.waiting) for server, r in records.items() if r.waiting}
    chosen: dict[str, list[str]] = {}
    for name in names:
        found = [
            (server, tool)
            for server, record in records.items()
            for tool in record.tools
            if name in (server, f"{server}.{tool}")
        ]
        if not found:
            raise ToolNotFound(name, what="tool of the lock")
        for server, tool in found:
            chosen.setdefault(server, []).append(tool)
    return chosen


def _flags(locked: Locked) -> tuple[str, ...]:
    return flags_of(locked.waiting.definition) if locked.waiting else ()


def _shape(server: str, tool: str, locked: Locked) -> JsonObject:
    return {
        "server": server,
        "tool": tool,
        "state": locked.state,
        "flags": list(_flags(locked)),
        "diff": locked.diff(),
    }


def _show(server: str, tool: str, locked: Locked) -> None:
    out.print(f"[bold]{plain(server)}.{plain(tool)}[/]  {locked.state}", highlight=False)
    for flag in _flags(locked):
        out.print(f"  [bold red]suspicious:[/] {flag}", highlight=False)
    for line in locked.diff():
        style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "dim")
        out.print(f"  {line}", style=style, markup=False, highlight=False, soft_wrap=True)
    out.print()


def _report(what: str, names: list[str], as_json: bool) -> None:
    if as_json:
        print_json({what: names})
    elif names:
        out.print(f"{what.capitalize()}: {', '.join(names)}", highlight=False, markup=False)
    else:
        out.print("Nothing is held back.")
