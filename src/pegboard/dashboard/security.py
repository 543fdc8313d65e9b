"""Sign-in by cookie, CSRF tokens for forms, and the security headers of every response.

A browser cannot send a bearer token when a user follows a link. So the token is given once, at
`/ui/enter`, and stored in a cookie that scripts cannot read and that requests from other sites do
not carry. It is verified with every request, like a client's, so that a revoked key stops working.

A form carries a CSRF token: an HMAC of the viewer, keyed with a random cookie and with the viewer's
own token. The server stores nothing, so every replica can check it. A site on another port of the
same host can set cookies for this one; without the viewer's token they are useless.

    cookie "token"                    --identify--> viewer
    cookie "form" + token + viewer    --HMAC-->     hidden field of every form
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response

from pegboard.dashboard.interface import Dashboard, Form, Viewer
from pegboard.dashboard.markup import Html, tag
from pegboard.errors import NotPermitted

CSRF_FIELD = "csrf_token"
_MAX_FORM_SIZE = 64 * 1024
_TOKEN_LIFETIME = 8 * 3600
"""Seconds after which a user has to sign in again."""
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    # Not `no-referrer`: a browser would then send our own forms with `Origin: null`.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def with_security_headers(response: Response, *, cache: str = "no-store") -> Response:
    """The response with the headers that every response of the dashboard has."""
    response.headers.update(_HEADERS)
    response.headers.setdefault("Cache-Control", cache)
    return response


async def identify_viewer(request: Request, dashboard: Dashboard) -> Viewer | None:
    """The viewer, by header or by cookie; `None` if access is refused."""
    return await dashboard.identify(request_token(request))


def request_token(request: Request) -> str | None:
    """The token of a request: from its header, or from the cookie for this port."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    return (
        given if scheme.lower() == "bearer" else request.cookies.get(_cookie_name(request, "token"))
    )


def set_token_cookie(request: Request, response: Response, token: str) -> None:
    """Store the token in the browser."""
    _set_cookie(request, response, "token", token, _TOKEN_LIFETIME)


def delete_token_cookie(request: Request, response: Response) -> None:
    """Remove the token from the browser."""
    response.delete_cookie(
        _cookie_name(request, "token"), path="/", samesite="strict", httponly=True
    )


class CsrfTokens:
    """CSRF tokens of one request: the one for its forms, and the check of the one that it sends."""

    def __init__(self, request: Request, viewer: Viewer) -> None:
        self._request = request
        self._cookie = request.cookies.get(_cookie_name(request, "form"))
        # A first visit gets a new secret, whose cookie goes out with the page.
        self._secret = self._cookie or secrets.token_urlsafe(32)
        key = f"{self._secret} {request_token(request) or ''}"
        message = f"pegboard form of {viewer.caller.principal}"
        self._token = hmac.new(key.encode(), message.encode(), hashlib.sha256).hexdigest()

    @property
    def field(self) -> Html:
        """The hidden field for each form."""
        return tag("input", type="hidden", name=CSRF_FIELD, value=self._token)

    def set_cookie(self, response: Response) -> None:
        """Set the cookie that belongs to the hidden field, unless the browser has it."""
        if self._cookie is None:
            _set_cookie(self._request, response, "form", self._secret, None)

    def check(self, form: Form) -> None:
        """Reject a form that no page of this dashboard made for this viewer.

        Raises:
            NotPermitted: Its CSRF token is missing or not valid.
        """
        given = form.get(CSRF_FIELD, "").encode()
        # Browsers report the origin of a form; `same-site` is a page on another port of this host.
        if self._request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
            raise NotPermitted("This form was not sent by this dashboard.")
        if self._cookie is None or not hmac.compare_digest(given, self._token.encode()):
            raise NotPermitted("This form has expired. Go back, reload the page and try again.")


async def read_form(request: Request) -> Form:
    """The fields of a posted form.

    Raises:
        NotPermitted: It is larger than any form of the dashboard.
    """
    body = b""
    # Bounded while it arrives: the size in a header can be wrong or missing.
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_FORM_SIZE:
            raise NotPermitted("This form is too large.")
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))


def _cookie_name(request: Request, what: str) -> str:
    """The name of a cookie. All ports of a host share cookies, so it contains the port."""
    return f"pegboard-{what}-{request.url.port or 0}"


def _set_cookie(
    request: Request, response: Response, what: str, value: str, lifetime: int | None
) -> None:
    response.set_cookie(
        _cookie_name(request, what),
        value,
        max_age=lifetime,
        path="/",
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
