"""A person at a browser, without either: follows redirects, with cookies, as one user."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

REDIRECT = "http://127.0.0.1:7777/callback"


async def visit(url: str, *, user: str = "ann") -> httpx2.Response:
    """Open an address as this user and go wherever it leads, to our own redirect too."""
    async with httpx2.AsyncClient(follow_redirects=True, timeout=20) as http:
        return await http.get(_as_user(url, user))


async def visit_until(url: str, redirect: str = REDIRECT, *, user: str = "ann") -> str:
    """Open an address as this user; returns the address that leads back to the client."""
    url = _as_user(url, user)
    async with httpx2.AsyncClient(timeout=20) as http:
        for _ in range(20):
            answer = await http.get(url)
            assert answer.has_redirect_location, f"{answer.status_code} at {url}: {answer.text}"
            url = str(httpx2.URL(url).join(answer.headers["location"]))
            if url.startswith(redirect):
                return url
    raise AssertionError(f"redirected for ever, last to {url}")


def _as_user(url: str, user: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}login_hint={user}"


class Memory:
    """The storage of the SDK's client, for as long as it lives."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class SdkLogin:
    """The SDK's own client flow, as a user who agrees to everything at once.

    Args:
        url: The server to log in to.
        user: Who logs in.
        client: A client that was registered by hand; by default it registers itself.
    """

    def __init__(
        self, url: str, *, user: str = "ann", client: OAuthClientInformationFull | None = None
    ) -> None:
        self.storage = Memory()
        self.storage.client = client
        self.opened: list[str] = []
        self._user = user
        self._came_back = ""
        metadata = OAuthClientMetadata(
            client_name="a client of the tests", redirect_uris=[AnyUrl(REDIRECT)]
        )
        self.auth = OAuthClientProvider(url, metadata, self.storage, self._open, self._callback)

    async def _open(self, url: str) -> None:
        self.opened.append(url)
        self._came_back = await visit_until(url, user=self._user)

    async def _callback(self) -> AuthorizationCodeResult:
        given = {
            key: values[0] for key, values in parse_qs(urlsplit(self._came_back).query).items()
        }
        return AuthorizationCodeResult(
            code=given["code"], state=given.get("state"), iss=given.get("iss")
        )
