"""Logins of tests: tokens in files of a folder, and a person who agrees or does not."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from tests.oauth.browser import visit

from pegboard.oauth.access_tokens import ServerTokens
from pegboard.oauth.encryption import NoKey
from pegboard.oauth.grant_storage import FileGrants
from pegboard.oauth.login_flow import Login, LoginRequest
from pegboard.oauth.login_options import OAuthOptions
from pegboard.oauth.loopback import listen_for_redirect

LOCAL = "local"


def file_grants(folder: Path) -> FileGrants:
    return FileGrants(folder / "logins", NoKey())


def tokens_for(url: str, folder: Path, *, server: str = "notes", **options: Any) -> ServerTokens:
    """The tokens of a server; another object with the same folder is like another process."""
    return ServerTokens(file_grants(folder), server, url, OAuthOptions(**options))


@asynccontextmanager
async def begun(tokens: ServerTokens, **request: Any) -> AsyncGenerator[Login]:
    """A login that somebody has to complete, with its listener."""
    async with AsyncExitStack() as resources:
        listener = await resources.enter_async_context(listen_for_redirect(tokens.options.redirect))
        asked: dict[str, Any] = {"principal": LOCAL, "redirect_uri": listener.redirect_uri}
        login = await Login.begin(LoginRequest(tokens, **{**asked, **request}))
        listener.receive = login.receive
        yield login


async def log_in(tokens: ServerTokens, *, user: str = "ann", **request: Any) -> Login:
    """Log in as a user who does at once what the browser shows."""
    async with begun(tokens, **request) as login:
        await visit(login.address, user=user)
        await login.done.wait()
    return login
