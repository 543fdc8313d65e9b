"""What is known of one upstream before it is reached: `UpstreamSpec`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from pegboard.core import defaults
from pegboard.core.redaction import secret_values
from pegboard.credentials import is_template
from pegboard.errors import ConfigError
from pegboard.oauth.login_options import OAuthOptions

Transport: TypeAlias = Literal["stdio", "http", "sse"]
Isolation: TypeAlias = Literal["principal", "session", "shared"]
TrustMode: TypeAlias = Literal["first-use", "approve"]


@dataclass(frozen=True, slots=True)
class UpstreamSpec:
    """One server: how to reach it, how long to wait for it, who shares it, which tools it shows.

    `isolation` says who shares a process or connection; `pool` has the rules. An
    operator's promise that the server is `stateless` counts as `shared`, unless `isolation` says
    otherwise. Durations are seconds. Variables are expanded and defaults filled in, so `args`,
    `env`, `url` and `headers` may hold secrets and stay out of `repr`; `label` is the text for
    messages.
    """

    name: str
    transport: Transport = "stdio"
    command: str | None = None
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: str | None = None
    url: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    timeout: float = defaults.CALL_TIMEOUT
    isolation: Isolation | None = None
    stateless: bool = False
    idle_stop: float = defaults.IDLE_STOP
    """Seconds without a call until it is stopped; 0 for never."""
    start_timeout: float = defaults.START_TIMEOUT
    log_bytes: int = defaults.SERVER_LOG_BYTES
    """Size of the log file for its output outside the protocol."""
    max_message_bytes: int = defaults.MAX_MESSAGE_BYTES
    """The largest message that is accepted from it."""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    category: str | None = None
    prefix: str | None = None
    """What its tools' names start with instead of its own name; empty for bare names."""
    pins: tuple[str, ...] = ()
    mode: str | None = None
    disabled: bool = False
    trust: TrustMode | None = None
    oauth: OAuthOptions = field(default_factory=OAuthOptions)
    origin: str | None = None
    """The file it was read from."""

    def __post_init__(self) -> None:
        # Checked here and not only where files are read: other programs and tests create specs too.
        if self.transport == "stdio" and not self.command:
            raise ConfigError(f"Server {self.name!r} has no `command` to start.", server=self.name)
        if self.transport != "stdio" and not self.url:
            raise ConfigError(f"Server {self.name!r} has no `url` to reach.", server=self.name)
        if self.transport == "sse" and self.has_caller_headers and self.sharing == "shared":
            raise ConfigError(
                f"Server {self.name!r} has headers for each caller, and is declared `stateless` or "
                f'`isolation = "shared"`. SSE sends headers once per connection, so a shared '
                f"connection cannot carry them: remove the declaration, or use streamable HTTP.",
                server=self.name,
            )

    @property
    def has_caller_headers(self) -> bool:
        """Whether some of its headers are filled with the credential of each caller."""
        return any(is_template(value) for value in self.headers.values())

    @property
    def uses_oauth(self) -> bool:
        """Whether it may need a login: it is reached over HTTP and has no configured credential."""
        has_credential = any(name.lower() == "authorization" for name in self.headers)
        return self.transport != "stdio" and self.oauth.enabled and not has_credential

    @property
    def sharing(self) -> Isolation | None:
        """Who shares a process or connection, where the configuration decides it."""
        return self.isolation or ("shared" if self.stateless else None)

    @property
    def label(self) -> str:
        """What it runs or where it is, for a person: without arguments, query or password."""
        if self.transport == "stdio":
            return self.command or ""  # arguments often hold tokens
        parts = urlsplit(self.url or "")
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    @property
    def secrets(self) -> frozenset[str]:
        """The secret values in it, which no log, error or dashboard may show."""
        # A template is not secret, and redacting its text would garble unrelated messages. What it
        # is filled with is known per request (`Connection`).
        plain = {n: v for n, v in self.headers.items() if not is_template(v)}
        values = secret_values(env=self.env, headers=plain, args=self.args, urls=(self.url,))
        return values | self.oauth.secrets

    @property
    def may_send_requests(self) -> bool:
        """Whether it may send requests to clients: one that several of them share may not."""
        return self.sharing in (None, "session")

    def shows(self, tool: str) -> bool:
        """Whether a tool, by the server's own name for it, passes `include` and `exclude`."""
        if self.include and not any(fnmatchcase(tool, glob) for glob in self.include):
            return False
        return not any(fnmatchcase(tool, glob) for glob in self.exclude)
