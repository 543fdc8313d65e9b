"""`pegboard lock`: review tool definitions that are held back, and decide about them.

An approval is for one definition, identified by its digest. Either the command names it
(`server.tool@DIGEST`), or it is the one that `diff` showed last: `diff` saves the digests that it
shows, and `approve` refuses a tool whose definition was not shown or has changed since.

    diff --shows and saves digests-->  approve | reject     definitions that wait
                                       revoke               tools in use
"""

from __future__ import annotations

import json
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
from pegboard.cli.config_discovery import find_source
from pegboard.cli.help_pages import Command, Group, help_epilog
from pegboard.cli.output import EXIT_FAILED, JsonOption, line, out, print_error, print_json
from pegboard.core.json import Json, JsonObject, compact, digest
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
from pegboard.gateway.lock_storage import LockStorage, apply_decision, open_lock_storage
from pegboard.private_files import make_private_folder, replace_file
from pegboard.store.fallback import decision_store

app = typer.Typer(
    cls=Group, help="Review changed tool definitions, and approve, reject or revoke them."
)

ConfigArgument: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="A configuration that sets `lock` under [trust]; found automatically if omitted.",
    ),
]
Names: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(help="`server`, `server.tool` or `server.tool@DIGEST`; all if omitted."),
]
T = TypeVar("T")

_WITH_DIGEST = re.compile(r"(?P<tool>.+)@(?P<digest>[0-9a-f]{64})", re.DOTALL)
_REVIEW_FIRST = "Review it with `pegboard lock diff`, then approve it."


@app.command(cls=Command, epilog=help_epilog("lock diff"))
def diff(names: Names = None, config: ConfigArgument = None, as_json: JsonOption = False) -> None:
    """Show the definitions that are held back and what changed. Exits with 1 if there are any.

    `pegboard lock approve` then approves the definitions as they were shown.
    """
    lock = _LockSession(find_source(config))
    records = anyio.run(lock.records)
    items = [item for item in _pending(records) if item.is_named(names or [])]
    if as_json:
        print_json({"held": [item.to_json() for item in items]})
    else:
        for item in items:
            item.show()
        if not items:
            out.print("Nothing is held back.")
    # Last: what an interrupted `diff` did not print has not been reviewed.
    lock.save_shown(items, replaces_all=not names)
    if items:
        raise typer.Exit(EXIT_FAILED)


@app.command(cls=Command, epilog=help_epilog("lock approve"))
def approve(
    names: Names = None, config: ConfigArgument = None, as_json: JsonOption = False
) -> None:
    """Approve definitions as `diff` showed them: the named ones, or all.

    A revoked tool is approved only if it is named as `server.tool`.
    """
    lock, records = _open(config, names or [])
    chosen, refused = _select_approvals(_pending(records), names or [], lock.shown())
    _carry_out(lock, "approve", chosen, refused, as_json)


@app.command(cls=Command, epilog=help_epilog("lock reject"))
def reject(
    names: Annotated[list[str], typer.Argument(help="`server.tool` or `server.tool@DIGEST`.")],
    config: ConfigArgument = None,
    as_json: JsonOption = False,
) -> None:
    """Discard changed definitions and keep the approved ones.

    A definition that its server still lists is held back again.
    """
    lock, records = _open(config, names)
    # A revoked tool waits with its approved definition, which is not a change to discard.
    items = [item for item in _pending(records) if item.seen is not item.record.approved]
    _carry_out(lock, "reject", [item for item in items if item.is_named(names)], {}, as_json)


@app.command(cls=Command, epilog=help_epilog("lock revoke"))
def revoke(
    names: Annotated[list[str], typer.Argument(help="`server` or `server.tool`.")],
    config: ConfigArgument = None,
    as_json: JsonOption = False,
) -> None:
    """Hold tools back from now on, whatever their servers list."""
    lock, records = _open(config, names)
    tools = [tool for tool in _tools(records) if tool.is_named(names)]
    _carry_out(lock, "revoke", tools, {}, as_json)


