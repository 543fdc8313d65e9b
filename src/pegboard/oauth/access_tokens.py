"""The current access token of each principal for one server, refreshed once for all processes.

    get     the token to send; refreshed shortly before it ends
    renew   another one, after the server has refused the last

A call with a valid token reads a dictionary and a clock. Near the end of a token one call refreshes
it, while others still use it. The lock of the storage makes processes take turns; the process that
gets it second finds the new token there. Nothing is locked while a call runs.

Only the authorization server's refusal ends a grant. While it cannot be reached, the grant stays,
and `problem` says what happened.

`Bearer` puts the token on requests. On a connection that several principals share, the principal of
a request travels in an internal header, which `Bearer` removes, so that it is never sent. It is a
header and not an attribute of the request because the SDK passes on only headers.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote, unquote

import anyio
import httpx2

from pegboard.core.calls import Caller
from pegboard.errors import PegboardError
from pegboard.oauth.grant_storage import MAX_IN_MEMORY, GrantStorage, GrantUnreadable
from pegboard.oauth.grants import Grant, GrantKey
from pegboard.oauth.http_requests import (
    AuthorizationRefused,
    OAuthError,
    open_http,
)
from pegboard.oauth.login_options import OAuthOptions

logger = logging.getLogger(__name__)

RETRY_INTERVAL = 10.0
"""Seconds between attempts to refresh a token that is still valid."""
MIN_RETRY_INTERVAL = 1.0
"""Seconds between attempts to refresh a token that has expired, while callers wait for it."""
RELOAD_INTERVAL = 5.0
"""Seconds after which a logout in another process is noticed."""
_GRANT_HAS_ENDED: Final = frozenset(
    {
        # RFC 6749, section 5.2, and RFC 8707; then OpenID Connect Core, section 3.1.2.6.
        "invalid_grant", "invalid_client", "unauthorized_client", "unsupported_grant_type",
        "invalid_request", "invalid_scope", "invalid_target", "access_denied",
        "interaction_required", "login_required", "consent_required",
        # GitHub's, and Slack's.
        "bad_refresh_token", "incorrect_client_credentials", "invalid_refresh_token",
        "token_expired", "token_revoked",
    }
)  # fmt: skip
"""Errors after which a person has to log in again. Not, for example, a proxy's `"Forbidden"`."""


