"""`pegboard run` and `pegboard replay`, on a real server."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.terminal import ROOT, pegboard
from tests.replicas.test_suspended_runs import SERVER


def test_a_program_runs_on_the_tools_of_a_configuration(config: Path, tmp_path: Path) -> None:
    program = tmp_path / "count.py"
    program.write_text("rows = await office_list_projects()\nprint('seen')\nrows")
    ran = pegboard("run", str(program), "--config", str(config), home=tmp_path)
    assert ran.code == 0, ran.err
    assert "apollo" in ran.out
    assert "seen" in ran.out
    made = pegboard("run", str(program), "--config", str(config), "--json", home=tmp_path).json
    assert made["_meta"]["io.github.pegboard/run"]["ran"] == "finished"


DELETE = "(await office_delete_file(name='a.txt')) + '!'"


def test_a_program_that_deletes_needs_a_yes(config: Path, tmp_path: Path) -> None:
    program = tmp_path / "delete.py"
    program.write_text(DELETE)
    arguments = ("run", str(program), "--config", str(config))
    refused = pegboard(*arguments, home=tmp_path)
    assert ("only reads" in refused.out, "--write" in refused.err) == (True, True)
    assert "only reads" in pegboard(*arguments, "--yes", home=tmp_path).out
    declined = pegboard(*arguments, "--write", home=tmp_path)
    assert declined.code == 1
    assert "was declined by the user" in declined.out
    assert '- office_delete_file(name="a.txt")' in declined.err
    assert "Pass --yes to make these calls" in declined.err
    agreed = pegboard(*arguments, "--write", "--yes", home=tmp_path)
    assert (agreed.code, agreed.out) == (0, "deleted a.txt!\n")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(
    ("typed", "code", "shown"),
    [("y\n", 0, "deleted a.txt!"), ("n\n", 1, "was declined by the user"), ("\x03", 130, "")],
    ids=["yes", "no", "Ctrl-C"],
)
def test_a_person_at_a_terminal_is_asked(
    config: Path, tmp_path: Path, typed: str, code: int, shown: str
) -> None:
    import pty

    program = tmp_path / "delete.py"
    program.write_text(DELETE)
    command = [sys.executable, "-m", "pegboard", "run", str(program), "--config", str(config)]
    environ = {**os.environ, "HOME": str(tmp_path), "PEGBOARD_HOME": str(tmp_path / "cache")}
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*command, "--write"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environ,
        cwd=ROOT,
        # Its own terminal, so that Ctrl-C reaches it and nobody else.
        preexec_fn=lambda: os.login_tty(theirs),
    )
    os.close(theirs)
    said = ""
    try:
        while data := _read(ours):
            said += data
            if "Make these calls?" in said and typed:
                assert '- office_delete_file(name="a.txt")' in said
                os.write(ours, typed.encode())
                typed = ""
        assert process.wait(timeout=20) == code, said
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert shown in said


def _read(terminal: int) -> str:
    """What a terminal shows next; nothing when its process has ended."""
    try:
        ready, _, _ = select.select([terminal], [], [], 60)
        return os.read(terminal, 4096).decode() if ready else ""
    except OSError:
        return ""


def test_a_second_command_repeats_nothing_and_a_third_replays_it(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "pegboard.toml").write_text(
        "[code]\nstore_programs = true\n"
        f"[servers.work]\ncommand = {json.dumps(sys.executable)}\n"
        f"args = [{json.dumps(str(tmp_path / 'server.py'))}]\n"
    )
    config = ("--config", str(tmp_path / "pegboard.toml"))
    program = tmp_path / "notes.py"
    program.write_text("await work_add_note(text='a')\n1 / 0")
    failed = pegboard("run", str(program), "--write", *config, home=tmp_path)
    after = failed.out.partition('after="')[2].partition('"')[0]
    program.write_text("[await work_add_note(text='a'), await work_add_note(text='b')]")
    arguments = ("run", str(program), "--write", *config, "--after", after, "--json")
    fixed = pegboard(*arguments, home=tmp_path).json
    assert journal.read_text().splitlines() == ["note a", "note b"]
    run = fixed["_meta"]["io.github.pegboard/run"]
    assert (run["calls"], run["reused"]) == (1, 1)
    replayed = pegboard("replay", run["id"], *config, home=tmp_path)
    assert (replayed.code, replayed.out) == (0, '["a","b"]\n')
    assert journal.read_text().splitlines() == ["note a", "note b"]
    other = pegboard("replay", run["id"], *config, "--principal", "eve", home=tmp_path)
    assert "unknown, expired" in other.err


def test_a_missing_program_and_an_unknown_run_are_explained(config: Path, tmp_path: Path) -> None:
    missing = pegboard("run", "none.py", "--config", str(config), home=tmp_path)
    assert (missing.code, "cannot be read" in missing.err) == (2, True)
    unknown = pegboard("replay", "r-0", "--config", str(config), home=tmp_path)
    assert unknown.code == 1
    assert "unknown, expired" in unknown.err
