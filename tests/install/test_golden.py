"""Every client, with a file as people have it: comments, trailing commas, odd indents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.install.machines import Desk, desk, golden

from pegboard.config.loader import load_configuration
from pegboard.config.server_entries import ConfigEnvironment, read_servers
from pegboard.install.clients import System, load_clients
from pegboard.upstream.spec import UpstreamSpec

ENV = {
    name: f"value of {name}"
    for name in ("SENTRY_TOKEN", "GITHUB_TOKEN", "MAPS_KEY", "JIRA_TOKEN", "NOTES_DIR")
} | {"GITHUB_PERSONAL_ACCESS_TOKEN": "value"}

every_client = pytest.mark.parametrize("key", list(load_clients()))


@pytest.fixture
def ready(key: str, tmp_path: Path) -> Desk:
    made = desk(key, tmp_path)
    made.write(golden(key, "before"))
    return made


@every_client
def test_the_client_s_file_becomes_what_it_should(key: str, ready: Desk) -> None:
    ready.install()
    written = ready.file.read_bytes().replace(str(ready.machine.home).encode(), b"/HOME")
    assert written == golden(key, "after")


@every_client
def test_servers_that_are_taken_over_are_kept_as_they_were_written(key: str, ready: Desk) -> None:
    plan = ready.install()
    assert plan.folder.servers.read_bytes() == golden(key, "kept")


@every_client
def test_uninstalling_puts_every_byte_back_and_leaves_nothing_behind(key: str, ready: Desk) -> None:
    plan = ready.install()
    ready.uninstall()
    assert ready.file.read_bytes() == golden(key, "before")
    assert not plan.folder.path.exists()


@every_client
def test_installing_twice_changes_nothing_more(key: str, ready: Desk) -> None:
    ready.install()
    once = ready.file.read_bytes()
    again = ready.install()
    assert not again.is_change
    assert ready.file.read_bytes() == once


@every_client
def test_pegboard_runs_the_servers_that_the_client_ran(key: str, ready: Desk) -> None:
    around = ConfigEnvironment(ENV, ready.machine.home, ready.machine.home)
    before = {s.name: s for s in read_servers(ready.file, around).specs}
    plan = ready.install()
    found = load_configuration(plan.folder.settings, around)
    assert not found.problems
    behind = {s.name: s for s in found.upstreams}
    assert set(behind) == set(plan.moved)
    for name, spec in behind.items():
        assert _as_run(spec) == _as_run(before[name])


@every_client
def test_the_entry_hands_on_the_variables_that_servers_refer_to(key: str, ready: Desk) -> None:
    plan = ready.install()
    kept = plan.folder.servers.read_text()
    referred = [name for name in ENV if name in kept and f'"{name}": "' not in kept]
    written = str(plan.entry)
    for name in referred:
        assert name in written


@every_client
@pytest.mark.parametrize("system", ["linux", "darwin", "win32"])
def test_every_system_has_its_own_place_for_the_file(
    key: str, system: System, tmp_path: Path
) -> None:
    there = desk(key, tmp_path, system)
    there.write(golden(key, "before"))
    plan = there.install()
    assert plan.path.is_relative_to(tmp_path)
    assert plan.folder.settings.is_relative_to(tmp_path)
    there.uninstall()
    assert there.file.read_bytes() == golden(key, "before")


def test_the_usual_places_are_the_documented_ones(tmp_path: Path) -> None:
    def place(key: str, system: System) -> str:
        return desk(key, tmp_path, system).file.relative_to(tmp_path).as_posix()

    support = "Library/Application Support"
    assert place("claude-desktop", "darwin") == f"{support}/Claude/claude_desktop_config.json"
    assert place("claude-desktop", "win32") == ("AppData/Roaming/Claude/claude_desktop_config.json")
    assert place("vscode", "linux") == ".config/Code/User/mcp.json"
    assert place("vscode", "darwin") == f"{support}/Code/User/mcp.json"
    assert place("zed", "darwin") == ".config/zed/settings.json"
    assert place("zed", "win32") == "AppData/Roaming/Zed/settings.json"
    assert place("goose", "win32") == "AppData/Roaming/Block/goose/config/config.yaml"
    assert place("codex", "win32") == ".codex/config.toml"
    assert place("opencode", "win32") == ".config/opencode/opencode.jsonc"


def test_clients_that_defer_tools_are_shown_all_and_others_what_suits_the_size(
    tmp_path: Path,
) -> None:
    modes = {key: client.mode for key, client in load_clients().items()}
    assert {key for key, mode in modes.items() if mode == "eager"} == {
        "claude-code", "cursor", "codex",
    }  # fmt: skip
    assert set(modes.values()) == {"eager", "auto"}


def _as_run(spec: UpstreamSpec) -> UpstreamSpec:
    return replace(spec, origin=None)
