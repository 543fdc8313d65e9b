"""An OpenAPI source: its settings (`OpenApiSpec`), its document, and its schemas as JSON Schema.

OpenAPI 3.0 has a schema dialect of its own (`nullable`, boolean `exclusiveMinimum`); 3.1 is JSON
Schema. In both, schemas refer to other parts of the document. These are copied to `$defs`, each
once, which also keeps recursive schemas finite.

What a caller sends and what it gets are not the same: read-only properties are not part of an input
and write-only ones not part of an output. APIs return less and more than they document, and a
client rejects a result that does not match its advertised schema. So an output schema describes
shapes, and neither requires nor forbids properties.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

from pegboard.core import defaults
from pegboard.core.json import Json, JsonObject
from pegboard.core.redaction import ORDINARY_HEADERS, secret_values
from pegboard.errors import ConfigError

_PORTS = {"http": 80, "https": 443}


def parse_origin(url: str) -> tuple[str, str, int] | None:
    """Scheme, host and port of an `http(s)` URL; `None` for anything else."""
    if "\\" in url or not url.isprintable():  # programs disagree about what such a URL means
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
    """The URL without user and password, for messages and results."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenApiSpec:
    """One API: where its document is, where calls go, and what every call carries.

    Credentials are ordinary `headers`, `query` and `cookies`; they are not in `repr`, override the
    arguments of a call, and are not listed as parameters.
    """

    name: str
    document: str
    """A file, or an `http(s)://` URL."""
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
    """The largest response that is read."""

    @property
    def secrets(self) -> frozenset[str]:
        """The values that no log, no error and no dashboard may show."""
        named = {**self.query, **self.cookies}
        return secret_values(env=named, headers=self.headers, urls=(self.base_url, self.document))

    @property
    def has_credentials(self) -> bool:
        """Whether requests carry anything that only this API may see."""
        ordinary = {name.lower() for name in self.headers} <= ORDINARY_HEADERS
        return bool(self.query or self.cookies) or not ordinary

    def trusts(self, url: str) -> bool:
        """Whether a URL may get the credentials: the configured one, or the document's own.

        A document can name any servers, so naming one is not enough.
        """
        configured = self.base_url or self.document
        return (origin := parse_origin(url)) is not None and origin == parse_origin(configured)

    def shows(self, operation: str) -> bool:
        """Whether `include` and `exclude` admit an operation."""
        if self.include and not any(fnmatchcase(operation, glob) for glob in self.include):
            return False
        return not any(fnmatchcase(operation, glob) for glob in self.exclude)


_DATA = frozenset({"example", "examples", "default", "enum", "const"})
"""Keys of a schema whose values are data, in which a `$ref` has no meaning."""


class BadReference(Exception):
    """A `$ref` that leads out of the document, nowhere, or in a cycle."""


