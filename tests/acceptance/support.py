"""What the acceptance suite is played with: the example servers, over real clients of both eras."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import StdioServerParameters
from tests.conformance.clients import ROOT, Era, Scenario, Step, Transcript, play_python

from examples import memory, tracker
from pegboard import Pegboard
from pegboard.server.serve import build_server
from pegboard.tokens import count_tokens

FACES = ("eager", "stub", "index", "hierarchy", "proxy", "dynamic")
LIST: Step = {"do": "list"}
READ_BY_MODELS = ("name", "description", "inputSchema")

in_both_eras = pytest.mark.parametrize("era", ["legacy", "modern"])


def call(name: str, /, *, meta: dict[str, Any] | None = None, **arguments: Any) -> Step:
    return {"do": "call", "name": name, "arguments": arguments, "meta": meta}


def ask(method: str, /, **params: Any) -> Step:
    return {"do": "raw", "method": method, "params": params}


def play(board: Pegboard, era: Era, steps: Scenario, *, face: str | None = None) -> Transcript:
    """The steps, played by a client in the same process."""
    environ = {"PEGBOARD_FACE": face} if face else {}
    return play_python(build_server(board, environ=environ), era, steps)


def play_on_stdio(
    module: str, era: Era, steps: Scenario, *, face: str, **environ: str
) -> Transcript:
    """The steps, played against a process of its own."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", module],
        cwd=str(ROOT),
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
            "PEGBOARD_FACE": face,
            **environ,
        },
    )
    return play_python(server, era, steps)


def memory_board() -> Pegboard:
    return memory.build_board()


def tracker_board() -> Pegboard:
    return tracker.build_board()


BOARDS: dict[str, Callable[[], Pegboard]] = {"memory": memory_board, "tracker": tracker_board}


def twenty_tools(folder: Path, **options: Any) -> Pegboard:
    """Twenty tools of the memory as a catalogue file describes them."""
    tools = [tool.wire() for tool in memory_board().tools()[:20]]
    file = folder / "twenty.json"
    file.write_text(json.dumps({"tools": tools}), "utf-8")
    return Pegboard.from_catalog(file, **options)


def as_read(tools: list[dict[str, Any]]) -> int:
    """Tokens of what clients put before a model: names, descriptions, input schemas."""
    return sum(count_tokens({k: t[k] for k in READ_BY_MODELS if k in t}) for t in tools)
