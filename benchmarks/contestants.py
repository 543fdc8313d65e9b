"""The contestants: how each is started over a catalog, and how its own meta-tools are walked.

A walk is what a reader does who knows a tool when it sees it, but has to be shown it first: search
or list, describe where what was shown lacks a parameter that the call needs, call. Nothing is
known that was not read: the name, and every required parameter, must have been shown.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from benchmarks.data import Catalog
from benchmarks.runner import ROOT, Missing
from benchmarks.wire import Process, text_of
from pegboard import count_tokens

PEERS = Path(os.environ.get("PEGBOARD_PEERS", ROOT / ".venv-peers")) / "bin"
VECTORS = ROOT / ".cache" / "benchmarks" / "vectors"
"""Vectors of tools by their content, kept between runs; what making them costs is in `scale`."""
PREPARED = 1_000
"""So many tools get their vectors before they are searched; more would take minutes."""
FASTMCP = Path(__file__).with_name("fastmcp_peer.py")
READ = ("name", "description", "inputSchema")
LAZY = {"_meta": {"io.github.pegboard/lazy": True}}


@dataclass(frozen=True, slots=True)
class Step:
    """One round trip: what the model wrote and what it then read, in tokens."""

    kind: str
    sent: int
    received: int


@dataclass
class Ledger:
    """One conversation: every round trip, and all that has been read in it."""

    process: Process
    catalog: Catalog
    listing: str
    steps: list[Step] = field(default_factory=list[Step])
    read: dict[str, str] = field(default_factory=dict[str, str])

    def call(self, kind: str, name: str, arguments: dict[str, Any]) -> str:
        text = text_of(self.process.call(name, arguments))
        request = json.dumps({"name": name, "arguments": arguments}, separators=(",", ":"))
        self.steps.append(Step(kind, count_tokens(request), count_tokens(text)))
        return text

    def once(self, kind: str, name: str, arguments: dict[str, Any]) -> str:
        """As `call`, unless this very thing has been read before."""
        key = json.dumps([name, arguments])
        if key not in self.read:
            self.read[key] = self.call(kind, name, arguments)
        return self.read[key]


@dataclass(frozen=True, slots=True)
class Task:
    """Something to do: the words for it, the tools that would be right, arguments for each."""

    query: str
    arguments: dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Found:
    """What a walk led to before the call: the tool's id, the name to call, what was said of it."""

    id: str | None
    name: str
    first: str | None = None
    """The id of the tool that was shown first, for who takes the first without reading."""


class Contestant(Protocol):
    """A way to put a catalog before a model."""

    @property
    def name(self) -> str: ...
    def start(self, catalog: Catalog, folder: Path) -> Process: ...
    def find(self, ledger: Ledger, task: Task) -> Found: ...
    def call(self, ledger: Ledger, found: Found, arguments: dict[str, Any]) -> str: ...


def listing_of(process: Process) -> str:
    """What a model reads of the list: name, description and parameters, as compact JSON."""
    parts = [{key: tool[key] for key in READ if key in tool} for tool in process.tools()]
    return "\n".join(json.dumps(p, separators=(",", ":"), ensure_ascii=False) for p in parts)


def peer(program: str) -> str:
    path = PEERS / program
    if not path.exists():
        raise Missing(f"{program} is not installed (make bench installs it into .venv-peers)")
    return str(path)


