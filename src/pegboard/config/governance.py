"""The part of `pegboard.toml` that governs: who may come in, who may do what, what is recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from annotated_types import Ge, Gt

from pegboard.upstream.spec import TrustMode

Seconds: TypeAlias = Annotated[float, Gt(0)]
Count: TypeAlias = Annotated[int, Ge(1)]

_STRICT: dict[str, Any] = {"extra": "forbid"}


@dataclass(frozen=True, kw_only=True)
class ApiKey:
    """One static key, known by its hash only."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    principal: str
    """Who it stands for."""
    sha256: str
    """The hash of the key, in hexadecimal."""
    groups: tuple[str, ...] = ()
    """Groups that permissions may name."""
    scopes: tuple[str, ...] = ()
    """Scopes that permissions may name."""


@dataclass(frozen=True, kw_only=True)
class AuthSettings:
    """Who may use the HTTP gateway."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    kind: Literal["none", "keys", "jwt"] = "none"
    """Nobody in particular, static keys, or tokens of an OAuth 2.1 authorization server."""
    keys: tuple[ApiKey, ...] = ()
    issuer: str | None = None
    """The authorization server."""
    audience: str | None = None
    """What tokens must be made for: this gateway's own address."""
    jwks_url: str | None = None
    """Its keys, where they are not found from `issuer`."""
    resource: str | None = None
    """This gateway's public address, for clients that look for where to get a token."""
    required_scopes: tuple[str, ...] = ()
    """Scopes that every token must have."""
    groups_claim: str = "groups"
    """The claim of a token that names the groups of its subject."""


@dataclass(frozen=True, kw_only=True)
class PermissionRule:
    """Gives or denies some people some tools; all names are globs.

    Who: any of `principals`, `scopes` and `groups`; everybody where none is given. What: all of
    `servers`, `categories`, `tools` and `risks` that are given must fit.
    """

    __pydantic_config__: ClassVar[Any] = _STRICT

    effect: Literal["allow", "deny"] = "allow"
    """`deny` wins over every `allow`."""
    principals: tuple[str, ...] = ()
    """Subjects of tokens, or principals of keys."""
    scopes: tuple[str, ...] = ()
    """Scopes of tokens or keys."""
    groups: tuple[str, ...] = ()
    """Groups of tokens or keys."""
    servers: tuple[str, ...] = ()
    """Servers by their names in this file."""
    categories: tuple[str, ...] = ()
    """Categories of tools as this file gives them: a server's tools are in the category of its
    entry, else in one of its own name. What a server calls its categories does not count."""
    tools: tuple[str, ...] = ()
    """Tools by the name that clients see, by `server.tool`, or by the server's own name. The last
    means that tool of every server: name the `servers` too."""
    risks: tuple[Literal["read", "write", "destructive"], ...] = ()
    """What tools may do. A rule that denies `destructive` also denies tools that do not say."""


@dataclass(frozen=True, kw_only=True)
class PermissionSettings:
    """Who sees and calls which tools; what is not seen does not exist."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    default: Literal["allow", "deny"] = "allow"
    """What holds for tools that no rule gives or denies."""
    rules: tuple[PermissionRule, ...] = ()
    """The rules; their order does not matter."""


@dataclass(frozen=True, kw_only=True)
class LimitEntry:
    """How much each of some principals may do; the first entry that applies decides."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    principals: tuple[str, ...] = ()
    """Globs over principals; everybody where neither these nor groups are given."""
    groups: tuple[str, ...] = ()
    """Globs over groups."""
    calls: Annotated[float, Gt(0)] | None = None
    """Tool calls, reads, prompts, completions and tasks in `per` seconds, over all replicas."""
    requests: Annotated[float, Gt(0)] | None = None
    """Requests of any kind in `per` seconds, lists and searches too; unset: ten times `calls`."""
    per: Seconds = 60.0
    """The seconds in which `calls` may be made."""
    burst: Count | None = None
    """Calls that may be made at once; as many as `calls` where it is not given."""
    concurrent: Count | None = None
    """Calls under way at a time, over all replicas."""


@dataclass(frozen=True, kw_only=True)
class ObserveSettings:
    """What the gateway tells about its work."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    metrics: Literal["off", "protected", "open"] = "off"
    """Prometheus figures at `/metrics`: for operators and `metrics_readers`, or for everybody."""
    metrics_readers: tuple[str, ...] = ()
    """Principals who may read protected metrics although they are not operators: a scraper's."""
    opentelemetry: bool = False
    """Whether to send spans and metrics by OpenTelemetry, as the usual `OTEL_` variables say."""
    audit: str | None = None
    """The file that records who called what, when, and with what outcome."""
    audit_bytes: Annotated[int, Ge(4096)] = 50_000_000
    """Size at which the audit log goes on in a new file."""
    audit_files: Annotated[int, Ge(0)] = 0
    """Older audit files to keep; 0 keeps all."""
    log: Literal["text", "json"] = "text"
    """How the gateway's own log is written on standard error."""


@dataclass(frozen=True, kw_only=True)
class TrustSettings:
    """Whether tool definitions that nobody has seen may be used."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    mode: TrustMode = "first-use"
    """`first-use`: new tools at once, changed ones after approval; `approve`: neither before."""
    lock: str | None = None
    """The lock file, or `store` for the shared store; without it nothing is held back."""
    reordered: tuple[str, ...] = ()
    """Globs over servers whose definitions stay approved when only the order of words changes."""


@dataclass(frozen=True, kw_only=True)
class HttpSettings:
    """The HTTP gateway."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    allowed_hosts: tuple[str, ...] = ()
    """Host headers to answer beside the address it listens on; against DNS rebinding."""
    allowed_origins: tuple[str, ...] = ()
    """Origins of web pages that may call."""
    legacy: Literal["sessions", "stateless"] = "sessions"
    """Clients before MCP 2026-07-28: sessions that one replica holds, or each request by itself."""
    max_sessions: Count = 1_000
    """Sessions of clients before MCP 2026-07-28 that may be open in one process."""
    max_sessions_per_principal: Count = 100
    """The same for one principal. At either limit the least recently used idle one is ended."""
    max_connections: Count = 1_000
    """Connections of clients; fewer where the process has not as many file descriptors."""
    header_timeout: Seconds = 20.0
    """Seconds for a client to send the headers of a request."""
    body_timeout: Seconds = 120.0
    """Seconds for a client to send the body of a request."""
    write_timeout: Seconds = 120.0
    """Seconds that a client may leave an answer unread."""
    unauthenticated: bool = False
    """Whether other machines may use it without `auth`; also needs PEGBOARD_UNAUTHENTICATED=1."""
    operators: tuple[str, ...] = ()
    """Principals who may change things on the page and see everybody's calls, where `auth` is set.
    Without it, whoever can reach the page may."""
    operator_groups: tuple[str, ...] = ()
    """Groups whose members may do so."""
