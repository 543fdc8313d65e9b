"""Secrets where they are kept: the environment, files, the keyring of the operating system.

A header of an upstream may be a template, so that each caller is known there by a credential of
their own. Braces are filled for every request:

    {{principal}}                   who calls
    {{env:CRM_TOKEN_{principal}}}   a variable for each principal
    {{file:/run/secrets/{principal}/crm}}
    {{keyring:crm}}                 the keyring's secret of service `crm` for the principal

A name that cannot stand in such a place unchanged is refused, never bent: two people must not end
up with one credential. What is found is used and forgotten; no error names it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pegboard.core.calls import LOCAL_CALLER
from pegboard.errors import ConfigError, NotPermitted

_TEMPLATE = re.compile(r"\{\{\s*([a-z]+)(?::((?:[^{}]|\{principal\})*))?\s*\}\}")
_IN_VARIABLE = re.compile(r"[A-Za-z0-9_]+")
_IN_PATH = re.compile(r"[A-Za-z0-9@_+=-][A-Za-z0-9@._+=-]*")
_IN_HEADER = re.compile(r"[\x21-\x7e]+(?: [\x21-\x7e]+)*")

KeyringReader = Callable[[str, str], str | None]


def read_keyring(service: str, name: str) -> str | None:
    """The secret that the operating system keeps; `None` where it has none.

    Raises:
        ConfigError: There is no keyring here.
    """
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError as exc:
        raise ConfigError("The keyring needs a package: pip install 'pegboard[keyring]'.") from exc
    try:
        return keyring.get_password(service, name)
    except KeyringError as exc:
        raise ConfigError(f"The keyring cannot be read ({type(exc).__name__}).") from exc


def is_template(value: str) -> bool:
    """Whether a header's value is to be filled for each caller."""
    return _TEMPLATE.search(value) is not None


@dataclass(frozen=True, slots=True)
class Credentials:
    """Fills the templates of headers for one caller at a time."""

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
            text = _TEMPLATE.sub(lambda found: self._value(found, principal) or "\0", value)
            if "\0" in text or not _IN_HEADER.fullmatch(text):
                raise NotPermitted(
                    f"{server} needs a credential of your own, and there is none for you here. "
                    "Ask whoever runs this gateway.",
                    server=server,
                )
            filled[name] = text
        return filled

    def for_everybody(self, templates: Mapping[str, str], *, server: str) -> dict[str, str]:
        """What is sent where nobody in particular asks, as when tools are listed."""
        plain = {n: v for n, v in templates.items() if not is_template(v)}
        try:
            return {**plain, **self.headers(templates, LOCAL_CALLER.principal, server=server)}
        except NotPermitted:
            return plain

    def _value(self, found: re.Match[str], principal: str) -> str | None:
        where = (found[2] or "").strip()
        match found[1]:
            case "principal":
                return principal
            case "env":
                return self.environ.get(_insert_principal(where, principal, _IN_VARIABLE) or "")
            case "file":
                return _read_secret_file(_insert_principal(where, principal, _IN_PATH))
            case "keyring":
                return self.keyring(where, principal)
            case _:
                return None


def _insert_principal(where: str, principal: str, allowed: re.Pattern[str]) -> str | None:
    if "{principal}" in where and (not allowed.fullmatch(principal) or ".." in principal):
        return None
    return where.replace("{principal}", principal)


def _read_secret_file(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        return Path(path).expanduser().read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
