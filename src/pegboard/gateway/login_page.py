"""The pages of a shared gateway where people log in to servers, each for themselves.

    /ui/login/<server>    shows who is signed in to the dashboard, and begins a login as that person
    the authorization server's own pages
    /ui/login-return      where it sends the browser back to

The dashboard's sign-in says who opens the first page, and the login is stored for that person
alone. A person must not be able to have somebody else complete their login, because they would then
use the other person's account. So the redirect is accepted only from the browser that began the
login, which has a cookie for it. The dashboard's own cookies are not sent when the browser comes
from another site.

The browser may come back to another worker or replica, so a login that has begun is in the store.
It is encrypted with a key made from the cookie, which the store does not know.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.responses import HTMLResponse
from starlette.routing import Route

from pegboard.core.json import Json
from pegboard.dashboard import Html, tag
from pegboard.dashboard.layout import render_page
from pegboard.dashboard.routes import Pages
from pegboard.dashboard.security import CsrfTokens, read_form, with_security_headers
from pegboard.errors import NotPermitted, ToolNotFound
from pegboard.gateway.dashboard import may_log_in
from pegboard.oauth.encryption import Cipher
from pegboard.oauth.http_requests import OAuthError
from pegboard.oauth.login_flow import Login, LoginRequest, WrongRedirect

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from pegboard.config.settings import AuthSettings
    from pegboard.dashboard import Dashboard, Viewer
    from pegboard.gateway.gateway import Gateway
    from pegboard.oauth.access_tokens import ServerTokens

RETURN_PATH = "/ui/login-return"
_COOKIE_LIFETIME = 600
_CONTEXT = b"a login that has begun"


def find_public_address(settings: AuthSettings) -> str | None:
    """The public address of the dashboard, from that of `/mcp`; `None` if it is not known."""
    for address in (settings.resource, settings.audience):
        if address and address.startswith("http") and address.endswith("/mcp"):
            return address.removesuffix("/mcp")
    return None


def login_routes(gateway: Gateway, dashboard: Dashboard, public: str | None) -> list[Route]:
    """The routes of the login pages; callers who need a login are sent there from now on.

    Without a public address only the gateway's own user can log in there: their browser is on this
    machine, and comes back to a port of its own.
    """
    pages = LoginPages(gateway, dashboard, public)
    signed_in = Pages(dashboard).signed_in
    routes = [
        Route("/ui/login/{server}", signed_in(pages.ask), methods=["GET"]),
        Route("/ui/login/{server}", signed_in(pages.begin), methods=["POST"]),
    ]
    if public is not None:
        gateway.logins.page = lambda server: f"{public}/ui/login/{quote(server, safe='')}"
        routes.append(Route(RETURN_PATH, pages.complete, methods=["GET"]))
    return routes


def _derive(secret: str, purpose: str) -> bytes:
    """A key or a name that only the holder of the cookie knows."""
    return hashlib.sha256(f"pegboard login {purpose}\0{secret}".encode()).digest()


def _store_name(secret: str) -> str:
    return f"oauth:begun:{_derive(secret, 'name').hex()}"


class LoginPages:
    """The handlers of these pages."""

    def __init__(self, gateway: Gateway, dashboard: Dashboard, public: str | None) -> None:
        self._gateway = gateway
        self._dashboard = dashboard
        self._public = public
        self._is_secure = public is not None and public.startswith("https:")
        # Cookies with this prefix cannot be set by another host of the same domain.
        self._cookie = "__Host-pegboard-login" if self._is_secure else "pegboard-login"

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
        logins, principal = self._gateway.logins, viewer.caller.principal
        secret = secrets.token_urlsafe(32)
        try:
            if self._public is None:
                login = await logins.begin(tokens, principal, None)
            else:
                address = f"{self._public}{RETURN_PATH}"
                login = await Login.begin(
                    LoginRequest(tokens, principal, address, metadata_url=logins.metadata_url)
                )
                begun = {"server": tokens.server, "principal": principal, "login": login.to_json()}
                cipher = Cipher(_derive(secret, "key"))
                encrypted = cipher.encrypt(json.dumps(begun).encode(), _CONTEXT)
                await self._gateway.store.update(
                    _store_name(secret), lambda _: encrypted, ttl=_COOKIE_LIFETIME
                )
        except OAuthError as exc:
            return self._render_failure(
                viewer, f"{tokens.server}: the login cannot be started: {exc}."
            )
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
        secret = request.cookies.get(self._cookie, "")
        begun = await self._load(secret)
        if begun is None:
            return with_security_headers(
                self._render_failure(
                    None,
                    "This login was begun in another browser, or too long ago. Open the URL "
                    "that your client showed you, and log in again.",
                )
            )
        server, principal, login = begun
        try:
            login.parse_redirect(str(request.url))  # a wrong one does not end this login
            if not await self._claim(secret):
                raise WrongRedirect("This address was used already.")
            await login.receive(str(request.url))
        except OAuthError as exc:
            return with_security_headers(self._render_failure(None, f"{server}: {exc}"))
        self._gateway.logins.announce(server, principal)
        done = self._render(
            None,
            f"Logged in to {server}",
            tag("p", "Return to your client and repeat the call, unless it continues by itself."),
        )
        done.delete_cookie(self._cookie, path="/", httponly=True, secure=self._is_secure)
        return with_security_headers(done)

    async def _load(self, secret: str) -> tuple[str, str, Login] | None:
        """The login that a browser with this cookie has begun."""
        encrypted = await self._gateway.store.get(_store_name(secret))
        if not isinstance(encrypted, str):
            return None
        begun = json.loads(Cipher(_derive(secret, "key")).decrypt(encrypted, _CONTEXT))
        spec = self._gateway.catalogs.specs.get(begun["server"])
        tokens = self._gateway.logins.tokens(spec) if spec is not None else None
        if tokens is None:  # removed from the configuration meanwhile
            return None
        login = Login.from_json(tokens, begun["principal"], begun["login"])
        return begun["server"], begun["principal"], login

    async def _claim(self, secret: str) -> bool:
        """Whether this request may redeem the code: only one may, among all workers."""
        found: list[Json] = []

        def take(encrypted: Json) -> Json:
            found.append(encrypted)
            return None

        await self._gateway.store.update(_store_name(secret), take)
        return found[-1] is not None  # a store may call it again, if another process was faster

    def _find_server(self, request: Request, viewer: Viewer) -> ServerTokens:
        """The tokens of the server in the address.

        Raises:
            NotPermitted: The viewer cannot log in to servers here.
            ToolNotFound: There is no such server for this viewer, or it needs no login.
        """
        name = request.path_params["server"]
        if not may_log_in(self._gateway, viewer):
            raise NotPermitted(
                "This gateway cannot send you back here after a login: its operator has to set its "
                "public URL, `resource` under [auth]."
            )
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
