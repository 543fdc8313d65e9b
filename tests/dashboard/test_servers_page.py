"""The servers page of a gateway: starting, stopping, disabling and adding real servers."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tomllib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.dashboard.boards import csrf_token_in

from pegboard import Pegboard
from pegboard.dashboard import Viewer
from pegboard.errors import ConfigError
from pegboard.gateway.config_changes import PastedServers

ROOT = Path(__file__).parents[2]
PYTHONPATH = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
OFFICE: dict[str, Any] = {
    "command": sys.executable,
    "args": [str(ROOT / "tests" / "boards.py")],
    "env": {"PYTHONPATH": PYTHONPATH, "PEGBOARD_MODE": "eager"},
}
CONFIGURATION = """# Servers of the office, please keep this comment.
[upstreams]
folder = {folder}

[observe]
audit = "audit.jsonl"

[servers.office]  # the first one
command = {command}
args = {args}
env = {{ PYTHONPATH = {path}, PEGBOARD_MODE = "eager" }}

[servers.unset]
command = "run-${{THIS_IS_NOT_SET}}"

[servers.wiki]
url = "https://wiki.example/mcp"
disabled = true
"""


async def owner(token: str | None) -> Viewer | None:
    return Viewer(is_operator=True, name="ada")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder of catalogs for all tests, so that the office is listed once."""
    return tmp_path_factory.mktemp("catalogs")


@pytest.fixture
def path(tmp_path: Path, folder: Path) -> Path:
    written = tmp_path / "pegboard.toml"
    written.write_text(
        CONFIGURATION.format(
            folder=json.dumps(str(folder)),
            command=json.dumps(OFFICE["command"]),
            args=json.dumps(OFFICE["args"]),
            path=json.dumps(PYTHONPATH),
        )
    )
    return written


@contextmanager
def opened(path: Path, **fields: Any) -> Generator[TestClient]:
    board = Pegboard.from_config(path)
    assert board.tools()
    with TestClient(board.asgi(**fields), base_url="http://127.0.0.1:8000") as client:
        yield client


@pytest.fixture
def client(path: Path) -> Iterator[TestClient]:
    """The dashboard as `pegboard ui` shows it to the owner."""
    with opened(path, identify=owner, is_owner_only=True) as client:
        yield client


def post(client: TestClient, action: str, **form: str) -> Any:
    token = csrf_token_in(client.get("/ui/servers"))
    return client.post(f"/ui/servers/{action}", data={"csrf_token": token, **form})


def row_of(page: Any, server: str) -> str:
    return page.text.split("<tbody>")[1].split(f">{server}<")[1].split("<tr")[0]


def test_every_configured_server_is_listed_with_the_reason_it_is_left_out(
    client: TestClient,
) -> None:
    page = client.get("/ui/servers")
    assert "not started" in row_of(page, "office")
    assert "disabled" in row_of(page, "wiki")
    assert "THIS_IS_NOT_SET" in page.text
    assert "left out" in row_of(page, "unset")
    assert str(OFFICE["args"][0]) not in page.text  # arguments may contain secrets
    overview = client.get("/").text
    for name in ("office", "unset", "wiki"):
        assert name in overview


def test_without_a_server_the_overview_leads_to_adding_one(tmp_path: Path) -> None:
    empty = tmp_path / "pegboard.toml"
    empty.touch()
    app = Pegboard.from_config(empty).asgi(identify=owner, is_owner_only=True)
    with TestClient(app, base_url="http://127.0.0.1:8000") as client:
        page = client.get("/").text
        assert "There are no tools yet." in page
        assert '<a href="/ui/servers">Add a server</a>' in page


def test_the_page_is_loaded_again_only_while_something_starts(client: TestClient) -> None:
    post(client, "start", server="office")
    assert "data-refresh" not in client.get("/ui/servers").text


def test_a_server_is_started_and_stopped(client: TestClient) -> None:
    assert "running" in row_of(post(client, "start", server="office"), "office")
    assert "Stop office" in client.get("/ui/servers").text
    stopped = post(client, "stop", server="office")
    assert "not started" in row_of(stopped, "office")


def test_a_server_that_cannot_be_started_says_why(client: TestClient) -> None:
    answer = post(client, "start", server="nobody")
    assert answer.status_code == 400
    assert "There is no server" in answer.text


