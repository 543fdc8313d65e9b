"""`OpenApiSpec`: what is known of an OpenAPI source before its document is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from urllib.parse import urlsplit, urlunsplit

from pegboard.core.redaction import ORDINARY_HEADERS, secret_values

_PORTS = {"http": 80, "https": 443}


def origin_of(url: str) -> tuple[str, str, int] | None:
    """Scheme, host and port of an `http(s)` address; `None` for anything else."""
    if "\\" in url or not url.isprintable():  # read in two ways by different programs
        return None
    try:
        parts = urlsplit(url)
        scheme, host, port = parts.scheme.lower(), parts.hostname, parts.port
    except ValueError:
        return None
    if scheme not in _PORTS or not host:
        return None
    return scheme, host, port or _PORTS[scheme]


def public(url: str) -> str:
    """The address without user and password, for messages and results."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenApiSpec:
    """One API: where its document is, where calls go, and what every call carries.

    Credentials are `headers`, `query` and `cookies` like any other; they stay out of `repr`, win
    over arguments of a call, and are not offered as parameters.
    """

    name: str
    document: str
    """A file, or an `http(s)://` address."""
    base_url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    query: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cookies: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    category: str | None = None
    prefix: str | None = None
    timeout: float = 60.0
    max_bytes: int = 64_000_000
    """The largest answer that is read."""

    @property
    def secrets(self) -> frozenset[str]:
        """The values in it that no log, no error and no page may show."""
        named = {**self.query, **self.cookies}
        return secret_values(env=named, headers=self.headers, urls=(self.base_url, self.document))

    @property
    def has_credentials(self) -> bool:
        """Whether requests carry anything that is meant for this API alone."""
        ordinary = {name.lower() for name in self.headers} <= ORDINARY_HEADERS
        return bool(self.query or self.cookies) or not ordinary

    def trusts(self, url: str) -> bool:
        """Whether an address may get the credentials: the configured one, or the document's own.

        A document names servers as it likes, so these alone are no reason.
        """
        configured = self.base_url or self.document
        return (origin := origin_of(url)) is not None and origin == origin_of(configured)

    def shows(self, operation: str) -> bool:
        """Whether an operation passes `include` and `exclude`."""
        if self.include and not any(fnmatchcase(operation, glob) for glob in self.include):
            return False
        return not any(fnmatchcase(operation, glob) for glob in self.exclude)
