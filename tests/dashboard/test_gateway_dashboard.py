"""The dashboard of a gateway, and `pegboard ui`, with real servers and identities."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import anyio
import httpx2
import pytest
from starlette.testclient import TestClient
from tests.dashboard.boards import csrf_token_in
from tests.gateway.support import polite, served_config, write
from tests.gateway.support import served as gateway_on_stdio

from pegboard import Pegboard
from pegboard.observe.call_history import CallHistory, config_key

ROOT = Path(__file__).parents[2]
KEYS = {"ada": "key-of-ada", "bob": "key-of-bob"}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    """A gateway in front of the office and of a server that cannot be started."""
    written = tmp_path / "pegboard.toml"
    hashes = {who: hashlib.sha256(key.encode()).hexdigest() for who, key in KEYS.items()}
    keys = "".join(
        f'[[auth.keys]]\nprincipal = "{who}"\nsha256 = "{hashed}"\n'
        for who, hashed in hashes.items()
    )
    written.write_text(
        f"""
[http]
operators = ["ada"]
[upstreams]
folder = {json.dumps(str(tmp_path / "kept"))}
[servers.office]
command = {json.dumps(sys.executable)}
args = [{json.dumps(str(ROOT / "tests" / "boards.py"))}]
env = {{ PYTHONPATH = {json.dumps(f"{ROOT / 'src'}{os.pathsep}{ROOT}")}, PEGBOARD_MODE = "eager" }}
[servers.broken]
command = "no-such-program-here"
[auth]
kind = "keys"
{keys}
[[permissions.rules]]
principals = ["bob"]
effect = "deny"
tools = ["*delete_*"]
""",
        "utf-8",
    )
    board = Pegboard.from_config(written)
    assert board.tools()  # lists the servers and keeps what they have, however long that takes
    with TestClient(board.asgi(), base_url="http://127.0.0.1:8000") as client:
        yield client


@pytest.fixture
def held_back(tmp_path: Path) -> Iterator[TestClient]:
    """A gateway on one's own machine, whose tools all wait for approval."""
    written = tmp_path / "pegboard.toml"
    written.write_text(
        f"""
[upstreams]
folder = {json.dumps(str(tmp_path / "kept"))}
[trust]
mode = "approve"
lock = {json.dumps(str(tmp_path / "pegboard.lock"))}
[servers.office]
command = {json.dumps(sys.executable)}
args = [{json.dumps(str(ROOT / "tests" / "boards.py"))}]
env = {{ PYTHONPATH = {json.dumps(f"{ROOT / 'src'}{os.pathsep}{ROOT}")}, PEGBOARD_MODE = "eager" }}
""",
        "utf-8",
    )
    board = Pegboard.from_config(written)
    assert board.tools(include_disabled=True)
    with TestClient(board.asgi(), base_url="http://127.0.0.1:8000") as client:
        yield client


