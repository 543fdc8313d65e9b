"""`pegboard lock`: look at tool definitions that are held back, and decide about them.

An approval is about one definition, by its digest. It is named (`server.tool@DIGEST`), or it is the
one that `diff` showed last: `diff` notes the digests that it shows, and `approve` refuses a tool
whose definition has not been shown or has changed since.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias, TypeVar

import anyio
import typer

from pegboard.cli.audit_log import audit_decision, os_user
from pegboard.cli.boards import JsonOption
from pegboard.cli.output import EXIT_FAILED, line, out, print_error, print_json
from pegboard.core.json import Json, JsonObject, digest
from pegboard.core.sanitization import escape_name, find_flags
from pegboard.core.tool_lock import (
    LockAction,
    LockDecision,
    RecordedDefinition,
    ServerLock,
    ToolLock,
)
from pegboard.errors import ConfigError, NotPermitted, ToolNotFound
from pegboard.gateway.config_source import ConfigSource
from pegboard.gateway.from_settings import close_store, open_store
from pegboard.gateway.lock_storage import LockStorage, decide
from pegboard.gateway.operator_decisions import open_lock_storage
from pegboard.store.fallback import decision_store

app = typer.Typer(help="Tool definitions that people have seen, and those that wait for it.")

ConfigArgument: TypeAlias = Annotated[
    Path,
    typer.Option("--config", metavar="FILE", help="The configuration with a trust table."),
]
Names: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        help="`server`, `server.tool` or `server.tool@DIGEST`; all where none is given."
    ),
]
T = TypeVar("T")

_WITH_DIGEST = re.compile(r"(?P<tool>.+)@(?P<digest>[0-9a-f]{64})", re.DOTALL)
_LOOK = "Look at it with `pegboard lock diff`, then approve it."


@app.command()
def diff(config: ConfigArgument, names: Names = None, as_json: JsonOption = False) -> None:
    """Show the definitions that are held back and how they changed; exits with 1 if there are any.

    Those that are shown are the ones that `pegboard lock approve` is then about.
    """
    lock = _Opened(config)
    records = anyio.run(lock.records)
    items = [item for item in _undecided(records) if item.is_named(names or [])]
    if as_json:
        print_json({"held": [_shape(item) for item in items]})
    else:
        for item in items:
            _show(item)
        if not items:
            out.print("Nothing is held back.")
    lock.note_shown(items, replaces_all=not names)
    if items:
        raise typer.Exit(EXIT_FAILED)


@app.command()
def approve(config: ConfigArgument, names: Names = None, as_json: JsonOption = False) -> None:
    """Approve definitions as `diff` showed them: those named, or all of them.

    A revoked tool is approved only where it is named as `server.tool`.
    """
    lock = _Opened(config)
    records = anyio.run(lock.records)
    wanted = [_checked(name, records) for name in names or []]
    chosen, refused = _to_approve(_undecided(records), wanted, lock.shown())
    _carry_out(lock, "approve", chosen, refused, as_json)


@app.command()
def reject(
    config: ConfigArgument,
    names: Annotated[list[str], typer.Argument(help="`server.tool` or `server.tool@DIGEST`.")],
    as_json: JsonOption = False,
) -> None:
    """Drop changed definitions that wait; the approved one stays. One still listed comes back."""
    lock = _Opened(config)
    records = anyio.run(lock.records)
    wanted = [_checked(name, records) for name in names]
    items = [item for item in _undecided(records) if item.seen is not item.record.approved]
    _carry_out(lock, "reject", [item for item in items if item.is_named(wanted)], {}, as_json)


@app.command()
def revoke(
    config: ConfigArgument,
    names: Annotated[list[str], typer.Argument(help="`server` or `server.tool`.")],
    as_json: JsonOption = False,
) -> None:
    """Hold tools back from now on, whatever their servers list."""
    lock = _Opened(config)
    records = anyio.run(lock.records)
    wanted = [_checked(name, records) for name in names]
    tools = [_Tool(server, tool) for server, record in records.items() for tool in record.tools]
    _carry_out(lock, "revoke", [tool for tool in tools if tool.is_named(wanted)], {}, as_json)


@dataclass(frozen=True, slots=True)
class _Tool:
    """A tool of the lock."""

    server: str
    tool: str

    @property
    def name(self) -> str:
        return f"{self.server}.{self.tool}"

    @property
    def digest(self) -> str | None:
        return None

    @property
    def names(self) -> set[str]:
        """What may be typed for this tool: its name, or its name as it is shown."""
        return {self.name, escape_name(self.name)}

    def is_named(self, names: Sequence[str]) -> bool:
        return not names or self.server in names or not self.names.isdisjoint(names)


@dataclass(frozen=True, slots=True)
class _Undecided(_Tool):
    """A definition that a decision can be about."""

    record: ToolLock
    seen: RecordedDefinition

    @property
    def digest(self) -> str:
        return self.seen.digest

    @property
    def address(self) -> str:
        return f"{self.name}@{self.digest}"

    def is_named(self, names: Sequence[str]) -> bool:
        return _Tool.is_named(self, names) or self.address in names


class _Opened:
    """The lock of a configuration, and the note of what was shown of it."""

    def __init__(self, config: Path) -> None:
        self.config = config
        opening = ConfigSource.of(config)
        configuration = opening.read()
        self._settings = configuration.settings
        self._beside = config.parent
        where = digest([str(config.resolve()), self._settings.trust.lock])
        self._note = opening.folder(configuration) / "shown" / f"{where[:24]}.json"
        if self._settings.trust.lock is None:
            raise ConfigError(f"{config} has no lock: set `lock` under [trust].")

    async def records(self) -> dict[str, ServerLock]:
        """The records of all servers."""
        return await self._with_locks(lambda locks: locks.all())

    async def decide(self, decisions: Sequence[LockDecision]) -> dict[str, str]:
        """Carry decisions out; gives the tools for which that was refused, with the reason."""

        async def work(locks: LockStorage) -> dict[str, str]:
            refused: dict[str, str] = {}
            for decision in decisions:
                try:
                    await decide(locks, decision)
                except (NotPermitted, ToolNotFound) as exc:
                    refused[f"{decision.server}.{decision.tool}"] = exc.message
            return refused

        return await self._with_locks(work)

    def shown(self) -> frozenset[str]:
        """What `diff` showed, as `server.tool@DIGEST`."""
        try:
            return frozenset(json.loads(self._note.read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            return frozenset()

    def note_shown(self, items: Sequence[_Undecided], *, replaces_all: bool) -> None:
        """Remember what was shown; where only some tools were, also what was before of others."""
        names = tuple(f"{item.name}@" for item in items)
        before = frozenset[str]() if replaces_all else self.shown()
        others = [one for one in before if not one.startswith(names)]
        with suppress(OSError):  # then approvals name their digest
            self._note.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            file = os.open(self._note, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(file, "w", encoding="utf-8") as note:
                json.dump([*others, *(item.address for item in items)], note)

    async def _with_locks(self, work: Callable[[LockStorage], Awaitable[T]]) -> T:
        store = open_store(self._settings, None)
        try:
            locks = open_lock_storage(self._settings, self._beside, decision_store(store))
            assert locks is not None
            return await work(locks)
        finally:
            await close_store(store)


def _undecided(records: dict[str, ServerLock]) -> list[_Undecided]:
    return [
        _Undecided(server, tool, record, seen)
        for server, lock in sorted(records.items())
        for tool, record, seen in lock.undecided()
    ]


def _checked(name: str, records: dict[str, ServerLock]) -> str:
    """The name, if it is one of a server, a tool or a definition of a tool.

    Raises:
        ToolNotFound: There is no such server or tool in the lock.
    """
    found = _WITH_DIGEST.fullmatch(name)
    tools = [_Tool(server, tool) for server, record in records.items() for tool in record.tools]
    known = set[str]().union(*(tool.names for tool in tools))
    if name in records or name in known or (found and found["tool"] in known):
        return name
    raise ToolNotFound(name, what="tool of the lock")


def _to_approve(
    items: Sequence[_Undecided], names: Sequence[str], shown: frozenset[str]
) -> tuple[list[_Undecided], dict[str, str]]:
    """The definitions that names and the last `diff` mean, and why others are not approved."""
    chosen = {item.name: item for item in items if item.address in names}
    refused = {
        found["tool"]: f"{found['tool']} has changed again: that definition does not wait. {_LOOK}"
        for name in names
        if (found := _WITH_DIGEST.fullmatch(name)) and found["tool"] not in chosen
    }
    plain_names = [name for name in names if not _WITH_DIGEST.fullmatch(name)]
    for item in items if plain_names or not names else ():
        if item.name in chosen or item.name in refused or not item.is_named(plain_names):
            continue
        if item.record.state == "revoked" and item.names.isdisjoint(names):
            continue  # a revocation stays until somebody names the tool
        same = [other for other in items if other.name == item.name]
        if any(other.address not in shown for other in same):
            refused[item.name] = f"{item.name} has not been shown as it is now. {_LOOK}"
        elif len(same) > 1:
            addresses = " or ".join(other.address for other in same)
            refused[item.name] = f"{item.name} has several definitions. Name one: {addresses}."
        else:
            chosen[item.name] = item
    return list(chosen.values()), refused


def _carry_out(
    lock: _Opened,
    action: LockAction,
    tools: Sequence[_Tool],
    refused: Mapping[str, str],
    as_json: bool,
) -> None:
    by, now = os_user(), time.time()
    decisions = [LockDecision(action, t.server, t.tool, by, now, t.digest) for t in tools]
    with audit_decision(lock.config, f"lock.{action}") as record:
        refusals = {**refused, **anyio.run(lock.decide, decisions)}
        record.done = [tool.name for tool in tools if tool.name not in refusals]
        record.refused = sorted(refusals)
    _report(_DONE[action], record.done, refusals, as_json)
    if refusals:
        raise typer.Exit(EXIT_FAILED)


_DONE: dict[LockAction, str] = {"approve": "approved", "reject": "rejected", "revoke": "revoked"}


def _shape(item: _Undecided) -> JsonObject:
    shape: dict[str, Json] = {
        "server": item.server,
        "tool": item.tool,
        "state": item.record.state,
        "digest": item.seen.digest,
        "reordered": _is_reordered(item),
        "flags": list(find_flags(item.seen.definition)),
        "diff": item.record.diff(item.seen),
    }
    if revoked := item.record.revoked:
        shape["revoked"] = {"at": revoked.at, "by": revoked.by}
    return shape


def _is_reordered(item: _Undecided) -> bool:
    return item.seen is not item.record.approved and item.record.is_reordered(item.seen)


def _show(item: _Undecided) -> None:
    name = (escape_name(item.name), "bold")
    out.print(line(name, f"@{item.seen.digest}  {item.record.state}"), soft_wrap=True)
    if (revoked := item.record.revoked) and revoked.by:
        out.print(f"  revoked by {revoked.by}")
    if _is_reordered(item):
        out.print("  the same words in another order")
    for flag in find_flags(item.seen.definition):
        out.print(line(("  suspicious:", "bold red"), f" {flag}"))
    for changed in item.record.diff(item.seen):
        style = {"+": "green", "-": "red", "@": "cyan"}.get(changed[:1], "dim")
        out.print(f"  {changed}", style=style, soft_wrap=True)
    out.print()


def _report(what: str, names: list[str], refused: dict[str, str], as_json: bool) -> None:
    if as_json:
        refusals = [{"name": name, "reason": reason} for name, reason in refused.items()]
        print_json({what: names, **({"refused": refusals} if refusals else {})})
        return
    if names:
        shown = ", ".join(map(escape_name, names))
        out.print(f"{what.capitalize()}: {shown}", soft_wrap=True)
    elif not refused:
        out.print("Nothing is held back.")
    for reason in refused.values():
        print_error(reason)
