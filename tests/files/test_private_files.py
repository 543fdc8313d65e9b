"""Files of ours: private, replaced as a whole, locked among processes."""

from __future__ import annotations

import os
import stat
import sys
import threading
from pathlib import Path

import pytest

from pegboard.private_files import home_folder, lock_file, make_private_folder, replace_file

posix_only = pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("is_durable", [True, False])
def test_a_replaced_file_holds_the_new_content_and_nothing_is_left_beside_it(
    tmp_path: Path, is_durable: bool
) -> None:
    path = tmp_path / "data"
    for content in (b"old", b"new"):
        with replace_file(path, is_durable=is_durable) as file:
            file.write(content)
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@posix_only
def test_a_replaced_file_is_private_unless_another_mode_is_given(tmp_path: Path) -> None:
    with replace_file(tmp_path / "mine"):
        pass
    with replace_file(tmp_path / "theirs", mode=0o644):
        pass
    assert mode(tmp_path / "mine") == 0o600
    assert mode(tmp_path / "theirs") == 0o644


def test_an_error_while_writing_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"old")

    def write_half() -> None:
        with replace_file(path) as file:
            file.write(b"ne")
            raise ValueError("half")

    with pytest.raises(ValueError, match="half"):
        write_half()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_check_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"old")

    def check() -> None:
        assert path.read_bytes() == b"old"
        raise ValueError("changed")

    with pytest.raises(ValueError, match="changed"), replace_file(path, check=check) as file:
        file.write(b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_locked_file_is_waited_for(tmp_path: Path) -> None:
    steps: list[str] = []
    started = threading.Event()

    def other() -> None:
        started.set()
        with lock_file(tmp_path / "lock"):
            steps.append("other")

    thread = threading.Thread(target=other)
    with lock_file(tmp_path / "lock"):
        thread.start()
        started.wait(5)
        thread.join(0.05)  # it cannot get on
        steps.append("first")
    thread.join(5)
    assert steps == ["first", "other"]


@posix_only
def test_a_folder_of_ours_is_closed_to_others_and_those_above_it_are_not(tmp_path: Path) -> None:
    above = tmp_path / "above"
    above.mkdir(mode=0o755)
    folder = above / "ours"
    folder.mkdir(mode=0o755)
    make_private_folder(folder)
    assert (mode(above), mode(folder)) == (0o755, 0o700)
    make_private_folder(above / "new" / "deep")
    assert mode(above / "new") == 0o700


def test_the_home_folder_is_what_the_environment_says_or_in_the_users_cache() -> None:
    assert home_folder({"PEGBOARD_HOME": "~/x"}) == Path.home() / "x"
    assert home_folder({}).name == "pegboard" or sys.platform == "win32"