def as_(who: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {KEYS[who]}"}


def test_a_gateway_asks_who_looks_and_shows_what_they_may_see(client: TestClient) -> None:
    assert client.get("/").status_code == 401
    overview = client.get("/", headers=as_("ada")).text
    assert "office" in overview
    assert "no-such-program-here" in overview
    adas = client.get("/ui/tools?q=delete+a+document", headers=as_("ada")).text
    bobs = client.get("/ui/tools?q=delete+a+document", headers=as_("bob")).text
    assert "delete_document" in adas
    assert "delete_document" not in bobs.split('id="results"')[1]
    assert client.get("/ui/tool?id=office_delete_document", headers=as_("bob")).status_code == 404


def test_the_configured_operator_switches_a_tool(client: TestClient) -> None:
    shown = client.get("/ui/tool?id=office_echo", headers=as_("ada"))
    form = {"csrf_token": csrf_token_in(shown), "id": "office_echo", "enabled": ""}
    assert client.post("/ui/tool/switch", data=form, headers=as_("bob")).status_code == 403
    off = client.post("/ui/tool/switch", data=form, headers=as_("ada"))
    assert "Enable" in off.text


def test_a_definition_is_approved_as_it_was_shown_and_not_otherwise(held_back: TestClient) -> None:
    shown = held_back.get("/ui/trust")
    assert "office.echo" in shown.text
    assert 'class="added"' in shown.text
    form = {"csrf_token": csrf_token_in(shown), "server": "office", "tool": "echo"}
    other = held_back.post("/ui/trust/approve", data={**form, "digest": "0" * 64})
    assert other.status_code == 403
    assert "changed again" in other.text
    article = shown.text.split("office.echo")[1]
    digest = article.split('name="digest" value="')[1].split('"')[0]
    after = held_back.post("/ui/trust/approve", data={**form, "digest": digest})
    assert "Approve office.echo" not in after.text
    assert "Approve office.list_issues" in after.text


def test_an_approved_definition_is_revoked(held_back: TestClient) -> None:
    shown = held_back.get("/ui/trust")
    form = {"csrf_token": csrf_token_in(shown), "server": "office", "tool": "echo"}
    digest = shown.text.split("office.echo")[1].split('name="digest" value="')[1].split('"')[0]
    approved = held_back.post("/ui/trust/approve", data={**form, "digest": digest})
    assert "office: 1 tool approved" in approved.text
    assert held_back.post("/ui/trust/revoke", data={**form, "csrf_token": "x"}).status_code == 403
    assert held_back.post("/ui/trust/revoke", data={**form, "tool": "nobody"}).status_code == 404
    revoked = held_back.post("/ui/trust/revoke", data=form)
    assert "tool approved" not in revoked.text
    assert '<span class="badge warn">revoked</span>' in revoked.text


def test_what_is_held_back_cannot_be_switched_on(held_back: TestClient) -> None:
    shown = held_back.get("/ui/tool?id=office_echo").text
    assert "Held back" in shown
    assert "Switch" not in shown
    form = {
        "csrf_token": csrf_token_in(held_back.get("/ui/trust")),
        "id": "office_echo",
        "enabled": "1",
    }
    assert held_back.post("/ui/tool/switch", data=form).status_code == 403


def test_a_rollout_is_started_and_stopped(client: TestClient) -> None:
    ada = as_("ada")
    form = {
        "csrf_token": csrf_token_in(client.get("/ui/rollout", headers=ada)),
        "mode": "index",
        "by": "principal",
    }
    begun = client.post("/ui/rollout/start", data={**form, "percent": "25"}, headers=ada)
    assert "25% of callers, by principal, get the index mode." in begun.text
    assert "Tokens per session" in begun.text
    for wrong in ("many", "101", "nan"):
        answer = client.post("/ui/rollout/start", data={**form, "percent": wrong}, headers=ada)
        assert answer.status_code == 400
    stopped = client.post("/ui/rollout/stop", data=form, headers=ada)
    assert "No rollout is active" in stopped.text


def test_a_single_user_has_no_page_for_rollouts(held_back: TestClient) -> None:
    assert "Rollout" not in held_back.get("/").text
    assert held_back.get("/ui/rollout").status_code == 404


def test_pegboard_ui_shows_the_page_to_whoever_has_its_address(tmp_path: Path) -> None:
    catalog = tmp_path / "tools.json"
    entry = {"name": "greet", "description": "Say hello.", "inputSchema": {"type": "object"}}
    catalog.write_text(json.dumps({"tools": [entry]}), "utf-8")
    command = [sys.executable, "-m", "pegboard", "ui", "--catalog", str(catalog), "--no-browser"]
    command.append("--json")
    started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert started.stdout is not None
        said = json.loads("".join(iter(started.stdout.readline, "}\n")) + "}")
        with httpx2.Client(base_url=said["mcp"][: -len("/mcp")], follow_redirects=True) as visitor:
            assert visitor.get("/ui/tools").status_code == 401
            assert visitor.get(said["page"]).status_code == 200
            assert "greet" in visitor.get("/ui/tools").text
    finally:
        started.terminate()
        started.communicate(timeout=10)


def test_pegboard_ui_does_not_pass_its_token_on_the_command_line_of_the_browser(
    tmp_path: Path,
) -> None:
    catalog = tmp_path / "tools.json"
    catalog.write_text('{"tools": []}', "utf-8")
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$@" > {opened}.part && mv {opened}.part {opened}\n')
    browser.chmod(0o700)
    home = {"PEGBOARD_HOME": str(tmp_path / "home"), "BROWSER": f"{browser} %s"}
    command = [sys.executable, "-m", "pegboard", "ui", "--catalog", str(catalog), "--json"]
    started = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, **home}
    )
    try:
        assert started.stdout is not None
        said = json.loads("".join(iter(started.stdout.readline, "}\n")) + "}")
        with httpx2.Client(base_url=said["mcp"][: -len("/mcp")]) as visitor:
            assert visitor.get("/").status_code == 401  # it is up, so the browser has been started
        given = opened.read_text().strip()
        assert said["token"] not in given
        page = Path(given.removeprefix("file://"))
        assert stat.S_IMODE(page.stat().st_mode) == 0o600
        assert stat.S_IMODE(page.parent.stat().st_mode) == 0o700
        assert said["page"] in page.read_text()
    finally:
        started.send_signal(signal.SIGINT)
        started.communicate(timeout=10)
    assert not page.exists()


