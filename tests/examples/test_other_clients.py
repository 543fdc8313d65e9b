"""The example clients of other frameworks: the real framework, its own scripted model, our gateway.

They ask for another version of the MCP SDK than ours, so they run in an environment of their own,
which `make test` makes from `clients.lock`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import missing_part

ROOT = Path(__file__).parents[2]
PYTHON = Path(os.environ.get("PEGBOARD_CLIENTS", ROOT / ".venv-clients/bin")) / "python"
PATHS = {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command of a gateway in front of the example tracker, run by our own Python.

    The tracker has been listed once, as it is for whoever has looked at what it costs.
    """
    if not PYTHON.exists():
        missing_part("the clients of other frameworks are not installed (make test does it)")
    folder = tmp_path_factory.mktemp("gateway")
    tracker = {"command": sys.executable, "args": ["-m", "examples.tracker"], "cwd": str(ROOT)}
    entry = {**tracker, "env": {**PATHS, "PEGBOARD_MODE": "eager"}}
    config = folder / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"tracker": entry}}))
    # The clients hand hardly any of their environment on, so it is part of the command.
    surroundings = [f"PYTHONPATH={PATHS['PYTHONPATH']}", f"PEGBOARD_HOME={folder / 'home'}"]
    pegboard = ["env", *surroundings, sys.executable, "-m", "pegboard"]
    subprocess.run([*pegboard, "measure", str(config)], check=True, capture_output=True)
    return [*pegboard, "serve", "--config", str(config), "--mode", "proxy"]


def run(program: str, command: list[str], folder: Path) -> dict[str, Any]:
    """What a scripted agent did with a gateway's tools."""
    done = subprocess.run(
        [PYTHON, ROOT / f"tests/examples/clients/drive_{program}.py", *command],
        capture_output=True,
        text=True,
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(ROOT)},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("program", ["openai_agents", "langchain"])
def test_an_agent_searches_calls_and_reads_what_is_wrong(
    program: str, gateway: list[str], tmp_path: Path
) -> None:
    did = run(program, gateway, tmp_path)
    found, projects, refused = did["read"]
    assert {"search_tools", "call_tool"} <= set(did["shown"])
    assert len(did["shown"]) < 12
    assert "tracker_list_projects" in found
    assert "WEB" in projects
    assert "`issue` is missing" in refused
    assert did["answer"] == "done"