def test_a_server_is_disabled_and_enabled_in_the_file(client: TestClient, path: Path) -> None:
    assert "office_echo" in client.get("/ui/tools?q=echo").text
    page = post(client, "disable", server="office", disabled="1")
    assert "disabled" in row_of(page, "office")
    assert "office_echo" not in client.get("/ui/tools").text
    written = path.read_text()
    assert tomllib.loads(written)["servers"]["office"]["disabled"] is True
    assert "please keep this comment" in written
    assert "# the first one" in written
    page = post(client, "disable", server="office", disabled="")
    assert "not started" in row_of(page, "office")
    assert "office_echo" in client.get("/ui/tools?q=echo").text


def test_a_server_is_added_by_pasting_its_json(client: TestClient, path: Path) -> None:
    form = client.get("/ui/servers").text
    assert f"written to {path}" in form
    pasted = json.dumps({"mcpServers": {"second": {**OFFICE, "env": {
        **OFFICE["env"], "API_TOKEN": "tiger-9-lily",
    }}}})  # fmt: skip
    page = post(client, "add", json=pasted)
    assert page.status_code == 200
    assert "second" in page.text
    assert tomllib.loads(path.read_text())["servers"]["second"]["command"] == sys.executable
    assert "please keep this comment" in path.read_text()
    started = post(client, "start", server="second")
    assert "running" in row_of(started, "second")
    lines = (path.parent / "audit.jsonl").read_text()
    added = next(json.loads(line) for line in lines.splitlines() if '"servers.add"' in line)
    assert added["principal"] == "ada"
    assert added["details"] == {"servers": "second", "file": str(path)}
    assert "tiger-9-lily" not in lines


@pytest.mark.parametrize(
    ("pasted", "reason"),
    [
        ("not json", "starts with {, or its URL"),
        ('{"a": {"command": "x",}', "Line 1: this is not valid JSON"),
        ("https://x.example/mcp", "Give the server a name"),
        ("{}", "There is no server"),
        ('{"mcpServers": {}}', "There is no server"),
        ('{"mcpServers": {"x": 1}}', "There is no server"),
        ('{"command": "npx"}', "Give the server a name"),
        ('{"x": {"args": ["y"]}}', "was not added"),
        ('{"x": {"url": "file:///etc/passwd"}}', "was not added"),
        ('{"x": {"command": "pegboard", "args": ["serve"]}}', "Pegboard itself"),
        ('{"office": {"command": "npx"}}', "already has a server"),
        ('{"x": {"command": "run", "env": {"T": "${NOT_SET_ANYWHERE}"}}}', "NOT_SET_ANYWHERE"),
    ],
)
def test_what_could_not_be_used_is_not_written(
    client: TestClient, path: Path, pasted: str, reason: str
) -> None:
    before = path.read_bytes()
    answer = post(client, "add", json=pasted)
    assert answer.status_code == 400
    assert reason in answer.text
    assert "Back to Servers" in answer.text
    assert path.read_bytes() == before


def test_a_change_needs_the_csrf_token_of_the_page(client: TestClient, path: Path) -> None:
    before = path.read_bytes()
    for form in ({"json": '{"x": {"url": "https://x.example/mcp"}}'}, {"server": "office"}):
        for action in ("add", "disable", "start", "stop"):
            assert client.post(f"/ui/servers/{action}", data=form).status_code == 403
    assert path.read_bytes() == before


def test_without_a_sign_in_nobody_changes_the_configuration(path: Path) -> None:
    """Other users of the machine can reach the dashboard of a gateway on a loopback address."""
    before = path.read_bytes()
    with opened(path) as client:
        page = client.get("/ui/servers").text
        assert "pegboard ui" in page
        assert "<textarea" not in page
        assert "Disable" not in page
        added = post(client, "add", json='{"x": {"url": "https://x.example/mcp"}}')
        assert added.status_code == 403
        assert post(client, "disable", server="office", disabled="1").status_code == 403
    assert path.read_bytes() == before


KEYS = {"ada": "key-of-ada", "bob": "key-of-bob"}


