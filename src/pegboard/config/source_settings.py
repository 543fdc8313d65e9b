"""The settings of tool sources other than MCP servers (`[sources]`).

Field types that all settings share are here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from annotated_types import Ge, Gt

Seconds: TypeAlias = Annotated[float, Gt(0)]
Count: TypeAlias = Annotated[int, Ge(1)]

STRICT: dict[str, Any] = {"extra": "forbid"}
"""The configuration of every record: a key that it does not have is an error."""


@dataclass(frozen=True, kw_only=True)
class BasicAuth:
    """A user name and a password."""

    __pydantic_config__: ClassVar[Any] = STRICT

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class ApiKeyAuth:
    """A key in a header, the query or a cookie."""

    __pydantic_config__: ClassVar[Any] = STRICT

    name: str
    """The name of the header, query parameter or cookie."""
    value: str = field(repr=False)
    """The key itself, written as `${VAR}`."""
    place: Literal["header", "query", "cookie"] = "header"
    """Where the key is sent."""


@dataclass(frozen=True, kw_only=True)
class SourceAuth:
    """How calls to an OpenAPI source authenticate: set one of `bearer`, `basic` and `api_key`."""

    __pydantic_config__: ClassVar[Any] = STRICT

    bearer: str | None = field(default=None, repr=False)
    """A bearer token, as `${VAR}`."""
    basic: BasicAuth | None = None
    api_key: ApiKeyAuth | None = None


@dataclass(frozen=True, kw_only=True)
class SourceEntry:
    """A source of tools that is not an MCP server: an OpenAPI 3 document."""

    __pydantic_config__: ClassVar[Any] = STRICT

    openapi: str
    """The document: a file (JSON or YAML) or an `https://` URL."""
    base_url: str | None = None
    """The base URL for calls, instead of the document's own `servers`. Without it, `auth` and
    `headers` are sent only to the host that the document was read from."""
    auth: SourceAuth = SourceAuth()
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """HTTP headers to send with every request."""
    include: tuple[str, ...] = ()
    """Globs for operation names: only these become tools."""
    exclude: tuple[str, ...] = ()
    """Globs for operation names: these do not become tools."""
    category: str | None = None
    """One category for all its tools; by default each tool's first tag."""
    prefix: str | None = None
    """The prefix of its tools' names, instead of its name; empty for bare names."""
    timeout: Seconds | None = None
    """Timeout of one call, in seconds."""
    disabled: bool = False
    """Whether the source is disabled."""
