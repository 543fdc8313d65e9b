"""The first minutes: no options, no configuration, an honest installation."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cli.terminal import ROOT, pegboard, process

from pegboard.cli.app import app
from pegboard.cli.call import parse_arguments
from pegboard.cli.help_pages import EXAMPLES

SERVERS = {
    "mcpServers": {
        "tracker": {
            "command": sys.executable,
            "args": ["-m", "examples.tracker"],
            "cwd": str(ROOT),
            "env": {"PYTHONPATH": "src:.", "PEGBOARD_MODE": "eager"},
        }
    }
}
"""One server with so many tools that listing all of them is expensive."""


@pytest.fixture
def windsurf(tmp_path: Path) -> Path:
    """The file of a client that loads every definition."""
    return _write(tmp_path / ".codeium/windsurf/mcp_config.json")


@pytest.fixture
def cursor(tmp_path: Path) -> Path:
    """The file of a client that defers tools itself."""
    return _write(tmp_path / ".cursor/mcp.json")


def _write(path: Path) -> Path:
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(SERVERS))
    return path


# --- help -----------------------------------------------------------------------------------------


def test_every_command_has_examples() -> None:
    import typer.main

    commands: dict[str, Any] = dict(typer.main.get_command(app).commands)  # pyright: ignore[reportAttributeAccessIssue] a group
    names: set[str] = set()
    for name, command in commands.items():
        inner = getattr(command, "commands", None)
        names |= {f"{name} {word}" for word in inner} if inner else {name}
    assert names == set(EXAMPLES)


@pytest.mark.parametrize("command", sorted(EXAMPLES))
def test_every_help_has_examples_and_a_short_flag(command: str, tmp_path: Path) -> None:
    ran = pegboard(*command.split(), "-h", home=tmp_path, COLUMNS="200")
    assert ran.code == 0
    assert EXAMPLES[command][0] in ran.out
    assert "<bool>" not in ran.out


@pytest.mark.parametrize(
    ("command", "example"),
    [
        ("", "pegboard measure --clients"),
        ("lock", "pegboard lock approve"),
        ("rollout", "pegboard rollout show"),
    ],
)
def test_the_help_of_a_group_has_examples(command: str, example: str, tmp_path: Path) -> None:
    ran = pegboard(*command.split(), "--help", home=tmp_path, COLUMNS="200")
    assert f"$ {example}" in ran.out


@pytest.mark.parametrize("example", [e for known in EXAMPLES.values() for e in known])
def test_every_example_is_accepted_by_the_parser(
    example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import typer.main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "result.json").touch()  # the one file that has to exist

    group = typer.main.get_command(app)
    program, *words = shlex.split(example)
    assert program == "pegboard"
    command = group
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]  # pyright: ignore[reportAttributeAccessIssue]
    # Parsing alone: nothing is run.
    command.make_context(example, words, resilient_parsing=False)


def test_flags_are_shown_without_a_type_by_any_version_of_typer() -> None:
    import typer.main

    group: Any = typer.main.get_command(app)
    for command in (group, group.commands["search"], group.commands["lock"]):
        flags = [
            param
            for param in command.get_params(command.make_context("x", [], resilient_parsing=True))
            if getattr(param, "is_flag", False)
        ]
        assert flags
        assert {param.metavar for param in flags} == {""}


# --- call -----------------------------------------------------------------------------------------


def test_arguments_are_written_as_people_type_them(windsurf: Path, tmp_path: Path) -> None:
    ran = pegboard("call", "tracker_search_issues", "query=login", "limit=1", home=tmp_path)
    assert ran.code == 0, ran.err + ran.out
    assert parse_arguments(["query=a b", "limit=1"], None) == {"query": "a b", "limit": "1"}
    assert parse_arguments(['labels=["x"]', "text=[draft"], None) == {
        "labels": ["x"], "text": "[draft",
    }  # fmt: skip
    whole = {"query": "a", "limit": 1}
    assert parse_arguments([json.dumps(whole)], None) == whole
    assert parse_arguments([], json.dumps(whole)) == whole


@pytest.mark.parametrize("words", [("login",), ("[1]",), ("{",), ("a=1", "--args", "{}")])
def test_other_arguments_are_refused_before_a_server_starts(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    assert pegboard("call", "x", *words, home=tmp_path).code == 2


# --- pegboard alone -------------------------------------------------------------------------------


def test_without_a_command_it_says_what_is_here_and_what_to_run_next(
    windsurf: Path, cursor: Path, tmp_path: Path
) -> None:
    ran = pegboard(home=tmp_path)
    assert ran.code == 0
    assert "Windsurf" in ran.out
    assert "not measured" in ran.out
    assert "Next: pegboard install windsurf" in ran.out


def test_without_any_client_the_next_step_is_the_demo(tmp_path: Path) -> None:
    assert "Next: pegboard demo" in pegboard(home=tmp_path).out


def test_where_nothing_would_be_saved_installing_is_not_the_next_step(
    config: Path, cursor: Path, tmp_path: Path
) -> None:
    assert "Next: pegboard demo" in pegboard(home=tmp_path).out, "it defers tools itself"
    small = tmp_path / ".codeium/windsurf/mcp_config.json"
    small.parent.mkdir(parents=True)
    small.write_bytes(config.read_bytes())
    assert "Next: pegboard install windsurf" in pegboard(home=tmp_path).out, "not measured yet"
    pegboard("measure", "--clients", home=tmp_path)
    ran = pegboard(home=tmp_path)
    assert "Next: pegboard demo" in ran.out
    assert "save little" in ran.out


def test_with_pegboard_installed_the_next_step_is_the_dashboard(
    windsurf: Path, tmp_path: Path
) -> None:
    pegboard("install", "windsurf", "--yes", home=tmp_path)
    ran = pegboard(home=tmp_path)
    assert "Next: pegboard ui" in ran.out
    assert "not measured" not in ran.out, "installing has listed the servers"


def test_a_server_that_cannot_be_measured_is_named_once_and_counted(
    windsurf: Path, tmp_path: Path
) -> None:
    servers = {**SERVERS["mcpServers"], "gone": {"command": "/no/such/program"}}
    windsurf.write_text(json.dumps({"mcpServers": servers}))
    ran = pegboard("measure", "--clients", home=tmp_path)
    assert "1 of 2" in ran.out
    assert "Next: pegboard install windsurf --dry-run" in ran.out
    assert ran.err.count("gone") == 1
    assert "next call" not in ran.err, "nobody has called anything"
    pegboard("install", "windsurf", "--yes", home=tmp_path)
    again = pegboard("measure", "--clients", home=tmp_path)
    assert "Next:" not in again.out, "it is installed already"


def test_paths_in_a_table_are_broken_between_folders(tmp_path: Path) -> None:
    ran = process("clients", home=tmp_path, COLUMNS="80")
    lines = [line.strip() for line in ran.out.splitlines()]
    assert "cline_mcp_settings.json" in lines
    assert any(line.endswith("~/.config/Code/User/globalStorage/") for line in lines)


# --- configuration without --config ---------------------------------------------------------------


def test_the_clients_are_used_where_nothing_is_named(windsurf: Path, tmp_path: Path) -> None:
    ran = pegboard("search", "list projects", home=tmp_path)
    assert "tracker.list_projects" in ran.out
    assert "Using the servers of Windsurf." in ran.err


def test_with_a_profile_the_cost_is_that_of_the_tools_it_shows(
    windsurf: Path, config: Path, tmp_path: Path
) -> None:
    own = tmp_path / ".config/pegboard/pegboard.toml"
    own.parent.mkdir(parents=True)
    own.write_text(f'import = ["{config}"]\n[profiles.work]\nservers = ["office"]\n')
    ran = pegboard("install", "windsurf", "--profile", "work", "--dry-run", home=tmp_path)
    assert ran.code == 0, ran.err
    assert "The profile work has" in ran.out
    assert "of 1 server." in ran.out
    whole = pegboard("measure", "--json", "--config", str(own), home=tmp_path).json
    part = pegboard(
        "measure", "--json", "--config", str(own), home=tmp_path, PEGBOARD_PROFILE="work"
    ).json
    assert [server["name"] for server in part["servers"]] == ["office"]
    assert part["modes"]["eager"]["list"] <= whole["modes"]["eager"]["list"]


def test_a_task_needs_no_quotation_marks_and_its_tools_are_never_cut(
    windsurf: Path, tmp_path: Path
) -> None:
    ran = process("search", "list", "projects", home=tmp_path, COLUMNS="80")
    assert ran.code == 0, ran.err
    assert "tracker.list_projects" in ran.out
    assert "…" not in ran.out


def test_many_problems_of_the_clients_files_take_one_line(windsurf: Path, tmp_path: Path) -> None:
    other = {"command": "other"}
    for file in (".cursor/mcp.json", ".gemini/settings.json", ".codeium/windsurf/mcp_config.json"):
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        more = {name: {**other, "args": [file]} for name in ("a", "b", "c")}
        path.write_text(json.dumps({"mcpServers": {**SERVERS["mcpServers"], **more}}))
    ran = pegboard("search", "list projects", home=tmp_path)
    (problem,) = [line for line in ran.err.splitlines() if line.startswith("problem")]
    assert problem == "problem: there are 3 in these files; `pegboard doctor` lists them."


def test_the_user_s_own_configuration_goes_before_the_clients(
    cursor: Path, config: Path, tmp_path: Path
) -> None:
    own = tmp_path / ".config/pegboard/pegboard.toml"
    own.parent.mkdir(parents=True)
    own.write_text(f'import = ["{config}"]\nmode = "stub"\n')
    ran = pegboard("list", "--json", home=tmp_path)
    assert len(ran.json["tools"]) > 20
    assert "pegboard.toml" in ran.err


def test_a_file_in_the_current_folder_is_not_used_without_a_terminal(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _clone(config, tmp_path, monkeypatch)
    ran = pegboard("list", home=tmp_path)
    assert ran.code == 3
    assert "not trusted" in ran.err
    assert not (tmp_path / ".config/pegboard/trusted.json").exists()


def test_a_file_in_the_current_folder_is_used_after_one_question(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _clone(config, tmp_path, monkeypatch)
    asked = _in_terminal("list", answer="y\n", home=tmp_path, cwd=folder)
    assert "Trust this file?" in asked
    assert "mcp.json" in asked
    assert "tokens (o200k_base)" in asked
    again = pegboard("list", home=tmp_path)
    assert again.code == 0, again.err
    # A pull that changes a command is a new question.
    imported = folder / "mcp.json"
    imported.write_text(imported.read_text().replace("office", "other"))
    assert pegboard("list", home=tmp_path).code == 3


def test_a_refusal_is_not_asked_about_again(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _clone(config, tmp_path, monkeypatch)
    assert "Trust this file?" in _in_terminal("list", answer="n\n", home=tmp_path, cwd=folder)
    again = _in_terminal("list", answer="", home=tmp_path, cwd=folder)
    assert "Trust this file?" not in again
    assert "not trusted" in again


def _clone(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "clone"
    folder.mkdir()
    (folder / "mcp.json").write_bytes(config.read_bytes())
    (folder / "pegboard.toml").write_text('import = ["mcp.json"]\n')
    monkeypatch.chdir(folder)
    return folder


def _in_terminal(*words: str, answer: str, home: Path, cwd: Path, **more: str) -> str:
    """What a command prints on a terminal where a person gives an answer."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "HOME": str(home), "PEGBOARD_HOME": str(home / "cache"), "TERM": "dumb",
           "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", **more}  # fmt: skip
    started = subprocess.Popen(
        [sys.executable, "-m", "pegboard", *words],
        stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd, env=env, close_fds=True,
    )  # fmt: skip
    os.close(theirs)
    os.write(ours, answer.encode())
    shown, end = b"", time.monotonic() + 60
    while time.monotonic() < end:
        if not select.select([ours], [], [], 0.2)[0]:
            continue
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # the other side is closed
            break
        if not chunk:
            break
        shown += chunk
    os.close(ours)
    started.wait(timeout=30)
    return shown.decode(errors="replace")


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (("list",), "Starting the servers to list their tools ..."),
        (("index",), "Starting the servers to list their tools ..."),
        (("measure",), "0/?"),
        (("doctor",), "Starting the servers ..."),
    ],
)
def test_a_person_sees_at_once_what_a_command_waits_for(
    command: tuple[str, ...], shown: str, config: Path, tmp_path: Path
) -> None:
    text = _in_terminal(*command, "--config", str(config), answer="", home=tmp_path, cwd=tmp_path,
                        TERM="xterm")  # fmt: skip
    first = re.search(r"\[1/1\]|1/1|tracker", text)
    assert first is not None
    assert shown in text[: first.start()]


