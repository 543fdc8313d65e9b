"""`Settings`: the whole of `pegboard.toml` as frozen records, with the meaning of each setting.

These records are the model that files are validated against (`validation.py`), the source of the
published JSON Schema (`schema.py`), and the values that the rest of the program receives. They
import nothing heavy. The text under a field is its documentation, in the schema too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from annotated_types import Ge, Gt, Interval

from pegboard.core import defaults
from pegboard.upstream.spec import Isolation, TrustMode

Seconds: TypeAlias = Annotated[float, Gt(0)]
Count: TypeAlias = Annotated[int, Ge(1)]

_STRICT: dict[str, Any] = {"extra": "forbid"}


@dataclass(frozen=True, kw_only=True)
class ApiKey:
    """One static key, known by its hash only."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    principal: str
    """Who it stands for."""
    sha256: str
    """The hash of the key, in hexadecimal."""
    groups: tuple[str, ...] = ()
    """Groups that permissions may name."""
    scopes: tuple[str, ...] = ()
    """Scopes that permissions may name."""


@dataclass(frozen=True, kw_only=True)
class AuthSettings:
    """Who may use the HTTP gateway."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    kind: Literal["none", "keys", "jwt"] = "none"
    """Nobody in particular, static keys, or tokens of an OAuth 2.1 authorization server."""
    keys: tuple[ApiKey, ...] = ()
    issuer: str | None = None
    """The authorization server."""
    audience: str | None = None
    """What tokens must be made for: this gateway's own address."""
    jwks_url: str | None = None
    """Its keys, where they are not found from `issuer`."""
    resource: str | None = None
    """This gateway's public address, for clients that look for where to get a token."""
    required_scopes: tuple[str, ...] = ()
    """Scopes that every token must have."""
    groups_claim: str = "groups"
    """The claim of a token that names the groups of its subject."""


@dataclass(frozen=True, kw_only=True)
class PermissionRule:
    """Gives or denies some people some tools; all names are globs.

    Who: any of `principals`, `scopes` and `groups`; everybody where none is given. What: all of
    `servers`, `categories`, `tools` and `risks` that are given must fit.
    """

    __pydantic_config__: ClassVar[Any] = _STRICT

    effect: Literal["allow", "deny"] = "allow"
    """`deny` wins over every `allow`."""
    principals: tuple[str, ...] = ()
    """Subjects of tokens, or principals of keys."""
    scopes: tuple[str, ...] = ()
    """Scopes of tokens or keys."""
    groups: tuple[str, ...] = ()
    """Groups of tokens or keys."""
    servers: tuple[str, ...] = ()
    """Servers by their names in this file."""
    categories: tuple[str, ...] = ()
    """Categories of tools as this file gives them: a server's tools are in the category of its
    entry, else in one of its own name. What a server calls its categories does not count."""
    tools: tuple[str, ...] = ()
    """Tools by the name that clients see, by `server.tool`, or by the server's own name. The last
    means that tool of every server: name the `servers` too."""
    risks: tuple[Literal["read", "write", "destructive"], ...] = ()
    """What tools may do. A rule that denies `destructive` also denies tools that do not say."""


@dataclass(frozen=True, kw_only=True)
class PermissionSettings:
    """Who sees and calls which tools; what is not seen does not exist."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    default: Literal["allow", "deny"] = "allow"
    """What holds for tools that no rule gives or denies."""
    rules: tuple[PermissionRule, ...] = ()
    """The rules; their order does not matter."""


@dataclass(frozen=True, kw_only=True)
class LimitEntry:
    """How much each of some principals may do; the first entry that applies decides."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    principals: tuple[str, ...] = ()
    """Globs over principals; everybody where neither these nor groups are given."""
    groups: tuple[str, ...] = ()
    """Globs over groups."""
    calls: Annotated[float, Gt(0)] | None = None
    """Tool calls, reads, prompts, completions and tasks in `per` seconds, over all replicas."""
    requests: Annotated[float, Gt(0)] | None = None
    """Requests of any kind in `per` seconds, lists and searches too; unset: ten times `calls`."""
    per: Seconds = defaults.RATE_PERIOD
    """The seconds in which `calls` may be made."""
    burst: Count | None = None
    """Calls that may be made at once; as many as `calls` where it is not given."""
    concurrent: Count | None = None
    """Calls under way at a time, over all replicas."""


