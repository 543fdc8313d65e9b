"""What one process has indexed, the next one has: real processes, one after and beside another."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from pegboard import Pegboard

ROOT = Path(__file__).parents[2]
TOPICS = ("mail", "file", "weather", "issue")


def catalog(path: Path, tools: int, **changed: str) -> Path:
    """A file of tools; `changed` are other descriptions by name."""
    entries: list[dict[str, Any]] = []
    for number in range(tools):
        name = f"{TOPICS[number % 4]}_{number}"
        text = changed.get(name, f"Something about {TOPICS[number % 4]} number {number}.")
        schema = {"type": "object", "properties": {"place": {"type": "string"}}}
        entries.append({"name": name, "description": text, "inputSchema": schema})
    path.write_text("\n".join(json.dumps(entry) for entry in entries), "utf-8")
    return path


def begin(path: Path, home: Path, *asked: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.embed.starting", str(path), *asked],
        cwd=ROOT,
        env={**os.environ, "PEGBOARD_HOME": str(home), "PYTHONPATH": "src:."},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def told(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err.decode()
    return {**json.loads(out), "err": err.decode()}


def start(path: Path, home: Path, *asked: str) -> dict[str, Any]:
    return told(begin(path, home, *asked))


def files(home: Path) -> dict[str, bytes]:
    return {str(p.relative_to(home)): p.read_bytes() for p in home.rglob("*") if p.is_file()}


def test_a_second_start_embeds_nothing_and_writes_nothing(tmp_path: Path) -> None:
    path, home = catalog(tmp_path / "tools.jsonl", 30), tmp_path / "home"
    first = start(path, home, "topics", "prepare")
    assert (first["embedded"], first["lacking"], first["is_kept"]) == (30, 0, True)
    before = files(home)
    second = start(path, home, "topics", "prepare")
    assert (second["embedded"], second["lacking"]) == (0, 0)
    assert second["found"] == first["found"]
    assert files(home) == before


def test_a_second_start_needs_the_index_alone(tmp_path: Path) -> None:
    path, home = catalog(tmp_path / "tools.jsonl", 30), tmp_path / "home"
    first = start(path, home, "topics", "prepare")
    shutil.rmtree(home / "vectors")
    second = start(path, home, "topics")
    assert (second["embedded"], second["lacking"], second["found"]) == (0, 0, first["found"])


def test_of_a_changed_catalog_only_the_changed_tool_is_embedded(tmp_path: Path) -> None:
    path, home = catalog(tmp_path / "tools.jsonl", 30), tmp_path / "home"
    start(path, home, "topics", "prepare")
    catalog(path, 30, weather_2="Tells whether weather is weather.")
    changed = start(path, home, "topics", "prepare")
    assert (changed["embedded"], changed["lacking"]) == (1, 0)
    catalog(path, 30)
    assert start(path, home, "topics", "prepare")["embedded"] == 0


def test_damaged_files_are_rebuilt(tmp_path: Path) -> None:
    path, home = catalog(tmp_path / "tools.jsonl", 30), tmp_path / "home"
    first = start(path, home, "topics", "prepare")
    for file in (p for p in home.rglob("*") if p.is_file()):
        file.write_bytes(file.read_bytes()[:-40])
    again = start(path, home, "topics", "prepare")
    assert (again["embedded"], again["found"]) == (30, first["found"])
    assert "is rebuilt" in again["err"]
    assert start(path, home, "topics", "prepare")["err"] == ""


def test_many_processes_may_start_at_once(tmp_path: Path) -> None:
    path, home = catalog(tmp_path / "tools.jsonl", 200), tmp_path / "home"
    together = [told(p) for p in [begin(path, home, "topics", "prepare") for _ in range(4)]]
    assert len({json.dumps(one["found"]) for one in together}) == 1
    assert [one["err"] for one in together] == [""] * 4
    assert not list(home.rglob("*.tmp"))
    assert len(list((home / "indexes").iterdir())) == 1
    assert start(path, home, "topics", "prepare")["embedded"] == 0


def test_a_folder_that_can_only_be_read_serves_what_is_in_it(tmp_path: Path) -> None:
    path, home = catalog(tmp_path / "tools.jsonl", 30), tmp_path / "home"
    first = start(path, home, "topics", "prepare")
    folders = [home, *(p for p in home.rglob("*") if p.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        second = start(path, home, "topics", "prepare")
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert (second["embedded"], second["found"], second["err"]) == (0, first["found"], "")


def test_search_works_where_nothing_can_be_saved(tmp_path: Path) -> None:
    path = catalog(tmp_path / "tools.jsonl", 30)
    (tmp_path / "home").write_text("a file, not a folder")
    one = start(path, tmp_path / "home", "topics", "prepare")
    assert (one["embedded"], one["lacking"], one["is_kept"]) == (30, 0, False)
    assert one["found"]
    assert "cannot be saved" in one["err"]


def test_the_first_search_of_a_process_takes_the_index_from_disk(tmp_path: Path) -> None:
    """Processor time, models and numpy included. The bound is wide; benchmarks have the figure."""
    path, home = catalog(tmp_path / "tools.jsonl", 500), tmp_path / "home"
    built = start(path, home)
    kept = [start(path, home) for _ in range(2)]
    assert [one["found"] for one in kept] == [built["found"]] * 2
    assert min(one["cpu_ms"] for one in kept) < min(400, built["cpu_ms"])


def test_an_index_with_an_added_python_tool_is_not_saved(tmp_path: Path) -> None:
    path = catalog(tmp_path / "tools.jsonl", 4)
    board = Pegboard.from_catalog(path)
    board.folder = tmp_path / "home"
    board.search("weather")
    assert board.is_index_saved

    @board.tool
    def umbrella() -> str:
        """Say whether it rains."""
        return "no"

    assert board.search("umbrella")[0].tool.name == "umbrella"
    assert not board.is_index_saved
