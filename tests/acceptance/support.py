"""What the acceptance suite is played with: the example servers, over real clients of both eras."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import pytest
from examples.memory.fields import FIELDS
from examples.memory.seed import seed
from examples.memory.server import TOOLBOXES, open_memory
from mcp import StdioServerParameters
from tests.conformance.clients import ROOT, Era, Scenario, Step, Transcript, play_python

from examples import memory, tracker
from pegboard import Pegboard
from pegboard.server.serving import build_server
from pegboard.tokens import count_tokens

MODES = ("eager", "stub", "index", "hierarchy", "proxy", "dynamic")
LIST: Step = {"do": "list"}
READ_BY_MODELS = ("name", "description", "inputSchema")

in_both_eras = pytest.mark.parametrize("era", ["legacy", "modern"])


def call(name: str, /, *, meta: dict[str, Any] | None = None, **arguments: Any) -> Step:
    return {"do": "call", "name": name, "arguments": arguments, "meta": meta}


def ask(method: str, /, **params: Any) -> Step:
    return {"do": "raw", "method": method, "params": params}


def play(board: Pegboard, era: Era, steps: Scenario, *, mode: str | None = None) -> Transcript:
    """The steps, played by a client in the same process."""
    environ = {"PEGBOARD_MODE": mode} if mode else {}
    return play_python(build_server(board, environ=environ), era, steps)


def play_on_stdio(
    module: str, era: Era, steps: Scenario, *, mode: str, **environ: str
) -> Transcript:
    """The steps, played against a process of its own."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", module],
        cwd=str(ROOT),
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
            "PEGBOARD_MODE": mode,
            **environ,
        },
    )
    return play_python(server, era, steps)


def memory_board() -> Pegboard:
    return memory.build_board()


def tracker_board() -> Pegboard:
    return tracker.build_board()


BOARDS: dict[str, Callable[[], Pegboard]] = {"memory": memory_board, "tracker": tracker_board}


TWENTY = (
    "create_episode", "get_episode", "query_memory", "delete_episode", "bulk_episodes",
    "analyze_patterns", "search_patterns", "recommend_patterns", "advanced_pattern_analysis",
    "batch_create_episodes", "batch_add_steps", "batch_complete_episodes", "quality_metrics",
    "health_check", "list_episodes", "update_episode", "add_episode_step", "complete_episode",
    "tag_episode", "link_episodes",
)  # fmt: skip
"""The tools that the design names, and six of the memory beside them."""


def twenty_tools() -> Pegboard:
    """The memory with twenty tools and no pins."""
    memory_board = Pegboard("memory")
    database = open_memory()
    seed(database)
    for toolbox in TOOLBOXES:
        toolbox.hang(memory_board, database, FIELDS)
    for tool in memory_board.tools():
        if tool.name not in TWENTY:
            memory_board.disable(tool.name)
    return memory_board


def twelve_tools() -> Pegboard:
    """Twelve small tools in the `index` mode, each registered where it is written."""
    board = Pegboard("twelve", mode="index")
    for number in range(12):
        verb = ("read", "write", "list", "find")[number % 4]
        noun = ("note", "task", "file")[number % 3]

        def act(title: str, limit: int = 10) -> str:
            return f"{title} {limit}"

        register = board.tool(
            f"{verb}_{noun}_{number}", category=noun, summary=f"{verb} a {noun} by title"
        )
        register(act)
    return board


def as_read(tools: list[dict[str, Any]]) -> int:
    """Tokens of what clients put before a model: names, descriptions, input schemas."""
    return sum(count_tokens({k: t[k] for k in READ_BY_MODELS if k in t}) for t in tools)
