"""How soon does a gateway with 1, 7 or 70 servers respond, and how much memory does it use?"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.contestants import (
    FASTMCP,
    echoed,
    lazy_config,
    peer,
    pegboard_command,
    pegboard_env,
    wait_until_known,
    written,
)
from benchmarks.data import made
from benchmarks.plots import bars
from benchmarks.runner import Missing, Profile, WrongAnswer, interleave, median, say
from benchmarks.tables import missing, table
from benchmarks.wire import (
    Ended,
    Process,
    cpu_seconds,
    descendants,
    memory_mb,
    settle,
    text_of,
)

TOOLS = 8
ARGUMENTS = {"project": "x"}
TOOL, OTHER = "create_issue_0", "delete_issue_3"
FIRST, AGAIN, BARE = "pegboard, first start", "pegboard, again", "python -c 'import mcp'"
PATIENCE = 120.0
MANY = 70
"""From so many servers on there is one round: each takes some peers half a minute."""
WITH_SDK = "{} with the SDK"
"""How a number of servers is called that are made with the official SDK."""


def in_words(count: str) -> str:
    """How many servers, in words: `70 with the SDK` is 70 servers with it."""
    number, _, rest = count.partition(" ")
    return f"{number} servers {rest}".rstrip()


@dataclass(frozen=True, slots=True)
class Entry:
    """How one contestant is started, asked for a tool, and made to call one."""

    start: Callable[[Path, dict[str, Any]], Process]
    look: Callable[[str], tuple[str, dict[str, Any]]] | None
    """How it is asked for a tool whose name begins with this verb."""
    call: tuple[str, dict[str, Any]]


def entries(servers: int) -> dict[str, Entry]:
    server = f"server{servers - 1}"
    full = f"{server}_{TOOL}" if servers > 1 else TOOL

    def search(verb: str) -> tuple[str, dict[str, Any]]:
        return "search_tools", {"query": f"{verb} one issue of {server}"}

    ours = Entry(
        _pegboard,
        search,
        ("call_destructive_tool", {"name": f"{server}_{TOOL}", "arguments": ARGUMENTS}),
    )
    fast = Entry(_fastmcp, search, ("call_tool", {"name": full, "arguments": ARGUMENTS}))
    pack = {"tool_name": TOOL, "tool_input": ARGUMENTS}
    verb = f"{server}_invoke_tool" if servers > 1 else "invoke_tool"
    place = {"server": server, "command_name": TOOL, "parameters": ARGUMENTS}
    return {
        FIRST: ours,
        AGAIN: ours,
        "fastmcp proxy": fast,
        "mcp-compressor": Entry(_compressor, None, (verb, pack)),
        "lazy-mcp": Entry(
            _lazy, lambda _: ("list_commands", {"server": server}), ("invoke_command", place)
        ),
    }


def _pegboard(folder: Path, config: dict[str, Any]) -> Process:
    where = written(folder, "mcp.json", config)
    command = pegboard_command("--config", where, "--mode", "proxy")
    return Process(command, pegboard_env(folder, vectors=False))


def _fastmcp(folder: Path, config: dict[str, Any]) -> Process:
    return Process([peer("python"), str(FASTMCP), "proxy", written(folder, "fast.json", config)])


def _compressor(folder: Path, config: dict[str, Any]) -> Process:
    return Process([peer("mcp-compressor"), "--config", written(folder, "pack.json", config)])


def _lazy(folder: Path, config: dict[str, Any]) -> Process:
    return Process([peer("lazy-mcp"), "--config", lazy_config(config, folder)])


def measure(profile: Profile) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for servers in profile.servers:
        say(f"  {servers} servers")
        with tempfile.TemporaryDirectory() as name:
            found[str(servers)] = _of_size(servers, Path(name), profile)
    most = max(profile.servers)
    say(f"  {most} servers made with the official SDK")
    with tempfile.TemporaryDirectory() as name:
        found[WITH_SDK.format(most)] = _of_size(most, Path(name), profile, sdk=True)
    return {"tools_per_server": TOOLS, "servers": found}


def _of_size(servers: int, folder: Path, profile: Profile, *, sdk: bool = False) -> dict[str, Any]:
    tools = made(servers, TOOLS, folder)
    config = tools.configuration(sdk=sdk)
    warm = folder / "warm"
    warm.mkdir()
    with _pegboard(warm, config) as process:
        wait_until_known(process, len(tools.tools))
        settle(process.pid)

    def one(name: str, entry: Entry) -> dict[str, float]:
        say(f"    {name}")
        place = warm if name == AGAIN else Path(tempfile.mkdtemp(dir=folder))
        try:
            return once(name, entry, place, config, brief=sdk)
        except (WrongAnswer, Ended) as exc:
            if name in (FIRST, AGAIN):
                raise
            # So many servers at once can be too much for a peer, which is a finding too.
            said = " ".join(str(exc).split())[:200]
            raise Missing(f"it failed with {servers} servers: {said}") from exc

    contestants: dict[str, Callable[[], dict[str, float]]] = {BARE: bare}
    for name, entry in entries(servers).items():
        contestants[name] = lambda n=name, e=entry: one(n, e)
    return interleave(contestants, profile.rounds if servers < MANY else 1)


def bare() -> dict[str, float]:
    """What loading the official SDK alone takes, and no server started."""
    code = "import mcp, sys; print(1, flush=True); sys.stdin.read()"
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        process.stdout.readline()
        found = {
            "listed_s": time.perf_counter() - began,
            "cpu_s": cpu_seconds(process.pid),
            "memory_mb": memory_mb(process.pid),
        }
        process.communicate()
    return found


def once(
    name: str, entry: Entry, folder: Path, config: dict[str, Any], *, brief: bool
) -> dict[str, float]:
    """Start a contestant and look for a tool; then, unless in brief, look again and call it.

    Every answer is checked.
    """
    with entry.start(folder, config) as process:
        listing = process.tools()
        figures = {"listed_s": process.age}
        wanted = TOOL if name in ("lazy-mcp", "mcp-compressor") else entry.call[1]["name"]
        if entry.look:
            _found(name, process, entry.look("create"), wanted)
        elif TOOL not in str(listing):
            raise WrongAnswer(f"{name} does not list the tool")
        figures["found_s"] = process.age
        children = descendants(process.pid)
        figures |= {
            "cpu_s": cpu_seconds(process.pid, *children),
            "processes": len(children),
            "memory_mb": memory_mb(process.pid),
            "memory_with_servers_mb": memory_mb(process.pid, *children),
        }
        if not brief:
            figures |= _used(name, entry, process, wanted)
        return figures


def _used(name: str, entry: Entry, process: Process, wanted: str) -> dict[str, float]:
    """What one more search takes, and a call."""
    figures: dict[str, float] = {}
    if entry.look:
        began = process.age
        _found(name, process, entry.look("delete"), wanted.replace(TOOL, OTHER))
        figures["search_ms"] = (process.age - began) * 1e3
    began = process.age
    _called(name, entry, process)
    return {**figures, "call_s": process.age - began}


def _found(name: str, process: Process, look: tuple[str, dict[str, Any]], wanted: str) -> None:
    """Asked until the tool is among the answers: on its first start ours may not know it yet."""
    while True:
        text = text_of(process.call(*look))
        if wanted in text:
            return
        if name != FIRST or process.age > PATIENCE:
            raise WrongAnswer(f"{name} did not find {wanted}: {text[:300]}")
        time.sleep(0.02)


def _called(name: str, entry: Entry, process: Process) -> None:
    text = text_of(process.call(*entry.call))
    echo = echoed(text) or {}
    if not str(echo.get("called")).endswith(TOOL) or echo["arguments"] != ARGUMENTS:
        raise WrongAnswer(f"{name} did not call the tool: {text[:300]}")


def section(figures: dict[str, Any]) -> str:
    head = ["servers", "contestant", "listed, s", "tool found, s", "CPU until then, s",
            "another found, ms", "then one call, s", "processes", "its memory, MB",
            "with servers, MB"]  # fmt: skip
    keys = ("listed_s", "found_s", "cpu_s", "search_ms", "call_s", "processes", "memory_mb",
            "memory_with_servers_mb")  # fmt: skip
    rows = [
        [count, who, *(f.get(key) for key in keys)]
        for count, one in figures["servers"].items()
        for who, f in one.items()
        if "listed_s" in f
    ]
    gone = "".join(dict.fromkeys(missing(one) for one in figures["servers"].values()))
    return (
        f"Servers on stdio with {figures['tools_per_server']} tools each. Most of them start within milliseconds, so the figures"
        " show the gateway. Those *with the SDK* use the official SDK, as most servers do, and import it when they start, which"
        " keeps both cores busy. Times are from the start of the process to the response to `tools/list`, and to the first"
        " response that contains the wanted tool, which belongs to the last server (a search, or the list of that server; with"
        " mcp-compressor the tool list itself). Processes, CPU (including child processes) and memory are measured after that"
        " response and before any call. *Another found* is one more search, for another tool of that server. *First start* has"
        " an empty cache folder, and computes its vectors in the meantime. lazy-mcp is told which server to list.\n\n"
        + table(head, rows, words=2)
        + gone
    )


def plots(figures: dict[str, Any]) -> dict[str, str]:
    groups = {
        in_words(count): {w: median(f["found_s"]) for w, f in one.items() if "found_s" in f}
        for count, one in figures["servers"].items()
    }
    title = "From start until the tool wanted is found"
    return {"start": bars(title, groups, unit="seconds", log=True)}
