"""What a server says when it refuses a request for lack of authorization (RFC 6750, RFC 9728)."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MAX_HEADER_LENGTH = 8_000


@dataclass(frozen=True, slots=True)
class Challenge:
    """The parameters of a `WWW-Authenticate` header that are about OAuth."""

    scope: str | None = None
    """The scopes that the request needs."""
    resource_metadata: str | None = None
    """The address of the server's protected resource metadata."""
    error: str | None = None

    @property
    def is_step_up(self) -> bool:
        """Whether the token is valid, but has too few scopes."""
        return self.error == "insufficient_scope"


def parse_challenge(header: str | None) -> Challenge:
    """The challenge in a header; an empty one where there is none."""
    text = (header or "")[:_MAX_HEADER_LENGTH]
    return Challenge(
        scope=_find_parameter(text, "scope"),
        resource_metadata=_find_parameter(text, "resource_metadata"),
        error=_find_parameter(text, "error"),
    )


def _find_parameter(header: str, name: str) -> str | None:
    found = re.search(rf'(?:^|[\s,]){name}\s*=\s*(?:"([^"]*)"|([^\s",]+))', header, re.IGNORECASE)
    return (found[1] or found[2] or None) if found else None
