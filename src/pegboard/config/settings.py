"""`Settings`: the whole of `pegboard.toml` as frozen records, with what each setting means.

These records are the model that files are checked against (`checking.py`), the source of the
published JSON Schema (`schema.py`), and what the rest of the program is given. They import nothing
heavy. The text under a field is its documentation, in the schema too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from annotated_types import Ge, Interval

from pegboard.config.governance import (
    AuthSettings,
    Count,
    HttpSettings,
    LimitEntry,
    ObserveSettings,
    PermissionSettings,
    Seconds,
    TrustSettings,
)
from pegboard.upstream.spec import Isolation, TrustMode

FaceName: TypeAlias = Literal["auto", "eager", "stub", "index", "hierarchy", "proxy", "dynamic"]
_STRICT: dict[str, Any] = {"extra": "forbid"}


@dataclass(frozen=True, kw_only=True)
class ServerEntry:
    """One MCP server, or changes to one that an imported file defines."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    command: str | None = None
    """The program to start (stdio)."""
    args: tuple[str, ...] = ()
    """Its arguments."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Environment variables it gets beside the ordinary ones."""
    env_file: str | None = None
    """A file of further environment variables, `NAME=value` on each line."""
    cwd: str | None = None
    """The folder it runs in."""
    url: str | None = None
    """Where it is (streamable HTTP, or SSE where `transport` says so)."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """HTTP headers of every request to it."""
    transport: Literal["stdio", "http", "sse"] | None = None
    """How it is spoken to; follows from `command` or `url` where it is not given."""
    include: tuple[str, ...] = ()
    """Globs over the server's tool names: only these are shown."""
    exclude: tuple[str, ...] = ()
    """Globs over the server's tool names: these are not shown."""
    category: str | None = None
    """The category of its tools; the server's name where it is not given."""
    prefix: str | None = None
    """What its tools' names start with instead of its name; empty for bare names."""
    pins: tuple[str, ...] = ()
    """Its tools that every face lists as themselves, by the server's names or globs."""
    face: FaceName | None = None
    """How its tools are listed, where that differs from the rest."""
    timeout: Seconds | None = None
    """Seconds that one call may take."""
    start_timeout: Seconds | None = None
    """Seconds that starting and listing may take."""
    isolation: Isolation | None = None
    """Who shares a process of it: the sessions of one `principal`, one `session`, or everybody."""
    stateless: bool | None = None
    """Whether it keeps nothing between calls, so that one process can serve everybody."""
    idle_stop: Annotated[float, Ge(0)] | None = None
    """Seconds without a call until it is stopped; 0 keeps it running."""
    disabled: bool | None = None
    """Whether it is left out."""
    trust: TrustMode | None = None
    """Whether its tools are usable at once or held until somebody approves them."""


@dataclass(frozen=True, kw_only=True)
class BasicAuth:
    """A user name and a password."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class ApiKeyAuth:
    """A key in a header, the query or a cookie."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    name: str
    """The name of the header, query parameter or cookie."""
    value: str = field(repr=False)
    """The key itself, as `${VAR}`."""
    place: Literal["header", "query", "cookie"] = "header"
    """Where it is sent."""


@dataclass(frozen=True, kw_only=True)
class SourceAuth:
    """How calls of an OpenAPI source prove who they are: one of three ways."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    bearer: str | None = field(default=None, repr=False)
    """A bearer token, as `${VAR}`."""
    basic: BasicAuth | None = None
    api_key: ApiKeyAuth | None = None


@dataclass(frozen=True, kw_only=True)
class SourceEntry:
    """A source of tools that is not an MCP server: an OpenAPI 3 document."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    openapi: str
    """The document: a file (JSON or YAML) or an `https://` address."""
    base_url: str | None = None
    """Where calls go, instead of the document's own `servers`. Without it, `auth` and `headers` are
    sent only to the host that the document was read from."""
    auth: SourceAuth = SourceAuth()
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """HTTP headers of every request."""
    include: tuple[str, ...] = ()
    """Globs over operation names: only these become tools."""
    exclude: tuple[str, ...] = ()
    """Globs over operation names: these do not."""
    category: str | None = None
    """One category for all its tools; their first tag where it is not given."""
    prefix: str | None = None
    """What its tools' names start with instead of its name; empty for bare names."""
    timeout: Seconds | None = None
    """Seconds that one call may take."""
    disabled: bool = False
    """Whether it is left out."""


