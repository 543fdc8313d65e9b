"""The token cost of one client's tools today and with Pegboard, in that client's own window.

Clients are measured one by one: no model ever sees the sum of what several clients load. A client
that defers tools by itself does not pay for the list, so Pegboard cannot shorten it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from rich.table import Table

from pegboard.cli.config_discovery import client_source, installed_source
from pegboard.cli.output import err, format_count, line, out, print_warning
from pegboard.cli.targets import list_servers
from pegboard.config.documents import message_without_location
from pegboard.core.json import JsonObject
from pegboard.errors import ConfigError
from pegboard.install.client_entry import ServedSettings
from pegboard.install.clients import Client

if TYPE_CHECKING:
    from pegboard.install.client_status import ClientStatus
    from pegboard.measure.measurement import Measurement

USUAL_WINDOW = 200_000
"""The context window in tokens that is assumed for clients whose window depends on the model."""


@dataclass(frozen=True, slots=True)
class ClientCost:
    """What a client's tools cost in every request, without Pegboard and with it."""

    client: Client
    path: Path
    mode: str
    """The mode that Pegboard is used in."""
    measured: Measurement
    """Its servers today."""
    profile: str | None = None
    with_profile: Measurement | None = None
    """What Pegboard would serve with that profile, which may have other servers."""
    is_installed: bool = False
    """Whether the client already has Pegboard, and so already sends the shorter list."""

    @property
    def before(self) -> int:
        """Tokens of all tool definitions."""
        return self.measured.everything

    @property
    def after(self) -> int:
        """Tokens of the list in the client's mode."""
        served = self.with_profile or self.measured
        chosen = served.chosen if self.mode == "auto" else self.mode
        return served.modes[chosen].list  # pyright: ignore[reportArgumentType] a mode

    @property
    def saves_nothing(self) -> bool:
        """Whether the list of this client would not become shorter."""
        return self.client.defers_tools or self.after >= self.before

    @property
    def window(self) -> int:
        return self.client.window or USUAL_WINDOW

    def explain(self) -> str:
        """Why nothing would be saved, and what would still be gained."""
        title = self.client.title
        why = (
            f"{title} already loads tool definitions only when they are needed."
            if self.client.defers_tools
            else f"{title} has so few tools that listing them all is cheapest."
        )
        return (
            f"{why} Pegboard would not shorten its list. It would still start servers only when "
            "they are used, and shorten large results."
        )

    def show(self) -> None:
        """Print before and after."""
        from pegboard.measure.measurement import format_percent

        measured, window = self.measured, f"{self.window:,} tokens"
        whose = "its" if self.client.window else "a"
        tools = format_count(len(measured.tools), "tool")
        counted = "of all definitions" if self.client.defers_tools else "in every request"
        out.paragraph(
            f"{self.client.title}: {tools} from {format_count(len(measured.servers), 'server')}. "
            f"Tokens {counted}, and their share of {whose} context window of {window}:"
        )
        if (served := self.with_profile) is not None:
            tools = format_count(len(served.tools), "tool")
            out.print(f"  today            {self.before:>9,}  {self.before / self.window:>6.1%}")
            out.print(f"  with Pegboard    {self.after:>9,}  {self.after / self.window:>6.1%}")
            out.paragraph(
                f"The profile {self.profile} has {tools} of "
                f"{format_count(len(served.servers), 'server')}."
            )
            return
        if self.saves_nothing:
            out.print(f"  all definitions  {self.before:>9,}  {self.before / self.window:>6.1%}")
            out.paragraph(self.explain(), "yellow")
            return
        saved = format_percent(1 - self.after / self.before)
        out.print(f"  today            {self.before:>9,}  {self.before / self.window:>6.1%}")
        out.print(f"  with Pegboard    {self.after:>9,}  {self.after / self.window:>6.1%}")
        out.print(
            line(
                "  saved            ", (f"{self.before - self.after:>9,}  {saved:>6}", "bold green")
            )
        )

    def to_json(self) -> JsonObject:
        return {
            "client": self.client.key,
            "title": self.client.title,
            "file": str(self.path),
            "window": self.window,
            "window_is_assumed": self.client.window is None,
            "defers_tools": self.client.defers_tools,
            "mode": self.mode,
            "before": self.before,
            "after": self.before
            if self.client.defers_tools and self.with_profile is None
            else self.after,
            "profile": self.profile,
            "installed": self.is_installed,
            "saves_nothing": self.saves_nothing,
        }


