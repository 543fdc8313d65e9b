"""`pegboard measure`: the token cost of tools in every mode, per server and per tool."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
import typer
from rich.padding import Padding
from rich.table import Table

from pegboard.cli.config_discovery import has_configuration
from pegboard.cli.output import (
    EXIT_FAILED,
    NARROW,
    JsonOption,
    err,
    line,
    out,
    print_json,
    print_warning,
)
from pegboard.cli.targets import CatalogOption, ConfigOption, Target, open_target
from pegboard.errors import ConfigError
from pegboard.tokens import DEFAULT_TOKENIZER

if TYPE_CHECKING:
    from pegboard.measure.measurement import Measurement
    from pegboard.measure.session_costs import Prices

MOST_SERVERS = 15

_OUTPUTS = "Output"
_MODEL = "Session model"

# The options of the session model.
_Tools = Annotated[
    int,
    typer.Option(min=0, metavar="N", help="Tools that the session uses.", rich_help_panel=_MODEL),
]
_Turns = Annotated[
    int, typer.Option(min=1, metavar="N", help="Turns of the session.", rich_help_panel=_MODEL)
]
_Conversation = Annotated[
    int,
    typer.Option(min=0, metavar="N", help="Tokens that each turn adds.", rich_help_panel=_MODEL),
]
_Price = Annotated[
    str,
    typer.Option(
        metavar="BASE,WRITE,READ",
        help="Price of a token: uncached, written to the prompt cache, read from it.",
        rich_help_panel=_MODEL,
    ),
]


def measure(
    target: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE | URL | -- COMMAND ...]",
            help="A file of servers or tools, the URL of a server, or a command that starts one.",
            show_default=False,
        ),
    ] = None,
    config: ConfigOption = None,
    catalog: CatalogOption = None,
    clients: Annotated[
        bool,
        typer.Option(
            "--clients", help="Measure each MCP client on this machine, without and with Pegboard."
        ),
    ] = False,
    results: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help='Recorded results: lines of {"tool", "result"}.'),
    ] = None,
    tools: _Tools = 5,
    turns: _Turns = 20,
    conversation: _Conversation = 500,
    price: _Price = "1,1.25,0.1",
    tokenizer: Annotated[
        str, typer.Option(metavar="NAME", help="o200k_base or cl100k_base.")
    ] = DEFAULT_TOKENIZER,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write an HTML report.", rich_help_panel=_OUTPUTS),
    ] = None,
    svg: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the charts as SVG.", rich_help_panel=_OUTPUTS),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure the token cost of tools: per server, per tool, in every mode, over a session."""
    named = Target(words=tuple(target or ()), config=config, catalog=catalog)
    if clients or (named == Target() and not has_configuration()):
        if named != Target() or html is not None or svg is not None:
            raise typer.BadParameter("--clients takes neither another target nor --html or --svg")
        _measure_clients(as_json=as_json)
        return
    # Imported late: `--help` would have to wait for them.
    from pegboard.measure.measurement import measure as measure_board
    from pegboard.measure.report import build_charts, render_report, render_svg
    from pegboard.measure.result_costs import read_results
    from pegboard.measure.session_costs import SessionProfile

    profile = SessionProfile(tools=tools, turns=turns, conversation=conversation)
    prices = _parse_prices(price)
    recorded = read_results(results) if results else []
    with open_target(named) as board, err.status("Counting tokens ..."):
        measured = anyio.run(  # which passes no keyword arguments on
            lambda: measure_board(
                board, use=profile, prices=prices, tokenizer=tokenizer, recorded=recorded
            )
        )
    # The files come first: `_show` exits with an error if a server is missing.
    if html is not None:
        _write(html, render_report(measured))
    if svg is not None:
        _write(svg, render_svg(build_charts(measured)))
    _show(measured, as_json=as_json)


def _show(measured: Measurement, *, as_json: bool) -> None:
    """Print a measurement; exits with an error if servers are missing from it."""
    if as_json:
        print_json(measured.to_json())
    elif measured.tools:
        _show_tables(measured)
        _show_summary(measured)
    else:
        out.print("There are no tools.")
    for name, reason in measured.failures.items():
        label = measured.logins.get(name, "missing")  # "sign in" is no fault of the server
        print_warning(label, reason if reason.startswith(name) else f"{name}: {reason}")
    if measured.failures:
        raise typer.Exit(EXIT_FAILED)


