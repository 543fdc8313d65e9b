"""Starting from disk: cached catalogs are read without starting servers or importing what does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.support import ROOT, polite, write

from examples.tracker import build_board
from pegboard.gateway.cached_board import open_cached_board
from pegboard.gateway.config_source import ConfigSource
from pegboard.gateway.gateway_board import GatewayBoard
from pegboard.upstream.catalog_cache import CatalogCache, ServerProfile

SERVERS, TOOLS_OF_EACH = 70, 8


@pytest.fixture(scope="module")
def seventy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of seventy servers, none of which can be started; each was listed once."""
    folder = tmp_path_factory.mktemp("seventy")
    names = [f"server{number:02}" for number in range(SERVERS)]
    config = write(folder, {name: {"command": "/nowhere", "args": [name]} for name in names})
    catalogs = CatalogCache(folder / "home" / "catalogs")
    entries = [tool.wire() for tool in build_board().tools()]
    for number, spec in enumerate(ConfigSource.from_path(config).read().upstreams):
        first = number * TOOLS_OF_EACH % len(entries)
        catalogs.save(spec, ServerProfile(), [*entries, *entries][first : first + TOOLS_OF_EACH])
    return config


def run(config: Path, program: str) -> Any:
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "PEGBOARD_HOME": str(config.parent / "home"),
    }
    words = [sys.executable, "-c", program, str(config)]
    done = subprocess.run(words, capture_output=True, text=True, env=env, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_seventy_cached_servers_are_measured_in_seconds_without_the_sdk(seventy: Path) -> None:
    program = """
import io, json, sys, time
from contextlib import redirect_stdout
from pegboard.cli.app import run
with redirect_stdout(io.StringIO()) as out:
    run(["measure", sys.argv[1], "--json"])
measured = json.loads(out.getvalue())
print(json.dumps({"servers": len(measured["servers"]), "tools": len(measured["tools"]),
    "failures": measured["failures"], "sdk": "mcp" in sys.modules, "cpu": time.process_time()}))
"""
    ran = run(seventy, program)
    assert (ran["servers"], ran["tools"]) == (SERVERS, SERVERS * TOOLS_OF_EACH)
    assert not ran["failures"]
    assert not ran["sdk"]
    assert ran["cpu"] < 4  # some 1.3 s on an idle machine; twice that and more on a busy one


def test_the_cached_board_shows_what_the_gateway_shows(
    seventy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEGBOARD_HOME", str(seventy.parent / "home"))
    opening = ConfigSource.from_path(seventy, mode="index")
    kept = open_cached_board(opening, opening.read())
    whole = GatewayBoard.open(seventy, mode="index")
    assert kept is not None
    assert kept.options == whole.options
    assert [t.wire() for t in kept.tools()] == [t.wire() for t in whole.tools()]
    assert [m.tool.id for m in kept.search("file a bug")] == [
        m.tool.id for m in whole.search("file a bug")
    ]


def test_it_is_nothing_to_read_from_where_a_server_was_never_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEGBOARD_HOME", str(tmp_path / "home"))
    opening = ConfigSource.from_path(write(tmp_path, {"a": polite()}))
    assert open_cached_board(opening, opening.read()) is None


def test_a_lock_is_left_to_the_gateway(seventy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEGBOARD_HOME", str(seventy.parent / "home"))
    config = seventy.with_name("pegboard.toml")
    config.write_text('import = ["mcp.json"]\n[trust]\nlock = "pegboard.lock"\n')
    opening = ConfigSource.from_path(config)
    try:
        assert open_cached_board(opening, opening.read()) is None
    finally:
        config.unlink()