@dataclass(frozen=True, kw_only=True)
class ObserveSettings:
    """What the gateway tells about its work."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    metrics: Literal["off", "protected", "open"] = "off"
    """Prometheus figures at `/metrics`: for operators and `metrics_readers`, or for everybody."""
    metrics_readers: tuple[str, ...] = ()
    """Principals who may read protected metrics although they are not operators: a scraper's."""
    opentelemetry: bool = False
    """Whether to send spans and metrics by OpenTelemetry, as the usual `OTEL_` variables say."""
    audit: str | None = None
    """The file that records who called what, when, and with what outcome."""
    audit_bytes: Annotated[int, Ge(4096)] = defaults.AUDIT_BYTES
    """Size at which the audit log goes on in a new file."""
    audit_files: Annotated[int, Ge(0)] = 0
    """Older audit files to keep; 0 keeps all."""
    log: Literal["text", "json"] = "text"
    """How the gateway's own log is written on standard error."""


@dataclass(frozen=True, kw_only=True)
class TrustSettings:
    """Whether tool definitions that nobody has seen may be used."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    mode: TrustMode = "first-use"
    """`first-use`: new tools at once, changed ones after approval; `approve`: neither before."""
    lock: str | None = None
    """The lock file, or `store` for the shared store; without it nothing is held back."""
    reordered: tuple[str, ...] = ()
    """Globs over servers whose definitions stay approved when only the order of words changes."""


@dataclass(frozen=True, kw_only=True)
class HttpSettings:
    """The HTTP gateway."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    allowed_hosts: tuple[str, ...] = ()
    """Host headers to answer beside the address it listens on; against DNS rebinding."""
    allowed_origins: tuple[str, ...] = ()
    """Origins of web pages that may call."""
    legacy: Literal["sessions", "stateless"] = "sessions"
    """Clients before MCP 2026-07-28: sessions that one replica holds, or each request by itself."""
    max_sessions: Count = defaults.MAX_SESSIONS
    """Sessions of clients before MCP 2026-07-28 that may be open in one process."""
    max_sessions_per_principal: Count = defaults.MAX_SESSIONS_PER_PRINCIPAL
    """The same for one principal. At either limit the least recently used idle one is ended."""
    max_connections: Count = defaults.MAX_CONNECTIONS
    """Connections of clients; fewer where the process has not as many file descriptors."""
    header_timeout: Seconds = defaults.HEADER_TIMEOUT
    """Seconds for a client to send the headers of a request."""
    body_timeout: Seconds = defaults.BODY_TIMEOUT
    """Seconds for a client to send the body of a request."""
    write_timeout: Seconds = defaults.WRITE_TIMEOUT
    """Seconds that a client may leave an answer unread."""
    unauthenticated: bool = False
    """Whether other machines may use it without `auth`; also needs PEGBOARD_UNAUTHENTICATED=1."""
    operators: tuple[str, ...] = ()
    """Principals who may change things on the page and see everybody's calls, where `auth` is set.
    Without it, whoever can reach the page may."""
    operator_groups: tuple[str, ...] = ()
    """Groups whose members may do so."""


ModeSetting: TypeAlias = Literal["auto", "eager", "stub", "index", "hierarchy", "proxy", "dynamic"]


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
    """Its tools that every mode lists as themselves, by the server's names or globs."""
    mode: ModeSetting | None = None
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
    max_length: Annotated[int, Interval(ge=24, le=128)] = defaults.NAME_MAX_LENGTH
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
    """How many tokens a mode may spend on its own."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    auto_list: Count = defaults.EAGER_BUDGET
    """A catalogue whose whole listing is smaller is simply listed by `auto`: 2 % of 200,000."""
    index_page: Count = defaults.INDEX_PAGE_TOKENS
    """The `index` mode pages by category above this."""
    page_size: Annotated[int, Ge(0)] = 0
    """Tools on one page of `tools/list`; 0 for all, since many clients read one page."""
    tokenizer: Literal["o200k_base", "cl100k_base"] = defaults.TOKENIZER
    """The tokenizer that calls and results are counted by."""


@dataclass(frozen=True, kw_only=True)
class DynamicSettings:
    """The `dynamic` mode: how many found tools a session keeps."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    cap: Count = defaults.ENABLED_TOOLS_CAP
    """Enabled tools in a session; the longest unused goes first, pins never."""
    per_search: Annotated[int, Interval(ge=1, le=20)] = defaults.ENABLED_PER_SEARCH
    """Tools that one search enables."""
    category_tokens: Annotated[int, Interval(ge=0)] = defaults.CATEGORY_TOKENS
    """A search for a category, such as "issues", enables all of it if its tools cost at most so \
many tokens; `0` never does."""