@dataclass(frozen=True, kw_only=True)
class NameSettings:
    """How tools of several servers are named."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    style: Literal["qualified", "bare"] = "qualified"
    """`qualified`: every name starts with its server's; `bare`: only where two share it."""
    separator: Literal["_", "__", "-", "."] = "_"
    """Between server and tool. `.` is legal in MCP and refused by some model providers."""
    max_length: Annotated[int, Interval(ge=24, le=128)] = 64
    """Longer names are cut and get a digest; providers take 64 characters, MCP itself 128."""


@dataclass(frozen=True, kw_only=True)
class RiskRules:
    """What a tool may do, by globs over tool names or `server.tool`; over annotations."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    read: tuple[str, ...] = ()
    """Tools that only read."""
    write: tuple[str, ...] = ()
    """Tools that change something and can be undone."""
    destructive: tuple[str, ...] = ()
    """Tools that destroy; wins over the other two."""
    strict: bool = False
    """Whether tools that neither these rules, their annotations nor their names tell about count as
    destructive, which is the default of MCP, instead of `write`. Rules that deny by risk always
    count them so."""
    dispatch: Literal["refuse", "allow", "read-only"] = "allow"
    """What a meta-tool lets through that carries all risks under one name: `tools_dispatch`,
    `invoke_tool`, or the single `call_tool`."""


@dataclass(frozen=True, kw_only=True)
class Budgets:
    """How many tokens a face may spend on its own."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    auto_list: Count = 4000
    """A catalogue whose whole listing is smaller is simply listed by `auto`: 2 % of 200,000."""
    index_page: Count = 1500
    """The `index` face pages by category above this."""
    page_size: Annotated[int, Ge(0)] = 0
    """Tools on one page of `tools/list`; 0 for all, since many clients read one page."""
    tokenizer: Literal["o200k_base", "cl100k_base"] = "o200k_base"
    """The tokenizer that calls and results are counted by."""


@dataclass(frozen=True, kw_only=True)
class DynamicSettings:
    """The `dynamic` face: how many found tools a session keeps."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    cap: Count = 40
    """Enabled tools in a session; the longest unused goes first, pins never."""
    per_search: Annotated[int, Interval(ge=1, le=20)] = 5
    """Tools that one search enables."""
    category_tokens: Annotated[int, Interval(ge=0)] = 4_000
    """A search for a category, such as "issues", enables all of it if its tools cost at most so \
many tokens; `0` never does."""


@dataclass(frozen=True, kw_only=True)
class CallSettings:
    """How a call is carried out."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    timeout: Seconds = 60.0
    """Seconds for a call, where neither tool nor server says otherwise."""
    max_concurrency: Count = 16
    """Calls of one fan-out that run at once."""
    upstream_concurrency: Count = 32
    """Calls that one server gets at once; more wait."""
    queue: Annotated[int, Ge(0)] = 256
    """Calls that may wait for one server before the answer is "busy"."""
    retries: Annotated[int, Interval(ge=0, le=5)] = 2
    """Repeats of a failed call, only of tools that are annotated as idempotent or read-only."""
    coerce: bool = True
    """Whether `"5"` is taken for 5 where the schema wants a number."""
    breaker_failures: Count = 5
    """Failures in a row that open the breaker of a tool or server."""
    breaker_cooldown: Seconds = 60.0
    """Seconds until one call may try again."""


