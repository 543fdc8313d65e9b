"""The token cost of one client's tools today and with Pegboard, in that client's own window.

Clients are measured one by one: no model ever sees the sum of what several clients load. A client
that defers tools by itself does not pay for the list, so Pegboard cannot shorten it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from rich.table import Table

from pegboard.cli.config_discovery import client_source
from pegboard.cli.output import err, line, out
from pegboard.cli.targets import list_servers
from pegboard.core.json import JsonObject
from pegboard.install.clients import Client

if TYPE_CHECKING:
    from pegboard.install.client_status import ClientStatus
    from pegboard.measure.measurement import Measurement

USUAL_WINDOW = 200_000
"""Tokens of the context window that is assumed where it depends on the model that is chosen."""


@dataclass(frozen=True, slots=True)
class ClientCost:
    """What a client's tools cost in every request, without Pegboard and with it."""

    client: Client
    path: Path
    mode: str
    """The mode that Pegboard is used in."""
    measured: Measurement

    @property
    def before(self) -> int:
        """Tokens of all tool definitions."""
        return self.measured.everything

    @property
    def after(self) -> int:
        """Tokens of the list in the client's mode."""
        chosen = self.measured.chosen if self.mode == "auto" else self.mode
        return self.measured.modes[chosen].list  # pyright: ignore[reportArgumentType] a mode

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
            f"{title} already keeps tool definitions from the model until they are needed."
            if self.client.defers_tools
            else f"Listing all {len(self.measured.tools):,} tools of {title} is cheapest."
        )
        return (
            f"{why} Pegboard would not make its list shorter. It would still start servers only "
            "when they are used, and shorten large results."
        )

    def show(self) -> None:
        """Print before and after."""
        from pegboard.measure.measurement import format_percent

        measured, window = self.measured, f"{self.window:,} tokens"
        whose = "its" if self.client.window else "a"
        servers = len(measured.servers)
        out.paragraph(
            f"{self.client.title}: {len(measured.tools):,} tools of {servers} "
            f"{'server' if servers == 1 else 'servers'}. Tokens in every request, and their share "
            f"of {whose} window of {window}:"
        )
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
            "after": self.before if self.client.defers_tools else self.after,
            "saves_nothing": self.saves_nothing,
        }


def measure_client(
    status: ClientStatus, *, mode: str | None = None, only: Collection[str] | None = None
) -> ClientCost:
    """Measure the tools of a client's servers; those that were never listed are started.

    Args:
        status: The client.
        mode: The mode to compare with, instead of the one recommended for the client.
        only: The servers to measure; by default all.
    """
    from pegboard.measure.measurement import measure

    source = client_source(status)
    configuration = source.read()
    if only is not None:
        servers = tuple(spec for spec in configuration.upstreams if spec.name in only)
        configuration = replace(configuration, upstreams=servers)
    configuration = replace(configuration, notes=())  # such as that Pegboard's entry is left out
    board = list_servers(source, configuration)
    with err.status("Counting tokens ..."):
        measured = anyio.run(measure, board)
    return ClientCost(status.client, status.path, mode or status.client.mode, measured)


def show_client_table(costs: list[ClientCost]) -> None:
    """Print one row for each client."""
    from pegboard.measure.measurement import format_percent

    heads = ("client", "servers", "tools", "today", "of window", "with Pegboard", "saved")
    table = Table(*heads, box=None, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    for cost in costs:
        measured = cost.measured
        saved = "-" if cost.saves_nothing else format_percent(1 - cost.after / cost.before)
        table.add_row(
            cost.client.key,
            f"{len(measured.servers):,}",
            f"{len(measured.tools):,}",
            "deferred" if cost.client.defers_tools else f"{cost.before:,}",
            "-" if cost.client.defers_tools else f"{cost.before / cost.window:.1%}",
            "deferred" if cost.client.defers_tools else f"{cost.after:,}",
            saved,
            style="green" if not cost.saves_nothing else "",
        )
    out.print(table)
    out.paragraph(
        "Tokens of the tool list, which is part of every request (o200k_base). deferred: the "
        "client itself keeps definitions from the model until they are needed.",
        style="dim",
    )
    assumed = [cost.client.key for cost in costs if cost.client.window is None]
    if assumed:
        out.paragraph(
            f"Window assumed, because it depends on the model: {USUAL_WINDOW:,} tokens for "
            f"{', '.join(assumed)}.",
            style="dim",
        )
