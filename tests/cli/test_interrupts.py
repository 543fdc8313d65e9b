"""Ctrl-C ends a command at once and without a traceback, whatever it is waiting for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SILENT = "import time; open({mark!r}, 'w').close(); time.sleep(600)"


@pytest.mark.parametrize("command", ["list", "search", "measure"])
def test_a_command_that_waits_for_a_server_can_be_interrupted(command: str, tmp_path: Path) -> None:
    mark, config = tmp_path / "started", tmp_path / "servers.json"
    server = {"command": sys.executable, "args": ["-c", SILENT.format(mark=str(mark))]}
    config.write_text(json.dumps({"mcpServers": {"silent": server}}))
    words = [command, *(["x"] if command == "search" else []), "--config", str(config)]
    process = _start(*words, home=tmp_path)
    try:
        deadline = time.monotonic() + 30
        while not mark.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=15)
    finally:
        process.kill()
    assert mark.exists()
    assert (process.returncode, "Traceback" in err) == (130, False), err


def test_a_command_can_be_interrupted_while_it_is_loaded(tmp_path: Path) -> None:
    for delay in (0.1, 0.2, 0.3):
        process = _start("demo", home=tmp_path)
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=15)
        assert "pegboard/cli" not in err


def _start(*words: str, home: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "pegboard", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PEGBOARD_HOME": str(home / "pegboard")},
    )
