"""Who looks at the page, whether a form was made by it, and what its answers forbid a browser.

A browser cannot send a bearer token when a person follows a link, so the token is given once, at
`/ui/enter`, and kept in a cookie that no script can read and no other site's request carries. It is
verified with every request, as a client's would be: what is revoked is gone here too.

A form carries a proof that only a page of ours could have put there: an HMAC of the viewer, keyed
with a random cookie and the viewer's token. No server keeps anything, so any replica can check it.
Cookies can be planted from another port of the same host; without the token they prove nothing.
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

PROOF = "proof"
_LARGEST_FORM = 64 * 1024
_TOKEN_LIFE = 8 * 3600
_FORBID = {
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
    """The answer with the headers that every answer of the page has."""
    response.headers.update(_FORBID)
    response.headers.setdefault("Cache-Control", cache)
    return response


async def identify_viewer(request: Request, dashboard: Dashboard) -> Viewer | None:
    """Who asks, by header or by cookie; `None` when nobody who may look."""
    return await dashboard.identify(token_of(request))


def token_of(request: Request) -> str | None:
    """The token that a request brings, in its header or in the cookie of this port."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    return given if scheme.lower() == "bearer" else request.cookies.get(_name(request, "token"))


def remember(request: Request, response: Response, token: str) -> None:
    """Have the browser send the token from now on."""
    _set(request, response, "token", token, _TOKEN_LIFE)


def forget(request: Request, response: Response) -> None:
    """Have the browser send no token any more."""
    response.delete_cookie(_name(request, "token"), path="/", samesite="strict", httponly=True)


class CsrfTokens:
    """The proofs of one request: those that its forms carry, and the one that it brings."""

    def __init__(self, request: Request, viewer: Viewer) -> None:
        self._request = request
        self._known = request.cookies.get(_name(request, "form"))
        self._secret = self._known or secrets.token_urlsafe(32)
        key = f"{self._secret} {token_of(request) or ''}"
        said = f"pegboard form of {viewer.caller.principal}"
        self._proof = hmac.new(key.encode(), said.encode(), hashlib.sha256).hexdigest()

    @property
    def field(self) -> Html:
        """What each form contains."""
        return tag("input", type="hidden", name=PROOF, value=self._proof)

    def keep(self, response: Response) -> None:
        """Give the browser the cookie that goes with the field."""
        if self._known is None:
            _set(self._request, response, "form", self._secret, None)

    def check(self, form: Form) -> None:
        """Refuse a form that no page of ours made for this viewer.

        Raises:
            NotPermitted: It has no proof, or another's.
        """
        given = form.get(PROOF, "").encode()
        # Browsers say who made a form; `same-site` is a page on another port of this host.
        if self._request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
            raise NotPermitted("This form was not made by this page.")
        if self._known is None or not hmac.compare_digest(given, self._proof.encode()):
            raise NotPermitted("This form has expired. Go back, load the page again and repeat it.")


async def read_form(request: Request) -> Form:
    """The fields of a posted form.

    Raises:
        NotPermitted: It is larger than any of ours.
    """
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST_FORM:
            raise NotPermitted("This form is too large.")
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))


def _name(request: Request, what: str) -> str:
    """Cookies are shared by all ports of a host, so the port is in the name."""
    return f"pegboard-{what}-{request.url.port or 0}"


def _set(request: Request, response: Response, what: str, value: str, life: int | None) -> None:
    response.set_cookie(
        _name(request, what),
        value,
        max_age=life,
        path="/",
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