# --- install --------------------------------------------------------------------------------------


def test_installing_shows_the_tokens_of_this_client_before_and_after(
    windsurf: Path, tmp_path: Path
) -> None:
    ran = pegboard("install", "windsurf", "--dry-run", home=tmp_path)
    assert "today" in ran.out
    assert "with Pegboard" in ran.out
    assert "200,000 tokens" in ran.out
    tokens = pegboard("install", "windsurf", "--dry-run", "--json", home=tmp_path).json["tokens"]
    assert tokens["after"] < tokens["before"] / 3
    assert tokens["mode"] == "auto"
    assert tokens["window_is_assumed"]
    assert "pegboard" not in windsurf.read_text()


def test_installing_says_when_it_would_save_nothing(cursor: Path, tmp_path: Path) -> None:
    ran = pegboard("install", "cursor", "--dry-run", home=tmp_path)
    assert "Tokens of all definitions" in ran.out
    assert "Cursor already loads tool definitions only when they are needed" in ran.out
    assert "with Pegboard" not in ran.out
    value = pegboard("install", "cursor", "--dry-run", "--json", home=tmp_path).json
    assert value["tokens"]["saves_nothing"]
    measured = pegboard("measure", "--clients", home=tmp_path)
    assert "(deferred), so Pegboard would not shorten the list." in measured.out
    assert value["mode"] == "eager"


