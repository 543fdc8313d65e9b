"""Every system is told what it lacks, and the page about systems says the same."""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.cli.terminal import ROOT

from pegboard.cli.doctor import find_platform_limits
from pegboard.private_files import lock_file, try_lock_file

ONLY_POSIX = {"fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"}


def test_linux_with_bubblewrap_lacks_nothing() -> None:
    assert find_platform_limits("linux", lambda name: "/bin/true") == []
    (limit,) = find_platform_limits("linux", lambda name: None)
    assert "bubblewrap (bwrap) is not installed" in limit


@pytest.mark.parametrize("broken", ["/bin/false", "/nowhere/bwrap"])
def test_bubblewrap_that_does_not_work_is_reported(broken: str) -> None:
    (limit,) = find_platform_limits("linux", lambda name: broken)
    assert "may not create namespaces" in limit


@pytest.mark.parametrize("system", ["win32", "darwin", "freebsd14"])
def test_other_systems_are_told_that_they_are_not_tested(system: str) -> None:
    first, *others = find_platform_limits(system)
    assert "not tested" in first
    assert others


@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_the_page_has_every_limit(system: str) -> None:
    page = " ".join((ROOT / "docs/reference/platforms.md").read_text("utf-8").split())
    for limit in find_platform_limits(system)[1:]:
        assert limit in page


def test_no_module_needs_what_only_some_systems_have_to_be_imported() -> None:
    """They are imported where they are used, behind a check of the system."""
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            names: set[str] = set()
            if isinstance(node, ast.Import):
                names = {name.name for name in node.names}
            elif isinstance(node, ast.ImportFrom):
                names = {node.module or ""}
            assert not names & ONLY_POSIX, path


def test_files_are_locked_without_flock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On Windows, a byte of the file is locked: the same one in every process."""
    locked: list[tuple[int, int]] = []

    def locking(descriptor: int, mode: int, count: int) -> None:
        locked.append((mode, os.lseek(descriptor, 0, os.SEEK_CUR)))

    windows = SimpleNamespace(locking=locking, LK_LOCK=1, LK_NBLCK=2, LK_UNLCK=0)
    monkeypatch.setitem(sys.modules, "msvcrt", windows)
    monkeypatch.setitem(sys.modules, "fcntl", None)
    path = tmp_path / "lock"
    path.write_bytes(b"not empty")
    monkeypatch.setattr(sys, "platform", "win32")
    with lock_file(path):
        pass
    with try_lock_file(path) as is_alone:
        assert is_alone
    assert locked == [(1, 0), (0, 0), (2, 0)]
