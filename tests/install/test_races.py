"""Several installations at once, and a client that writes its file at the same time."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.gateway.support import ROOT
from tests.install.machines import desk

from pegboard.errors import ConfigError
from pegboard.install.client_files import FileContent, exclusive_lock, replace_unchanged
from pegboard.install.plan import apply_install

THEIRS = '{"mcpServers": {"added": {"command": "added"}}}'
OURS = '{"mcpServers": {"mine": {"command": "mine"}}}'


def test_what_a_client_writes_while_an_installation_waits_is_not_lost(tmp_path: Path) -> None:
    there = desk("cursor", tmp_path)
    path = there.write(OURS)
    plan = there.plan()
    refusals: list[str] = []

    def install() -> None:
        try:
            apply_install(plan)
        except ConfigError as exc:
            refusals.append(exc.message)

    installation = threading.Thread(target=install)
    with exclusive_lock(plan.folder.path.parent):  # as another installation would hold it
        installation.start()
        path.write_text(THEIRS)
    installation.join()
    assert path.read_text() == THEIRS
    assert "changed in the meantime" in refusals[0]
    assert not plan.folder.record.exists(), "nothing says that it is installed"


def test_a_file_is_compared_once_more_when_only_the_rename_is_left(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(OURS)
    content = FileContent(path, path.read_bytes())
    path.write_text(THEIRS)
    with pytest.raises(ConfigError, match="changed in the meantime"):
        replace_unchanged(content, b"{}")
    assert path.read_text() == THEIRS
    assert list(tmp_path.iterdir()) == [path]


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