@dataclass(frozen=True, slots=True)
class ApiDocument:
    """A document, and the file or URL that it came from."""

    value: JsonObject = field(repr=False)
    origin: str
    _checked: set[str] = field(default_factory=set[str], repr=False, compare=False)
    """Pointers that have been checked: every reference below them can be resolved."""

    @property
    def is_3_0(self) -> bool:
        """Whether its schemas are in the older dialect and not JSON Schema itself."""
        return str(self.value["openapi"]).startswith("3.0")

    def follow(self, node: Json) -> JsonObject:
        """The object behind any number of `$ref`s.

        Raises:
            BadReference: The reference cannot be followed inside this document.
        """
        seen: set[str] = set()
        while isinstance(node, dict) and "$ref" in node:
            pointer = str(node["$ref"])
            if pointer in seen:
                raise BadReference(f"{pointer} refers to itself")
            seen.add(pointer)
            node = self.at(pointer)
        if not isinstance(node, dict):
            raise BadReference(f"an object is expected, not {type(node).__name__}")
        return node

    def at(self, pointer: str) -> Json:
        """What a local reference such as `#/components/schemas/Pet` points at."""
        if not pointer.startswith("#/"):
            raise BadReference(f"{pointer} is outside the document, and nothing else is fetched")
        node: Any = self.value
        for part in pointer[2:].split("/"):
            # RFC 6901, in which `~01` must become `~1` and not `/`.
            part = unquote(part).replace("~1", "/").replace("~0", "~")
            try:
                node = node[int(part)] if isinstance(node, list) else node[part]
            except (KeyError, IndexError, TypeError, ValueError):
                raise BadReference(f"{pointer} does not exist") from None
        return node

    def check(self, node: Json) -> None:
        """Raise `BadReference` unless every reference below a schema can be resolved."""
        # A queue and not recursion: a document can nest deeper than the interpreter's stack.
        todo: list[Json] = [node]
        seen: set[str] = set()
        while todo:
            match todo.pop():
                case dict(entry):
                    pointer = entry.get("$ref")
                    if isinstance(pointer, str) and pointer not in seen | self._checked:
                        seen.add(pointer)
                        todo.append(self.at(pointer))
                    todo.extend(v for k, v in entry.items() if k not in _DATA)
                case list(entries):
                    todo.extend(entries)
                case _:
                    pass
        self._checked.update(seen)

    def server_url(self, *holders: JsonObject) -> str | None:
        """The base URL of calls: the first `servers` entry of the innermost holder with one."""
        for holder in (*holders, self.value):
            servers = holder.get("servers")
            if isinstance(servers, list) and servers and isinstance(servers[0], dict):
                url = str(servers[0].get("url", ""))
                variables = servers[0].get("variables")
                for name, entry in (variables if isinstance(variables, dict) else {}).items():
                    default = entry.get("default", "") if isinstance(entry, dict) else ""
                    url = url.replace("{" + str(name) + "}", str(default))
                # A relative URL is relative to where the document came from.
                return urljoin(self.origin, url) if self.origin.startswith("http") else url
        return None


def parse_openapi(text: str, origin: str) -> ApiDocument:
    """The text of a file or response as a document.

    Raises:
        ConfigError: It is neither JSON nor YAML, or not OpenAPI 3.
    """
    value = _parse_text(text, origin)
    version = str(value.get("openapi", "")) if isinstance(value, dict) else ""
    if isinstance(value, dict) and "swagger" in value:
        raise ConfigError(
            f"{origin}: this is Swagger 2. Convert it to OpenAPI 3 first.", file=origin
        )
    if not version.startswith(("3.0", "3.1", "3.2")):
        raise ConfigError(
            f"{origin}: this is not an OpenAPI 3 document: `openapi` is {version!r}.", file=origin
        )
    if not isinstance(value.get("paths", {}), dict):
        raise ConfigError(f"{origin}: `paths` must be an object.", file=origin)
    return ApiDocument(value, origin)