@dataclass(frozen=True, slots=True)
class _LockedTool:
    """A tool in the lock."""

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
        """What a user may type for this tool: its name, or its name as it is displayed."""
        return {self.name, escape_name(self.name)}

    def is_named(self, names: Sequence[str]) -> bool:
        return not names or self.server in names or not self.names.isdisjoint(names)


@dataclass(frozen=True, slots=True)
class _PendingDefinition(_LockedTool):
    """A definition that waits for a decision."""

    record: ToolLock
    seen: RecordedDefinition

    @property
    def digest(self) -> str:
        return self.seen.digest

    @property
    def address(self) -> str:
        return f"{self.name}@{self.digest}"

    @property
    def is_reordered(self) -> bool:
        return self.seen is not self.record.approved and self.record.is_reordered(self.seen)

    def is_named(self, names: Sequence[str]) -> bool:
        # Not `super()`, which fails here: with slots, the decorator replaces the class.
        return _LockedTool.is_named(self, names) or self.address in names

    def to_json(self) -> JsonObject:
        value: dict[str, Json] = {
            "server": self.server,
            "tool": self.tool,
            "state": self.record.state,
            "digest": self.digest,
            "reordered": self.is_reordered,
            "flags": list(find_flags(self.seen.definition)),
            "diff": self.record.diff(self.seen),
        }
        if revoked := self.record.revoked:
            value["revoked"] = {"at": revoked.at, "by": revoked.by}
        return value

    def show(self) -> None:
        name = (escape_name(self.name), "bold")
        out.print(line(name, f"@{self.digest}  {self.record.state}"), soft_wrap=True)
        if (revoked := self.record.revoked) and revoked.by:
            out.print(f"  revoked by {revoked.by}")
        if self.is_reordered:
            out.print("  the same words in another order")
        for flag in find_flags(self.seen.definition):
            out.print(line(("  suspicious:", "bold red"), f" {flag}"))
        for changed in self.record.diff(self.seen):
            style = {"+": "green", "-": "red", "@": "cyan"}.get(changed[:1], "dim")
            out.print(f"  {changed}", style=style, soft_wrap=True)
        out.print()


