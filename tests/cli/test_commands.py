"""Every command that exists, its output for people and for programs."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from tests.cli.terminal import ROOT, Ran, pegboard, process

from pegboard import __version__

COMMANDS = {
    "serve", "demo", "list", "search", "describe", "call", "fields", "doctor", "measure", "try",
    "install", "uninstall", "clients", "lock", "rollout", "ui", "index", "eval",
    "run", "replay", "login", "logout",
}  # fmt: skip
"""What is run here and in the files beside; a command that is added is added here, and tested."""


def test_no_command_goes_untested() -> None:
    from pegboard.cli.app import app

    names = {command.name for command in (*app.registered_commands, *app.registered_groups)}
    assert names == COMMANDS


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_explains_itself(command: str, tmp_path: Path) -> None:
    ran = pegboard(command, "--help", home=tmp_path)
    assert ran.code == 0
    assert "Usage" in ran.out
    assert "--help" in ran.out


def test_list_shows_tools_and_their_cost(catalog: Path, tmp_path: Path) -> None:
    ran = pegboard("list", "--catalog", str(catalog), "--mode", "proxy", home=tmp_path)
    assert "search_tools" in ran.out
    assert "tokens (o200k_base)" in ran.out
    listed = pegboard("list", "--catalog", str(catalog), "--json", home=tmp_path).json
    assert {"tools", "ttlMs"} <= set(listed)


def test_search_shows_what_fits_and_fails_when_nothing_does(catalog: Path, tmp_path: Path) -> None:
    ran = pegboard("search", "create an issue", "--catalog", str(catalog), home=tmp_path)
    assert ran.code == 0
    assert "create_issue" in ran.out
    nothing = pegboard("search", "xyzzy plugh", "--catalog", str(catalog), home=tmp_path)
    assert (nothing.code, nothing.out.strip()) == (1, "No tool matches.")
    found = pegboard(
        "search", "create an issue", "--catalog", str(catalog), "--json", home=tmp_path
    ).json
    assert found["matches"][0]["name"] == "create_issue"


def test_describe_shows_a_tool_and_names_the_nearest(catalog: Path, tmp_path: Path) -> None:
    ran = pegboard("describe", "create_issue", "--catalog", str(catalog), home=tmp_path)
    assert "create_issue(project: str, title: str" in ran.out
    wrong = pegboard("describe", "creat_issue", "--catalog", str(catalog), home=tmp_path)
    assert wrong.code == 1
    assert "Nearest: create_issue" in wrong.err
    tool = pegboard(
        "describe", "create_issue", "--catalog", str(catalog), "--json", home=tmp_path
    ).json["tools"][0]
    assert tool["name"] == "create_issue"


def test_call_makes_a_call(config: Path, tmp_path: Path) -> None:
    words = ("call", "office_list_projects", "--config", str(config))
    assert "apollo" in pegboard(*words, home=tmp_path).out
    assert "apollo" in str(pegboard(*words, "--json", home=tmp_path).json["content"])


def test_doctor_tells_how_servers_are(config: Path, tmp_path: Path) -> None:
    assert "reachable" in pegboard("doctor", "--config", str(config), home=tmp_path).out
    value = pegboard("doctor", "--config", str(config), "--json", home=tmp_path).json
    assert value["servers"][0]["reachable"] is True
    assert value["platform"]["system"] == sys.platform


def test_demo_shows_what_each_step_cost(tmp_path: Path) -> None:
    value = pegboard("demo", "--json", home=tmp_path).json
    assert value["tools"] > 100
    assert value["total"] < value["everything"]


def test_try_reads_tasks_from_a_pipe(catalog: Path, tmp_path: Path) -> None:
    typed = "create an issue\n\nxyzzy plugh\nquit\nnever read\n"
    ran = pegboard("try", "--catalog", str(catalog), home=tmp_path, typed=typed)
    assert ran.code == 0
    assert "create_issue" in ran.out
    assert "No tool matches." in ran.out
    assert "tokens for the model to read" in ran.out
    assert "never read" not in ran.out


def test_try_takes_one_task_and_prints_json(catalog: Path, tmp_path: Path) -> None:
    ran = pegboard("try", "file a bug", "--catalog", str(catalog), "--json", home=tmp_path)
    task = ran.json["tasks"][0]
    assert task["matches"]
    assert task["tokens"] > 0
    assert task["matches"][0]["why"]


# --- measure --------------------------------------------------------------------------------------


def test_measure_shows_servers_modes_and_the_most_expensive_tools(
    catalog: Path, tmp_path: Path
) -> None:
    out = pegboard("measure", "--catalog", str(catalog), home=tmp_path).out
    for word in (
        "server",
        "proxy",
        "hierarchy",
        "first definition",
        "The most expensive tools",
        "less",
    ):
        assert word in out


def test_the_version_is_said(tmp_path: Path) -> None:
    assert pegboard("--version", home=tmp_path).out == f"pegboard {__version__}\n"


def test_a_program_in_place_of_a_configuration_is_told_from_a_broken_one(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text("board.run()")
    ran = pegboard("list", "--config", str(tmp_path / "server.py"), home=tmp_path)
    assert ran.code == 3
    assert "this is a program; name it in a file of servers" in ran.err


def test_doctor_says_that_there_are_no_servers(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text('{"mcpServers": {}}')
    ran = pegboard("doctor", "--config", str(tmp_path / "mcp.json"), home=tmp_path)
    first, *notes = ran.out.splitlines()
    assert (ran.code, first) == (0, "The configuration has no servers.")
    assert all(note.startswith(f"{sys.platform}: ") for note in notes)  # what this system lacks


def test_measure_prints_the_agreed_json(catalog: Path, tmp_path: Path) -> None:
    value = pegboard("measure", str(catalog), "--json", home=tmp_path).json
    assert value["tokenizer"] == "o200k_base"
    assert {"list", "first_definition", "session"} <= set(value["modes"]["proxy"])


def test_measure_takes_prices_and_a_session(catalog: Path, tmp_path: Path) -> None:
    def cached(*words: str) -> float:
        ran = pegboard("measure", str(catalog), "--json", *words, home=tmp_path)
        return ran.json["modes"]["eager"]["session_cached"]

    assert cached("--turns", "40") > cached()
    assert cached("--price", "1,1,1") > cached()


def test_measure_asks_the_servers_of_a_file_and_keeps_what_they_said(
    config: Path, tmp_path: Path
) -> None:
    first = pegboard("measure", str(config), "--json", home=tmp_path)
    assert [s["name"] for s in first.json["servers"]] == ["office"]
    config_without_server = json.loads(config.read_text())
    assert first.json["servers"][0]["tools"] > 20
    assert config_without_server["mcpServers"]
    assert list((tmp_path / "cache/catalogs").glob("office-*"))


def test_measure_starts_a_command(config: Path, tmp_path: Path) -> None:
    entry: dict[str, Any] = json.loads(config.read_text())["mcpServers"]["office"]
    command = [entry["command"], *entry["args"]]
    ran = pegboard("measure", "--json", "--", *command, home=tmp_path, **entry["env"])
    assert ran.json["servers"][0]["tools"] > 20
    assert not (tmp_path / "cache").exists()


def test_measure_looks_at_the_clients_of_the_machine(config: Path, tmp_path: Path) -> None:
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor/mcp.json").write_bytes(config.read_bytes())
    (tmp_path / ".codeium/windsurf").mkdir(parents=True)
    (tmp_path / ".codeium/windsurf/mcp_config.json").write_bytes(config.read_bytes())
    value = pegboard("measure", "--clients", "--json", home=tmp_path).json
    assert [one["client"] for one in value["clients"]] == ["cursor", "windsurf"]
    for one in value["clients"]:
        assert [s["name"] for s in one["measurement"]["servers"]] == ["office"]
    none = pegboard("measure", "--clients", home=tmp_path / "nobody")
    assert none.code == 3
    assert "pegboard clients" in none.err


def test_measure_says_which_server_did_not_answer(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"gone": {"command": "/no/such/program"}}}))
    ran = pegboard("measure", str(path), "--json", home=tmp_path)
    assert ran.code == 1
    assert "gone" in ran.json["failures"]
    assert "missing: gone" in ran.err


def test_measure_writes_a_report_and_a_picture(catalog: Path, tmp_path: Path) -> None:
    html, svg = tmp_path / "report.html", tmp_path / "picture.svg"
    pegboard("measure", str(catalog), "--html", str(html), "--svg", str(svg), home=tmp_path)
    assert html.read_text().startswith("<!doctype html>")
    assert svg.read_text().startswith("<svg")


def test_measure_counts_recorded_results(catalog: Path, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    rows = [{"identifier": n, "title": f"Issue {n}", "status": "open"} for n in range(50)]
    path.write_text(json.dumps({"tool": "list_issues", "result": rows}))
    ran = pegboard("measure", str(catalog), "--results", str(path), home=tmp_path)
    assert "1 recorded results" in ran.out


# --- install --------------------------------------------------------------------------------------


def _cursor(home: Path) -> Path:
    path = home / ".cursor/mcp.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"mcpServers": {"a": {"command": "a", "env": {"API_TOKEN": "s3cr3t-value"}}}}')
    return path


def test_install_shows_the_change_without_secrets_and_makes_it(tmp_path: Path) -> None:
    path = _cursor(tmp_path)
    before = path.read_bytes()
    looked = pegboard("install", "cursor", "--dry-run", home=tmp_path)
    assert looked.code == 0
    assert '+{"mcpServers"' in looked.out
    assert "s3cr3t-value" not in looked.out
    assert path.read_bytes() == before
    done = pegboard("install", "cursor", "--yes", home=tmp_path)
    assert "Restart Cursor" in done.out
    assert "pegboard" in json.loads(path.read_text())["mcpServers"]
    again = pegboard("install", "cursor", "--yes", home=tmp_path)
    assert "nothing to change" in again.out
    assert "Done" in pegboard("uninstall", "cursor", "--yes", home=tmp_path).out
    assert path.read_bytes() == before


def test_what_install_wrote_is_a_configuration_that_can_be_served(
    config: Path, tmp_path: Path
) -> None:
    path = tmp_path / ".cursor/mcp.json"
    path.parent.mkdir()
    path.write_bytes(config.read_bytes())
    value = pegboard("install", "cursor", "--yes", "--json", home=tmp_path).json
    assert (value["done"], value["taken"]) == (True, ["office"])
    searched = pegboard("search", "create an issue", "--config", value["config"], home=tmp_path)
    assert "create_issue" in searched.out


def _entry_of(config: Path, home: Path) -> dict[str, Any]:
    """What `install` writes into a client that has this file; its servers have been listed once."""
    path = home / ".cursor/mcp.json"
    path.parent.mkdir()
    path.write_bytes(config.read_bytes())
    words = ("install", "cursor", "--mode", "proxy", "--yes", "--json")
    served = pegboard(*words, home=home).json["config"]
    assert pegboard("list", "--config", served, home=home).code == 0
    return json.loads(path.read_text())["mcpServers"]["pegboard"]


def test_the_entry_that_install_wrote_starts_a_gateway_that_answers(
    config: Path, tmp_path: Path
) -> None:
    entry = _entry_of(config, tmp_path)
    env = {**os.environ, "PEGBOARD_HOME": str(tmp_path / "cache")}
    server = StdioServerParameters(command=entry["command"], args=entry["args"], env=env, cwd=ROOT)

    async def use() -> tuple[set[str], str]:
        async with Client(server) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            call = {"name": "office_list_projects", "arguments": {}}
            return names, str((await client.call_tool("call_tool", call)).content)

    names, called = anyio.run(use)
    assert "search_tools" in names
    assert "apollo" in called


def test_install_asks_nobody_where_nobody_can_answer(tmp_path: Path) -> None:
    path = _cursor(tmp_path)
    ran = pegboard("install", "cursor", home=tmp_path)
    assert ran.code == 2
    assert "--yes" in ran.err
    assert "pegboard" not in path.read_text()


def test_clients_are_listed_with_what_they_have(tmp_path: Path) -> None:
    _cursor(tmp_path)
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini/settings.json").write_text("{")
    ran = pegboard("clients", home=tmp_path)
    assert "cannot be changed" in ran.out
    seen = {c["client"]: c for c in pegboard("clients", "--json", home=tmp_path).json["clients"]}
    assert seen["cursor"]["servers"] == ["a"]
    assert seen["cursor"]["installed"]
    assert not seen["zed"]["installed"]
    assert "not valid JSON" in seen["gemini-cli"]["problem"]


# --- errors ---------------------------------------------------------------------------------------

WRONG: list[tuple[tuple[str, ...], int, str]] = [
    (("nope",), 2, "No such command 'nope'"),
    (("search",), 2, "Missing argument"),
    (("search", "x"), 3, "Pass --config FILE"),
    (("search", "x", "--config", "a", "--catalog", "b"), 2, "--config FILE or --catalog FILE"),
    (("search", "x", "--bogus"), 2, "--bogus"),
    (("measure",), 3, "No client on this machine has servers"),
    (("measure", "x", "--config", "y"), 2, "Pass one of: a file, a URL"),
    (("measure", "x", "--clients"), 2, "takes neither another target"),
    (("measure", "--catalog", "/no/such"), 3, "/no/such"),
    (("measure", "--config", "/no/such"), 3, "there is no such file"),
    (("measure", "--catalog", "{catalog}", "--price", "1,2"), 2, "three numbers"),
    (("measure", "--catalog", "{catalog}", "--tokenizer", "x"), 3, "Unknown tokenizer"),
    (("measure", "--catalog", "{catalog}", "--html", "/no/such/x"), 3, "cannot be written"),
    (("measure", "--catalog", "{catalog}", "--tools", "9", "--turns", "2"), 3, "9 tools cannot"),
    (("list", "--catalog", "{catalog}", "--mode", "prox"), 3, "Did you mean 'proxy'?"),
    (("install", "curser"), 3, "Did you mean 'cursor'?"),
    (("install", "zed"), 1, "not found on this machine"),
    (("uninstall", "cursor", "--yes"), 1, "not installed in Cursor"),
]


@pytest.mark.parametrize(("words", "code", "reason"), WRONG, ids=[" ".join(w[0]) for w in WRONG])
def test_what_is_wrong_is_one_sentence_and_an_exit_code(
    words: tuple[str, ...], code: int, reason: str, catalog: Path, tmp_path: Path
) -> None:
    ran = pegboard(*(word.format(catalog=catalog) for word in words), home=tmp_path)
    assert ran.code == code, ran.err
    assert reason in ran.err
    assert "Traceback" not in ran.err
    assert ran.err.startswith("error: ")
    assert ran.out == ""


def test_a_traceback_comes_when_asked_for(tmp_path: Path) -> None:
    ran = process("install", "curser", "--debug", home=tmp_path)
    assert "Traceback" in ran.err


# --- terminals ------------------------------------------------------------------------------------


def _longest(ran: Ran) -> int:
    return max(len(line) for line in ran.out.splitlines())


def test_forty_columns_are_enough(catalog: Path, tmp_path: Path) -> None:
    _cursor(tmp_path)
    for words, whole in (
        (("measure", str(catalog)), "office"),
        (("clients",), "claude-desktop"),
        (("search", "delete a document", "--catalog", str(catalog)), "delete_document"),
        (("fields", "create_issue", "--catalog", str(catalog)), "create_issue"),
    ):
        ran = process(*words, home=tmp_path, COLUMNS="40")
        assert ran.code == 0, ran.err
        assert _longest(ran) <= 40
        assert whole in ran.out


def test_what_failed_is_said_once(tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"gone": {"command": "/no/such/program"}}}))
    for words in (("list",), ("search", "x"), ("try", "x"), ("doctor",)):
        ran = process(*words, "--config", str(config), home=tmp_path, COLUMNS="200")
        assert (ran.out + ran.err).count("/no/such/program") == 1, ran


def test_nothing_found_is_the_same_exit_code_with_and_without_json(
    catalog: Path, tmp_path: Path
) -> None:
    words = ("search", "zzzz qqqq", "--catalog", str(catalog))
    assert pegboard(*words, home=tmp_path).code == 1
    found = pegboard(*words, "--json", home=tmp_path)
    assert (found.code, found.json["matches"]) == (1, [])


def test_no_colour_where_none_is_wanted(catalog: Path, tmp_path: Path) -> None:
    coloured = process("measure", str(catalog), home=tmp_path, FORCE_COLOR="1")
    assert "\x1b[32m" in coloured.out
    plain = process("measure", str(catalog), home=tmp_path, FORCE_COLOR="1", NO_COLOR="1")
    assert "\x1b[32m" not in plain.out


def test_a_code_page_without_our_characters_breaks_nothing(tmp_path: Path) -> None:
    path = tmp_path / "tools.json"
    tool = {"name": "say", "description": "Größe → 日本…", "inputSchema": {"type": "object"}}
    path.write_text(json.dumps([tool]))
    page = {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}
    shown = process("describe", "say", "--catalog", str(path), home=tmp_path, **page)
    assert shown.code == 0
    assert "Größe ? ??" in shown.out
    value = process("describe", "say", "--catalog", str(path), "--json", home=tmp_path, **page)
    assert value.json["tools"][0]["description"] == tool["description"]


def test_completion_knows_commands_and_clients(tmp_path: Path) -> None:
    def completed(words: str) -> str:
        ran = process(
            home=tmp_path,
            _PEGBOARD_COMPLETE="complete_bash",
            COMP_WORDS=words,
            COMP_CWORD=str(len(words.split(" ")) - 1),
        )
        return ran.out

    assert "measure" in completed("pegboard me")
    assert "cursor" in completed("pegboard install cu")
