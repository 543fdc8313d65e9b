"""`pegboard run` and `pegboard replay`, on a real server."""

from __future__ import annotations

from pathlib import Path

from tests.cli.terminal import pegboard


def test_a_program_runs_on_the_tools_of_a_configuration(config: Path, tmp_path: Path) -> None:
    program = tmp_path / "count.py"
    program.write_text("rows = await office_list_projects()\nprint('seen')\nrows")
    ran = pegboard("run", str(program), "--config", str(config), home=tmp_path)
    assert ran.code == 0, ran.err
    assert "apollo" in ran.out
    assert "seen" in ran.out
    made = pegboard("run", str(program), "--config", str(config), "--json", home=tmp_path).json
    assert made["_meta"]["io.github.pegboard/run"]["ran"] == "finished"


def test_a_program_that_deletes_needs_a_yes(config: Path, tmp_path: Path) -> None:
    program = tmp_path / "delete.py"
    program.write_text("await office_delete_file(name='a.txt')\n'done'")
    arguments = ("run", str(program), "--config", str(config))
    assert "only reads" in pegboard(*arguments, home=tmp_path).out
    declined = pegboard(*arguments, "--write", home=tmp_path)
    assert declined.code == 1
    assert "was declined by the user" in declined.out


def test_a_missing_program_and_an_unknown_run_are_explained(config: Path, tmp_path: Path) -> None:
    missing = pegboard("run", "none.py", "--config", str(config), home=tmp_path)
    assert (missing.code, "cannot be read" in missing.err) == (2, True)
    unknown = pegboard("replay", "r-0", "--config", str(config), home=tmp_path)
    assert unknown.code == 1
    assert "unknown, expired" in unknown.err
