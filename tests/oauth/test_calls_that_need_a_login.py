"""A call without a login, through a whole gateway: the person is asked, and the call goes on."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as t
import pytest
from tests.gateway.support import client_of, running, said
from tests.oauth.authorization_server import (
    DECLINES,
    AuthorizationServer,
    ProtectedServer,
    authorization_server,
    protected_server,
)
from tests.oauth.browser import visit
from tests.oauth.support import log_in, tokens_for

from pegboard.config.settings import CallSettings, Settings
from pegboard.core.calls import LOCAL_CALLER, Caller
from pegboard.errors import InvalidArguments
from pegboard.gateway.gateway import Gateway
from pegboard.oauth.access_tokens import MIN_RETRY_INTERVAL
from pegboard.upstream.downstream import Downstream
from pegboard.upstream.relay import UpstreamRequest
from pegboard.upstream.spec import UpstreamSpec

pytestmark = pytest.mark.anyio


@pytest.fixture
def issuer() -> Generator[AuthorizationServer]:
    with authorization_server() as server:
        yield server


@pytest.fixture(params=["modern", "legacy"])
def protected(
    request: pytest.FixtureRequest, issuer: AuthorizationServer
) -> Generator[ProtectedServer]:
    with protected_server(issuer, legacy=request.param == "legacy") as server:
        yield server


@asynccontextmanager
async def gateway_of(
    protected: ProtectedServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[Gateway]:
    """A gateway whose server was listed with a login that has ended since."""
    monkeypatch.setenv("PEGBOARD_HOME", str(folder))
    await log_in(tokens_for(protected.url, folder))
    spec = UpstreamSpec("notes", transport="http", url=protected.url)
    async with running([spec], folder, settings=Settings(mode="eager")) as gateway:
        assert [tool.name for tool in gateway.board.tools()] == ["notes_whoami"]
        protected.issuer.forget()
        yield gateway


class Person:
    """Opens the addresses that a client shows."""

    def __init__(self, user: str = "ann", *, seconds: float = 0.0, action: str = "accept") -> None:
        self.opened: list[str] = []
        self._user = user
        self._seconds = seconds
        self._action: Any = action

    async def __call__(self, ctx: Any, params: Any) -> t.ElicitResult:
        assert isinstance(params, t.ElicitRequestURLParams)
        assert params.message.startswith("notes needs you to log in")
        self.opened.append(params.url)
        if self._action == "accept":
            await anyio.sleep(self._seconds)
            await visit(params.url, user=self._user)
        return t.ElicitResult(action=self._action)


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_the_person_logs_in_and_the_call_goes_on(
    protected: ProtectedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    person = Person()
    async with (
        gateway_of(protected, tmp_path, monkeypatch) as gateway,
        client_of(gateway, era, elicitation_callback=person) as client,
    ):
        assert said(await client.call_tool("notes_whoami", {})) == "ann"
        assert len(person.opened) == 1
        assert said(await client.call_tool("notes_whoami", {})) == "ann"
    assert len(person.opened) == 1
    assert protected.issuer.issuer in person.opened[0]


@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize("accepts", ["after the login", "before it"])
async def test_a_person_who_takes_longer_than_a_call_may_loses_nothing(
    issuer: AuthorizationServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    era: str,
    accepts: str,
) -> None:
    monkeypatch.setenv("PEGBOARD_HOME", str(tmp_path))
    with protected_server(issuer) as protected:
        await log_in(tokens_for(protected.url, tmp_path))
        spec = UpstreamSpec("notes", transport="http", url=protected.url, timeout=0.5)
        settings = Settings(mode="eager", calls=CallSettings(timeout=0.5))
        async with (
            anyio.create_task_group() as tasks,
            running([spec], tmp_path, settings=settings) as gateway,
        ):
            issuer.forget()

            async def log_in_later(address: str) -> None:
                await anyio.sleep(1.2)
                await visit(address)

            async def ask(ctx: Any, params: Any) -> t.ElicitResult:
                if accepts == "before it":
                    tasks.start_soon(log_in_later, params.url)
                else:
                    await log_in_later(params.url)
                return t.ElicitResult(action="accept")

            async with client_of(gateway, era, elicitation_callback=ask) as client:
                assert said(await client.call_tool("notes_whoami", {})) == "ann"


async def test_each_caller_is_known_by_their_name_whatever_it_is(
    protected: ProtectedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = {"ann": "1", "josé": "2", "名前 %41": "3", "A": "4", "|a@b.example\n": "5"}
    async with gateway_of(protected, tmp_path, monkeypatch) as gateway:
        for principal, user in people.items():
            await log_in(tokens_for(protected.url, tmp_path), user=user, principal=principal)
        for principal, user in people.items():
            result = await gateway.board.call("notes_whoami", {}, caller=Caller(principal))
            assert result.output == user


@pytest.mark.parametrize("answers", [[1], "accept", {"login": "accept"}, {"login": [1]}])
async def test_malformed_answers_of_a_client_are_named(
    protected: ProtectedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: Any
) -> None:
    async with gateway_of(protected, tmp_path, monkeypatch) as gateway:
        downstream = Downstream(LOCAL_CALLER, None, {})
        params = {"name": "whoami", "requestState": "pegboard-login.notes"}
        request = UpstreamRequest("notes", "tools/call", {**params, "inputResponses": answers})
        with pytest.raises(InvalidArguments, match="inputResponses"):
            await gateway.relay.request(request, downstream)


async def test_a_client_that_cannot_ask_gets_the_address_and_the_next_call_works(
    protected: ProtectedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        gateway_of(protected, tmp_path, monkeypatch) as gateway,
        client_of(gateway, "legacy") as client,
    ):
        for _ in range(6):  # more than open a breaker
            assert (await client.call_tool("notes_whoami", {})).is_error
        refused = await client.call_tool("notes_whoami", {})
        error = json.loads(json.dumps(refused.structured_content))["error"]
        assert error["kind"] == "login_required"
        assert error["command"] == "pegboard login notes"
        assert error["url"] in said(refused)
        await visit(error["url"])
        assert said(await client.call_tool("notes_whoami", {})) == "ann"
        assert "whoami" in str(gateway.board.tools())


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_person_who_declines_is_asked_again_by_the_next_call(
    protected: ProtectedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    async with gateway_of(protected, tmp_path, monkeypatch) as gateway:
        for person in (Person(action="decline"), Person(user=DECLINES)):
            async with client_of(gateway, era, elicitation_callback=person) as client:
                refused = await client.call_tool("notes_whoami", {})
                assert refused.is_error
                assert "login" in said(refused)
        async with client_of(gateway, era, elicitation_callback=Person()) as client:
            assert said(await client.call_tool("notes_whoami", {})) == "ann"


async def test_an_authorization_server_that_is_down_is_no_reason_to_log_in_again(
    issuer: AuthorizationServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = Person()
    with protected_server(issuer) as protected:
        monkeypatch.setenv("PEGBOARD_HOME", str(tmp_path))
        await log_in(tokens_for(protected.url, tmp_path))
        spec = UpstreamSpec("notes", transport="http", url=protected.url)
        async with (
            running([spec], tmp_path, settings=Settings(mode="eager")) as gateway,
            client_of(gateway, "modern", elicitation_callback=person) as client,
        ):
            issuer.expire()
            issuer.faults.down = True
            failed = await client.call_tool("notes_whoami", {})
            assert failed.is_error
            assert "still there" in said(failed)
            issuer.faults.down = False
            await anyio.sleep(MIN_RETRY_INTERVAL)
            assert said(await client.call_tool("notes_whoami", {})) == "ann"
    assert person.opened == []


async def test_a_server_that_was_never_listed_appears_after_a_login(
    issuer: AuthorizationServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEGBOARD_HOME", str(tmp_path))
    with protected_server(issuer) as protected:
        spec = UpstreamSpec("notes", transport="http", url=protected.url)
        async with running([spec], tmp_path, settings=Settings(mode="proxy")) as gateway:
            assert gateway.failures == {"notes": "notes needs a login: run `pegboard login notes`."}
            tokens = gateway.logins.tokens(spec)
            assert tokens is not None
            login = await gateway.logins.begin(tokens, "local", None)
            await visit(login.address)
            with anyio.fail_after(10):
                while not gateway.board.tools():  # noqa: ASYNC110 - mounted in the background
                    await anyio.sleep(0.02)


async def test_calls_with_a_login_run_at_the_same_time(
    issuer: AuthorizationServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEGBOARD_HOME", str(tmp_path))
    with protected_server(issuer, json_response=True) as protected:
        await log_in(tokens_for(protected.url, tmp_path))
        spec = UpstreamSpec("notes", transport="http", url=protected.url)
        async with (
            running([spec], tmp_path, settings=Settings(mode="eager")) as gateway,
            client_of(gateway, "modern") as client,
        ):
            await client.call_tool("notes_whoami", {})
            protected.slow = 1.0
            # A machine that is busy may delay one round of calls.
            durations: list[float] = []
            while len(durations) < 3 and min(durations, default=9.0) > 1.2:
                began = anyio.current_time()
                async with anyio.create_task_group() as tasks:
                    for _ in range(5):
                        tasks.start_soon(client.call_tool, "notes_whoami", {})
                durations.append(anyio.current_time() - began)
            assert min(durations) <= 1.2