@cache
def versions() -> dict[str, str]:
    """The version of every contestant that is here."""
    from importlib.metadata import PackageNotFoundError, distributions, version

    found: dict[str, str] = {}
    for name in ("pegboard", "mcp"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "from this tree"
    places = [str(p) for p in PEERS.parent.glob("lib/python*/site-packages")]
    wanted = ("fastmcp", "mcp-compressor", "lazy-mcp")
    there = {d.name: d.version for d in distributions(path=places) if d.name in wanted}
    return found | there


def written(folder: Path, name: str, value: Any) -> str:
    path = folder / name
    path.write_text(json.dumps(value), encoding="utf-8")
    return str(path)


# Pegboard, one contestant per mode.


@dataclass(frozen=True)
class Pegboard:
    mode: str

    @property
    def name(self) -> str:
        return f"pegboard {self.mode}"

    def start(self, catalog: Catalog, folder: Path) -> Process:
        where = ["--catalog", str(catalog.path)]
        if catalog.runnable:
            config = written(folder, "mcp.json", catalog.configuration())
            where = ["--config", config]
        env = pegboard_env(folder)
        if self.mode == "proxy" and len(catalog.tools) <= PREPARED:
            # Its vectors are made before, however busy the machine is: it ranks as it does later.
            index = [sys.executable, "-m", "pegboard", "index", *where]
            subprocess.run(index, env={**os.environ, **env}, capture_output=True, check=True)
        process = Process(pegboard_command(*where, "--mode", self.mode), env)
        wait_until_known(process, len(catalog.tools))
        return process

    def find(self, ledger: Ledger, task: Task) -> Found:
        if self.mode == "proxy":
            return self._search(ledger, task)
        if self.mode == "index":
            return self._index(ledger, task)
        if self.mode == "hierarchy":
            return self._hierarchy(ledger, task)
        return shown_right(ledger, task, re.findall(r'^\{"name":"([^"]+)"', ledger.listing, re.M))

    def _search(self, ledger: Ledger, task: Task) -> Found:
        text = ledger.call("search", "search_tools", {"queries": [task.query]})
        lines = shown_lines(text)
        found = shown_right(ledger, task, list(lines), ranked=True)
        if found.id not in task.arguments:
            return found
        wanted = task.arguments[found.id]
        if "(" not in lines[found.name]:  # shown by its name alone: ask for that name
            lines |= shown_lines(ledger.call("search", "search_tools", {"queries": [found.name]}))
        if not names_all(lines[found.name], wanted):
            inner = {"name": "describe_tools", "arguments": {"names": [found.name]}}
            ledger.call("describe", "call_tool", inner)
        return found

    def _index(self, ledger: Ledger, task: Task) -> Found:
        asked: dict[str, Any] = {}
        while True:
            answer = json.loads(ledger.once("list", "list_available_tools", asked))
            found = shown_right(ledger, task, [tool["name"] for tool in answer["tools"]])
            if found.id in task.arguments or "next" not in answer:
                break
            # A listing that is too long comes in pages: the reader turns to the right category.
            asked = {"category": answer["next"] if asked else server_of(ledger, task)}
        ledger.once("describe", "get_tool_description", {"tool_name": found.name})
        return found

    def _hierarchy(self, ledger: Ledger, task: Task) -> Found:
        ledger.once("list", "tools_list_categories", {})
        category = server_of(ledger, task)
        text = ledger.once("list", "tools_list_tools", {"category": category})
        found = shown_right(ledger, task, [tool["name"] for tool in json.loads(text)["tools"]])
        place = {"category": category, "tool": found.name}
        ledger.once("describe", "tools_get_schema", place)
        return found

    def call(self, ledger: Ledger, found: Found, arguments: dict[str, Any]) -> str:
        if self.mode == "proxy":
            tool = ledger.catalog.by_id[found.id or ""]
            inner = {"name": found.name, "arguments": arguments}
            return ledger.call("call", door(tool, ledger.listing), inner)
        if self.mode == "hierarchy":
            category = ledger.catalog.by_id[found.id or ""]["server"]
            place = {"category": category, "tool": found.name}
            return ledger.call("call", "tools_dispatch", {**place, "params": arguments})
        return ledger.call("call", found.name, arguments)


def shown_lines(text: str) -> dict[str, str]:
    """Each tool that an answer of our search shows, best first, with what it says of the tool."""
    lines: dict[str, str] = {}
    for line in text.splitlines():
        told = line.removeprefix("No tool clearly does this. Nearest: ")
        if match := re.match(r"([^\s(:]+)\(", told):
            lines.setdefault(match[1], told)
        elif told.startswith("Also: "):
            names = re.sub(r" \([^)]*\)", "", told.removeprefix("Also: ")).split(", ")
            for name in names:
                lines.setdefault(name, "")
    return lines


def pegboard_command(*options: str) -> list[str]:
    return [sys.executable, "-m", "pegboard", "serve", *options]


def pegboard_env(folder: Path, *, vectors: bool = True) -> dict[str, str]:
    """Where it keeps what it knows; vectors are those of earlier runs, unless they are measured."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    if vectors and not (home / "vectors").exists():
        VECTORS.mkdir(parents=True, exist_ok=True)
        (home / "vectors").symlink_to(VECTORS, target_is_directory=True)
    return {"PEGBOARD_HOME": str(home), "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}


def wait_until_known(process: Process, tools: int, patience: float = 120) -> None:
    """Until the gateway has seen every server once; it answers before, with what it knows."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if len(process.request("tools/list", LAZY)["tools"]) >= tools:
            return
        time.sleep(0.1)
    raise Missing(f"not all {tools} tools were known within {patience:.0f} s")


def door(tool: dict[str, Any], listing: str) -> str:
    """The call tool for this tool's risk, where there is one per risk."""
    notes = tool.get("annotations") or {}
    if '"call_write_tool"' not in listing or notes.get("readOnlyHint"):
        return "call_tool"
    mild = notes.get("destructiveHint") is False
    return "call_write_tool" if mild else "call_destructive_tool"


def shown_right(ledger: Ledger, task: Task, names: list[str], *, ranked: bool = False) -> Found:
    """The first right tool among what was shown; else the first shown."""
    ids = [ledger.catalog.id_of(name) for name in names]
    first = ids[0] if ranked and ids else None
    for id, name in zip(ids, names, strict=True):
        if id in task.arguments:
            return Found(id, name, first)
    return Found(ids[0], names[0], first) if names else Found(None, "")


def server_of(ledger: Ledger, task: Task) -> str:
    """The server that a reader picks who knows where the tool is: the favour of all listers."""
    return ledger.catalog.by_id[next(iter(task.arguments))]["server"]


def names_all(text: str, arguments: dict[str, Any]) -> bool:
    return all(name in text for name in arguments)


# The peers.


@dataclass(frozen=True)
class FastMCP:
    """Its search over tools of its own: a proxy says the same, and starts every server anew."""

    kind: str = "bm25"
    markdown: bool = False

    @property
    def name(self) -> str:
        return f"fastmcp {self.kind}{' markdown' if self.markdown else ''}"

    def start(self, catalog: Catalog, folder: Path) -> Process:
        given = ["native", str(catalog.path), self.kind, *(["markdown"] * self.markdown)]
        return Process([peer("python"), str(FASTMCP), *given])

    def find(self, ledger: Ledger, task: Task) -> Found:
        words = [word for word in re.findall(r"\w+", task.query.lower()) if len(word) > 3]
        asked = {"pattern": "|".join(words)} if self.kind == "regex" else {"query": task.query}
        text = ledger.call("search", "search_tools", asked)
        if self.markdown:
            names = re.findall(r"^### (\S+)", text, re.M)
        else:
            names = [tool["name"] for tool in json.loads(text or "[]")]
        return shown_right(ledger, task, names, ranked=True)

    def call(self, ledger: Ledger, found: Found, arguments: dict[str, Any]) -> str:
        inner = {"name": found.name, "arguments": arguments}
        return ledger.call("call", "call_tool", inner)


def all_servers(catalog: Catalog) -> None:
    if not catalog.runnable:
        raise Missing(f"needs {len(catalog.servers)} running servers")


@dataclass(frozen=True)
class Compressor:
    name: str = "mcp-compressor"

    def start(self, catalog: Catalog, folder: Path) -> Process:
        all_servers(catalog)
        config = written(folder, "compressor.json", catalog.configuration())
        return Process([peer("mcp-compressor"), "--config", config])

    def find(self, ledger: Ledger, task: Task) -> Found:
        id = next(iter(task.arguments))
        tool = ledger.catalog.by_id[id]
        name = self._tool(ledger, tool["server"], "get_tool_schema")
        ledger.once("describe", name, {"tool_name": tool["name"]})
        return Found(id if tool["name"] in ledger.listing else None, tool["name"])

    def _tool(self, ledger: Ledger, server: str, verb: str) -> str:
        """With one server its name is no prefix."""
        name = f"{server}_{verb}"
        return name if f'"{name}"' in ledger.listing else verb

    def call(self, ledger: Ledger, found: Found, arguments: dict[str, Any]) -> str:
        server = ledger.catalog.by_id[found.id or ""]["server"]
        inner = {"tool_name": found.name, "tool_input": arguments}
        return ledger.call("call", self._tool(ledger, server, "invoke_tool"), inner)


@dataclass(frozen=True)
class LazyMcp:
    name: str = "lazy-mcp"

    def start(self, catalog: Catalog, folder: Path) -> Process:
        all_servers(catalog)
        return Process([peer("lazy-mcp"), "--config", lazy_config(catalog.configuration(), folder)])

    def find(self, ledger: Ledger, task: Task) -> Found:
        ledger.once("list", "list_servers", {})
        id = next(iter(task.arguments))
        tool = ledger.catalog.by_id[id]
        text = ledger.once("list", "list_commands", {"server": tool["server"]})
        asked = {"server": tool["server"], "command_names": [tool["name"]]}
        ledger.once("describe", "describe_commands", asked)
        return Found(id if f'"{tool["name"]}"' in text else None, tool["name"])

    def call(self, ledger: Ledger, found: Found, arguments: dict[str, Any]) -> str:
        server = ledger.catalog.by_id[found.id or ""]["server"]
        place = {"server": server, "command_name": found.name}
        return ledger.call("call", "invoke_command", {**place, "parameters": arguments})


def lazy_config(config: dict[str, Any], folder: Path) -> str:
    """The same servers as lazy-mcp wants them written."""
    servers = [
        {"name": name, "description": name, "command": [one["command"], *one["args"]]}
        if "command" in one
        else {"name": name, "description": name, "url": one["url"]}
        for name, one in config["mcpServers"].items()
    ]
    return written(folder, "lazy.json", {"servers": servers})


def everyone() -> list[Contestant]:
    """Who puts a catalog before a model; the first lists everything, as without any of them."""
    return [
        Pegboard("eager"),
        Pegboard("proxy"),
        Pegboard("index"),
        Pegboard("hierarchy"),
        FastMCP("bm25"),
        FastMCP("bm25", markdown=True),
        FastMCP("regex"),
        Compressor(),
        LazyMcp(),
    ]


def echoed(text: str) -> dict[str, Any] | None:
    """What the catalog's server says that it was called with, however it was wrapped."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    if isinstance(value, dict) and "called" in value:
        return value
    if isinstance(value, dict) and value.get("content"):
        return echoed(value["content"][0].get("text", ""))
    return None