@dataclass(frozen=True, kw_only=True)
class ResultSettings:
    """What becomes of large results."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    spill_tokens: Annotated[int, Ge(0)] = 4000
    """Results over this stay here, with a preview and a handle; 0 sends everything."""
    spill_bytes: Annotated[int, Ge(0)] = 1_000_000
    """Images, audio and files of a result over this stay here as resources; 0 sends them all."""
    spill_ttl: Seconds = 3600.0
    """Seconds that a kept result can be read."""
    clean: bool = False
    """Whether invisible characters and terminal escapes are removed from results of tools, prompts
    and resources. Definitions are always cleaned; results are relayed as they came by default."""
    tables: bool = True
    """Whether uniform records may be sent as a compact table."""
    table_saving: Annotated[float, Interval(ge=0, le=1)] = 0.15
    """The share of tokens that a table must save to be used."""
    cache: Mapping[str, Seconds] = field(default_factory=dict[str, float])
    """Results of read-only tools to keep: glob over tool names = seconds; the first that fits."""


@dataclass(frozen=True, kw_only=True)
class UpstreamSettings:
    """What holds for every server that does not say otherwise itself."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    start_concurrency: Count = 8
    """Servers that are started at once on the first ever start."""
    start_timeout: Seconds = 60.0
    """Seconds that starting and listing may take."""
    idle_stop: Annotated[float, Ge(0)] = 600.0
    """Seconds without a call until a server is stopped; 0 keeps it running."""
    isolation: Isolation | None = None
    """Who shares a process of a server: one `principal`, one `session`, or everybody (`shared`)."""
    max_processes: Count = 256
    """Server processes at once; the one that was idle longest makes room."""
    max_processes_per_principal: Count = 32
    """Of those, how many one signed-in principal may have."""
    refresh: bool = True
    """Whether kept catalogues are checked again behind the first answer."""
    folder: str | None = None
    """Where catalogues and logs are kept; the user's cache folder where it is not given."""
    log_bytes: Annotated[int, Ge(4096)] = 1_000_000
    """Size of the log of one server's stderr."""
    max_message_bytes: Annotated[int, Ge(4096)] = 64_000_000
    """The largest message that is accepted from a server or an API, on every transport. A larger
    one is discarded and the call fails; the connection goes on."""


@dataclass(frozen=True, kw_only=True)
class StoreSettings:
    """Where state that outlives a request is kept."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    url: str = field(default="memory://", repr=False)
    """`memory://`, or a `redis://`, `rediss://` or `unix://` address that all replicas share."""
    prefix: str = "pegboard:"
    """What every key starts with."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything `pegboard.toml` can say."""

    # `import` is the word in the file and no name in Python.
    __pydantic_config__: ClassVar[Any] = {
        **_STRICT,
        "alias_generator": lambda name: "import" if name == "imports" else name,  # pyright: ignore[reportUnknownLambdaType]
    }

    face: FaceName = "auto"
    """How clients see the catalogue."""
    pins: tuple[str, ...] = ()
    """Tools that every face lists as themselves, by name or glob."""
    risk: Literal["auto", "split", "single"] = "auto"
    """Whether there is one call tool for each risk; a gateway has one by default."""
    structured: bool = False
    """Whether meta-tools answer in structured content too."""
    instructions: str | None = None
    """What clients are told about this server; nothing where it is not given."""
    imports: tuple[str, ...] = ()
    """Files of other clients whose servers are taken over, such as `~/.cursor/mcp.json`."""
    clients: Mapping[str, FaceName] = field(default_factory=dict[str, FaceName])
    """The face by the client's name (a glob), for clients that say who they are."""
    names: NameSettings = NameSettings()
    risk_rules: RiskRules = RiskRules()
    budgets: Budgets = Budgets()
    dynamic: DynamicSettings = DynamicSettings()
    calls: CallSettings = CallSettings()
    results: ResultSettings = ResultSettings()
    upstreams: UpstreamSettings = UpstreamSettings()
    store: StoreSettings = StoreSettings()
    auth: AuthSettings = field(default_factory=AuthSettings)
    permissions: PermissionSettings = field(default_factory=PermissionSettings)
    limits: tuple[LimitEntry, ...] = ()
    """How much each principal may do."""
    observe: ObserveSettings = field(default_factory=ObserveSettings)
    trust: TrustSettings = field(default_factory=TrustSettings)
    http: HttpSettings = field(default_factory=HttpSettings)
    servers: Mapping[str, ServerEntry] = field(default_factory=dict[str, ServerEntry])
    """MCP servers by name."""
    sources: Mapping[str, SourceEntry] = field(default_factory=dict[str, SourceEntry])
    """OpenAPI documents by name."""
