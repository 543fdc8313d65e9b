"""Every earlier system can be switched back: an operator sets one variable, and code is unchanged.

The order is flag, environment, address or header, code or configuration, `auto`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import StdioServerParameters
from tests.acceptance.support import LIST, in_both_eras
from tests.conformance.clients import ROOT, Era, play_python
from tests.gateway.support import polite, write

ATTACHED = """
from mcp.server.mcpserver import MCPServer
from pegboard import attach

server = MCPServer("flat")

@server.tool()
def greet(name: str) -> str:
    "Say hello."
    return f"Hello {name}"

attach(server, mode="proxy")
server.run()
"""
BOARD = """
from pegboard import Pegboard

board = Pegboard("own", mode="proxy")

@board.tool
def greet(name: str) -> str:
    "Say hello."
    return f"Hello {name}"

board.run()
"""


def listed(folder: Path, era: Era, arguments: list[str], mode: str | None = None) -> list[str]:
    """The names that a process lists, with `PEGBOARD_MODE` in its environment or without."""
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "PEGBOARD_HOME": str(folder / "home"),
    }
    if mode is not None:
        environ["PEGBOARD_MODE"] = mode
    process = StdioServerParameters(
        command=sys.executable, args=arguments, cwd=str(folder), env=environ
    )
    return play_python(process, era, {"list": LIST})["list"].names


@in_both_eras
@pytest.mark.parametrize("code", [ATTACHED, BOARD], ids=["attach", "board"])
def test_the_environment_wins_over_code(code: str, era: Era, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(code, "utf-8")
    assert listed(tmp_path, era, ["server.py"])[0] == "search_tools"
    assert listed(tmp_path, era, ["server.py"], "eager") == ["greet"]


@in_both_eras
def test_the_environment_wins_over_a_gateways_file_and_a_flag_over_both(
    era: Era, tmp_path: Path
) -> None:
    write(tmp_path, {"one": polite()})
    (tmp_path / "pegboard.toml").write_text('mode = "proxy"\nimport = ["mcp.json"]\n', "utf-8")
    serve = ["-m", "pegboard", "serve", "--config", "pegboard.toml"]
    assert listed(tmp_path, era, serve)[0] == "search_tools"
    assert "search_tools" not in listed(tmp_path, era, serve, "eager")
    by_flag = listed(tmp_path, era, [*serve, "--mode", "index"], "eager")
    assert by_flag == ["list_available_tools", "get_tool_description"]


def test_the_command_line_shows_the_same_list(tmp_path: Path) -> None:
    tools = '[{"name": "greet", "description": "Say hello.", "inputSchema": {"type": "object"}}]'
    (tmp_path / "tools.json").write_text(tools, "utf-8")

    def shown(*flags: str, mode: str = "") -> str:
        command = [sys.executable, "-m", "pegboard", "list", "--catalog", "tools.json", *flags]
        environ = {**os.environ, "PEGBOARD_MODE": mode}
        return subprocess.run(
            command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=True
        ).stdout

    assert "tools_dispatch" in shown(mode="hierarchy")
    assert "search_tools" in shown("--mode", "proxy", mode="hierarchy")


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("PEGBOARD_MODE", "prox", "PEGBOARD_MODE: Unknown mode 'prox'. Did you mean 'proxy'?"),
        (
            "ALWAYS_AVAILABLE_TOOLS",
            "greet,gret",
            "A pin in ALWAYS_AVAILABLE_TOOLS names no tool: Unknown tool: 'gret'. Nearest: greet.",
        ),
    ],
)
def test_a_slip_in_the_environment_is_a_message_and_no_traceback(
    variable: str, value: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "server.py").write_text(BOARD, "utf-8")
    environ = {**os.environ, variable: value}
    command = [sys.executable, "server.py"]
    ended = subprocess.run(
        command, cwd=tmp_path, env=environ, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert ended.returncode == 3
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr
