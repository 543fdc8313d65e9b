"""Credentials of callers, from where they are stored: the environment, files, the keyring.

A header for an upstream may be a template, so that each caller's requests carry that caller's own
credential. Braces are filled in for every request:

    {{principal}}                   who calls
    {{env:CRM_TOKEN_{principal}}}   a variable for each principal
    {{file:/run/secrets/{principal}/crm}}
    {{keyring:crm}}                 the keyring's secret of service `crm` for the principal

A principal whose name cannot be inserted unchanged is refused, never altered: two people must not
end up with one credential. What is found is used and forgotten; no error names it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pegboard.core.calls import LOCAL_CALLER
from pegboard.errors import ConfigError, NotPermitted

_TEMPLATE = re.compile(r"\{\{\s*([a-z]+)(?::((?:[^{}]|\{principal\})*))?\s*\}\}")
_IN_VARIABLE = re.compile(r"[A-Za-z0-9_]+")
_IN_PATH = re.compile(r"[A-Za-z0-9@_+=-][A-Za-z0-9@._+=-]*")
_IN_HEADER = re.compile(r"[\x21-\x7e]+(?: [\x21-\x7e]+)*")

KeyringReader = Callable[[str, str], str | None]


class KeyringMissing(ConfigError):
    """This machine has no keyring, or the package for it is not installed."""


class KeyringLocked(ConfigError):
    """The keyring refused access, usually because it is locked."""


def read_keyring(service: str, name: str) -> str | None:
    """The secret that the operating system stores; `None` if it has none.

    Raises:
        ConfigError: There is no keyring here.
    """
    with _open_keyring("read") as keyring:
        return keyring.get_password(service, name)


def write_keyring(service: str, name: str, secret: str) -> None:
    """Have the operating system store a secret.

    Raises:
        ConfigError: There is no keyring here, or it refuses.
    """
    with _open_keyring("written") as keyring:
        keyring.set_password(service, name, secret)


@contextmanager
def _open_keyring(use: str) -> Generator[Any]:
    try:
        # Optional, and slow to import: it looks for the backends of the operating system.
        import keyring
        from keyring.errors import KeyringError, NoKeyringError
    except ImportError as exc:
        message = "The keyring needs a package: pip install 'pegboard[keyring]'."
        raise KeyringMissing(message) from exc
    try:
        yield keyring
    except NoKeyringError as exc:
        raise KeyringMissing("This machine has no keyring that can be used.") from exc
    except KeyringError as exc:
        # Only the type: the text of a backend may quote what it was asked for.
        raise KeyringLocked(f"The keyring cannot be {use} ({type(exc).__name__}).") from exc


def is_template(value: str) -> bool:
    """Whether a header's value is filled in for each caller."""
    return _TEMPLATE.search(value) is not None


@dataclass(frozen=True, slots=True)
class Credentials:
    """Fills in the templates of headers for one caller at a time."""

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    keyring: KeyringReader = read_keyring

    def headers(
        self, templates: Mapping[str, str], principal: str, *, server: str
    ) -> dict[str, str]:
        """The headers that are for this caller; those without braces are not among them.

        Raises:
            NotPermitted: There is no credential for them.
        """
        filled: dict[str, str] = {}
        for name, value in templates.items():
            if not is_template(value):
                continue
            text = _TEMPLATE.sub(lambda found: self._read(found, principal) or "\0", value)
            # What does not fit a header could end it, and begin another one.
            if "\0" in text or not _IN_HEADER.fullmatch(text):
                raise NotPermitted(
                    f"{server} needs a credential of your own, and there is none for you here. "
                    "Ask the operator of this gateway.",
                    server=server,
                )
            filled[name] = text
        return filled

    def for_everybody(self, templates: Mapping[str, str], *, server: str) -> dict[str, str]:
        """The headers for requests without a caller, such as listing tools."""
        plain = {n: v for n, v in templates.items() if not is_template(v)}
        try:
            return {**plain, **self.headers(templates, LOCAL_CALLER.principal, server=server)}
        except NotPermitted:
            # Many servers list their tools to anybody; one that does not answers with a status.
            return plain

    def _read(self, template: re.Match[str], principal: str) -> str | None:
        where = (template[2] or "").strip()
        match template[1]:
            case "principal":
                return principal
            case "env":
                return self.environ.get(_insert_principal(where, principal, _IN_VARIABLE) or "")
            case "file":
                path = _insert_principal(where, principal, _IN_PATH)
                try:
                    text = Path(path).expanduser().read_text(encoding="utf-8") if path else ""
                except (OSError, UnicodeDecodeError):
                    return None
                return text.strip() or None
            case "keyring":
                return self.keyring(where, principal)
            case _:
                return None


def _insert_principal(where: str, principal: str, allowed: re.Pattern[str]) -> str | None:
    """The place with the principal's name in it; `None` if the name must not stand there."""
    # A name such as `../admin` would lead to the credential of somebody else.
    if "{principal}" in where and (not allowed.fullmatch(principal) or ".." in principal):
        return None
    return where.replace("{principal}", principal)
