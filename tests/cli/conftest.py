"""A catalog and a configuration that the commands are run on."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.boards import office_board
from tests.cli.terminal import ROOT


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    """The office's tools in a file."""
    path = tmp_path / "office.json"
    tools = [{**t.wire(), "id": t.id, "category": t.category} for t in office_board().tools()]
    path.write_text(json.dumps({"tools": tools}))
    return path


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A client's file with one server that answers."""
    path = tmp_path / "mcp.json"
    entry = {
        "command": sys.executable,
        "args": ["-m", "tests.boards"],
        "cwd": str(ROOT),
        "env": {"PYTHONPATH": "src:.", "OFFICE_MODE": "eager"},
    }
    path.write_text(json.dumps({"mcpServers": {"office": entry}}))
    return path
