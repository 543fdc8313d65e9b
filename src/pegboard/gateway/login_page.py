"""The pages of a shared gateway where people log in to servers, each for themselves.

    /ui/login/<server>    shows who is signed in to the dashboard, and begins a login as that person
    the authorization server's own pages
    /ui/login-return      where it sends the browser back to

Whoever opens the first page is known by the dashboard's sign-in, and the login is stored for them
and nobody else. A person must not be able to have somebody else complete their login: an account of
the other one would end up with theirs. So the return is accepted only from the browser that began
it, which has a cookie for it. The dashboard's own cookies do not come along from another site.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.responses import HTMLResponse
from starlette.routing import Route

from pegboard.core.caches import BoundedCache
from pegboard.dashboard import Html, tag
from pegboard.dashboard.layout import render_page
from pegboard.dashboard.routes import Pages
from pegboard.dashboard.security import CsrfTokens, read_form, with_security_headers
from pegboard.errors import ToolNotFound
from pegboard.oauth.http_requests import OAuthError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from pegboard.config.settings import AuthSettings
    from pegboard.dashboard import Dashboard, Viewer
    from pegboard.gateway.gateway import Gateway
    from pegboard.oauth.login import Login
    from pegboard.oauth.tokens import ServerTokens

RETURN_PATH = "/ui/login-return"
_MAX_BEGUN = 4_096
_COOKIE_LIFETIME = 600


def find_public_address(settings: AuthSettings) -> str | None:
    """The public address of the dashboard, from that of `/mcp`; `None` where it is not known."""
    for address in (settings.resource, settings.audience):
        if address and address.startswith("http") and address.endswith("/mcp"):
            return address.removesuffix("/mcp")
    return None


def login_routes(gateway: Gateway, dashboard: Dashboard, public: str) -> list[Route]:
    """The routes of the login pages; callers who need a login are sent there from now on."""
    pages = LoginPages(gateway, dashboard, public)
    gateway.logins.page = lambda server: f"{public}/ui/login/{quote(server, safe='')}"
    signed_in = Pages(dashboard).signed_in
    return [
        Route("/ui/login/{server}", signed_in(pages.ask), methods=["GET"]),
        Route("/ui/login/{server}", signed_in(pages.begin), methods=["POST"]),
        Route(RETURN_PATH, pages.complete, methods=["GET"]),
    ]


@dataclass(frozen=True, slots=True)
class _Begun:
    """A login that one browser has begun."""

    server: str
    principal: str
    login: Login


class LoginPages:
    """The handlers of these pages."""

    def __init__(self, gateway: Gateway, dashboard: Dashboard, public: str) -> None:
        self._gateway = gateway
        self._dashboard = dashboard
        self._public = public
        self._is_secure = public.startswith("https:")
        # Cookies with this prefix cannot be set by another host of the same domain.
        self._cookie = "__Host-pegboard-login" if self._is_secure else "pegboard-login"
        self._begun: BoundedCache[str, _Begun] = BoundedCache(_MAX_BEGUN)

    async def ask(self, request: Request, viewer: Viewer) -> Response:
        """Show who would log in where; nothing happens before they agree."""
        server = self._find_server(request, viewer).server
        csrf = CsrfTokens(request, viewer)
        response = self._render(
            viewer,
            f"Log in to {server}",
            tag("p", "You are signed in here as ", tag("strong", viewer.actor), ". Your calls of ",
                server, " will be made with the account that you log in with now."),
            tag("form", csrf.field, tag("button", "Continue", type="submit", class_="primary"),
                method="post", action=request.url.path, class_="card stack"),
        )  # fmt: skip
        csrf.set_cookie(response)
        return response

    async def begin(self, request: Request, viewer: Viewer) -> Response:
        """Begin the login, and send the browser to the authorization server."""
        tokens = self._find_server(request, viewer)
        CsrfTokens(request, viewer).check(await read_form(request))
        try:
            login = await self._gateway.logins.begin(
                tokens,
                viewer.caller.principal,
                None,
                redirect_uri=f"{self._public}{RETURN_PATH}",
            )
        except OAuthError as exc:
            return self._render_failure(viewer, f"{tokens.server}: the login cannot begin: {exc}.")
        secret = secrets.token_urlsafe(32)
        self._begun.put(secret, _Begun(tokens.server, viewer.caller.principal, login))
        # Not a redirect: the policy of this page allows forms to lead to this site only.
        response = self._render(
            viewer,
            f"Log in to {tokens.server}",
            tag("p", tag("a", f"Continue to {login.host}", href=login.address)),
            tag("meta", http_equiv="refresh", content=f"0;url={login.address}"),
        )
        response.set_cookie(
            self._cookie,
            secret,
            max_age=_COOKIE_LIFETIME,
            path="/",
            httponly=True,
            samesite="lax",  # it has to come back from another site
            secure=self._is_secure,
        )
        return response

    async def complete(self, request: Request) -> Response:
        """Take the answer of the authorization server, in the browser that began the login."""
        begun = self._begun.get(request.cookies.get(self._cookie, ""))
        if begun is None:
            return with_security_headers(
                self._render_failure(
                    None,
                    "This login was begun in another browser, or too long ago. Open the address "
                    "that your client showed you, and log in again.",
                )
            )
        try:
            await begun.login.receive(str(request.url))
        except OAuthError as exc:
            return with_security_headers(self._render_failure(None, f"{begun.server}: {exc}"))
        done = self._render(
            None,
            f"Logged in to {begun.server}",
            tag("p", "Return to your client and repeat the call, unless it goes on by itself."),
        )
        done.delete_cookie(self._cookie, path="/", httponly=True, secure=self._is_secure)
        return with_security_headers(done)

    def _find_server(self, request: Request, viewer: Viewer) -> ServerTokens:
        """The tokens of the server in the address.

        Raises:
            ToolNotFound: There is no such server for this viewer, or one does not log in to it.
        """
        name = request.path_params["server"]
        spec = self._gateway.catalogs.specs.get(name)
        is_visible = self._gateway.access.can_see_server(viewer.caller, name)
        tokens = self._gateway.logins.tokens(spec) if spec is not None and is_visible else None
        if tokens is None:
            raise ToolNotFound(name, what="server with a login")
        return tokens

    def _render(self, viewer: Viewer | None, title: str, *body: Html) -> HTMLResponse:
        heading = tag("h1", title)
        return HTMLResponse(render_page(self._dashboard, viewer, "", title, heading, *body))

    def _render_failure(self, viewer: Viewer | None, message: str) -> HTMLResponse:
        problem = tag("p", message, role="alert", class_="problem")
        response = self._render(viewer, "The login did not work", problem)
        response.status_code = 400
        return response