@dataclass(frozen=True, kw_only=True)
class CallSettings:
    """How a call is carried out."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    timeout: Seconds = defaults.CALL_TIMEOUT
    """Seconds for a call, where neither tool nor server says otherwise."""
    max_concurrency: Count = defaults.FAN_OUT_CONCURRENCY
    """Calls of one fan-out that run at once."""
    upstream_concurrency: Count = defaults.UPSTREAM_CONCURRENCY
    """Calls that one server gets at once; more wait."""
    queue: Annotated[int, Ge(0)] = defaults.UPSTREAM_QUEUE
    """Calls that may wait for one server before the answer is "busy"."""
    retries: Annotated[int, Interval(ge=0, le=5)] = defaults.CALL_RETRIES
    """Repeats of a failed call, only of tools that are annotated as idempotent or read-only."""
    coerce: bool = True
    """Whether `"5"` is taken for 5 where the schema wants a number."""
    breaker_failures: Count = defaults.BREAKER_FAILURES
    """Failures in a row that open the breaker of a tool or server."""
    breaker_cooldown: Seconds = defaults.BREAKER_COOLDOWN
    """Seconds until one call may try again."""


@dataclass(frozen=True, kw_only=True)
class ResultSettings:
    """What becomes of large results."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    spill_tokens: Annotated[int, Ge(0)] = defaults.SPILL_TOKENS
    """Results over this stay here, with a preview and a handle; 0 sends everything."""
    spill_bytes: Annotated[int, Ge(0)] = defaults.SPILL_BYTES
    """Images, audio and files of a result over this stay here as resources; 0 sends them all."""
    spill_ttl: Seconds = defaults.SPILL_TTL
    """Seconds that a kept result can be read."""
    clean: bool = False
    """Whether invisible characters and terminal escapes are removed from results of tools, prompts
    and resources. Definitions are always cleaned; results are relayed as they came by default."""
    tables: bool = True
    """Whether uniform records may be sent as a compact table."""
    table_saving: Annotated[float, Interval(ge=0, le=1)] = defaults.TABLE_SAVING
    """The share of tokens that a table must save to be used."""
    cache: Mapping[str, Seconds] = field(default_factory=dict[str, float])
    """Results of read-only tools to keep: glob over tool names = seconds; the first that fits."""


@dataclass(frozen=True, kw_only=True)
class UpstreamSettings:
    """What holds for every server that does not say otherwise itself."""

    __pydantic_config__: ClassVar[Any] = _STRICT

    start_concurrency: Count = 8
    """Servers that are started at once on the first ever start."""
    start_timeout: Seconds = defaults.START_TIMEOUT
    """Seconds that starting and listing may take."""
    idle_stop: Annotated[float, Ge(0)] = defaults.IDLE_STOP
    """Seconds without a call until a server is stopped; 0 keeps it running."""
    isolation: Isolation | None = None
    """Who shares a process of a server: one `principal`, one `session`, or everybody (`shared`)."""
    max_processes: Count = defaults.MAX_PROCESSES
    """Server processes at once; the one that was idle longest makes room."""
    max_processes_per_principal: Count = defaults.MAX_PROCESSES_PER_PRINCIPAL
    """Of those, how many one signed-in principal may have."""
    refresh: bool = True
    """Whether kept catalogues are checked again behind the first answer."""
    folder: str | None = None
    """Where catalogues and logs are kept; the user's cache folder where it is not given."""
    log_bytes: Annotated[int, Ge(4096)] = defaults.SERVER_LOG_BYTES
    """Size of the log of one server's stderr."""
    max_message_bytes: Annotated[int, Ge(4096)] = defaults.MAX_MESSAGE_BYTES
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

    mode: ModeSetting = "auto"
    """How clients see the catalogue."""
    pins: tuple[str, ...] = ()
    """Tools that every mode lists as themselves, by name or glob."""
    risk: Literal["auto", "split", "single"] = "auto"
    """Whether there is one call tool for each risk; a gateway has one by default."""
    structured: bool = False
    """Whether meta-tools answer in structured content too."""
    instructions: str | None = None
    """What clients are told about this server; nothing where it is not given."""
    imports: tuple[str, ...] = ()
    """Files of other clients whose servers are taken over, such as `~/.cursor/mcp.json`."""
    clients: Mapping[str, ModeSetting] = field(default_factory=dict[str, ModeSetting])
    """The mode by the client's name (a glob), for clients that say who they are."""
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