@pytest.fixture
def shared(path: Path) -> Path:
    """The configuration of a gateway that several people share."""
    keys = "".join(
        f'[[auth.keys]]\nprincipal = "{who}"\nsha256 = "{hashlib.sha256(k.encode()).hexdigest()}"\n'
        for who, k in KEYS.items()
    )
    path.write_text(f'{path.read_text()}\n[auth]\nkind = "keys"\n{keys}')
    return path


def sign_in(client: TestClient, who: str) -> None:
    assert client.post("/ui/enter", data={"token": KEYS[who]}).status_code == 200


@pytest.mark.parametrize("allowed", [False, True])
def test_on_a_shared_gateway_commands_need_a_setting(shared: Path, allowed: bool) -> None:
    http = f'[http]\noperators = ["ada"]\nadd_commands = {str(allowed).lower()}\n'
    shared.write_text(shared.read_text() + http)
    with opened(shared) as client:
        sign_in(client, "ada")
        answer = post(client, "add", json=json.dumps({"second": OFFICE}))
        assert answer.status_code == (200 if allowed else 403)
        assert ("second" in tomllib.loads(shared.read_text())["servers"]) == allowed
        remote = post(client, "add", json='{"far": {"url": "https://far.example/mcp"}}')
        assert remote.status_code == 200
        assert "far" in tomllib.loads(shared.read_text())["servers"]


def test_only_operators_open_the_servers_page(shared: Path) -> None:
    shared.write_text(shared.read_text() + '[http]\noperators = ["ada"]\n')
    with opened(shared) as client:
        sign_in(client, "bob")
        assert client.get("/ui/servers").status_code == 403
        form = {"csrf_token": "0" * 64, "server": "office", "disabled": "1"}
        assert client.post("/ui/servers/disable", data=form).status_code == 403


def test_the_file_of_a_client_is_changed_too(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"office": OFFICE}, "theirs": 1}, indent=4))
    home = {"PEGBOARD_HOME": str(tmp_path / "home")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PEGBOARD_HOME", home["PEGBOARD_HOME"])
        with opened(path, identify=owner, is_owner_only=True) as client:
            assert "disabled" in row_of(
                post(client, "disable", server="office", disabled="1"), "office"
            )
            post(client, "add", json='"far": {"type": "http", "url": "https://far.example/mcp"},')
    written = json.loads(path.read_text())
    assert written["theirs"] == 1
    assert written["mcpServers"]["office"]["disabled"] is True
    assert written["mcpServers"]["far"]["url"] == "https://far.example/mcp"


def test_an_imported_server_is_disabled_where_it_is_imported(path: Path) -> None:
    theirs = path.with_name("mcp.json")
    theirs.write_text(json.dumps({"mcpServers": {"far": {"url": "https://far.example/mcp"}}}))
    before = theirs.read_bytes()
    path.write_text(f'import = ["mcp.json"]\n{path.read_text()}')
    with opened(path, identify=owner, is_owner_only=True) as client:
        page = post(client, "disable", server="far", disabled="1")
        assert "disabled" in row_of(page, "far")
        assert tomllib.loads(path.read_text())["servers"]["far"] == {"disabled": True}
        post(client, "disable", server="far", disabled="")
    assert tomllib.loads(path.read_text())["servers"]["far"] == {"disabled": False}
    assert theirs.read_bytes() == before


@pytest.mark.parametrize("name", ["nobody", "", 'x"]\n[servers.evil]\ncommand = "sh', "unset"])
def test_only_configured_servers_can_be_disabled(client: TestClient, path: Path, name: str) -> None:
    before = path.read_bytes()
    assert post(client, "disable", server=name, disabled="1").status_code == 400
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": {"x": {"command": "npx"}}}',
        '{"servers": {"x": {"type": "stdio", "command": "npx"}}}',
        '{"x": {"command": "npx"}}',
        '"x": {"command": "npx"}',
        '  "x": {"command": "npx"},\n',
        '{"mcpServers": {"x": {"command": "npx"},},} // with a comment',
    ],
)
def test_what_readmes_show_is_understood(text: str) -> None:
    assert list(PastedServers.parse(text).entries) == ["x"]


def test_one_server_alone_takes_its_name_from_the_form() -> None:
    assert list(PastedServers.parse('{"url": "https://x.example/mcp"}', "far").entries) == ["far"]
    with pytest.raises(ConfigError):
        PastedServers.parse("[]")
