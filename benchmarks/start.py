"""How soon does a gateway of 1, 7 or 70 servers answer, and what does it hold meanwhile?"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.contestants import (
    FASTMCP,
    lazy_config,
    peer,
    pegboard_command,
    pegboard_env,
    wait_until_known,
    written,
)
from benchmarks.gateway_servers import configuration
from benchmarks.plots import bars
from benchmarks.runner import Profile, WrongAnswer, interleave, median, say
from benchmarks.tables import table
from benchmarks.wire import Process, descendants, memory_mb, text_of

TOOLS = 8
ARGUMENTS = {"project": "x"}


@dataclass(frozen=True, slots=True)
class Entry:
    """How one contestant is started, asked for a tool, and made to call one."""

    start: Callable[[Path, dict[str, Any]], Process]
    look: tuple[str, dict[str, Any]] | None
    call: tuple[str, dict[str, Any]]


def entries(servers: int) -> dict[str, Entry]:
    server = f"server{servers - 1}"
    name = "create_issue_0"
    full = f"{server}_{name}" if servers > 1 else name
    ours = Entry(
        _pegboard,
        ("search_tools", {"query": "create an issue"}),
        ("call_tool", {"name": f"{server}_{name}", "arguments": ARGUMENTS}),
    )
    fast = Entry(
        _fastmcp,
        ("search_tools", {"query": "create an issue"}),
        ("call_tool", {"name": full, "arguments": ARGUMENTS}),
    )
    prefix = f"{server}_"
    pack = {"tool_name": name, "tool_input": ARGUMENTS}
    compressor = Entry(_compressor, None, (f"{prefix}invoke_tool", pack))
    place = {"server": server, "command_name": name, "parameters": ARGUMENTS}
    lazy = Entry(_lazy, ("list_commands", {"server": server}), ("invoke_command", place))
    return {
        "pegboard, first start": ours,
        "pegboard, again": ours,
        "fastmcp proxy": fast,
        "mcp-compressor": compressor,
        "lazy-mcp": lazy,
    }


def _pegboard(folder: Path, config: dict[str, Any]) -> Process:
    where = written(folder, "mcp.json", config)
    return Process(pegboard_command("--config", where, "--face", "proxy"), pegboard_env(folder))


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
    return {"tools_per_server": TOOLS, "servers": found}


def _of_size(servers: int, folder: Path, profile: Profile) -> dict[str, Any]:
    config = configuration(servers, TOOLS)
    warm = folder / "warm"
    warm.mkdir()
    with _pegboard(warm, config) as process:
        wait_until_known(process, servers * TOOLS)

    def cold() -> Path:
        return Path(tempfile.mkdtemp(dir=folder))

    def one(name: str, entry: Entry) -> dict[str, float]:
        place = warm if name == "pegboard, again" else cold()
        return once(name, entry, place, config)

    contestants = {
        name: lambda n=name, e=entry: one(n, e) for name, entry in entries(servers).items()
    }
    return interleave(contestants, profile.rounds if servers < 70 else 1)


def once(name: str, entry: Entry, folder: Path, config: dict[str, Any]) -> dict[str, float]:
    """Start a contestant, look for a tool, call it; every answer is checked."""
    with entry.start(folder, config) as process:
        tools = process.tools()
        listed = process.age
        if entry.look:
            text = text_of(process.call(*entry.look))
            if name != "pegboard, first start" and "create_issue" not in text:
                raise WrongAnswer(f"{name} did not find the tool: {text[:300]}")
        looked = process.age
        children = descendants(process.pid)
        memory, together = memory_mb(process.pid), memory_mb(process.pid, *children)
        if name == "pegboard, first start":
            wait_until_known(process, len(config["mcpServers"]) * TOOLS)
        began = process.age
        _called(name, entry, process, tools)
        return {
            "listed_s": listed,
            "found_s": looked,
            "call_s": process.age - began,
            "processes": len(children),
            "memory_mb": memory,
            "memory_with_servers_mb": together,
        }


def _called(name: str, entry: Entry, process: Process, tools: list[dict[str, Any]]) -> None:
    listed = {tool["name"] for tool in tools}
    tool, arguments = entry.call
    if name == "mcp-compressor" and tool not in listed:
        tool = "invoke_tool"
    text = text_of(process.call(tool, arguments))
    if "create_issue_0" not in text or "rror" in text:
        raise WrongAnswer(f"{name} did not call the tool: {text[:300]}")


def section(figures: dict[str, Any]) -> str:
    head = ["servers", "contestant", "listed, s", "tool found, s", "then one call, s",
            "processes started", "its memory, MB", "with servers, MB"]  # fmt: skip
    keys = ("listed_s", "found_s", "call_s", "processes", "memory_mb", "memory_with_servers_mb")
    rows = [
        [count, who, *(f.get(key) for key in keys)]
        if "listed_s" in f
        else [count, f"{who}: {f['missing']}", *[None] * 6]
        for count, one in figures["servers"].items()
        for who, f in one.items()
    ]
    return (
        f"Servers on stdio with {figures['tools_per_server']} tools each that start at once, so"
        " that what is seen is the gateway. From starting the process to the answer of"
        " `tools/list`, and to the first answer that shows the tool wanted (a search, or the list"
        " of its server; with mcp-compressor the list itself). Processes and memory are those after"
        " that answer and before any call. *First start* has an empty cache folder and answers"
        " before it has seen all servers; its call waits until it has. lazy-mcp is told which"
        " server to list.\n\n" + table(head, rows)
    )


def plots(figures: dict[str, Any]) -> dict[str, str]:
    groups = {
        f"{count} servers": {w: median(f["found_s"]) for w, f in one.items() if "found_s" in f}
        for count, one in figures["servers"].items()
    }
    title = "From start until the tool wanted is found"
    return {"start": bars(title, groups, unit="seconds", log=True)}
