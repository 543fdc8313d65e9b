"""Several installations at once, and a client that writes its file at the same time."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

from tests.gateway.support import ROOT
from tests.install.machines import desk

from pegboard.errors import ConfigError
from pegboard.install.plan import apply_install

THEIRS = '{"mcpServers": {"added": {"command": "added"}}}'
OURS = '{"mcpServers": {"mine": {"command": "mine"}}}'


def test_what_a_client_writes_during_an_installation_is_not_lost(tmp_path: Path) -> None:
    refusals: list[str] = []
    for number in range(14):
        there = desk("cursor", tmp_path / str(number))
        path = there.write(OURS)
        plan = there.plan()
        ended = threading.Event()
        writer = threading.Thread(target=_write_once, args=(path, plan.folder.record, ended))
        writer.start()
        try:
            apply_install(plan)
        except ConfigError as exc:
            refusals.append(exc.message)
            assert not plan.folder.record.exists(), "nothing says that it is installed"
        ended.set()
        writer.join()
        assert path.read_text() == THEIRS
    assert refusals, "at least one was in the middle"
    assert all("changed in the meantime" in one for one in refusals)


def _write_once(path: Path, record: Path, ended: threading.Event) -> None:
    """Write a client's file as soon as an installation is under way, or is over."""
    while not record.exists() and not ended.is_set():
        pass
    temporary = path.with_suffix(".new")
    temporary.write_text(THEIRS)
    temporary.replace(path)


def test_installations_at_once_leave_a_file_that_can_be_put_back(tmp_path: Path) -> None:
    home = tmp_path / "home"
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir(parents=True)
    file.write_text(OURS)
    line = [sys.executable, "-m", "pegboard", "install", "cursor", "--yes"]
    env = {"HOME": str(home), "PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin"}
    many = [
        subprocess.Popen(line, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(4)
    ]
    said = [one.communicate(timeout=60)[0] for one in many]
    codes = [one.returncode for one in many]
    assert 0 in codes, said
    for code, text in zip(codes, said, strict=True):
        assert code == 0 or "changed in the meantime" in text, text
    assert list(json.loads(file.read_text())["mcpServers"]) == ["pegboard"]
    undo = subprocess.run(
        [*line[:3], "uninstall", "cursor", "--yes"], env=env, capture_output=True, text=True
    )
    assert undo.returncode == 0, undo.stderr
    assert file.read_text() == OURS
