"""`pegboard login` and `logout` as processes: with a browser, a pasted address, and mistakes."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import pytest
from anyio.abc import Process
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from tests.conformance.clients import served
from tests.e2e.test_serving import free_port
from tests.gateway.support import polite
from tests.oauth.authorization_server import (
    DECLINES,
    AuthorizationServer,
    ProtectedServer,
    authorization_server,
    protected_server,
)
from tests.oauth.browser import visit, visit_until
from tests.oauth.oidc_provider import oidc_provider
from tests.oauth.test_exchanged_tokens import protected_by

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def issuer() -> Generator[AuthorizationServer]:
    with authorization_server() as server:
        yield server


@pytest.fixture(scope="module")
def protected(issuer: AuthorizationServer) -> Generator[ProtectedServer]:
    with protected_server(issuer) as server:
        yield server


@pytest.fixture
def config(protected: ProtectedServer, tmp_path: Path) -> Path:
    path = tmp_path / "mcp.json"
    servers = {
        "notes": {"url": protected.url},
        "own": {"url": protected.url, "headers": {"Authorization": "Bearer mine"}},
        "program": {"command": "true"},
    }
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


@dataclass
class Running:
    """A command, and what it has printed so far."""

    process: Process
    text: str = ""

    async def wait_for(self, pattern: str) -> str:
        assert self.process.stdout is not None
        while (found := re.search(pattern, self.text)) is None:
            self.text += (await self.process.stdout.receive()).decode()
        return found[0]

    async def type(self, line: str) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.send(line.encode() + b"\n")

    async def end(self) -> int:
        assert self.process.stdout is not None
        async for part in self.process.stdout:
            self.text += part.decode()
        return await self.process.wait()


@asynccontextmanager
async def command(*words: str, config: Path) -> AsyncGenerator[Running]:
    arguments = [sys.executable, "-m", "pegboard", *words, "--config", str(config)]
    env = {**os.environ, "PEGBOARD_HOME": str(config.parent), "BROWSER": "false"}
    with anyio.fail_after(60):
        process = await anyio.open_process(arguments, stderr=-2, env=env)
        async with process:
            yield Running(process)


async def run(*words: str, config: Path) -> tuple[int, str]:
    async with command(*words, config=config) as running:
        return await running.end(), running.text


async def test_login_use_and_logout(
    issuer: AuthorizationServer, protected: ProtectedServer, config: Path
) -> None:
    code, text = await run("doctor", "--json", config=config)
    assert code in (1, 3)  # the others of the file have no tools
    states = {one["server"]: one["state"] for one in json.loads(text)["servers"]}
    assert states["notes"] == "sign in"
    async with command("login", "notes", "--no-browser", config=config) as login:
        await visit(await login.wait_for(r"http://\S+/authorize\S+"))
        assert await login.end() == 0
        assert "Signed in to notes" in login.text
    code, text = await run("call", "notes_whoami", config=config)
    assert (code, text.splitlines()[-1]) == (0, "ann")
    [stored] = (config.parent / "logins").glob("notes-*.json")
    code, text = await run("logout", "notes", config=config)
    assert (code, text) == (0, "Logged out of notes.\n")
    assert issuer.count("revoke") > 0
    assert not stored.exists()
    assert await run("logout", "notes", config=config) == (0, "There is no login for notes.\n")


DOCUMENT = Path(__file__).parents[2] / "docs" / "oauth" / "client.json"
HOSTED_AT = "https://tools.example.com/oauth/client.json"


@pytest.mark.parametrize("client", ["registered", "metadata document"])
async def test_login_use_refresh_and_logout_at_an_openid_provider(
    client: str, tmp_path: Path
) -> None:
    config, port = tmp_path / "pegboard.toml", free_port()
    text = f'[servers.notes]\nurl = "http://127.0.0.1:{port}/mcp"\n'
    options: dict[str, Any] = {"ttl": 2}
    if client == "metadata document":
        text += f'[oauth]\nclient_metadata_url = "{HOSTED_AT}"\n'
        document = {**json.loads(DOCUMENT.read_text("utf-8")), "client_id": HOSTED_AT}
        options |= {"registration": False, "clientMetadata": {HOSTED_AT: document}}
    config.write_text(text)
    async with oidc_provider(f"http://127.0.0.1:{port}/mcp", **options) as provider:
        with protected_by(provider.issuer, port=port):
            async with command("login", "notes", "--no-browser", config=config) as login:
                await visit(await login.wait_for(r"http://\S+/auth\?\S+"))
                assert await login.end() == 0
            await anyio.sleep(2)  # until the access token has expired
            assert (await run("call", "notes_whoami", config=config))[0] == 0
            assert provider.count("grant.success", grant="refresh_token") >= 1
            code, text = await run("doctor", config=config)
            assert (code, "reachable, signed in" in text) == (0, True)
            # Its access tokens are JSON Web Tokens, which it does not revoke individually.
            code, text = await run("logout", "notes", config=config)
            assert (code, text) == (0, "Logged out of notes.\n")
            assert provider.count("grant.revoked") == 1
    assert provider.count("registration_create.success") == (client == "registered")


async def test_a_pasted_address_is_taken_after_a_wrong_one(config: Path) -> None:
    async with command("login", "notes", "--no-browser", config=config) as login:
        address = await login.wait_for(r"http://\S+/authorize\S+")
        redirect = parse_qs(urlsplit(address).query)["redirect_uri"][0]
        for wrong in ("https://example.com/wrong", address):
            await login.type(wrong)
            await login.wait_for("starts with")
            login.text = ""
        await login.type(await visit_until(address, redirect))
        assert await login.end() == 0


async def test_the_command_requests_what_a_call_was_refused_for(
    protected: ProtectedServer, config: Path
) -> None:
    for scope in ("tools", "tools+write"):
        async with command("login", "notes", "--no-browser", config=config) as login:
            address = await login.wait_for(r"http://\S+/authorize\S+")
            assert address.endswith(f"&scope={scope}")
            await visit(address)
            assert await login.end() == 0
        protected.call_scope = "write"
        try:
            code, text = await run("call", "notes_whoami", config=config)
        finally:
            protected.call_scope = None
        assert (code, "pegboard login notes" in text) == (
            (0, False) if "write" in scope else (1, True)
        )


async def test_a_person_who_declines(config: Path) -> None:
    async with command("login", "notes", "--no-browser", config=config) as login:
        await visit(await login.wait_for(r"http://\S+/authorize\S+"), user=DECLINES)
        assert await login.end() == 1
        assert "declined" in login.text


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ("own", "Authorization"),
        ("program", "environment"),
        ("typo", "Servers: notes, own, program"),
    ],
)
async def test_servers_without_a_login_are_explained(config: Path, server: str, said: str) -> None:
    code, text = await run("login", server, config=config)
    assert code == 3
    assert said in " ".join(text.split())


async def test_each_principal_has_a_login_of_their_own(config: Path) -> None:
    words = ("login", "notes", "--no-browser", "--as")
    for who in ("ann", "bob"):
        async with command(*words, who, config=config) as login:
            await visit(await login.wait_for(r"http://\S+/authorize\S+"), user=who)
            assert await login.end() == 0
    assert len(list((config.parent / "logins").glob("notes-*.json"))) == 2


async def test_the_configurations_of_the_user_are_found_and_one_of_the_folder_only_if_trusted(
    protected: ProtectedServer, tmp_path: Path
) -> None:
    """A cloned repository must not choose where `pegboard login notes` sends secrets."""
    asked: list[str | None] = []

    async def record(request: Request) -> Response:
        asked.append(request.headers.get("x-secret"))
        return Response(status_code=401)

    home, repository = tmp_path / "home", tmp_path / "repository"
    own = home / ".config" / "pegboard" / "pegboard.toml"
    for folder in (own.parent, home / ".cursor", repository):
        folder.mkdir(parents=True)
    port = free_port()
    (repository / "pegboard.toml").write_text(
        f"""
        [servers.notes]
        url = "http://127.0.0.1:{port}/mcp"
        headers = {{ X-Secret = "${{A_SECRET}}" }}
        """
    )
    entry = {"url": protected.url}
    (home / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": {"drafts": entry}}))
    own.write_text(f'[servers.notes]\nurl = "{protected.url}"\n')
    env = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    env |= {"HOME": str(home), "PEGBOARD_HOME": str(home / "cache"), "A_SECRET": "mine"}

    async def begin(server: str) -> str:
        arguments = [sys.executable, "-m", "pegboard", "login", server, "--no-browser"]
        process = await anyio.open_process(arguments, stderr=-2, env=env, cwd=repository)
        async with process:
            running = Running(process)
            try:
                await running.wait_for(r"http://\S+/authorize\S+|error: .*")
            finally:
                process.terminate()
        return running.text

    app = Starlette(routes=[Route("/mcp", record, methods=["GET", "POST"])])
    with served(app, port=port), anyio.fail_after(60):
        text = await begin("notes")
        assert "pegboard.toml in this folder is not trusted" in " ".join(text.split())
        assert protected.issuer.issuer in text
        assert protected.issuer.issuer in await begin("drafts")
        own.unlink()
        assert "There is no server 'notes'" in await begin("notes")
    assert asked == []


async def test_install_leaves_servers_whose_login_is_in_the_client(
    config: Path, protected: ProtectedServer
) -> None:
    words = ("install", "cursor", "--file", str(config), "--dry-run", "--json")
    arguments = [sys.executable, "-m", "pegboard", *words]
    env = {**os.environ, "PEGBOARD_HOME": str(config.parent), "HOME": str(config.parent)}

    async def plan() -> tuple[list[str], dict[str, str]]:
        done = await anyio.run_process(arguments, env=env, check=False)
        found = json.loads(done.stdout)
        return found["taken"], {left["name"]: left["reason"] for left in found["left"]}

    with anyio.fail_after(90):
        taken, left = await plan()
        assert "notes" not in taken
        assert "pegboard login notes" in left["notes"]
        async with command("login", "notes", "--no-browser", config=config) as login:
            await visit(await login.wait_for(r"http://\S+/authorize\S+"))
            assert await login.end() == 0
        taken, left = await plan()
    assert "notes" in taken


@pytest.mark.skipif(os.name != "posix", reason="pseudoterminals")
@pytest.mark.parametrize("user", ["ann", DECLINES])
async def test_install_offers_the_login_and_goes_on_whatever_comes_of_it(
    protected: ProtectedServer, tmp_path: Path, user: str
) -> None:
    """The answer to its next question must not be taken for a pasted address."""
    import pty

    client = tmp_path / ".cursor" / "mcp.json"
    client.parent.mkdir()
    servers = {"notes": {"url": protected.url}, "a": polite()}
    client.write_text(json.dumps({"mcpServers": servers}))
    ours = ("XDG_", "PEGBOARD_")
    env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    env |= {"HOME": str(tmp_path), "PEGBOARD_HOME": str(tmp_path / "cache"), "COLUMNS": "500"}
    env |= {"TERM": "dumb", "BROWSER": "false"}
    terminal, end = pty.openpty()
    command = [sys.executable, "-m", "pegboard", "install", "cursor"]
    with anyio.fail_after(60):
        process = await anyio.open_process(command, stdin=end, stdout=end, stderr=end, env=env)
        os.close(end)
        text = ""

        async def wait_for(pattern: str) -> str:
            nonlocal text
            while (found := re.search(pattern, text)) is None:
                await anyio.wait_readable(terminal)
                text += os.read(terminal, 65_536).decode()
            return found[0]

        async with process:
            try:
                await wait_for(r"Log in now\?")
                os.write(terminal, b"y\n")
                await visit(await wait_for(r"http://\S+/authorize\S+"), user=user)
                await wait_for(r"Change \S+ anyway\?")
                os.write(terminal, b"y\n")
                await wait_for("Done. Restart Cursor")
                assert await process.wait() == 0
            finally:
                if process.returncode is None:
                    process.kill()
        os.close(terminal)
    left = json.loads(client.read_text())["mcpServers"]
    assert set(left) == ({"pegboard"} if user == "ann" else {"pegboard", "notes"})