def read_openapi_file(path: Path) -> ApiDocument:
    """The document in a file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigError(f"Cannot read {path}: {exc}.", file=str(path)) from exc
    return parse_openapi(text, str(path))


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
    # Most documents are JSON, and the YAML parser is slow to import.
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


# --- schemas --------------------------------------------------------------------------------------

Direction: TypeAlias = Literal["input", "output"]

_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SINGLE = frozenset(
    {
        "items",
        "additionalProperties",
        "not",
        "if",
        "then",
        "else",
        "contains",
        "propertyNames",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_DROPPED = frozenset(
    {"xml", "externalDocs", "discriminator", "example", "nullable", "$schema", "$ref"}
)
_HIDDEN: dict[Direction, str] = {"input": "readOnly", "output": "writeOnly"}


class SchemaConverter:
    """Converts schemas of one tool in one direction; they share their `$defs`."""

    def __init__(self, document: ApiDocument, direction: Direction) -> None:
        self._document = document
        self._direction: Direction = direction
        self._names: dict[str, str] = {}
        self._pending: list[tuple[str, Json]] = []
        self.definitions: JsonObject = {}

    def convert(self, schema: Json) -> Json:
        """The schema as JSON Schema, with references to `$defs`."""
        converted = self._convert(schema)
        while self._pending:  # not by recursion: chains of references can be long
            name, target = self._pending.pop()
            self.definitions[name] = self._convert(target)
        return converted

    def _convert(self, schema: Json) -> Json:
        if not isinstance(schema, dict):
            return schema if isinstance(schema, bool) else {}  # malformed: accept anything
        if isinstance(schema.get("$ref"), str):
            return self._reference(schema)
        converted = {k: self._value(k, v) for k, v in schema.items() if k not in _DROPPED}
        hidden: set[str] = set()
        if isinstance(properties := schema.get("properties"), dict):
            # An input has no read-only properties, and an output none that are write-only.
            mark = _HIDDEN[self._direction]
            hidden = {n for n, p in properties.items() if isinstance(p, dict) and p.get(mark)}
            for name in hidden:
                del converted["properties"][name]
        # Responses of real APIs lack properties that are required and have others that are not
        # described: with these constraints, clients would reject results that are fine.
        required = converted.pop("required", None)
        if isinstance(required, list) and self._direction == "input":
            names = [n for n in required if isinstance(n, str) and n not in hidden]
            converted |= {"required": names} if names else {}
        if self._direction == "output" and converted.get("additionalProperties") is False:
            del converted["additionalProperties"]
        if "example" in schema and "examples" not in schema:
            converted["examples"] = [schema["example"]]
        if self._document.is_3_0:
            converted = _from_3_0(schema, converted)
        return converted

    def with_definitions(self, schema: JsonObject) -> JsonObject:
        """The schema with the definitions that the converted schemas refer to."""
        return {**schema, "$defs": self.definitions} if self.definitions else schema

    def _value(self, key: str, value: Json) -> Json:
        if key in _MAPS and isinstance(value, dict):
            return {name: self._convert(child) for name, child in value.items()}
        if key in _LISTS and isinstance(value, list):
            return [self._convert(child) for child in value]
        return self._convert(value) if key in _SINGLE else value

    def _reference(self, schema: JsonObject) -> JsonObject:
        pointer = str(schema["$ref"])
        name = self._names.get(pointer)
        if name is None:
            last = pointer.rpartition("/")[2]
            name = re.sub(r"[^A-Za-z0-9_.-]", "_", last) or "schema"
            while name in self.definitions:
                name += "_"
            self._names[pointer] = name
            self.definitions[name] = {}  # reserves the name, also for a recursive reference
            self._pending.append((name, self._document.at(pointer)))
        # OpenAPI 3.0 ignores everything beside a `$ref`; JSON Schema does not.
        beside = {} if self._document.is_3_0 else {k: v for k, v in schema.items() if k != "$ref"}
        return {"$ref": f"#/$defs/{name}", **{k: self._value(k, v) for k, v in beside.items()}}


def _from_3_0(schema: JsonObject, converted: JsonObject) -> JsonObject:
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if not isinstance(converted.get(exclusive), bool):
            continue
        if converted.pop(exclusive) and bound in converted:
            converted[exclusive] = converted.pop(bound)
    if schema.get("nullable") is not True:
        return converted
    if isinstance(converted.get("enum"), list) and None not in converted["enum"]:
        converted["enum"] = [*converted["enum"], None]
    kind: Any = converted.get("type")
    if isinstance(kind, str):
        return {**converted, "type": [kind, "null"]}
    return {"anyOf": [converted, {"type": "null"}]}


def convert_output_schema(document: ApiDocument, schema: Json) -> JsonObject | None:
    """The schema of the structured content of a tool; `None` if the type is not clear.

    Structured content is an object. A list or a plain value is wrapped as `{"result": ...}`.
    """
    converter = SchemaConverter(document, "output")
    root = converter.convert(schema)
    whole = root
    if isinstance(root, dict) and "$ref" in root:
        whole = converter.definitions[root["$ref"].rpartition("/")[2]]
    if not isinstance(whole, dict):
        return None
    kind = whole.get("type", "object" if "properties" in whole else None)
    if kind == "object":
        return converter.with_definitions({"type": "object", **whole})
    if kind in ("array", "string", "number", "integer", "boolean"):
        wrapped = {"type": "object", "properties": {"result": root}}
        return converter.with_definitions(wrapped)
    return None