def test_the_mode_is_a_setting_that_the_environment_overrides(
    windsurf: Path, tmp_path: Path
) -> None:
    pegboard("install", "windsurf", "--yes", "--no-measure", home=tmp_path)
    entry = json.loads(windsurf.read_text())["mcpServers"]["pegboard"]
    assert "--mode" not in entry["args"]
    settings = entry["args"][entry["args"].index("--config") + 1]
    by_setting = pegboard("list", "--config", settings, "--json", home=tmp_path).json
    assert "search_tools" in str(by_setting)
    way_back = pegboard(
        "list", "--config", settings, "--json", home=tmp_path, PEGBOARD_MODE="eager"
    ).json
    assert "search_tools" not in str(way_back)


def test_clients_and_measure_look_through_an_installed_pegboard(
    windsurf: Path, tmp_path: Path
) -> None:
    before = pegboard("measure", "--clients", "--json", home=tmp_path).json["clients"][0]
    pegboard("install", "windsurf", "--yes", home=tmp_path)
    assert "tracker" not in json.loads(windsurf.read_text())["mcpServers"]
    after = pegboard("measure", "--clients", "--json", home=tmp_path).json["clients"][0]
    assert (before.pop("installed"), after.pop("installed")) == (False, True)
    assert after == before
    assert "windsurf: has Pegboard already" in pegboard("measure", "--clients", home=tmp_path).out
    listed = pegboard("clients", "--json", home=tmp_path).json["clients"]
    status = next(one for one in listed if one["client"] == "windsurf")
    assert status["servers"] == status["behind"] == ["tracker"]
    assert status["pegboard"]


