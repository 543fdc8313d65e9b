"""Redacting secrets from everything that is logged or shown: by field name, by form, by value.

`secret_values` collects the values from a configuration; a `Redactor` removes them, plain,
percent-encoded, escaped and in base64. It protects against accidents. A server that wants to leak a
secret can write it in ways that nobody recognizes.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

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
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_NAMED = re.compile(
    r"""(\b(?:password|passwd|secret|token|api[-_]?key)["']?\s*[=:]\s*["']?)[^\s"'&,;]{4,}""",
    re.IGNORECASE,
)
_MARKS = (
    "-----begin", "bearer", "basic", "eyj", "sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "ghp_",
    "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "aiza", "hf_", "akia", "asia", "://",
)  # fmt: skip
"""Every text that `_FORMS` matches contains one of these; searching for them is much faster."""
_NAMED_MARKS = ("passw", "secret", "token", "api")

_MAX_DEPTH = 32
_MIN_SECRET = 4
"""Characters of a value that is named as a secret; shorter ones would match everywhere."""
_MIN_GUESS = 8
"""Characters of a value of any name that may be one, in the environment or in a header."""
_MIN_PATH_KEY = 20
"""Characters of a path segment that counts as a key, as in `https://host/mcp/<key>`."""
_PATH = re.compile(r"(?:~|\.{1,2})?/|[A-Za-z]:[\\/]")
_WORD_ALONE = re.compile(r"[a-z]+|[A-Z]+")
ORDINARY_HEADERS = frozenset(
    {"accept", "accept-encoding", "accept-language", "cache-control", "content-type", "user-agent"}
)


class Redactor:
    """Recognizes secrets: by field name, by the form of well-known keys, and by given values."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: frozenset[str] = frozenset()
        self._known: list[str] = []
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Add further secret values."""
        found = self._secrets.union(s for s in secrets if len(s) >= _MIN_SECRET)
        if found == self._secrets:
            return
        self._secrets = found
        forms = set(found)
        for secret in found:
            if len(secret) < _MIN_GUESS:  # encoded, a short one would match ordinary text
                continue
            forms |= {quote(secret, safe=""), quote_plus(secret), repr(secret)[1:-1]}
            forms |= {json.dumps(secret, ensure_ascii=plain)[1:-1] for plain in (True, False)}
            data = secret.encode("utf-8", "surrogatepass")
            # Without padding, which many encoders leave out.
            for encode in (base64.b64encode, base64.urlsafe_b64encode):
                forms.add(encode(data).decode().rstrip("="))
        # The longest first, so that a secret inside another one does not break that one up.
        self._known = sorted(forms, key=len, reverse=True)

    def text(self, text: str) -> str:
        """The text without secrets, and without values that are named as secrets (`token=...`)."""
        text = self.message(text)
        if not _contains_any(text, _NAMED_MARKS):
            return text
        return _NAMED.sub(lambda found: found[1] + REDACTED, text)

    def message(self, text: str) -> str:
        """The text without known secrets and keys, with everything else left readable."""
        for form in self._known:  # faster than one regular expression: a server may print megabytes
            if form in text:
                text = text.replace(form, REDACTED)
        if not _contains_any(text, _MARKS):
            return text
        # `Bearer` and the user of a URL stay readable in front of what is redacted.
        return _FORMS.sub(lambda m: (m["scheme"] or m["url"] or "") + REDACTED, text)

    def value(self, value: Json, depth: int = 0) -> Json:
        """The value without secrets; a copy of objects and lists."""
        if isinstance(value, str):
            return self.text(value)
        if depth == _MAX_DEPTH:  # deeper than any log needs, and shallower than the stack
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


def _contains_any(text: str, marks: tuple[str, ...]) -> bool:
    lower = text.lower()
    return any(mark in lower for mark in marks)


def secret_values(
    *,
    env: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    args: Iterable[str] = (),
    urls: Iterable[str | None] = (),
) -> frozenset[str]:
    """The values of a configuration that must not be shown."""
    named = [(n, v) for n, v in (headers or {}).items() if n.lower() not in ORDINARY_HEADERS]
    found: set[str] = set()
    for name, value in (*(env or {}).items(), *named, *_named_arguments(args)):
        if is_secret(name) or _may_be_secret(value):
            found |= {value, *_credentials_in(value)}
        found.update(_secrets_in_url(value))
    for url in (*urls, *args):
        found.update(_secrets_in_url(url or ""))
    return frozenset(value for value in found if len(value) >= _MIN_SECRET)


def _may_be_secret(value: str) -> bool:
    """Whether a value of any name may be a secret: not a path, a URL or an ordinary word."""
    return (
        len(value) >= _MIN_GUESS
        and "://" not in value
        and not _PATH.match(value)
        and not _WORD_ALONE.fullmatch(value)
    )


def _named_arguments(args: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Arguments of a command that are named as secrets: `--token x`, `-e KEY=x`, `Name: x`."""
    before = ""
    for arg in args:
        if is_secret(before) and not arg.startswith("-"):
            yield before, arg
        name, _, value = arg.partition("=" if "=" in arg else ":")
        if value and is_secret(name):
            yield name, value.strip()
        before = arg if arg.startswith("-") else ""


def _credentials_in(value: str) -> Iterator[str]:
    """The credentials after a scheme such as `Bearer`; for `Basic`, also decoded."""
    scheme, _, credentials = value.strip().partition(" ")
    if not credentials.strip():
        return
    yield credentials.strip()
    if scheme.lower() == "basic":
        try:
            pair = base64.b64decode(credentials).decode()
        except (binascii.Error, UnicodeDecodeError, ValueError):
            return
        yield from (pair, pair.partition(":")[2])


def _secrets_in_url(url: str) -> Iterator[str]:
    """The password, keys in the query, and keys in the path of a URL."""
    if "://" not in url:
        return
    try:
        parts = urlsplit(url)
        user, password = parts.username, parts.password
    except ValueError:
        return
    if secret := password or user:
        yield from (secret, unquote(secret))
    for name, value in parse_qsl(parts.query):
        if is_secret(name) or _may_be_secret(value):
            yield value
    for segment in parts.path.split("/"):
        if len(segment) >= _MIN_PATH_KEY and any(c.isdigit() for c in segment):
            yield segment
