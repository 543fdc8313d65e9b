"""The current access token of each principal for one server, refreshed once for all processes.

    get     the token to send; refreshed shortly before it ends
    renew   another one, after the server has refused the last

A call with a valid token reads a dictionary and a clock. Near the end of a token one call refreshes
it, while others still use it. The lock of the storage makes processes take turns; the process that
gets it second finds the new token there. Nothing is locked while a call runs.

Only the authorization server's refusal ends a grant. While it cannot be reached, the grant stays,
and `problem` says what happened.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable

import anyio

from pegboard.errors import PegboardError
from pegboard.oauth.grant_storage import GrantStorage, GrantUnreadable
from pegboard.oauth.grants import Grant, GrantKey
from pegboard.oauth.http_requests import (
    AuthorizationRefused,
    OAuthError,
    open_http,
)
from pegboard.oauth.options import OAuthOptions

logger = logging.getLogger(__name__)

RETRY_INTERVAL = 10.0
"""Seconds between attempts to refresh a token that is still valid."""
MIN_RETRY_INTERVAL = 1.0
"""Seconds between attempts to refresh one that is not: callers wait, and so may many."""


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
        self._locks: dict[str, anyio.Lock] = {}
        self._problems: dict[str, str] = {}
        self._failed_at: dict[str, float] = {}
        self._refused: dict[str, str] = {}
        """Tokens that were new, and that the server refused: refreshing again would not help."""

    @property
    def needs_person(self) -> bool:
        """Whether a person has to log in; otherwise tokens are obtained by configuration."""
        return self.options.grant == "authorization_code"

    def key(self, principal: str) -> GrantKey:
        # With client credentials the gateway itself is the client: all principals share its token.
        is_shared = self.options.grant == "client_credentials"
        return GrantKey(self.server, self.url, "client" if is_shared else principal)

    def problem(self, principal: str) -> str | None:
        """Why a grant could not be read or refreshed, although nobody has ended it."""
        return self._problems.get(principal)

    def secrets(self) -> Iterable[str]:
        """Every secret that is in use."""
        for grant in self._grants.values():
            if grant is not None:
                yield from grant.secrets

    def forget(self, principal: str) -> None:
        """Read the grant again at the next request: somebody has logged in or out."""
        self._grants.pop(principal, None)
        self._problems.pop(principal, None)
        self._failed_at.pop(principal, None)
        self._refused.pop(principal, None)

    def peek(self, principal: str) -> str | None:
        """The token, if it is known and need not be refreshed."""
        grant = self._grants.get(principal)
        if grant is None:
            return None
        refresh_at = grant.refresh_at
        return grant.access_token if refresh_at is None or self._clock() < refresh_at else None

    async def get(self, principal: str) -> str | None:
        """The token to send; `None` if there is none: the server's refusal then names the login."""
        token = self.peek(principal)
        if token is not None:
            return token
        if principal not in self._grants:
            await self._load(principal)
            return self.peek(principal) or await self.get(principal)
        grant = self._grants[principal]
        if grant is None or grant.access_token is None:
            return None if self.needs_person else await self.renew(principal, None)
        is_valid = grant.expires_at is None or self._clock() < grant.expires_at
        is_busy = principal in self._locks and self._locks[principal].locked()
        if is_valid and (is_busy or self._failed_within(principal, RETRY_INTERVAL)):
            return grant.access_token
        renewed = await self.renew(principal, grant.access_token)
        return renewed or (grant.access_token if is_valid else None)

    async def renew(self, principal: str, stale: str | None) -> str | None:
        """A token other than `stale`: the one that another process has got by now, or a new one."""
        async with self._locks.setdefault(principal, anyio.Lock()):
            known = self._grants.get(principal)
            if known is not None and known.access_token not in (None, stale):
                return self.peek(principal)
            if self._failed_within(principal, MIN_RETRY_INTERVAL):
                return None
            try:
                async with self.storage.lock(self.key(principal)):
                    return await self._renew_locked(principal, stale)
            except TimeoutError:
                self._fail(principal, "another process has been refreshing it for too long")
            except (OSError, PegboardError) as exc:
                self._fail(principal, str(exc))
            return None

    async def _renew_locked(self, principal: str, stale: str | None) -> str | None:
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
                self._grants[principal] = renewed
                await self.storage.save(self.key(principal), renewed)
        return renewed.access_token if renewed is not None else None

    async def _renew_grant(self, principal: str, grant: Grant | None) -> Grant | None:
        """The grant with new tokens, or ended; `None` where nothing became known."""
        try:
            if grant is None or not self.needs_person:
                return await self._exchange(principal)
            return await self._refresh(grant)
        except (OAuthError, PegboardError) as exc:
            self._fail(principal, str(exc))
            return None

    async def _refresh(self, grant: Grant) -> Grant:
        from pegboard.oauth.clients import client_of_grant
        from pegboard.oauth.token_endpoint import refresh

        try:
            async with open_http() as http:
                response = await refresh(http, grant, client_of_grant(grant, self.options))
        except AuthorizationRefused as exc:
            logger.warning("%s: the login has ended: %s", self.server, exc)
            return grant.end(exc.error)
        return grant.with_tokens(response, self._clock())

    async def _exchange(self, principal: str) -> Grant:
        from pegboard.oauth.machine_grants import obtain_grant

        return await obtain_grant(self.server, self.url, principal, self.options)

    def _fail(self, principal: str, problem: str) -> None:
        if self._problems.get(principal) != problem:
            logger.warning("%s: its login could not be refreshed: %s", self.server, problem)
        self._problems[principal] = problem
        self._failed_at[principal] = self._clock()

    def _failed_within(self, principal: str, seconds: float) -> bool:
        since = self._clock() - self._failed_at.get(principal, 0.0)
        return 0 <= since < seconds

    def refuse(self, principal: str, token: str) -> None:
        """Record that the server refused a token that was new."""
        self._refused[principal] = token

    async def _load(self, principal: str) -> Grant | None:
        try:
            grant = await self.storage.load(self.key(principal))
        except GrantUnreadable as exc:
            # As if nobody had logged in: the next login replaces it.
            logger.warning("%s", exc.message)
            grant = None
        except (OSError, PegboardError) as exc:
            self._fail(principal, str(exc))
            grant = None
        self._grants[principal] = grant
        return grant
