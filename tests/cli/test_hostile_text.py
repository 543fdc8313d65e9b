"""Every command on tools whose names and descriptions are written to fool a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.terminal import ROOT, Ran, pegboard
from tests.gateway.support import entry
from tests.upstream.servers import hostile_texts as hostile

FORBIDDEN = re.compile(
    "[\x07\x08\x0b-\x0d\x0e-\x1a\x1c-\x1f\x7f-\x9f\u200b\u202a-\u202e\ufe00-\ufe0e]"
)
TAGS = re.compile("[\U000e0000-\U000e0fff]")
STYLES = re.compile(r"\x1b\[[0-9;]*m")
"""What Rich itself writes for colors."""


def repainting(text: str) -> list[str]:
    """What a terminal would act on or not show, colors of ours and emoji left out."""
    text = STYLES.sub("", text).replace(hostile.EMOJI, "").replace("\r\n", "\n")
    return re.findall("\x1b.{0,8}", text) + FORBIDDEN.findall(text) + TAGS.findall(text)


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    path = tmp_path / "hostile.json"
    tools = [{**tool, "server": "h"} for tool in hostile.TOOLS]
    path.write_text(json.dumps({"tools": tools}))
    return path


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A server whose tools all wait for approval, and a lock that holds them."""
    server = entry("hostile")
    path = tmp_path / "pegboard.toml"
    path.write_text(
        '[trust]\nmode = "approve"\nlock = "pegboard.lock"\n[servers.h]\n'
        f"command = {json.dumps(server['command'])}\nargs = {json.dumps(server['args'])}\n"
    )
    return path


@pytest.mark.parametrize(
    "words",
    [
        ("list", "--mode", "eager"),
        ("list", "--mode", "proxy"),
        ("search", "hidden name"),
        ("search", "hidden name", "--json"),
        ("describe", "h_echo", "h.na\\u{200b}me\\u{1b}[31m\\u{1b}]0;owned\\u{7}\\u{9b}2J[/x]"),
        ("describe", "echo", "--json"),
        ("fields", "--all"),
        ("fields", "echo"),
        ("try", "hidden name"),
        ("measure",),
        ("describe", f"unknown{hostile.ANSI}[/x]"),
    ],
    ids=lambda words: " ".join(words)[:24].encode("ascii", "ignore").decode(),
)
def test_no_command_repaints_a_terminal_or_trips_over_brackets(
    words: tuple[str, ...], catalog: Path, tmp_path: Path
) -> None:
    if words[:2] == ("describe", "h_echo"):
        words = ("describe", "echo", *words[2:])
    ran = pegboard(*words, "--catalog", str(catalog), home=tmp_path)
    assert "Internal error" not in ran.err
    assert ran.out or ran.err
    assert repainting(ran.out + ran.err) == []


def test_brackets_are_printed_as_they_are(catalog: Path, tmp_path: Path) -> None:
    described = pegboard("describe", "echo", "--catalog", str(catalog), home=tmp_path)
    assert hostile.BRACKETS in described.out.replace("\n", " ")
    listed = pegboard("list", "--mode", "proxy", "--catalog", str(catalog), home=tmp_path)
    assert "Call a [write] tool" in listed.out


def test_json_holds_the_same_values_without_a_hidden_character(
    catalog: Path, tmp_path: Path
) -> None:
    ran = pegboard("call", "x", "--config", str(catalog), home=tmp_path)
    assert ran.code != 0
    shown = pegboard("describe", "echo", "--json", "--catalog", str(catalog), home=tmp_path)
    assert repainting(shown.out) == []
    assert hostile.EMOJI in shown.json["tools"][0]["description"]


def test_a_held_definition_is_shown_and_decided_about_without_repainting(
    config: Path, tmp_path: Path
) -> None:
    option = ("--config", str(config))
    pegboard("list", *option, home=tmp_path)
    spelled = "h.na\\u{200b}me\\u{1b}[31m\\u{1b}]0;owned\\u{7}\\u{9b}2J[/x]"
    diff = pegboard("lock", "diff", *option, home=tmp_path)
    one = pegboard("lock", "approve", spelled, *option, home=tmp_path)
    rest = pegboard("lock", "approve", *option, home=tmp_path)
    revoked = pegboard("lock", "revoke", "h", *option, home=tmp_path)
    as_json = pegboard("lock", "diff", "--json", *option, home=tmp_path)
    for ran in (diff, one, rest, revoked, as_json):
        assert repainting(ran.out + ran.err) == []
    assert spelled in diff.out
    assert one.out == f"Approved: {spelled}\n"
    assert "h.echo" in rest.out


def test_what_a_server_answers_is_printed_escaped(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"h": entry("hostile")}}))
    given = json.dumps({"le\\u{200b}vel": "low", "free": "\x1b]0;x\x07"})
    ran = pegboard("call", "h_echo", "--args", given, "--config", str(path), home=tmp_path)
    failed = pegboard("call", "h_fail", "--config", str(path), home=tmp_path)
    checked = pegboard("doctor", "--config", str(path), home=tmp_path)
    for one in (ran, failed, checked):
        assert repainting(one.out + one.err) == []
    assert "\\u{200b}\\u{202e}" in ran.out
    assert "cannot log in" in failed.err


@pytest.mark.parametrize("words", [("search", "hidden name"), ("describe", "echo"), ("list",)])
def test_a_real_terminal_gets_colors_and_nothing_else(
    words: tuple[str, ...], catalog: Path, tmp_path: Path
) -> None:
    ran = _in_terminal(*words, "--catalog", str(catalog), home=tmp_path)
    assert ran.code == 0
    assert STYLES.search(ran.out)
    assert repainting(ran.out) == []


def _in_terminal(*words: str, home: Path) -> Ran:
    """Run a command whose standard output is a terminal."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "HOME": str(home), "PEGBOARD_HOME": str(home), "TERM": "xterm-256color"}
    command = [sys.executable, "-m", "pegboard", *words]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=env, cwd=ROOT
    ) as process:
        os.close(theirs)
        data = b""
        while part := _read(ours):
            data += part
        process.wait(60)
    os.close(ours)
    return Ran(process.returncode, data.decode(), "")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # what Linux says at the end
        return b""
