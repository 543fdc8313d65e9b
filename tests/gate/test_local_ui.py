"""`pegboard ui` on a machine with other users: the token of the run guards all that it serves."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.gate.world import Person, World

AUDITED = '[observe]\naudit = "audit.jsonl"\n'


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What `pegboard ui` printed, of a configuration with one server."""
    world = World(tmp_path_factory.mktemp("ui"), AUDITED, {"wiki": {"tools": ["look"]}})
    world.write()
    command = [sys.executable, "-m", "pegboard", "ui", "--config", str(world.config)]
    started = subprocess.Popen(
        [*command, "--no-browser", "--json"],
        stdout=subprocess.PIPE, text=True, env=world.environ,
    )  # fmt: skip
    try:
        assert started.stdout is not None
        printed = json.loads("".join(iter(started.stdout.readline, "}\n")) + "}")
        yield {**printed, "audit": str(world.folder / "audit.jsonl")}
    finally:
        started.terminate()
        started.communicate(timeout=10)


def address(said: dict[str, str]) -> str:
    return said["mcp"].removesuffix("/mcp")


@pytest.mark.parametrize("key", ["", "guess"])
@pytest.mark.parametrize("path", ["/mcp", "/mcp/eager"])
def test_nobody_calls_tools_without_the_token(said: dict[str, str], path: str, key: str) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"Accept": "application/json, text/event-stream"}
    headers |= {"Authorization": f"Bearer {key}"} if key else {}
    answer = httpx2.post(address(said) + path, json=body, headers=headers)
    assert answer.status_code == 401
    assert "look" not in answer.text


def test_the_owner_calls_tools_with_the_token(said: dict[str, str]) -> None:
    owner = Person(address(said), said["token"])
    with owner.client:
        assert owner.text("wiki_look") == "wiki did look"
        assert "wiki.look" in owner.get("/ui/calls").text


def test_what_the_owner_decides_names_the_user_of_the_system(said: dict[str, str]) -> None:
    owner = Person(address(said), said["token"])
    with owner.client:
        owner.switch("wiki.look", on=False)
        owner.switch("wiki.look", on=True)
    lines = [json.loads(line) for line in Path(said["audit"]).read_text().splitlines()]
    decided = [line for line in lines if line["operation"] == "tool.disable"]
    user = pwd.getpwuid(os.getuid()).pw_name
    assert [(line["principal"], line["outcome"]) for line in decided] == [(user, "ok")]


@pytest.mark.parametrize("path", ["/", "/ui/tools", "/ui/live?parts=calls", "/metrics", "/ready"])
def test_nothing_else_names_a_server_without_the_token(said: dict[str, str], path: str) -> None:
    answer = httpx2.get(address(said) + path)
    assert "wiki" not in answer.text
    assert answer.status_code in (401, 404) or answer.json() == {"ready": True}
