"""Using and refreshing what a login left: one refresh at expiry, whoever asks."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Generator
from pathlib import Path

import anyio
import httpx2
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream
from tests.oauth.authorization_server import (
    AuthorizationServer,
    Faults,
    ProtectedServer,
    authorization_server,
    protected_server,
)
from tests.oauth.browser import visit
from tests.oauth.support import LOCAL, begun, log_in, tokens_for

from pegboard.oauth.access_tokens import (
    MIN_RETRY_INTERVAL,
    PRINCIPAL_HEADER,
    RELOAD_INTERVAL,
    Bearer,
    ServerTokens,
)
from pegboard.oauth.encryption import KeyringKey
from pegboard.oauth.grant_storage import FileGrants
from pegboard.oauth.grants import Grant
from pegboard.oauth.http_requests import OAuthError
from pegboard.oauth.login_options import OAuthOptions

pytestmark = pytest.mark.anyio

HEADERS = {
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/list",
}


@pytest.fixture
def issuer() -> Generator[AuthorizationServer]:
    with authorization_server(lifetime=100) as server:
        yield server


@pytest.fixture
def protected(issuer: AuthorizationServer) -> Generator[ProtectedServer]:
    with protected_server(issuer, json_response=True) as server:
        yield server


class Clock:
    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


async def stored_grant(tokens: ServerTokens) -> Grant:
    grant = await tokens.storage.load(tokens.key(LOCAL))
    assert grant is not None
    return grant


async def request(url: str, bearer: Bearer) -> int:
    async with httpx2.AsyncClient(auth=bearer) as http:
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        return (await http.post(url, json=message, headers=HEADERS)).status_code


def with_clock(protected: ProtectedServer, folder: Path, clock: Clock) -> ServerTokens:
    base = tokens_for(protected.url, folder)
    return ServerTokens(base.storage, base.server, base.url, base.options, clock=clock)


async def test_a_restart_with_a_good_refresh_token_opens_no_browser(
    issuer: AuthorizationServer, protected: ProtectedServer, tmp_path: Path
) -> None:
    await log_in(tokens_for(protected.url, tmp_path))
    issuer.expire()
    restarted = tokens_for(protected.url, tmp_path)
    assert await request(protected.url, Bearer(restarted, LOCAL)) not in (401, 403)
    assert issuer.count("refresh_token") == 1
    assert issuer.count("authorize") == 1


async def test_a_token_is_refreshed_shortly_before_its_end_while_others_use_it(
    issuer: AuthorizationServer, protected: ProtectedServer, tmp_path: Path
) -> None:
    await log_in(tokens_for(protected.url, tmp_path))
    clock = Clock()
    tokens = with_clock(protected, tmp_path, clock)
    first = await tokens.get(LOCAL)
    clock.ahead = 95  # of 100 seconds
    issuer.faults.slow_tokens = 0.5
    given: list[str | None] = []

    async def get() -> None:
        given.append(await tokens.get(LOCAL))

    began = time.monotonic()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(get)
        await anyio.sleep(0.1)
        for _ in range(5):
            assert await tokens.get(LOCAL) == first
        assert time.monotonic() - began < 0.4
    assert given[0] not in (None, first)
    assert issuer.count("refresh_token") == 1


async def test_five_calls_at_expiry_refresh_once(
    issuer: AuthorizationServer, protected: ProtectedServer, tmp_path: Path
) -> None:
    await log_in(tokens_for(protected.url, tmp_path))
    tokens = tokens_for(protected.url, tmp_path)
    issuer.expire()
    statuses: list[int] = []

    async def ask() -> None:
        statuses.append(await request(protected.url, Bearer(tokens, LOCAL)))

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(ask)
    assert 401 not in statuses
    assert issuer.count("refresh_token") == 1
    assert issuer.count("reuse") == 0


_PROCESS = """
import anyio, sys
from pathlib import Path
from pegboard.oauth.encryption import NoKey
from pegboard.oauth.grant_storage import FileGrants
from pegboard.oauth.login_options import OAuthOptions
from pegboard.oauth.access_tokens import ServerTokens

async def main():
    storage = FileGrants(Path(sys.argv[2]) / "logins", NoKey())
    tokens = ServerTokens(storage, "notes", sys.argv[1], OAuthOptions())
    stale = (await storage.load(tokens.key("local"))).access_token
    print("ready", flush=True)
    sys.stdin.readline()
    print(await tokens.renew("local", stale), flush=True)

