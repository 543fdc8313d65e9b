"""What happens when the file is not as it was: edited by others, missing, or installed before."""

from __future__ import annotations

import json
import os
import stat
import tomllib
from pathlib import Path

import pytest
from tests.install.machines import COMMAND, desk

from pegboard.config.documents import parse_document
from pegboard.config.loader import load_configuration
from pegboard.config.server_entries import ConfigEnvironment
from pegboard.errors import ConfigError, PegboardError
from pegboard.gateway.from_settings import build_policy
from pegboard.install.plan import apply_install, plan_install

ONE = '{\n  "mcpServers": {\n    "a": {"command": "a"}\n  }\n}\n'


def test_a_missing_file_is_made_and_removed_again_with_its_folders(tmp_path: Path) -> None:
    there = desk("vscode", tmp_path)
    (tmp_path / ".config/Code").mkdir(parents=True)
    plan = there.install()
    assert json.loads(there.text())["servers"]["pegboard"]["type"] == "stdio"
    assert plan.moved == ()
    there.uninstall()
    assert not there.file.parent.exists()
    assert (tmp_path / ".config/Code").is_dir()


def test_an_empty_file_is_filled_and_empty_again(tmp_path: Path) -> None:
    there = desk("cursor", tmp_path)
    there.write("")
    there.install()
    assert "pegboard" in json.loads(there.text())["mcpServers"]
    there.uninstall()
    assert there.file.read_bytes() == b""


@pytest.mark.parametrize("start", ["{}", "{ }\n", '{"mcpServers": {}}', '{\n  "theme": "x"\n}\n'])
def test_a_table_is_made_where_there_is_none(start: str, tmp_path: Path) -> None:
    there = desk("cursor", tmp_path)
    there.write(start)
    there.install()
    value = json.loads(there.text())
    assert list(value["mcpServers"]) == ["pegboard"]
    there.uninstall()
    assert there.text() == start


def test_what_somebody_added_since_stays_when_uninstalling(tmp_path: Path) -> None:
    there = desk("cursor", tmp_path)
    there.write(ONE)
    there.install()
    changed = there.text().replace(
        '"mcpServers": {', '// mine\n  "mcpServers": {\n    "b": {"command": "b"},'
    )
    there.write(changed)
    there.uninstall()
    assert "// mine" in there.text()
    assert parse_document(there.text(), there.file).value == {
        "mcpServers": {"b": {"command": "b"}, "a": {"command": "a"}}
    }


def test_installing_again_takes_over_what_was_added_since(tmp_path: Path) -> None:
    there = desk("cursor", tmp_path)
    there.write(ONE)
    there.install()
    value = json.loads(there.text())
    value["mcpServers"]["b"] = {"command": "b"}
    there.write(json.dumps(value))
    plan = there.install()
    assert set(plan.moved) == {"a", "b"}
    assert list(json.loads(there.text())["mcpServers"]) == ["pegboard"]
    there.uninstall()
    assert json.loads(there.text()) == {
        "mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}
    }


def test_a_file_written_anew_by_its_client_needs_nothing_more(tmp_path: Path) -> None:
    there = desk("cursor", tmp_path)
    there.write(ONE)
    there.install()
    there.write(json.dumps({"started": 2, **json.loads(there.text())}, indent=8))
    as_the_client_wrote_it = there.text()
    assert not there.install().is_change
    assert there.text() == as_the_client_wrote_it


def test_a_change_of_what_was_taken_over_is_not_lost(tmp_path: Path) -> None:
    there = desk("cursor", tmp_path)
    there.write(ONE)
    plan = there.install()
    plan.folder.servers.write_text('{"mcpServers": {"a": {"command": "a", "args": ["--new"]}}}')
    there.uninstall()
    assert json.loads(there.text()) == {"mcpServers": {"a": {"command": "a", "args": ["--new"]}}}


def test_another_mode_is_written_when_asked_for(tmp_path: Path) -> None:
    there = desk("cursor", tmp_path)
    there.write(ONE)
    there.install()
    assert there.plan().mode == "eager"
    plan = there.install(mode="index")
    assert plan.is_change
    assert not plan.changes_file, "the mode is a setting, so that PEGBOARD_MODE goes before it"
    assert tomllib.loads(plan.folder.settings.read_text())["mode"] == "index"
    assert there.plan().mode == "index", "installing again does not choose another mode"
    there.uninstall()
    assert there.text() == ONE
    assert not plan.folder.path.exists()


def test_an_installation_with_a_flag_for_the_mode_becomes_one_with_a_setting(
    tmp_path: Path,
) -> None:
    there = desk("windsurf", tmp_path)
    there.write(ONE)
    plan = there.install()
    text = there.text().replace('pegboard.toml"', 'pegboard.toml", "--mode", "proxy"')
    there.file.write_text(text)
    settings = plan.folder.settings
    settings.write_text(settings.read_text().replace('mode = "auto"\n', 'pins = ["x"]\n'))
    again = there.install()
    assert "--mode" not in there.text()
    assert tomllib.loads(settings.read_text()) == {
        "import": ["mcp_config.json"], "pins": ["x"], "mode": "auto",
    }  # fmt: skip
    assert again.mode == "auto"