class _LockSession:
    """The lock of a configuration, and the file with the digests that `diff` has shown."""

    def __init__(self, source: ConfigSource) -> None:
        self.source, config = source, source.path
        configuration = source.read()
        self._settings = configuration.settings
        self._config_folder = config.parent
        # Per configuration and lock: what was shown of one says nothing about another.
        where = digest([str(config.resolve()), self._settings.trust.lock])
        self._shown_file = source.folder(configuration) / "shown" / f"{where[:24]}.json"
        if self._settings.trust.lock is None:
            raise ConfigError(f"{config} has no lock: set `lock` under [trust].")

    async def records(self) -> dict[str, ServerLock]:
        """The lock of every server."""
        return await self._with_locks(lambda locks: locks.all())

    async def decide(self, decisions: Sequence[LockDecision]) -> dict[str, str]:
        """Carry out decisions; returns the tools for which one was refused, with the reason."""

        async def work(locks: LockStorage) -> dict[str, str]:
            refused: dict[str, str] = {}
            # Each by itself, so that one refusal does not hold up the others.
            for decision in decisions:
                try:
                    await apply_decision(locks, decision)
                except (NotPermitted, ToolNotFound) as exc:
                    refused[f"{decision.server}.{decision.tool}"] = exc.message
            return refused

        return await self._with_locks(work)

    def shown(self) -> frozenset[str]:
        """The definitions that `diff` has shown, as `server.tool@DIGEST`."""
        try:
            return frozenset(json.loads(self._shown_file.read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            return frozenset()  # nothing counts as shown: an approval has to name its digest

    def save_shown(self, items: Sequence[_PendingDefinition], *, replaces_all: bool) -> None:
        """Save what was shown; if only some tools were, what was shown of others stays."""
        names = tuple(f"{item.name}@" for item in items)
        before = frozenset[str]() if replaces_all else self.shown()
        others = [one for one in before if not one.startswith(names)]
        # If it cannot be saved, approvals have to name the digest.
        with suppress(OSError):
            make_private_folder(self._shown_file.parent)
            with replace_file(self._shown_file, is_durable=False) as file:
                file.write(compact([*others, *(item.address for item in items)]).encode())

    async def _with_locks(self, work: Callable[[LockStorage], Awaitable[T]]) -> T:
        store = open_store(self._settings, None)
        try:
            locks = open_lock_storage(self._settings, self._config_folder, decision_store(store))
            assert locks is not None
            return await work(locks)
        finally:
            await close_store(store)


def _pending(records: dict[str, ServerLock]) -> list[_PendingDefinition]:
    return [
        _PendingDefinition(server, tool, record, seen)
        for server, lock in sorted(records.items())
        for tool, record, seen in lock.undecided()
    ]


def _tools(records: dict[str, ServerLock]) -> list[_LockedTool]:
    return [_LockedTool(server, tool) for server, lock in records.items() for tool in lock.tools]


def _open(config: Path | None, names: Sequence[str]) -> tuple[_LockSession, dict[str, ServerLock]]:
    """The lock and its records, if every name is one of a server, a tool or a definition.

    Raises:
        ToolNotFound: There is no such server or tool in the lock.
    """
    lock = _LockSession(find_source(config))
    records = anyio.run(lock.records)
    known = {*records, *(name for tool in _tools(records) for name in tool.names)}
    for name in names:
        found = _WITH_DIGEST.fullmatch(name)
        if name not in known and not (found and found["tool"] in known):
            raise ToolNotFound(name, what="tool of the lock")
    return lock, records


def _select_approvals(
    items: Sequence[_PendingDefinition], names: Sequence[str], shown: frozenset[str]
) -> tuple[list[_PendingDefinition], dict[str, str]]:
    """The definitions that the names and the last `diff` select, and the refusals with reasons."""
    chosen = {item.name: item for item in items if item.address in names}
    # A digest that is not pending: the definition has changed since somebody read it.
    outdated = [
        found["tool"]
        for name in names
        if (found := _WITH_DIGEST.fullmatch(name)) and found["tool"] not in chosen
    ]
    refused = {
        tool: f"{tool} has changed again: this definition is no longer pending. {_REVIEW_FIRST}"
        for tool in outdated
    }
    # Plain names, or none at all, mean the definitions that `diff` has shown.
    plain_names = [name for name in names if not _WITH_DIGEST.fullmatch(name)]
    for item in items if plain_names or not names else ():
        if item.name in chosen or item.name in refused or not item.is_named(plain_names):
            continue
        if item.record.state == "revoked" and item.names.isdisjoint(names):
            continue  # a revocation holds until a person names the tool
        same = [other for other in items if other.name == item.name]
        if any(other.address not in shown for other in same):
            refused[item.name] = (
                f"{item.name} has not been shown in its current form. {_REVIEW_FIRST}"
            )
        elif len(same) > 1:  # replicas of a server may list different definitions
            addresses = " or ".join(other.address for other in same)
            refused[item.name] = f"{item.name} has several definitions. Name one: {addresses}."
        else:
            chosen[item.name] = item
    return list(chosen.values()), refused


def _carry_out(
    lock: _LockSession,
    action: LockAction,
    tools: Sequence[_LockedTool],
    refused: Mapping[str, str],
    as_json: bool,
) -> None:
    by, now = os_user(), time.time()
    decisions = [LockDecision(action, t.server, t.tool, by, now, t.digest) for t in tools]
    with audit_decision(lock.source, f"lock.{action}") as outcome:
        refusals = {**refused, **anyio.run(lock.decide, decisions)}
        outcome.done = [tool.name for tool in tools if tool.name not in refusals]
        outcome.refused = sorted(refusals)
    done = {"approve": "approved", "reject": "rejected", "revoke": "revoked"}[action]
    if as_json:
        reasons = [{"name": name, "reason": reason} for name, reason in refusals.items()]
        print_json({done: outcome.done, **({"refused": reasons} if reasons else {})})
    else:
        if outcome.done:
            names = ", ".join(map(escape_name, outcome.done))
            out.print(f"{done.capitalize()}: {names}", soft_wrap=True)
        elif not refusals:
            out.print("Nothing is held back.")
        for reason in refusals.values():
            print_error(reason)
    if refusals:
        raise typer.Exit(EXIT_FAILED)