anyio.run(main)
"""


async def test_four_processes_at_expiry_refresh_once(
    issuer: AuthorizationServer, protected: ProtectedServer, tmp_path: Path
) -> None:
    await log_in(tokens_for(protected.url, tmp_path))
    issuer.expire()
    issuer.faults.slow_tokens = 0.3
    command = [sys.executable, "-c", _PROCESS, protected.url, str(tmp_path)]
    outputs: list[str] = []

    async def run(go: anyio.Event, ready: list[None]) -> None:
        async with await anyio.open_process(command, stderr=sys.stderr) as process:
            assert process.stdout is not None
            assert process.stdin is not None
            lines = BufferedByteReceiveStream(process.stdout)
            await lines.receive_until(b"\n", 100)
            ready.append(None)
            await go.wait()
            await process.stdin.send(b"\n")
            outputs.append((await lines.receive_until(b"\n", 1000)).decode().strip())

    go, ready = anyio.Event(), list[None]()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(run, go, ready)
            while len(ready) < 4:  # noqa: ASYNC110 - other processes have no events
                await anyio.sleep(0.01)
            go.set()
    assert len(set(outputs)) == 1
    assert outputs[0].startswith("access-")
    assert issuer.count("refresh_token") == 1
    assert issuer.count("reuse") == 0


async def test_only_the_authorization_server_ends_a_grant(
    issuer: AuthorizationServer, protected: ProtectedServer, tmp_path: Path
) -> None:
    await log_in(tokens_for(protected.url, tmp_path))
    tokens = tokens_for(protected.url, tmp_path)
    issuer.expire()
    for fault in (Faults(down=True), Faults(html=True)):
        await anyio.sleep(MIN_RETRY_INTERVAL)
        issuer.faults = fault
        assert await request(protected.url, Bearer(tokens, LOCAL)) == 401
        assert tokens.problem(LOCAL) is not None
        assert (await stored_grant(tokens)).refresh_token is not None
    issuer.faults = Faults()
    await anyio.sleep(MIN_RETRY_INTERVAL)
    assert await request(protected.url, Bearer(tokens, LOCAL)) != 401
    assert tokens.problem(LOCAL) is None
    issuer.forget()
    assert await request(protected.url, Bearer(tokens, LOCAL)) == 401
    ended = await stored_grant(tokens)
    assert ended.ended == "invalid_grant"
    assert ended.state == "sign in again"
    assert not ended.secrets


async def test_a_token_that_is_still_valid_outlives_an_outage(
    issuer: AuthorizationServer, protected: ProtectedServer, tmp_path: Path
) -> None:
    await log_in(tokens_for(protected.url, tmp_path))
    clock = Clock()
    tokens = with_clock(protected, tmp_path, clock)
    first = await tokens.get(LOCAL)
    clock.ahead = 95
    issuer.faults.down = True
    assert await tokens.get(LOCAL) == first
    assert await tokens.get(LOCAL) == first


async def test_a_caller_that_gives_up_does_not_lose_the_refresh_token(
    issuer: AuthorizationServer, protected: ProtectedServer, tmp_path: Path
) -> None:
    await log_in(tokens_for(protected.url, tmp_path))
    tokens = tokens_for(protected.url, tmp_path)
    before = await stored_grant(tokens)
    issuer.faults.slow_tokens = 0.3
    with anyio.move_on_after(0.1):
        await tokens.renew(LOCAL, before.access_token)
    after = await stored_grant(tokens)
    assert issuer.count("refresh_token") == 1
    assert after.refresh_token != before.refresh_token


async def test_a_server_that_refuses_new_tokens_causes_no_loop_of_refreshes(
    issuer: AuthorizationServer, protected: ProtectedServer, tmp_path: Path
) -> None:
    await log_in(tokens_for(protected.url, tmp_path))
    with protected_server(issuer, json_response=True) as other:  # another audience
        tokens = ServerTokens(
            tokens_for(protected.url, tmp_path).storage,
            "notes",
            protected.url,
            tokens_for(protected.url, tmp_path).options,
        )
        for _ in range(4):
            assert await request(other.url, Bearer(tokens, LOCAL)) == 401
    assert issuer.count("refresh_token") == 1


async def test_the_principal_of_a_request_chooses_the_token_and_is_not_sent(
    issuer: AuthorizationServer, protected: ProtectedServer, tmp_path: Path
) -> None:
    tokens = tokens_for(protected.url, tmp_path)
    for who in ("ann", "bob"):
        await log_in(tokens, user=who, principal=who)
    sent: list[httpx2.Request] = []

    async def record(request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        return httpx2.Response(200)

    transport = httpx2.MockTransport(record)
    async with httpx2.AsyncClient(auth=Bearer(tokens, "ann"), transport=transport) as http:
        await http.get("http://x", headers={PRINCIPAL_HEADER: "bob"})
        await http.get("http://x")
        await http.get("http://x", headers={PRINCIPAL_HEADER: "eve"})
    given = [one.headers.get("authorization") for one in sent]
    assert given == [f"Bearer {await tokens.get('bob')}", f"Bearer {await tokens.get('ann')}", None]
    assert all(PRINCIPAL_HEADER not in one.headers for one in sent)


async def test_a_login_in_another_process_is_found_at_the_next_refusal(
    protected: ProtectedServer, tmp_path: Path
) -> None:
    running = tokens_for(protected.url, tmp_path)
    assert await request(protected.url, Bearer(running, LOCAL)) == 401
    await log_in(tokens_for(protected.url, tmp_path))
    assert await request(protected.url, Bearer(running, LOCAL)) != 401
    path = next((tmp_path / "logins").glob("*.json"))
    assert "access-" in json.dumps(json.loads(path.read_text()))


async def test_a_logout_in_another_process_is_noticed(
    protected: ProtectedServer, tmp_path: Path
) -> None:
    """Access tokens of many servers stay valid after they were revoked."""
    await log_in(tokens_for(protected.url, tmp_path))
    clock = Clock()
    running = with_clock(protected, tmp_path, clock)
    assert await running.get(LOCAL) is not None
    await running.storage.delete(running.key(LOCAL))
    clock.ahead = RELOAD_INTERVAL
    assert await running.get(LOCAL) is None


async def test_a_damaged_file_costs_a_running_gateway_nothing_and_is_replaced(
    issuer: AuthorizationServer, protected: ProtectedServer, tmp_path: Path
) -> None:
    await log_in(tokens_for(protected.url, tmp_path))
    clock = Clock()
    tokens = with_clock(protected, tmp_path, clock)
    first = await tokens.get(LOCAL)
    [path] = (tmp_path / "logins").glob("*.json")
    path.write_bytes(b'{"grant": {"acc')
    clock.ahead = RELOAD_INTERVAL
    assert await tokens.get(LOCAL) == first
    assert await tokens.renew(LOCAL, first) not in (None, first)
    assert await tokens_for(protected.url, tmp_path).get(LOCAL) is not None
    assert issuer.count("reuse") == 0


async def test_a_locked_keyring_is_no_reason_to_log_in_again(
    protected: ProtectedServer, tmp_path: Path, system_keyring: Path
) -> None:
    def start() -> ServerTokens:
        storage = FileGrants(tmp_path / "logins", KeyringKey(tmp_path))
        return ServerTokens(storage, "notes", protected.url, OAuthOptions())

    await log_in(start())
    locked = anyio.Path(system_keyring.with_suffix(".locked"))
    await locked.touch()
    tokens = start()
    assert await request(protected.url, Bearer(tokens, LOCAL)) == 401
    assert "KeyringLocked): unlock it" in (tokens.problem(LOCAL) or "")
    with pytest.raises(OAuthError, match="Unlock it"):
        await log_in(tokens)
    await locked.unlink()
    await anyio.sleep(MIN_RETRY_INTERVAL)
    assert await request(protected.url, Bearer(tokens, LOCAL)) != 401
    assert tokens.problem(LOCAL) is None


async def test_a_file_that_disappears_during_a_refresh_is_written_again(
    issuer: AuthorizationServer, protected: ProtectedServer, tmp_path: Path
) -> None:
    await log_in(tokens_for(protected.url, tmp_path))
    tokens = tokens_for(protected.url, tmp_path)
    first = await tokens.get(LOCAL)
    issuer.faults.slow_tokens = 0.2
    [path] = (tmp_path / "logins").glob("*.json")
    renewed: list[str | None] = []

    async def renew() -> None:
        renewed.append(await tokens.renew(LOCAL, first))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(renew)
        await anyio.sleep(0.1)
        path.unlink()
    assert renewed[0] not in (None, first)
    assert await tokens_for(protected.url, tmp_path).get(LOCAL) == renewed[0]


def block_file(tokens: ServerTokens) -> None:
    """Make the file of a login impossible to write, for a superuser too."""
    path = file_grants_of(tokens).path(tokens.key(LOCAL))
    path.unlink(missing_ok=True)
    path.mkdir()


def file_grants_of(tokens: ServerTokens) -> FileGrants:
    assert isinstance(tokens.storage, FileGrants)
    return tokens.storage


async def test_a_file_that_cannot_be_written_keeps_a_refreshed_token_in_memory(
    protected: ProtectedServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await log_in(tokens_for(protected.url, tmp_path))
    tokens = tokens_for(protected.url, tmp_path)
    first = await tokens.get(LOCAL)
    block_file(tokens)
    renewed = await tokens.renew(LOCAL, first)
    assert renewed not in (None, first)
    assert await tokens.get(LOCAL) == renewed
    assert "could not be stored" in caplog.text


async def test_nobody_is_sent_to_a_browser_for_a_login_that_cannot_be_stored(
    issuer: AuthorizationServer, protected: ProtectedServer, tmp_path: Path
) -> None:
    (tmp_path / "logins").write_text("not a folder")
    tokens = tokens_for(protected.url, tmp_path)
    with pytest.raises(OAuthError, match="PEGBOARD_HOME"):
        await log_in(tokens)
    # Nor is it said that there is a login, which cannot be used.
    assert await request(protected.url, Bearer(tokens, LOCAL)) == 401
    assert tokens.problem(LOCAL) is None
    assert issuer.count("register") == 0


async def test_a_login_that_cannot_be_stored_after_all_fails_with_the_reason(
    protected: ProtectedServer, tmp_path: Path
) -> None:
    tokens = tokens_for(protected.url, tmp_path)
    async with begun(tokens) as login:
        block_file(tokens)
        page = await visit(login.address)
    assert page.status_code == 400
    assert "cannot be stored" in page.text
    assert login.failure is not None