def test_a_profile_of_the_user_s_own_configuration_is_chosen_for_a_client(tmp_path: Path) -> None:
    there = desk("windsurf", tmp_path)
    there.write(ONE)
    own = there.machine.user_config
    own.parent.mkdir(parents=True)
    own.write_text('[servers.b]\ncommand = "b"\n[profiles.work]\nservers = ["b"]\n')
    plan = there.install(profile="work")
    found = load_configuration(plan.folder.settings, ConfigEnvironment({}, tmp_path, tmp_path))
    assert not found.problems
    assert {spec.name for spec in found.upstreams} == {"a", "b"}
    assert build_policy(found.settings).profile == "work"
    assert there.plan().profile == "work", "installing again keeps it"
    with pytest.raises(ConfigError, match=r"define \[profiles\.home\]"):
        there.plan(profile="home")
    there.uninstall()
    assert there.text() == ONE
    assert not plan.folder.path.exists()


def test_uninstalling_finds_the_one_file_that_was_named_when_installing(tmp_path: Path) -> None:
    there = desk("cursor", tmp_path)
    project = tmp_path / "project" / ".cursor" / "mcp.json"
    project.parent.mkdir(parents=True)
    project.write_text(ONE)
    there.install(file=project)
    assert "pegboard" in project.read_text()
    there.uninstall()
    assert project.read_text() == ONE


def test_uninstalling_asks_for_a_file_when_there_are_several(tmp_path: Path) -> None:
    there = desk("cursor", tmp_path)
    files = [tmp_path / name / "mcp.json" for name in ("one", "two")]
    for file in files:
        file.parent.mkdir()
        file.write_text(ONE)
        there.install(file=file)
    with pytest.raises(PegboardError, match="Name one of them with --file") as raised:
        there.uninstall()
    assert all(str(file) in raised.value.message for file in files)


def test_servers_to_keep_stay_where_they_are(tmp_path: Path) -> None:
    there = desk("cursor", tmp_path)
    there.write('{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}')
    plan = there.install(keep=["a"])
    assert plan.moved == ("b",)
    assert list(json.loads(there.text())["mcpServers"]) == ["a", "pegboard"]


def test_settings_of_one_s_own_outlive_installing_again_and_uninstalling(tmp_path: Path) -> None:
    there = desk("cursor", tmp_path)
    there.write(ONE)
    settings = there.install().folder.settings
    settings.write_text(settings.read_text() + 'pins = ["x"]\n')
    there.install(mode="proxy")
    assert 'pins = ["x"]' in settings.read_text()
    there.uninstall()
    assert 'pins = ["x"]' in settings.read_text()


def test_what_was_taken_over_is_for_the_owner_alone_and_the_file_keeps_its_mode(
    tmp_path: Path,
) -> None:
    there = desk("cursor", tmp_path)
    path = there.write(ONE)
    path.chmod(0o640)
    plan = there.install()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    for ours in (plan.folder.servers, plan.folder.backup, plan.folder.record):
        assert stat.S_IMODE(ours.stat().st_mode) == 0o600


def test_a_project_s_file_is_an_installation_of_its_own(tmp_path: Path) -> None:
    there = desk("cursor", tmp_path)
    project = tmp_path / "shop/.cursor/mcp.json"
    project.parent.mkdir(parents=True)
    project.write_text(ONE)
    there.write('{"mcpServers": {"z": {"command": "z"}}}')
    there.install()
    plan = plan_install(there.client, there.machine, command=COMMAND, file=project)
    apply_install(plan)
    assert plan.moved == ("a",)
    assert plan.folder.path.name.startswith("cursor-")


def test_a_client_that_is_not_there_is_said_to_be_so(tmp_path: Path) -> None:
    with pytest.raises(PegboardError, match=r"Zed was not found .*--file"):
        desk("zed", tmp_path).install()


def test_uninstalling_what_was_not_installed_is_said_to_be_so(tmp_path: Path) -> None:
    there = desk("cursor", tmp_path)
    there.write(ONE)
    with pytest.raises(PegboardError, match="not installed in Cursor"):
        there.uninstall()
    assert there.text() == ONE


def test_a_file_deleted_meanwhile_gets_its_servers_back(tmp_path: Path) -> None:
    there = desk("cursor", tmp_path)
    there.write(ONE)
    there.install()
    os.unlink(there.file)
    there.uninstall()
    assert json.loads(there.text()) == {"mcpServers": {"a": {"command": "a"}}}


def test_variables_decide_where_files_are(tmp_path: Path) -> None:
    from pegboard.install.clients import Machine, find_client

    machine = Machine("linux", tmp_path, {"CODEX_HOME": "/codex", "XDG_CONFIG_HOME": "/xdg"})
    assert machine.client_file(find_client("codex")) == Path("/codex/config.toml")
    assert machine.client_file(find_client("zed")) == Path("/xdg/zed/settings.json")
