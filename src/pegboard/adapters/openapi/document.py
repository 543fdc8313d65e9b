"""An OpenAPI source: its settings (`OpenApiSpec`) and its document, references resolved."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

from pegboard.core import defaults
from pegboard.core.json import Json, JsonObject
from pegboard.core.redaction import ORDINARY_HEADERS, secret_values
from pegboard.errors import ConfigError

_PORTS = {"http": 80, "https": 443}


def parse_origin(url: str) -> tuple[str, str, int] | None:
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


def strip_credentials(url: str) -> str:
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
    timeout: float = defaults.CALL_TIMEOUT
    max_bytes: int = defaults.MAX_MESSAGE_BYTES
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
        return (origin := parse_origin(url)) is not None and origin == parse_origin(configured)

    def shows(self, operation: str) -> bool:
        """Whether an operation passes `include` and `exclude`."""
        if self.include and not any(fnmatchcase(operation, glob) for glob in self.include):
            return False
        return not any(fnmatchcase(operation, glob) for glob in self.exclude)


_DATA = frozenset({"example", "examples", "default", "enum", "const"})
"""Keys of a schema whose values are data, in which a `$ref` means nothing."""


class BadReference(Exception):
    """A `$ref` that leads out of the document, nowhere, or in a circle."""


@dataclass(frozen=True, slots=True)
class ApiDocument:
    """A document and where it came from."""

    value: JsonObject = field(repr=False)
    origin: str
    _sound: set[str] = field(default_factory=set[str], repr=False, compare=False)
    """Pointers from which every reference is known to lead somewhere."""

    @property
    def is_3_0(self) -> bool:
        """Whether its schemas are the older dialect and not JSON Schema itself."""
        return str(self.value["openapi"]).startswith("3.0")

    def follow(self, node: Json) -> JsonObject:
        """The object itself, behind any number of `$ref`s.

        Raises:
            BadReference: The reference cannot be followed inside this document.
        """
        seen: set[str] = set()
        while isinstance(node, dict) and "$ref" in node:
            pointer = str(node["$ref"])
            if pointer in seen:
                raise BadReference(f"{pointer} leads back to itself")
            seen.add(pointer)
            node = self.at(pointer)
        if not isinstance(node, dict):
            raise BadReference(f"an object is expected, not {type(node).__name__}")
        return node

    def at(self, pointer: str) -> Json:
        """What a local reference such as `#/components/schemas/Pet` points at."""
        if not pointer.startswith("#/"):
            raise BadReference(f"{pointer} is outside the document, where nothing is fetched")
        node: Any = self.value
        for part in pointer[2:].split("/"):
            part = unquote(part).replace("~1", "/").replace("~0", "~")
            try:
                node = node[int(part)] if isinstance(node, list) else node[part]
            except (KeyError, IndexError, TypeError, ValueError):
                raise BadReference(f"{pointer} points at nothing") from None
        return node

    def check(self, node: Json) -> None:
        """Raise `BadReference` unless every reference below a schema leads somewhere in here."""
        todo: list[Json] = [node]
        seen: set[str] = set()
        while todo:
            match todo.pop():
                case dict(entry):
                    pointer = entry.get("$ref")
                    if isinstance(pointer, str) and pointer not in seen | self._sound:
                        seen.add(pointer)
                        todo.append(self.at(pointer))
                    todo.extend(v for k, v in entry.items() if k not in _DATA)
                case list(entries):
                    todo.extend(entries)
                case _:
                    pass
        self._sound.update(seen)

    def server_url(self, *holders: JsonObject) -> str | None:
        """Where calls go: the first `servers` entry of the innermost that has one."""
        for holder in (*holders, self.value):
            servers = holder.get("servers")
            if isinstance(servers, list) and servers and isinstance(servers[0], dict):
                url = _with_defaults(servers[0])
                return urljoin(self.origin, url) if self.origin.startswith("http") else url
        return None


def parse_document(text: str, origin: str) -> ApiDocument:
    """The text of a file or answer as a document.

    Raises:
        ConfigError: It is neither JSON nor YAML, or not OpenAPI 3.
    """
    value = _parse_text(text, origin)
    version = str(value.get("openapi", "")) if isinstance(value, dict) else ""
    if isinstance(value, dict) and "swagger" in value:
        raise ConfigError(
            f"{origin}: this is Swagger 2; convert it to OpenAPI 3 first.", file=origin
        )
    if not version.startswith(("3.0", "3.1", "3.2")):
        raise ConfigError(
            f"{origin}: this is no OpenAPI 3 document: `openapi` is {version!r}.", file=origin
        )
    if not isinstance(value.get("paths", {}), dict):
        raise ConfigError(f"{origin}: paths: an object is expected.", file=origin)
    return ApiDocument(value, origin)


def read_document(path: Path) -> ApiDocument:
    """A file as a document."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{path}: it cannot be read: {exc}.", file=str(path)) from exc
    return parse_document(text, str(path))


def _parse_text(text: str, origin: str) -> Any:
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text)
        except json.JSONDecodeError as exc:
            raise ConfigError(
                f"{origin}:{exc.lineno}: this is not valid JSON: {exc.msg}.",
                file=origin,
                line=exc.lineno,
            ) from exc
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return YAML(typ="safe", pure=True).load(text)
    except YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        line = mark.line + 1 if mark else None
        reason = getattr(exc, "problem", None) or exc
        raise ConfigError(
            f"{origin}:{line}: this is not valid YAML: {reason}.", file=origin, line=line
        ) from exc


def _with_defaults(server: JsonObject) -> str:
    """The address with its variables at their defaults."""
    url = str(server.get("url", ""))
    variables = server.get("variables")
    for name, variable in (variables if isinstance(variables, dict) else {}).items():
        default = variable.get("default", "") if isinstance(variable, dict) else ""
        url = url.replace("{" + str(name) + "}", str(default))
    return url
