"""`pegboard fields` as a person or a script runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.conformance.clients import ROOT

from examples.memory import RICH_EPISODE, build_board
from pegboard.core.json import Json


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog, and results of one of its tools in three forms."""
    folder = tmp_path_factory.mktemp("fields")
    board = build_board()
    result = anyio.run(board.call, "get_episode", {"episode_id": RICH_EPISODE})
    contents: dict[str, Json] = {
        "catalog.json": {"tools": [tool.wire() for tool in board.tools()]},
        "whole.json": result.wire,
        "value.json": result.structured,
        "prose.json": {"content": [{"type": "text", "text": "nothing"}]},
    }
    for name, value in contents.items():
        (folder / name).write_text(json.dumps(value), "utf-8")
    (folder / "broken.json").write_text("{", "utf-8")
    return folder


def fields(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pegboard", "fields", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "200", **env},
        capture_output=True,
        text=True,
        timeout=60,
    )


def answer(folder: Path, *arguments: str) -> Any:
    done = fields(folder, *arguments, "--catalog", "catalog.json", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_fields_of_a_tool_are_shown_compactly_and_one_by_one(files: Path) -> None:
    shown = fields(files, "get_episode", "--catalog", "catalog.json").stdout
    assert shown.startswith("get_episode -> {episode{id, task_description,")
    assert "episode.steps[].tool" in shown
    told = answer(files, "analyze_patterns")
    rate = next(f for f in told["fields"] if f["path"] == "base_success_rate")
    assert rate["type"] == "number|null"
    assert rate["description"] == "Share of them that succeeded."


@pytest.mark.parametrize("result", ["whole.json", "value.json"])
def test_a_selection_is_tried_on_a_saved_result(files: Path, result: str) -> None:
    told = answer(
        files, "get_episode", "--try", result, "--include", "id,task_description,outcome_type"
    )
    assert told["before"] > 2_000
    assert told["after"] < 100
    assert told["saved"] == pytest.approx(1 - told["after"] / told["before"], abs=1e-4)
    assert set(told["result"]["episode"]) == {"id", "task_description", "outcome_type"}


def test_all_tools_make_a_page(files: Path) -> None:
    page = fields(files, "--all", "--catalog", "catalog.json").stdout
    assert "### get_episode\n" in page
    assert "| `episode.steps[].tool` | `str` |  |  |" in page
    assert "| `base_success_rate` | `number\\|null` | Share of them that succeeded. |  |" in page


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["get_episod"], 1, "Nearest: get_episode"),
        (["get_episode", "--try", "value.json", "--include", "outcome"], 1, "Invalid field"),
        ([], 2, "NAME or --all"),
        (["get_episode", "--all"], 2, "NAME or --all"),
        (["get_episode", "--try", "value.json"], 2, "must be used together"),
        (["get_episode", "--try", "nowhere.json", "--include", "id"], 2, "does not exist"),
        (["get_episode", "--try", "broken.json", "--include", "id"], 2, "is not JSON"),
        (["get_episode", "--try", "prose.json", "--include", "id"], 2, "without fields"),
    ],
)
def test_wrong_use_is_reported_in_a_sentence(
    files: Path, arguments: list[str], code: int, said: str
) -> None:
    done = fields(files, *arguments, "--catalog", "catalog.json")
    assert done.returncode == code, done.stderr
    assert said in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr


def test_descriptions_of_fields_come_from_the_servers_of_a_configuration(tmp_path: Path) -> None:
    path = f"{ROOT}{os.pathsep}{ROOT / 'src'}"
    server = {
        "command": sys.executable,
        "args": ["-c", "from docs_src.describing_fields import shop; shop.run()"],
        "env": {"PYTHONPATH": path},
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"shop": server}}), "utf-8")
    home = {"PEGBOARD_HOME": str(tmp_path / "home")}
    for _ in range(2):  # from the server, then from the cache
        done = fields(tmp_path, "shop.get_order", "--config", "mcp.json", "--json", **home)
        assert done.returncode == 0, done.stderr
        found = {f["path"]: f["description"] for f in json.loads(done.stdout)["fields"]}
        assert found["total"] == "In cents, tax included"
        assert found["items[].name"] == "Name of the product"
        assert found["items[].price"] == ""
