"""The data of benchmarks: catalogs and queries, most of which the project does not hold."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.runner import Missing

CATALOG_SERVER = Path(__file__).with_name("catalog_server.py")
SDK_CATALOG_SERVER = Path(__file__).with_name("sdk_catalog_server.py")
NOUNS = ("issue", "invoice", "branch", "customer", "ticket", "page", "build", "image", "alert")
PER_SERVER = 500
VERBS = ("create", "list", "update", "delete", "search", "export", "archive", "restore")


def bench_folder() -> Path | None:
    """The folder in `PEGBOARD_BENCH`, or `../shared/bench` where that exists; else none."""
    given = os.environ.get("PEGBOARD_BENCH")
    folder = Path(given) if given else Path(__file__).parents[2] / "shared" / "bench"
    return folder if folder.is_dir() else None


def data(path: str) -> Path:
    folder = bench_folder()
    if folder is None or not (folder / path).exists():
        raise Missing(f"no data `{path}` (set PEGBOARD_BENCH to the folder that has it)")
    return folder / path


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@dataclass(frozen=True)
class Catalog:
    """Tools in a file of JSON lines, and queries over them where there are any."""

    name: str
    path: Path
    queries: tuple[dict[str, Any], ...] = ()

    @cached_property
    def tools(self) -> list[dict[str, Any]]:
        return records(self.path)

    @cached_property
    def servers(self) -> list[str]:
        return sorted({tool["server"] for tool in self.tools})

    @cached_property
    def by_id(self) -> dict[str, dict[str, Any]]:
        return {tool["id"]: tool for tool in self.tools}

    @cached_property
    def addresses(self) -> dict[str, str]:
        """The id of a tool by each name that a gateway may give it, written alike."""
        bare = Counter(alike(tool["name"]) for tool in self.tools)
        found = {alike(f"{t['server']}_{t['name']}"): t["id"] for t in self.tools}
        alone = {alike(t["name"]): t["id"] for t in self.tools if bare[alike(t["name"])] == 1}
        return {**alone, **found}

    def id_of(self, shown: str) -> str | None:
        return self.addresses.get(alike(shown))

    @property
    def runnable(self) -> bool:
        """Whether its servers can all be started on one machine."""
        return len(self.servers) <= 100

    def configuration(self, *, sdk: bool = False) -> dict[str, Any]:
        """An `mcpServers` file in which every server has its part of the tools.

        They start in milliseconds, or are made with the official SDK and load that first.
        """
        arguments = self.sdk_arguments if sdk else self.arguments
        return {
            "mcpServers": {
                server: {"command": sys.executable, "args": arguments(server)}
                for server in self.servers
            }
        }

    def arguments(self, server: str) -> list[str]:
        return ["-S", str(CATALOG_SERVER), str(self.path), server]

    def sdk_arguments(self, server: str) -> list[str]:
        return [str(SDK_CATALOG_SERVER), str(self.path), server]


def alike(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name.lower())


def load_catalog(name: str, folder: Path) -> Catalog:
    """A catalog by its name; what has to be written for it goes into the folder.

    Raises:
        Missing: This machine does not have it.
    """
    if name in ("memory", "tracker"):
        return _example(name, folder)
    if name.startswith("made_"):
        servers, count = map(int, name.removeprefix("made_").split("x"))
        return made(servers, count, folder)
    if name.startswith("first_"):
        return _first(int(name.removeprefix("first_")), folder)
    if name in ("projects_470", "toucan_5190"):
        return Catalog(name, _complete(data(f"catalogs/{name}.jsonl"), folder, name))
    path = _complete(data(f"sets/{name}/tools.jsonl"), folder, name)
    return Catalog(name, path, tuple(records(data(f"sets/{name}/queries.jsonl"))))


def _complete(path: Path, folder: Path, name: str) -> Path:
    """The same tools, each with an id and a server."""
    return _write(folder / f"{name}.jsonl", records(path))


def _write(path: Path, tools: list[dict[str, Any]]) -> Path:
    whole = [
        {**tool, "server": tool.get("server") or "tools", "id": tool.get("id") or tool["name"]}
        for tool in tools
    ]
    path.write_text("".join(json.dumps(tool) + "\n" for tool in whole), encoding="utf-8")
    return path


def made(servers: int, count: int, folder: Path) -> Catalog:
    """So many servers with so many tools each, as real ones are: a paragraph, four parameters."""
    tools = [_made(f"server{s}", number) for s in range(servers) for number in range(count)]
    name = f"made_{servers}x{count}"
    return Catalog(name, _write(folder / f"{name}.jsonl", tools))


def beside(tools: int, folder: Path) -> Catalog:
    """So many made tools, on as many servers as have 500 each."""
    servers = max(1, tools // PER_SERVER)
    return made(servers, tools // servers, folder)


def _made(server: str, number: int) -> dict[str, Any]:
    verb, noun = VERBS[number % len(VERBS)], NOUNS[number // len(VERBS) % len(NOUNS)]
    name = f"{verb}_{noun}_{number}"
    properties = {
        "project": {"type": "string", "description": f"The project of the {noun}."},
        "id": {"type": "integer", "description": f"Which {noun}.", "minimum": 1},
        "state": {"type": "string", "enum": ["open", "closed", "all"], "default": "open"},
        "filter": {
            "type": "object",
            "properties": {
                "author": {"type": "string", "description": "Login of the author."},
                "since": {"type": "string", "format": "date-time"},
            },
        },
    }
    return {
        "id": f"{server}.{name}",
        "server": server,
        "name": name,
        "description": f"{verb.title()} one {noun} of {server}. The {noun} is found by its id "
        "within the given project, and fields that are not given keep the value that they have. "
        f"Returns the {noun} as it is afterwards, with its history.",
        "inputSchema": {"type": "object", "properties": properties, "required": ["project"]},
    }


def _first(count: int, folder: Path) -> Catalog:
    """The first tools of a catalog of many servers."""
    tools = records(data("sets/dust_mcp/tools.jsonl"))[:count]
    return Catalog(f"first_{count}", _write(folder / f"first_{count}.jsonl", tools))


def _example(name: str, folder: Path) -> Catalog:
    """An example server of ours, with every second tool asked for by its own summary."""
    from importlib import import_module

    board = import_module(f"examples.{name}").build_board()
    tools = [{**tool.wire(), "server": name, "id": tool.name} for tool in board.tools()]
    asked = [
        {"query": tool.summary, "relevant": [tool.name]}
        for tool in board.tools()[::2]
        if tool.summary
    ]
    return Catalog(name, _write(folder / f"{name}.jsonl", tools), tuple(asked))