def measure_client(
    status: ClientStatus,
    *,
    mode: str | None = None,
    only: Collection[str] | None = None,
    profile: str | None = None,
) -> ClientCost:
    """Measure the tools of a client's servers; those that were never listed are started.

    Args:
        status: The client.
        mode: The mode to compare with. By default that of an installed Pegboard, or the one
            recommended for the client.
        only: The servers to measure; by default all.
        profile: A profile of the user's own configuration, which is served instead of everything.
            By default that of an installed Pegboard.
    """
    from pegboard.measure.measurement import measure

    source = client_source(status)
    configuration = source.read()
    # A server that is left out is reported as not measured, so its problem needs no second line.
    # The notes only say that Pegboard's own entry is left out.
    reported = " ".join(configuration.unusable.values())
    problems = (p for p in configuration.problems if message_without_location(p) not in reported)
    configuration = replace(configuration, notes=(), problems=tuple(problems))
    if only is not None:
        configuration = replace(
            configuration,
            upstreams=tuple(spec for spec in configuration.upstreams if spec.name in only),
            unusable={name: why for name, why in configuration.unusable.items() if name in only},
        )
    board = list_servers(source, configuration)
    with err.status("Counting tokens ..."):
        measured = anyio.run(measure, board)
    installed = _read_installed(status)
    served = None
    if profile is not None:
        source = client_source(status, profile=profile)
    elif installed is not None and installed.profile is not None:
        profile = installed.profile
        source = installed_source(status)
    if profile is not None:
        board = list_servers(source, replace(source.read(), notes=(), problems=()))
        with err.status("Counting tokens ..."):
            served = anyio.run(measure, board)
    mode = mode or (installed.mode if installed else status.client.mode)
    is_installed = status.record is not None
    return ClientCost(status.client, status.path, mode, measured, profile, served, is_installed)


def _read_installed(status: ClientStatus) -> ServedSettings | None:
    """The settings of an installed Pegboard, which the user may have changed."""
    if status.record is None:
        return None
    try:
        return ServedSettings.read(status.folder, status.client)
    except ConfigError:
        return None  # reported by `doctor`, with the reason


def warn_not_measured(costs: Sequence[ClientCost]) -> bool:
    """Name the servers that could not be measured, each once; returns whether there are any."""
    clients: dict[tuple[str, str, str], list[str]] = {}
    # Clients often have the same server: its problem is printed once, with all their names.
    for cost in costs:
        for name, reason in cost.measured.failures.items():
            label = cost.measured.logins.get(name, "not measured")
            clients.setdefault((label, name, reason), []).append(cost.client.key)
    for (label, name, reason), keys in clients.items():
        whose = f"{name} ({', '.join(keys)})" if len(costs) > 1 else name
        print_warning(label, f"{whose}: {reason.removeprefix(f'{name} ')}")
    return bool(clients)


def show_client_table(costs: list[ClientCost]) -> None:
    """Print one row for each client."""
    from pegboard.measure.measurement import format_percent

    heads = ("client", "servers", "tools", "today", "of window", "with Pegboard", "saved")
    table = Table(*heads, box=None, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    for cost in costs:
        measured = cost.measured
        known = len(measured.servers) + len(measured.failures)
        saved = "-" if cost.saves_nothing else format_percent(1 - cost.after / cost.before)
        table.add_row(
            cost.client.key,
            f"{len(measured.servers)}{f' of {known}' if measured.failures else ''}",
            f"{len(measured.tools):,}",
            "deferred" if cost.client.defers_tools else f"{cost.before:,}",
            "-" if cost.client.defers_tools else f"{cost.before / cost.window:.1%}",
            "deferred" if cost.client.defers_tools else f"{cost.after:,}",
            saved,
            style="green" if not cost.saves_nothing else "",
        )
    out.print(table)
    out.paragraph(
        "Tokens of the tool list, which is part of every request (o200k_base).", style="dim"
    )
    notes: dict[str, list[str]] = {}
    for cost in costs:
        if cost.client.defers_tools:
            note = (
                "definitions are loaded only when they are needed (deferred), so Pegboard would "
                "not shorten the list."
            )
        elif cost.saves_nothing:
            tools = len(cost.measured.tools)
            note = f"listing all {tools:,} tools is cheapest; Pegboard would not shorten the list."
        elif cost.is_installed:
            note = "has Pegboard already; the column `today` is the cost without it."
        else:
            continue
        notes.setdefault(note, []).append(cost.client.key)
    for note, keys in notes.items():
        out.paragraph(f"{', '.join(keys)}: {note}")
    assumed = [cost.client.key for cost in costs if cost.client.window is None]
    if assumed:
        out.paragraph(
            f"The context window depends on the model; {USUAL_WINDOW:,} tokens are assumed for "
            f"{', '.join(assumed)}.",
            style="dim",
        )