def _measure_clients(*, as_json: bool) -> None:
    """Measure each client by itself: no client loads the sum."""
    from pegboard.cli.client_costs import (
        measure_client,
        show_client_table,
        warn_not_measured,
    )
    from pegboard.install.client_status import inspect_clients
    from pegboard.install.clients import this_machine

    everything = inspect_clients(this_machine())
    found = [status for status in everything if status.servers]
    if not found:
        raise ConfigError("No client on this machine has servers. See `pegboard clients`.")
    costs = [measure_client(status) for status in found]
    for status in everything:
        if status.problem and not status.servers and status.is_found:
            print_warning("not measured", f"{status.client.key}: {status.problem}")
    if as_json:
        details = [{**cost.to_json(), "measurement": cost.measured.to_json()} for cost in costs]
        print_json({"tokenizer": DEFAULT_TOKENIZER, "clients": details})
    else:
        show_client_table(costs)
    is_incomplete = warn_not_measured(costs)
    has_pegboard = {status.path for status in found if status.record is not None}
    open_to_save = [c for c in costs if not c.saves_nothing and c.path not in has_pegboard]
    if open_to_save and not as_json:
        best = max(open_to_save, key=lambda cost: cost.before - cost.after)
        out.paragraph(f"\nNext: pegboard install {best.client.key} --dry-run")
    # Only now, so that one server that fails does not hide the costs of the others.
    if is_incomplete:
        raise typer.Exit(EXIT_FAILED)


def _parse_prices(text: str) -> Prices:
    from pegboard.measure.session_costs import Prices

    try:
        base, write, read = (float(part) for part in text.split(","))
    except ValueError as exc:
        raise typer.BadParameter("--price must be three numbers, such as 1,1.25,0.1") from exc
    return Prices(base, write, read)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as exc:
        raise ConfigError(f"{path} cannot be written: {exc.strerror or exc}.") from exc
    err.print(f"Wrote {path}.", soft_wrap=True)


def _show_tables(measured: Measurement) -> None:
    """The costs per server, and the costs of each mode."""
    from pegboard.measure.measurement import format_percent

    servers = Table("server", "tools", "tokens", box=None, header_style="bold")
    for column in servers.columns[1:]:
        column.justify = "right"
        column.no_wrap = True
    if measured.logins:
        servers.add_column("login", no_wrap=True)
    for server in measured.servers[:MOST_SERVERS]:
        row = [server.name, f"{server.tools:,}", f"{server.tokens:,}"]
        servers.add_row(*row, *([measured.logins.get(server.name, "")] if measured.logins else []))
    out.print(servers)
    hidden = len(measured.servers) - MOST_SERVERS
    if hidden > 0:
        out.print(f"... and {hidden} more. --json lists all of them.", style="dim")
    out.print()
    heads = [
        "mode",
        "list",
        "instructions",
        "saved",
        "first definition",
        "session",
        "with cache",
        "requests",
    ]
    # A narrow terminal gets the list and the cost of a session, which are what people compare.
    columns = [0, 1, 5, 6] if out.width < NARROW else range(len(heads))
    modes = Table(*(heads[at] for at in columns), box=None, header_style="bold")
    for column in modes.columns[1:]:
        column.justify = "right"
    for mode, cost in measured.modes.items():
        session = measured.sessions[mode]
        row = [
            mode,
            f"{cost.list:,}",
            f"{cost.instructions:,}",
            format_percent(measured.saved(mode)),
            f"{cost.first_definition:,}",
            f"{session.plain:,.0f}",
            f"{session.cached:,.0f}",
            f"{session.requests:,}",
        ]
        modes.add_row(*(row[at] for at in columns), style="green" if mode == "proxy" else "")
    out.print(modes)


def _show_summary(measured: Measurement) -> None:
    """The most expensive tools, the savings, and how the costs were computed."""
    from pegboard.measure.measurement import format_difference, format_percent

    out.print("\nThe most expensive tools", style="bold")
    for tool in measured.expensive_tools[:5]:
        out.print(f"{tool.id}  {tool.tokens:,} tokens")
        for reason in tool.reasons:
            text = f"{reason.kind}, {reason.tokens:,}: {reason.advice}"
            out.print(Padding(text, (0, 0, 0, 2), expand=False), style="dim")
    if measured.results:
        whole = sum(result.whole for result in measured.results)
        given = sum(result.given for result in measured.results)
        saved = format_percent(1 - given / whole if whole else 0.0)
        count = len(measured.results)
        results = f"\n{count} recorded results: {given:,} instead of {whole:,} tokens, "
        out.print(line(results, (f"{saved} less", "bold green"), "."))
    difference = format_difference(measured.saved("proxy"))
    lists = f": {measured.modes['proxy'].list:,} instead of {measured.everything:,} tokens."
    out.print(line("\nThe list in proxy mode costs ", (difference, "bold green"), lists))
    if measured.chosen == "eager":
        out.print(
            "This is a small catalog: listing all tools is cheapest, and `auto` mode does that."
        )
    use, prices = measured.use, measured.prices
    out.print(
        f"Counted with {measured.tokenizer}. A session uses {use.tools} tools in {use.turns} turns "
        f"of {use.conversation} tokens. A token costs {prices.base:g}, written to the prompt cache "
        f"{prices.write:g}, read from it {prices.read:g}.",
        style="dim",
    )