@pytest.mark.anyio
async def test_pegboard_ui_shows_the_calls_of_a_gateway_that_a_client_started(
    tmp_path: Path,
) -> None:
    async with gateway_on_stdio(tmp_path, {"a": polite()}) as client:
        command = [sys.executable, "-m", "pegboard", "ui", "--config", str(tmp_path / "mcp.json")]
        env = {**os.environ, "PEGBOARD_HOME": str(tmp_path / "home")}
        async with await anyio.open_process(
            [*command, "--no-browser", "--json"], env=env
        ) as started:
            assert started.stdout is not None
            said = json.loads(await started.stdout.receive())
            async with httpx2.AsyncClient(follow_redirects=True) as visitor:
                await visitor.get(said["page"])
                live = said["mcp"].removesuffix("/mcp") + "/ui/live?parts=all-calls"
                async with visitor.stream("GET", live) as events:
                    lines = events.aiter_lines()
                    await until("No tool has been called yet", lines)
                    await client.call_tool("a_echo", {"text": "use tiger ghp_0123456789abcdef"})
                    await until("use tiger [redacted]", lines)
                    started.send_signal(signal.SIGINT)  # as people do, with the page still open
                    assert started.stderr is not None
                    said = b"".join([part async for part in started.stderr])
                    assert b"Traceback" not in said
                    assert b"ERROR" not in said


@pytest.mark.anyio
async def test_the_calls_of_a_gateway_on_stdio_are_in_the_history_afterwards(
    tmp_path: Path,
) -> None:
    async with gateway_on_stdio(tmp_path, {"a": polite()}) as client:
        await client.list_tools()
        await client.call_tool("a_echo", {"text": "x"})
    path = tmp_path / "home" / "history" / "calls.sqlite"
    history = CallHistory(path, config_key(tmp_path / "mcp.json"))
    counted = {(row.kind, row.server, row.name): row.count for row in history.read(0)}
    assert counted[("call", "a", "a.echo")] == 1
    assert any(kind == "list" for kind, _, _ in counted)


@pytest.mark.anyio
@pytest.mark.parametrize("arguments", ["caller", "off"])
async def test_arguments_are_written_to_the_journal_unless_configured_otherwise(
    tmp_path: Path, arguments: str
) -> None:
    write(tmp_path, {"a": polite()})
    config = tmp_path / "pegboard.toml"
    config.write_text(f'import = ["mcp.json"]\n[observe]\narguments = "{arguments}"\n')
    async with served_config(config, tmp_path) as client:
        await client.call_tool("a_echo", {"text": "tiger"})
    [journal] = (tmp_path / "home" / "journals").glob("*.jsonl")
    written = journal.read_text()
    assert '"tool":"a.echo"' in written
    assert ("tiger" in written) == (arguments == "caller")


async def until(wanted: str, lines: AsyncIterator[str]) -> None:
    with anyio.fail_after(20):
        async for line in lines:
            if wanted in line:
                return
    raise AssertionError(f"the stream ended without {wanted}")
