"""`pegboard doctor`: check every server of a configuration, and name the limits of this platform.

Linux is tested with every change. On other systems the code uses alternatives where it has to, and
`find_platform_limits` reports what does not work there.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict

import anyio
import typer
from rich.table import Table

from pegboard.cli.config_discovery import find_source
from pegboard.cli.output import (
    EXIT_CONFIGURATION,
    EXIT_FAILED,
    NARROW,
    JsonOption,
    abbreviate_home,
    err,
    line,
    out,
    print_json,
)
from pegboard.cli.targets import ConfigOption
from pegboard.core.json import JsonObject
from pegboard.tokens import DEFAULT_TOKENIZER


def doctor(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Check every server: whether it answers, its tools and tokens, its latency, its problems."""
    from pegboard.gateway.health_check import check_servers
    from pegboard.observe.logs import print_progress
    from pegboard.upstream.listing import ListingResult

    def report(done: int, total: int, one: ListingResult) -> None:
        if one.listing is not None:  # problems of the others are printed once, below
            print_progress(done, total, one)

    source = find_source(config)
    configuration = source.read()
    # Every server is started and listed again: a cached catalog would hide a broken server.
    with err.status("Starting the servers ..."):
        found = anyio.run(check_servers, configuration, source.folder(configuration), report)
    result: JsonObject = {
        "tokenizer": DEFAULT_TOKENIZER,
        "servers": [asdict(one) for one in found],
        "problems": [problem.message for problem in configuration.problems],
        "notes": list(configuration.notes),
        "platform": {"system": sys.platform, "limits": find_platform_limits(sys.platform)},
    }
    if as_json:
        print_json(result)
    else:
        _show(result)
    if any(one.state == "failed" for one in found):
        raise typer.Exit(EXIT_FAILED)
    # A login that is missing is for the user to make, like a setting; nothing has failed.
    if configuration.problems or any(one.state.startswith("sign in") for one in found):
        raise typer.Exit(EXIT_CONFIGURATION)


_COLORS = {
    "reachable": "green",
    "failed": "bold red",
    "sign in": "yellow",
    "sign in again": "yellow",
    "left out": "bold red",
    "disabled": "dim",
}


def _show(result: JsonObject) -> None:
    heads = ["server", "state", "tools", "tokens", "era", "first answer", "listed in"]
    heads = heads[:4] if out.width < NARROW else heads
    table = Table(*heads, box=None, header_style="bold")
    for number, column in enumerate(table.columns):
        column.justify = "left" if number in (0, 1, 4) else "right"
    for one in result["servers"]:
        state = [(one["state"], _COLORS[one["state"]])]
        if one["reachable"] and one["login"] == "signed in":
            state.append((", signed in", "green"))
        latency = f"{one['latency'] * 1000:.0f} ms" if one["latency"] is not None else "-"
        row = [
            one["server"],
            line(*state),
            f"{one['tools']:,}" if one["reachable"] else "-",
            f"{one['tokens']:,}" if one["reachable"] else "-",
            one["era"] or "-",
            latency,
            f"{one['seconds']:.1f} s" if one["state"] not in ("left out", "disabled") else "-",
        ]
        table.add_row(*row[: len(heads)])
    out.print(table if result["servers"] else "The configuration has no servers.")
    for one in result["servers"]:
        if one["state"] == "left out":
            continue  # reported below, with file and line
        for problem in one["problems"]:
            out.paragraph(line(("•", "yellow"), f" {problem}"))
    for problem in result["problems"]:
        out.paragraph(line(("configuration:", "red"), f" {abbreviate_home(problem)}"))
    for note in result["notes"]:
        out.paragraph(note, "dim")
    for limit in result["platform"]["limits"]:
        out.paragraph(f"{result['platform']['system']}: {limit}", "dim")


_WINDOWS = (
    "If Pegboard is killed, its servers and the programs that they started may keep running, "
    "because there are no process groups.",
    "A gateway stops at once, without waiting for calls in progress. There is no SIGHUP, but "
    "changed configuration files are still read again.",
    "Pegboard's files have the permissions of their folder, so they are private only in folders "
    "that are private.",
    "A gateway cannot answer a client's first requests while it is still starting.",
)
_MACOS = ("Worker processes share one socket instead of having one each.",)


def _can_confine(bwrap: str) -> bool:
    """Whether bubblewrap works: some containers, and Ubuntu since 24.04, forbid what it needs."""
    trial = [bwrap, "--unshare-all", "--ro-bind", "/", "/", "true"]
    try:
        return subprocess.run(trial, capture_output=True, timeout=10, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def find_platform_limits(
    system: str, find_program: Callable[[str], str | None] = shutil.which
) -> list[str]:
    """The limits on a system, as `sys.platform` names it."""
    if system == "linux":
        program = find_program("bwrap")
        why = "is not installed" if program is None else "may not create namespaces here"
        if program is not None and _can_confine(program):
            return []
        return [
            f"bubblewrap (bwrap) {why}, so code mode programs run without that additional sandbox. "
            'With `confine = "required"`, they do not run.'
        ]
    name = {"win32": "Windows", "darwin": "macOS"}.get(system, system)
    untested = f"Pegboard is tested on Linux. On {name} it is expected to work, but not tested."
    more = {"win32": _WINDOWS, "darwin": _MACOS}.get(system, ())
    confined = "There is no bubblewrap, so code mode programs run without that additional sandbox."
    return [untested, *more, confined]