class ServerTokens:
    """The tokens for one server."""

    def __init__(
        self,
        storage: GrantStorage,
        server: str,
        url: str,
        options: OAuthOptions,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.storage = storage
        self.server = server
        self.url = url
        self.options = options
        self._clock = clock
        self._grants: dict[str, Grant | None] = {}
        self._loaded_at: dict[str, float] = {}
        self._locks: dict[str, anyio.Lock] = {}
        self._problems: dict[str, str] = {}
        self._failed_at: dict[str, float] = {}
        self._callers: dict[str, str] = {}
        """The callers' own tokens, where these are exchanged."""
        self._unreadable: dict[str, str] = {}
        """Why the last attempt to read stored grants failed."""
        self._refused: dict[str, str] = {}
        """New tokens that the server refused: refreshing again would not help."""

    @property
    def needs_person(self) -> bool:
        """Whether a person has to log in; otherwise tokens are obtained by configuration."""
        return self.options.grant == "authorization_code"

    def key(self, principal: str) -> GrantKey:
        # With client credentials the gateway itself is the client: all principals share its token.
        # Its name is one that no principal can have.
        is_shared = self.options.grant == "client_credentials"
        return GrantKey(self.server, self.url, "" if is_shared else principal)

    def identify(self, caller: Caller) -> str:
        """The principal whose tokens a caller uses.

        Where the caller's own token is exchanged, each of the caller's tokens counts as a
        principal: a client whose token has fewer scopes must not use what another client's token
        was exchanged for.
        """
        if caller.token is None or not self.options.exchanges_caller_token:
            return caller.principal
        digest = hashlib.sha256(caller.token.encode()).hexdigest()
        principal = f"{caller.principal} {digest}"
        if principal not in self._callers:
            if len(self._callers) >= MAX_IN_MEMORY:
                self.forget(next(iter(self._callers)))  # the oldest; tokens are short-lived
            self._callers[principal] = caller.token
        return principal

    def problem(self, principal: str) -> str | None:
        """Why a grant could not be read or refreshed, although nobody has ended it."""
        return self._problems.get(principal)

    def secrets(self) -> Iterable[str]:
        """Every secret that is in use."""
        yield from self._callers.values()
        for grant in self._grants.values():
            if grant is not None:
                yield from grant.secrets

    def forget(self, principal: str) -> None:
        """Read the grant again at the next request: somebody has logged in or out."""
        self._callers.pop(principal, None)
        self._grants.pop(principal, None)
        self._loaded_at.pop(principal, None)
        if principal in self._locks and not self._locks[principal].locked():
            del self._locks[principal]
        self._problems.pop(principal, None)
        self._failed_at.pop(principal, None)
        self._unreadable.pop(principal, None)
        self._refused.pop(principal, None)

    def peek(self, principal: str) -> str | None:
        """The token, if it is known, was read recently, and need not be refreshed."""
        grant = self._grants.get(principal)
        if grant is None:
            return None
        now, refresh_at = self._clock(), grant.refresh_at
        if not 0 <= now - self._loaded_at[principal] < RELOAD_INTERVAL:
            return None
        return grant.access_token if refresh_at is None or now < refresh_at else None

    async def get(self, principal: str) -> str | None:
        """The token to send; `None` if there is none: the server's refusal then names the login."""
        token = self.peek(principal)
        if token is not None:
            return token
        since = self._clock() - self._loaded_at.get(principal, 0.0)
        if principal not in self._grants or not 0 <= since < RELOAD_INTERVAL:
            await self._load(principal)
        grant = self._grants.get(principal)
        if grant is None or grant.access_token is None:
            return None if self.needs_person else await self.renew(principal, None)
        if (token := self.peek(principal)) is not None:
            return token
        is_valid = grant.expires_at is None or self._clock() < grant.expires_at
        is_busy = principal in self._locks and self._locks[principal].locked()
        if is_valid and (is_busy or self._failed_within(principal, RETRY_INTERVAL)):
            return grant.access_token
        renewed = await self.renew(principal, grant.access_token)
        return renewed or (grant.access_token if is_valid else None)

    async def renew(self, principal: str, stale: str | None) -> str | None:
        """A token other than `stale`: one that another process has obtained since, or a new one."""
        async with self._locks.setdefault(principal, anyio.Lock()):
            # While this one waited for the lock, another request may have got a new token.
            known = self._grants.get(principal)
            if known is not None and known.access_token not in (None, stale):
                return self.peek(principal)
            if self._failed_within(principal, MIN_RETRY_INTERVAL):
                return None
            if self.needs_person:
                # If nobody has logged in, there is nothing to lock. Taking the lock would fail in a
                # read-only home folder.
                known = await self._load(principal)
                if known is None or known.refresh_token is None:
                    token = known.access_token if known is not None else None
                    return token if token != stale else None
            try:
                async with self.storage.lock(self.key(principal)):
                    return await self._renew_locked(principal, stale)
            except (OSError, PegboardError) as exc:
                self._fail(principal, str(exc))
            return None

    async def _renew_locked(self, principal: str, stale: str | None) -> str | None:
        # Another process may have refreshed it, and its refresh token is then used up.
        grant = await self._load(principal)
        if grant is not None and grant.access_token not in (None, stale) and self.peek(principal):
            return grant.access_token
        if grant is not None and self._refused.get(principal) == grant.access_token:
            return None
        if self.needs_person and (grant is None or grant.refresh_token is None):
            return None  # nobody has logged in, or they have to again
        renewed = None
        # A refresh token that was used must not be lost, even if nobody waits for it any more.
        with anyio.CancelScope(shield=True):
            renewed = await self._renew_grant(principal, grant)
            if renewed is not None:
                self._problems.pop(principal, None)
                self._remember(principal, renewed)
                try:
                    await self.storage.save(self.key(principal), renewed)
                except (OSError, PegboardError) as exc:
                    # The tokens are good anyway, as long as this process lives.
                    logger.warning("%s: its login could not be stored: %s", self.server, exc)
        return renewed.access_token if renewed is not None else None

    async def _renew_grant(self, principal: str, grant: Grant | None) -> Grant | None:
        """The grant with new tokens, or ended; `None` if the request told us nothing about it."""
        try:
            if grant is not None and self.needs_person:
                return await self._refresh(grant)
            from pegboard.oauth.machine_grants import obtain_grant  # which most gateways never use

            token = self._callers.get(principal)
            return await obtain_grant(
                self.server, self.url, principal, self.options, caller_token=token
            )
        except (OAuthError, PegboardError) as exc:
            self._fail(principal, str(exc))
            return None

    async def _refresh(self, grant: Grant) -> Grant:
        from pegboard.oauth.clients import client_of_grant, refresh

        client = client_of_grant(grant, self.options)
        try:
            async with open_http() as http:
                response = await refresh(http, grant, client)
        except AuthorizationRefused as exc:
            if exc.error == "invalid_client" and not client.is_registered:
                # The operator's client, not the person's login: a secret that has expired, say.
                raise OAuthError(f"{exc}: check `client_id` and `client_secret`") from exc
            if exc.error not in _GRANT_HAS_ENDED:
                raise
            logger.warning("%s: the login has ended: %s", self.server, exc)
            return grant.end(exc.error)
        return grant.with_tokens(response, self._clock())

    def _fail(self, principal: str, problem: str) -> None:
        if self._problems.get(principal) != problem:
            logger.warning("%s: its login cannot be used at the moment: %s", self.server, problem)
        self._problems[principal] = problem
        self._failed_at[principal] = self._clock()

    def _failed_within(self, principal: str, seconds: float) -> bool:
        since = self._clock() - self._failed_at.get(principal, 0.0)
        return 0 <= since < seconds  # less than 0: the clock was set back

    async def amend(self, principal: str, **changes: Any) -> None:
        """Change fields of a stored grant, if there is one and it can be written."""
        key = self.key(principal)
        with suppress(OSError, PegboardError):
            async with self.storage.lock(key):
                grant = await self.storage.load(key)
                amended = replace(grant, **changes) if grant is not None else None
                if amended is not None and amended != grant:
                    await self.storage.save(key, amended)

    def refuse(self, principal: str, token: str) -> None:
        """Record that the server refused a token that was new."""
        self._refused[principal] = token

    async def _load(self, principal: str) -> Grant | None:
        """The stored grant; the one in memory while the storage cannot be read."""
        known = self._grants.get(principal)
        if known is not None:
            self._loaded_at[principal] = self._clock()  # others use it meanwhile
        try:
            grant = await self.storage.load(self.key(principal))
            if self._problems.get(principal) == self._unreadable.pop(principal, ""):
                del self._problems[principal]
        except (OSError, PegboardError) as exc:
            reason = str(exc).rstrip(".")
            if not isinstance(exc, GrantUnreadable) or exc.is_locked:
                self._fail(principal, reason)
            elif self._unreadable.get(principal) != reason:
                # If no grant is in memory, this is as if nobody had logged in; the next login
                # replaces it.
                logger.warning("%s", exc.message)
            self._unreadable[principal] = reason
            grant = known
        self._remember(principal, grant)
        return grant

    def _remember(self, principal: str, grant: Grant | None) -> None:
        self._grants[principal] = grant
        self._loaded_at[principal] = self._clock()


PRINCIPAL_HEADER: Final = "pegboard-principal"


def encode_principal(principal: str) -> str:
    """A principal as the value of its header; names may have any characters, headers may not."""
    return quote(principal, safe="@ ", errors="surrogatepass")


class Bearer(httpx2.Auth):
    """Authorizes requests as the principal that they name, or else as the connection's own.

    It holds no lock while a request runs, and never raises: without a token the request is sent as
    it is, and the server's refusal says which login it needs.
    """

    def __init__(self, tokens: ServerTokens, principal: str) -> None:
        self._tokens = tokens
        self._principal = principal

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        tokens, principal, headers = self._tokens, self._principal, request.headers
        if PRINCIPAL_HEADER in headers:  # `pop` with a default takes three times as long
            principal = unquote(headers.pop(PRINCIPAL_HEADER), errors="surrogatepass")
        token = tokens.peek(principal) or await tokens.get(principal)
        if token is not None:
            request.headers["Authorization"] = f"Bearer {token}"
        response = yield request
        if response.status_code != 401:
            return
        fresh = await tokens.renew(principal, token)
        if fresh is None or fresh == token:
            return
        request.headers["Authorization"] = f"Bearer {fresh}"
        response = yield request
        if response.status_code == 401:
            tokens.refuse(principal, fresh)
