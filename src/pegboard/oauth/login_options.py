"""The settings of logins: `[servers.x.oauth]` for one server, and `[oauth]` for all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

GrantKind: TypeAlias = Literal[
    "authorization_code", "client_credentials", "token_exchange", "id_jag"
]
ClientAuthMethod: TypeAlias = Literal[
    "none", "client_secret_post", "client_secret_basic", "private_key_jwt"
]
"""In the order of the SDK's: `typing` caches literals, whose order is in the published schema."""
REDIRECT_PATH = "/callback"


@dataclass(frozen=True, kw_only=True)
class OAuthOptions:
    """How to log in to a server. Most servers need none of this."""

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}

    enabled: bool = True
    """Whether Pegboard logs in. It never does if the server has its own `Authorization` header."""
    grant: GrantKind = "authorization_code"
    """How tokens are obtained: a person logs in (`authorization_code`), Pegboard itself does
    (`client_credentials`), or another token that the caller has is exchanged (`token_exchange`,
    `id_jag`)."""
    client_id: str | None = None
    """The client that was registered by hand; by default Pegboard registers itself."""
    client_secret: str | None = field(default=None, repr=False)
    """Its secret, as `${VAR}` or `${keyring:service/user}`."""
    client_auth: ClientAuthMethod | None = None
    """How the client authenticates; with a secret, by default `client_secret_post` if the
    authorization server announces it, else `client_secret_basic`."""
    private_key: str | None = field(default=None, repr=False)
    """A private key (PEM) to sign with instead of a secret (`private_key_jwt`), as `${file:path}`.
    """
    key_id: str | None = None
    """The `kid` of the private key."""
    client_metadata_url: str | None = None
    """The URL of a client ID metadata document, instead of the one in `[oauth]`."""
    issuer: str | None = None
    """The authorization server. The client's secret or key is sent there and nowhere else."""
    scope: str | None = None
    """The scopes to request, separated by spaces; by default those that the server asks for."""
    redirect: str | None = None
    """The redirect URL, if it must be registered exactly, such as
    `http://localhost:8765/callback`. By default a free port on this machine."""
    resource: bool = True
    """Whether requests name the server as their `resource`. Some authorization servers refuse it.
    """
    pkce: Literal["require", "assume"] = "require"
    """`assume` for an authorization server that supports PKCE (S256) but does not announce it."""
    subject_token: str | None = field(default=None, repr=False)
    """The token to exchange: a template as in `headers`, such as
    `{{file:/run/tokens/{principal}}}`. By default the token that the caller has for this gateway
    (`kind = "jwt"` in `[auth]`)."""
    subject_token_type: str | None = None
    """The type of the token to exchange, a URN; by default an access token for `token_exchange`
    and an ID token for `id_jag`."""
    identity_provider: str | None = None
    """For `id_jag`: the token endpoint of the identity provider that issues the assertion."""
    identity_client_id: str | None = None
    """For `id_jag`: the client at the identity provider, if it differs from `client_id`."""
    identity_client_secret: str | None = field(default=None, repr=False)
    """For `id_jag`: the secret of that client."""

    @property
    def exchanges_caller_token(self) -> bool:
        """Whether the token that a caller has for this gateway is exchanged."""
        return self.grant in ("token_exchange", "id_jag") and self.subject_token is None

    @property
    def secrets(self) -> frozenset[str]:
        """The secret values, which no log, error or dashboard may show."""
        values = (self.client_secret, self.private_key, self.identity_client_secret)
        return frozenset(value for value in values if value)


@dataclass(frozen=True, kw_only=True)
class LoginSettings:
    """Logins to servers: where they are stored, and how Pegboard identifies itself."""

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}

    store: Literal["auto", "keyring", "file", "store"] = "auto"
    """Where logins are stored. `auto`: in the shared store if there is one and `key` is set, else
    in files, which are encrypted if there is a `key` or a keyring; `keyring`: in files, and only
    encrypted; `file`: in files, not encrypted unless there is a `key`; `store`: in the shared
    store, which needs `key`."""
    key: str | None = field(default=None, repr=False)
    """Encrypts stored logins, instead of a key in the keyring: at least 32 characters, as
    `${VAR}`."""
    client_metadata_url: str | None = None
    """The `https://` URL of a client ID metadata document, for authorization servers that
    read one instead of registering clients."""
