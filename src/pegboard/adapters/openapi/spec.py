"""`OpenApiSpec`: what is known of an OpenAPI source before its document is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase


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
    max_bytes: int = 50_000_000
    """The largest answer that is read."""

    def shows(self, operation: str) -> bool:
        """Whether an operation passes `include` and `exclude`."""
        if self.include and not any(fnmatchcase(operation, glob) for glob in self.include):
            return False
        return not any(fnmatchcase(operation, glob) for glob in self.exclude)
