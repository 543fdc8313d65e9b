"""Takes secrets out of what is written down: by the name of a field, by form, and by value.

A guard, not a licence: what must not be logged is best not handed over at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import pairwise

from pegboard.core.json import Json

REDACTED = "[redacted]"

_SECRET_WORDS = frozenset(
    {
        "password", "passwd", "passphrase", "pwd", "secret", "token", "authorization", "cookie",
        "credential", "credentials", "apikey", "bearer", "jwt",
    }
)  # fmt: skip
_SECRET_PAIRS = frozenset(
    {("api", "key"), ("private", "key"), ("access", "key"), ("secret", "key")}
)

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

_FORMS = re.compile(
    r"""
      (?P<pem>-----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----.*?(?:-----END[ ][A-Z ]*PRIVATE[ ]KEY-----|\Z))
    | (?P<scheme>\b(?:Bearer|Basic)[ ]+)[A-Za-z0-9._~+/=-]{8,}
    | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*
    | \b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}
    | \b(?:gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|AIza|hf_)[A-Za-z0-9_-]{10,}
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b
    | (?P<url>://[^\s:/@]*:)[^\s/@]+(?=@)
    | (?P<named>\b(?:password|passwd|secret|token|api[-_]?key)["']?\s*[=:]\s*["']?)[^\s"'&,;]{4,}
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)

_DEEPEST = 32


class Redactor:
    """Knows what is secret: field names, forms of well-known keys, and the values it was given."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = sorted({s for s in secrets if len(s) >= 4}, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, known))) if known else None

    def text(self, text: str) -> str:
        """The text without the secrets in it."""
        if self._known is not None:
            text = self._known.sub(REDACTED, text)
        return _FORMS.sub(_keep_what_leads, text)

    def value(self, value: Json, depth: int = 0) -> Json:
        """The value without the secrets in it; a copy where anything changed hands."""
        if isinstance(value, str):
            return self.text(value)
        if depth == _DEEPEST:
            return "[too deep]"
        if isinstance(value, Mapping):
            return {
                k: REDACTED if is_secret(str(k)) else self.value(v, depth + 1)
                for k, v in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [self.value(v, depth + 1) for v in value]
        return value


@lru_cache(maxsize=1024)
def is_secret(name: str) -> bool:
    """Whether a field of this name holds a secret: `api_key`, `accessToken`, not `max_tokens`."""
    words = [w.lower() for w in _WORD.findall(name)]
    pairs = pairwise(words)
    return not _SECRET_WORDS.isdisjoint(words) or not _SECRET_PAIRS.isdisjoint(pairs)


def _keep_what_leads(match: re.Match[str]) -> str:
    leads = match["scheme"] or match["url"] or match["named"] or ""
    return leads + REDACTED