def test_measure_uses_the_mode_and_the_profile_that_were_installed(
    windsurf: Path, tmp_path: Path
) -> None:
    user_config = tmp_path / ".config/pegboard/pegboard.toml"
    user_config.parent.mkdir(parents=True)
    user_config.write_text('[profiles.work]\ntools = ["tracker.list_issues"]\n')
    chosen = ("--mode", "eager", "--profile", "work")
    planned = pegboard("install", "windsurf", *chosen, "--yes", "--json", home=tmp_path)
    (client,) = pegboard("measure", "--clients", "--json", home=tmp_path).json["clients"]
    assert (client["mode"], client["profile"]) == ("eager", "work")
    assert client["after"] == planned.json["tokens"]["after"] < 500
    settings = Path(planned.json["config"])
    settings.write_text(settings.read_text().replace('"eager"', '"proxy"'))
    (client,) = pegboard("measure", "--clients", "--json", home=tmp_path).json["clients"]
    assert client["mode"] == "proxy"


def test_a_file_that_was_named_is_listed_and_uninstalled(config: Path, tmp_path: Path) -> None:
    before = config.read_bytes()
    pegboard("install", "cursor", "--file", str(config), "--yes", "--no-measure", home=tmp_path)
    listed = pegboard("clients", "--json", home=tmp_path).json["clients"]
    assert [one["file"] for one in listed if one["pegboard"]] == [str(config)]
    assert pegboard("uninstall", "cursor", "--yes", home=tmp_path).code == 0
    assert config.read_bytes() == before


def test_each_client_is_measured_by_itself(windsurf: Path, cursor: Path, tmp_path: Path) -> None:
    # A profile that somebody works with is no part of this.
    ran = pegboard("measure", "--clients", home=tmp_path, PEGBOARD_PROFILE="work")
    assert "deferred" in ran.out
    assert "Next: pegboard install windsurf" in ran.out
    clients = pegboard("measure", "--clients", "--json", home=tmp_path).json["clients"]
    one, other = ({k: v for k, v in c["measurement"].items() if k != "failures"} for c in clients)
    assert one == other, "the same servers cost the same in each client, and are not added up"
