"""The logins of a gateway: the tokens of each server, and the logins that are in progress.

There is one login for a server and principal at a time; further calls that need it join it. It
continues after the call that started it has ended, so that a person can take their time.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Final, Protocol, Self

import anyio
from anyio.abc import TaskGroup, TaskStatus

from pegboard.errors import PegboardError
from pegboard.oauth.access_tokens import ServerTokens
from pegboard.oauth.grant_storage import GrantStorage, MemoryGrants
from pegboard.oauth.grants import LoginState
from pegboard.oauth.login_options import OAuthOptions

if TYPE_CHECKING:
    from pegboard.oauth.login_flow import Login

LOGIN_TIMEOUT: Final = 600.0
"""Seconds that a person has to log in."""


class LoginTarget(Protocol):
    """What is known of a server; an `UpstreamSpec` is one."""

    @property
    def name(self) -> str: ...
    @property
    def url(self) -> str | None: ...
    @property
    def oauth(self) -> OAuthOptions: ...
    @property
    def uses_oauth(self) -> bool: ...


class Logins:
    """Tokens and logins of all servers; an async context manager that owns logins in progress.

    Args:
        storage: Where grants are stored.
        metadata_url: The address of the client ID metadata document, if one is hosted.
        timeout: Seconds that a person has to complete a login.
    """

    def __init__(
        self,
        storage: GrantStorage,
        *,
        metadata_url: str | None = None,
        timeout: float = LOGIN_TIMEOUT,
    ) -> None:
        self.storage = storage
        self.metadata_url = metadata_url
        self._timeout = timeout
        self.page: Callable[[str], str] | None = None
        """Returns the URL where users of a shared gateway log in to a server, by its name."""
        self._tokens: dict[str, ServerTokens] = {}
        self._pending: dict[tuple[str, str], Login] = {}
        self._locks: dict[tuple[str, str], anyio.Lock] = {}
        self._listeners: list[Callable[[str, str], None]] = []
        self._resources = AsyncExitStack()
        self._tasks: TaskGroup | None = None

    async def __aenter__(self) -> Self:
        self._tasks = await self._resources.enter_async_context(anyio.create_task_group())
        self._resources.callback(self._tasks.cancel_scope.cancel)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        self._tasks = None
        return await self._resources.__aexit__(exc_type, exc, traceback)

    @property
    def is_open(self) -> bool:
        """Whether logins can be started here; otherwise only stored ones are used."""
        return self._tasks is not None

    def tokens(self, server: LoginTarget) -> ServerTokens | None:
        """The tokens for a server; `None` if it needs no login."""
        if not server.uses_oauth:
            return None
        known = self._tokens.get(server.name)
        if known is None or (known.url, known.options) != (server.url, server.oauth):
            storage = MemoryGrants() if server.oauth.exchanges_caller_token else self.storage
            known = ServerTokens(storage, server.name, server.url or "", server.oauth)
            self._tokens[server.name] = known
        return known

    async def state(
        self, server: LoginTarget, principal: str, *, is_refused: bool = False
    ) -> LoginState | None:
        """Whether a principal is logged in to a server; `None` if no login is known or needed.

        Args:
            server: The server.
            principal: Whose login it is.
            is_refused: Whether the server has last refused a request for lack of a valid login.
        """
        tokens = self.tokens(server)
        if tokens is None or not tokens.needs_person:
            return None
        try:
            grant = await tokens.storage.load(tokens.key(principal))
        except (OSError, PegboardError):
            return "sign in again"
        if grant is None:
            return "sign in" if is_refused else None
        return "sign in again" if is_refused else grant.state

    def on_login(self, listener: Callable[[str, str], None]) -> None:
        """Call a listener with server and principal whenever somebody has logged in."""
        self._listeners.append(listener)

    def announce(self, server: str, principal: str) -> None:
        """Tell the listeners that somebody has logged in."""
        for notify in self._listeners:
            notify(server, principal)

    def find(self, server: str, principal: str) -> Login | None:
        """The last login that was begun for a server and principal."""
        return self._pending.get((server, principal))

    async def begin(
        self,
        tokens: ServerTokens,
        principal: str,
        challenge: str | None,
        *,
        redirect_uri: str | None = None,
    ) -> Login:
        """The login in progress for a server and principal, begun if there is none.

        Args:
            tokens: Those of the server.
            principal: Who logs in.
            challenge: The `WWW-Authenticate` header of the server's refusal.
            redirect_uri: Where the browser is redirected to, if not to this process's own listener
                on the loopback address; the caller then calls `Login.receive`.

        Raises:
            OAuthError: It cannot begin.
        """
        key = tokens.server, principal
        async with self._locks.setdefault(key, anyio.Lock()):
            # One login for all: a person must not get a browser window for each waiting call.
            pending = self._pending.get(key)
            if pending is not None and not pending.done.is_set():
                return pending
            if self._tasks is None:
                raise RuntimeError("Logins cannot begin: `Logins` has not been entered.")
            self._pending[key] = await self._tasks.start(
                self._run, tokens, principal, challenge, redirect_uri
            )
            return self._pending[key]

    async def _run(
        self,
        tokens: ServerTokens,
        principal: str,
        challenge: str | None,
        redirect_uri: str | None,
        *,
        task_status: TaskStatus[Login],
    ) -> None:
        from pegboard.oauth.discovery import parse_challenge
        from pegboard.oauth.login_flow import Login, LoginRequest
        from pegboard.oauth.loopback import listen_for_redirect

        async with AsyncExitStack() as resources:
            listener = None
            if redirect_uri is None:
                earlier = await find_earlier_redirect(tokens, principal)
                listener = await resources.enter_async_context(
                    listen_for_redirect(tokens.options.redirect, earlier)
                )
                redirect_uri = listener.redirect_uri
            login = await Login.begin(
                LoginRequest(
                    tokens,
                    principal,
                    redirect_uri,
                    challenge=parse_challenge(challenge) if challenge else None,
                    metadata_url=self.metadata_url,
                )
            )
            if listener is not None:
                listener.receive = login.receive
            task_status.started(login)
            with anyio.move_on_after(self._timeout):
                await login.done.wait()
            login.give_up(f"nobody completed it within {self._timeout / 60:g} minutes")
        if login.failure is None:
            self.announce(tokens.server, principal)


async def find_earlier_redirect(tokens: ServerTokens, principal: str) -> str | None:
    """The redirect address of the last login, which its registered client is bound to."""
    try:
        earlier = await tokens.storage.load(tokens.key(principal))
    except (OSError, PegboardError):
        return None
    return earlier.redirect_uri if earlier is not None else None
