"""A call that needs a login first: the person is asked, and then the call is made.

| client | how the person learns of it |
|---|---|
| modern, with URL elicitation | an `input_required` result; the client calls again afterwards |
| legacy, with URL elicitation | a request to the client, while its call waits |
| any other | an error with the address and the command; the next call works |

The address is the authorization server's own, or a page of a shared gateway. It never comes from
the error of a server, and the texts around it are ours.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import anyio

from pegboard.core.json import JsonObject
from pegboard.errors import LoginRequired, PegboardError, UpstreamUnavailable
from pegboard.oauth.access_tokens import ServerTokens
from pegboard.oauth.http_requests import OAuthError
from pegboard.oauth.logins import LOGIN_TIMEOUT, Logins
from pegboard.ports import progress_callback
from pegboard.upstream.client_sdk import MCPError
from pegboard.upstream.downstream import Downstream
from pegboard.upstream.era_translation import INPUT_REQUIRED

if TYPE_CHECKING:
    from pegboard.oauth.login_flow import Login

STATE_PREFIX: Final = "pegboard-login."
_INPUT_KEY: Final = "login"
_PROGRESS_INTERVAL: Final = 5.0
_PAGE_INTERVAL: Final = 0.5
"""Seconds between two checks for a login that another worker may have completed."""


def is_login_answer(params: JsonObject) -> bool:
    """Whether a client calls again after it has had the person log in."""
    state = params.get("requestState")
    return isinstance(state, str) and state.startswith(STATE_PREFIX)


def without_login_answer(params: JsonObject) -> JsonObject:
    """The request as it was before the login."""
    return {k: v for k, v in params.items() if k not in ("requestState", "inputResponses")}


class SignIn:
    """The login that one request waits for."""

    def __init__(self, logins: Logins, tokens: ServerTokens, downstream: Downstream) -> None:
        self._logins = logins
        self._tokens = tokens
        self._downstream = downstream
        self._principal = downstream.caller.principal

    async def ask(self, refusal: LoginRequired) -> JsonObject | None:
        """Have the person log in; `None` once they have, or a result for the client to act on.

        Raises:
            LoginRequired: They have to log in outside of this call.
            UpstreamUnavailable: The login exists, and cannot be refreshed at the moment.
        """
        server = self._tokens.server
        problem = self._tokens.problem(self._tokens.identify(self._downstream.caller))
        if not self._tokens.needs_person:
            raise LoginRequired(
                f"{server} does not accept the credentials of this gateway: "
                f"{problem or 'check its `oauth` settings'}.",
                server=server,
            ) from refusal
        if problem is not None:
            error = UpstreamUnavailable(
                f"{server}: its login is still there, but cannot be used at the moment: {problem}. "
                f"Try again later.",
                server=server,
            )
            error.only_caller = True
            raise error from refusal
        from pegboard.oauth.discovery import parse_challenge  # most calls never need it

        challenge = parse_challenge(refusal.challenge)
        if challenge.is_step_up and challenge.scope:
            # Stored, because the login may be made by another process: a command, or a worker.
            await self._tokens.amend(self._principal, needed_scope=challenge.scope)
        address, login = await self._begin(refusal)
        elicitation: JsonObject = self._downstream.capabilities.get("elicitation") or {}
        if "url" in elicitation and self._downstream.can_give_input:
            place = f" You log in at {login.host}." if login is not None else ""
            message = f"{server} needs you to log in before its tools can be used.{place}"
            params = {"mode": "url", "url": address, "message": message}
            if self._downstream.era == "modern":
                request = {"method": "elicitation/create", "params": params}
                return {
                    "resultType": INPUT_REQUIRED,
                    "inputRequests": {_INPUT_KEY: request},
                    "requestState": STATE_PREFIX + server,
                }
            params["elicitationId"] = STATE_PREFIX + server
            if await self._has_accepted(params):
                await self._wait(login)
                return None
        raise LoginRequired(
            f"{server} needs a login. Ask the user to open this URL in a browser, then call "
            f"again: {address} (or to run `pegboard login {server}`).",
            server=server,
            url=address,
            command=f"pegboard login {server}",
        ) from refusal

    async def resume(self, params: JsonObject) -> None:
        """Wait for the login that an earlier call has asked for.

        Raises:
            LoginRequired: The person declined, or did not complete it.
        """
        answers = params.get("inputResponses") or {}
        action = (answers.get(_INPUT_KEY) or {}).get("action")
        if action != "accept":
            raise LoginRequired(
                f"{self._tokens.server} was not called: the login was declined.",
                server=self._tokens.server,
            )
        await self._wait(self._logins.find(self._tokens.server, self._principal))

    async def _begin(self, refusal: LoginRequired) -> tuple[str, Login | None]:
        """The address to open, and the login behind it if it is known already."""
        server, page = self._tokens.server, self._logins.page
        if not self._downstream.caller.is_local_user:
            if page is None:
                raise LoginRequired(
                    f"{server} needs a login for {self._principal}, which the operator of this "
                    f"gateway can create with: pegboard login {server} --as {self._principal}",
                    server=server,
                ) from refusal
            return page(server), None
        if not self._logins.is_open:
            raise refusal
        try:
            login = await self._logins.begin(self._tokens, self._principal, refusal.challenge)
        except OAuthError as exc:
            raise LoginRequired(
                f"{server} needs a login, which cannot be started: {exc}.", server=server
            ) from exc
        return login.address, login

    async def _has_accepted(self, params: JsonObject) -> bool:
        progress = progress_callback()
        answer: JsonObject = {}
        async with anyio.create_task_group() as tasks:

            async def report() -> None:
                while True:  # the timeout of the call is paused while a person is asked
                    await anyio.sleep(_PROGRESS_INTERVAL)
                    progress()

            tasks.start_soon(report)
            # A client may declare elicitation and still fail: then the caller gets the error.
            with suppress(MCPError):
                answer = await self._downstream.send_request("elicitation/create", params)
            tasks.cancel_scope.cancel()
        return answer.get("action") == "accept"

    async def _wait(self, login: Login | None) -> None:
        progress = progress_callback()
        if login is not None:
            while not login.done.is_set():
                with anyio.move_on_after(_PROGRESS_INTERVAL):
                    await login.done.wait()
                progress()
            if login.failure is not None:
                raise LoginRequired(
                    f"{self._tokens.server} was not called: {login.failure}. Call again to be "
                    f"asked again.",
                    server=self._tokens.server,
                )
            return
        if self._downstream.caller.is_local_user:
            return  # another process may have completed their login; the call will show it
        # They log in on the gateway's page, in whichever worker, and the storage shows when.
        key = self._tokens.key(self._principal)
        with anyio.move_on_after(LOGIN_TIMEOUT):
            while True:
                with suppress(PegboardError, OSError):
                    grant = await self._tokens.storage.load(key)
                    is_usable = grant is not None and grant.state == "signed in"
                    if grant is not None and is_usable and grant.needed_scope is None:
                        break
                progress()
                await anyio.sleep(_PAGE_INTERVAL)
