"""`Pegboard.from_config` and the commands on top of it, with real servers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.embed.conftest import TopicEmbedder
from tests.gateway.support import ROOT, faulty, polite, write

from pegboard import ConfigError, Pegboard, ToolNotFound

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEGBOARD_HOME", str(tmp_path / "home"))


def test_tools_are_listed_searched_and_described_without_an_event_loop(tmp_path: Path) -> None:
    board = Pegboard.from_config(write(tmp_path, {"a": polite(), "b": polite()}))
    assert [tool.name for tool in board.tools()] == ["a_echo", "b_echo"]
    assert {match.tool.name for match in board.search("echo")} == {"a_echo", "b_echo"}
    assert board.describe("b.echo")[0].server == "b"
    with pytest.raises(ToolNotFound, match="a_echo"):
        board.describe("a_ecko")


def test_the_index_is_saved_and_another_embedder_can_be_set(tmp_path: Path) -> None:
    path = write(tmp_path, {"a": polite()})
    plain = Pegboard.from_config(path)
    plain.search("say it again")
    assert plain.is_index_saved
    assert plain.index_folder == tmp_path / "home"
    embedder = TopicEmbedder()
    board = Pegboard.from_config(path)
    board.embedder = embedder
    board.prepare()
    board.search("say it again")
    assert (len(embedder.passages), embedder.asked) == (1, ["say it again"])
    assert len(list((tmp_path / "home" / "indexes").iterdir())) == 2


def test_a_configured_folder_holds_the_index_too(tmp_path: Path) -> None:
    path = tmp_path / "pegboard.toml"
    entry = polite()
    path.write_text(
        f'[servers.a]\ncommand = "{entry["command"]}"\nargs = {json.dumps(entry["args"])}\n'
        f'[upstreams]\nfolder = "here"\n'
    )
    board = Pegboard.from_config(path)
    board.search("echo")
    assert board.index_folder == tmp_path / "here"
    assert len(list((tmp_path / "here" / "indexes").iterdir())) == 1


async def test_a_call_starts_its_server_and_ends_it(tmp_path: Path) -> None:
    board = Pegboard.from_config(write(tmp_path, {"a": polite()}))
    first = (await board.call("a_echo")).output
    assert str(first).isdigit()
    assert (await board.call("a_echo")).output != first


async def test_a_running_board_keeps_its_servers(tmp_path: Path) -> None:
    board: Any = Pegboard.from_config(write(tmp_path, {"a": polite()}))
    with anyio.fail_after(20):
        async with board:
            first = (await board.call("a_echo")).output
            assert (await board.call("a_echo")).output == first


def test_settings_win_over_the_file_and_unknown_ones_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, {"a": polite()})
    assert Pegboard.from_config(path, mode="index").options.mode == "index"
    with pytest.raises(ConfigError, match="mdoe"):
        Pegboard.from_config(path, mdoe="index")
    with pytest.raises(ConfigError, match="no such file"):
        Pegboard.from_config(tmp_path / "nowhere.json")


async def command(tmp_path: Path, *args: str) -> tuple[int, str, str]:
    env = {"PYTHONPATH": str(ROOT / "src"), "PEGBOARD_HOME": str(tmp_path / "home")}
    done = await anyio.run_process([sys.executable, "-m", "pegboard", *args], check=False, env=env)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


async def test_the_commands_answer_for_a_configuration(tmp_path: Path) -> None:
    config = str(write(tmp_path, {"a": polite()}))
    code, out, err = await command(tmp_path, "list", "--config", config, "--json")
    assert (code, [t["name"] for t in json.loads(out)["tools"]]) == (0, ["a_echo"]), err
    code, out, _ = await command(tmp_path, "search", "echo", "--config", config, "--json")
    assert (code, json.loads(out)["matches"][0]["name"]) == (0, "a_echo")
    code, out, _ = await command(tmp_path, "call", "a_echo", "--args", "{}", "--config", config)
    assert code == 0
    assert out.strip().isdigit()
    code, _, err = await command(tmp_path, "call", "a_echo", "--args", "[1]", "--config", config)
    assert code == 2


async def test_doctor_tells_of_each_server_and_fails_when_one_does(tmp_path: Path) -> None:
    config = str(write(tmp_path, {"good": polite(), "bad": faulty("dies_at_start")}))
    code, out, _ = await command(tmp_path, "doctor", "--config", config, "--json")
    found = {one["server"]: one for one in json.loads(out)["servers"]}
    assert code == 1
    assert (found["good"]["reachable"], found["good"]["era"], found["good"]["tools"]) == (
        True,
        "legacy",
        1,
    )
    assert found["good"]["tokens"] > 0
    assert found["good"]["latency"] > 0
    assert not found["bad"]["reachable"]
    assert "exited with code 7" in found["bad"]["problems"][0]


async def test_doctor_ends_with_3_when_only_the_configuration_is_wrong(tmp_path: Path) -> None:
    config = str(write(tmp_path, {"good": polite(), "odd": {"comand": "x"}}))
    code, out, _ = await command(tmp_path, "doctor", "--config", config)
    assert code == 3
    assert "reachable" in out
