"""The result of a login: `Grant`, a value with everything needed to use and renew its tokens.

The endpoints are part of it. A process that starts later must not discover the token endpoint
again: a hostile MCP server could then have the refresh token sent elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TypeAlias

from pegboard.core.json import Json, JsonObject, whole_number

LoginState: TypeAlias = Literal["signed in", "sign in", "sign in again"]

MAX_TOKEN_LENGTH = 65_536
MAX_LIFETIME = 1e10
"""Seconds; a token with a longer lifetime does not expire."""
REFRESH_MARGIN = 60.0
"""Seconds before its end that a token is refreshed; a tenth of its lifetime where that is less."""


@dataclass(frozen=True, slots=True)
class GrantKey:
    """Whose login for which server."""

    server: str
    url: str
    principal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenResponse:
    """What a token endpoint answered."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    expires_in: float | None = None
    scope: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """One login: its tokens, and where and as which client they are renewed."""

    issuer: str
    token_endpoint: str
    revocation_endpoint: str | None = None
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    """Only of a client that Pegboard registered; others have theirs in the configuration."""
    client_auth: str = "none"
    registered_scope: str | None = None
    """The scopes that the client was registered for, if Pegboard registered it."""
    redirect_uri: str | None = None
    resource: str | None = None
    scope: str | None = None
    access_token: str | None = field(default=None, repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    expires_at: float | None = None
    lifetime: float = 0.0
    ended: str | None = None
    """Why it cannot be used or renewed any more; a person has to log in again."""
    needed_scope: str | None = None
    """The scopes that the server has requested since; the next login requests them too."""
    login_begun_at: float | None = None
    """When the latest login as this client began, if it has not been completed."""

    def with_tokens(self, response: TokenResponse, now: float) -> Grant:
        """The grant with new tokens; what the response leaves out stays (RFC 6749, section 6)."""
        lifetime = response.expires_in
        return replace(
            self,
            access_token=response.access_token,
            refresh_token=response.refresh_token or self.refresh_token,
            scope=response.scope or self.scope,
            expires_at=None if lifetime is None else now + lifetime,
            lifetime=lifetime or 0.0,
            ended=None,
            login_begun_at=None,
        )

    def end(self, reason: str) -> Grant:
        """The grant without tokens, after the authorization server has refused to renew it."""
        return replace(self, access_token=None, refresh_token=None, expires_at=None, ended=reason)

    @property
    def state(self) -> LoginState:
        return "signed in" if self.access_token or self.refresh_token else "sign in again"

    @property
    def refresh_at(self) -> float | None:
        """When to refresh it; `None` for a token that does not expire."""
        if self.expires_at is None:
            return None
        # With a fixed margin, a token that lasts a minute would be refreshed at every call.
        return self.expires_at - min(REFRESH_MARGIN, 0.1 * self.lifetime)

    @property
    def secrets(self) -> frozenset[str]:
        values = (self.access_token, self.refresh_token, self.client_secret)
        return frozenset(value for value in values if value)

    def to_json(self) -> JsonObject:
        return {name: value for name, value in asdict(self).items() if value is not None}


def parse_grant(value: Json) -> Grant:
    """The grant in a stored value.

    Raises:
        ValueError: It is not a valid grant.
    """
    if not isinstance(value, Mapping):
        raise ValueError("not an object")
    known = {name: value[name] for name in _TEXTS if isinstance(value.get(name), str)}
    numbers = {name: float(value[name]) for name in _NUMBERS if _is_number(value.get(name))}
    try:
        return Grant(**known, **numbers)  # pyright: ignore[reportArgumentType] by name
    except TypeError as exc:
        raise ValueError(str(exc)) from exc


_NUMBERS = ("expires_at", "lifetime", "login_begun_at")
_TEXTS = tuple(name for name in Grant.__dataclass_fields__ if name not in _NUMBERS)


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def parse_token_response(value: Json) -> TokenResponse:
    """The tokens in the answer of a token endpoint.

    Raises:
        ValueError: There are none, or they are not bearer tokens.
    """
    match value:
        case {"access_token": str(token)} if token:
            pass
        case _:
            raise ValueError("the answer has no access token")
    # Some servers leave it out, which RFC 6749 does not allow; MCP knows bearer tokens only.
    kind = str(value.get("token_type", "bearer"))
    if kind.lower() not in ("bearer", "n_a"):
        raise ValueError(f"its tokens are of the type {kind[:40]!r}, not bearer tokens")
    if len(token) > MAX_TOKEN_LENGTH or any(not "!" <= letter <= "~" for letter in token):
        raise ValueError("its access token cannot be sent in a header")
    refresh, scope = value.get("refresh_token"), value.get("scope")
    lifetime: Any = value.get("expires_in")
    if isinstance(lifetime, str):  # some servers send it as a text
        lifetime = whole_number(lifetime)
    # Some servers say 0 or -1 for a token that does not expire. Taken literally, every call would
    # refresh it; a token that has really ended is refused by the server, and then refreshed.
    is_stated = _is_number(lifetime) and 1 <= lifetime < MAX_LIFETIME
    return TokenResponse(
        access_token=token,
        refresh_token=refresh if isinstance(refresh, str) and refresh else None,
        expires_in=float(lifetime) if is_stated else None,
        scope=scope if isinstance(scope, str) and scope else None,
    )
