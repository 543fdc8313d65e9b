"""`Settings`: the whole of `pegboard.toml` as frozen records, with the meaning of each setting.

These records are the model that files are validated against and the source of the published
JSON Schema (both in `schema.py`), and the values that the rest of the program receives. They import
nothing heavy. The text under a field is its documentation, in the schema too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from annotated_types import Ge, Gt, Interval

from pegboard.config.source_settings import STRICT, Count, Seconds, SourceEntry
from pegboard.core import defaults
from pegboard.core.options import Learning
from pegboard.oauth.login_options import LoginSettings, OAuthOptions
from pegboard.upstream.spec import Isolation, TrustMode


@dataclass(frozen=True, kw_only=True)
class ApiKey:
    """A static key; only its hash is stored."""

    __pydantic_config__: ClassVar[Any] = STRICT

    principal: str
    """The principal that this key authenticates."""
    sha256: str
    """The SHA-256 hash of the key, in hexadecimal."""
    groups: tuple[str, ...] = ()
    """The groups of this principal, for permissions."""
    scopes: tuple[str, ...] = ()
    """The scopes of this key, for permissions."""


@dataclass(frozen=True, kw_only=True)
class ScopeSettings:
    """The scopes that a token needs for calls, by the risk of the tool.

    A risk without a scope needs that of the next lower risk. The scope of a higher risk includes
    the lower ones.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    read: str | None = None
    """For tools that only read."""
    write: str | None = None
    """For tools whose changes can be undone."""
    destructive: str | None = None
    """For tools that destroy data, and those whose risk is unknown."""


@dataclass(frozen=True, kw_only=True)
class AuthSettings:
    """Authentication of HTTP clients."""

    __pydantic_config__: ClassVar[Any] = STRICT

    kind: Literal["none", "keys", "jwt"] = "none"
    """No authentication, static keys, or access tokens from an OAuth 2.1 authorization server."""
    keys: tuple[ApiKey, ...] = ()
    issuer: str | None = None
    """The issuer of the tokens, exactly as in the authorization server's metadata."""
    audience: str | None = None
    """The audience that tokens must have: this gateway's own URL. Tokens for `resource`, and for
    the URL of a mode below it, are accepted too."""
    jwks_url: str | None = None
    """The URL of the issuer's public keys, if they cannot be found from `issuer`."""
    resource: str | None = None
    """This gateway's public URL, for clients that discover where to get a token; by default
    `audience`, if that is a URL."""
    required_scopes: tuple[str, ...] = ()
    """Scopes that every token must have."""
    scopes: ScopeSettings = ScopeSettings()
    groups_claim: str = "groups"
    """The claim of a token that lists the groups of its subject."""


@dataclass(frozen=True, kw_only=True)
class PermissionRule:
    """Allows or denies some tools to some principals; all names are globs.

    Who: any of `principals`, `scopes` and `groups`; everybody if none is given. What: all of
    `servers`, `categories`, `tools` and `risks` that are given must match.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    effect: Literal["allow", "deny"] = "allow"
    """`deny` takes precedence over every `allow`."""
    principals: tuple[str, ...] = ()
    """Subjects of tokens, or principals of keys."""
    scopes: tuple[str, ...] = ()
    """Scopes of tokens or keys."""
    groups: tuple[str, ...] = ()
    """Groups of tokens or keys."""
    servers: tuple[str, ...] = ()
    """Servers, by their names in this file."""
    categories: tuple[str, ...] = ()
    """Categories of tools, as set in this file: the `category` in a server's entry, or else the
    server's name. Categories that a server declares itself are ignored."""
    tools: tuple[str, ...] = ()
    """Tools, by the name that clients see, by `server.tool`, or by the server's own name. The last
    one matches that tool on every server, so set `servers` too."""
    risks: tuple[Literal["read", "write", "destructive"], ...] = ()
    """Risks of tools. A rule that denies `destructive` also denies tools whose risk is unknown."""


@dataclass(frozen=True, kw_only=True)
class PermissionSettings:
    """Who may see and call which tools. For everybody else, a tool does not exist."""

    __pydantic_config__: ClassVar[Any] = STRICT

    default: Literal["allow", "deny"] = "allow"
    """What applies to tools that no rule matches."""
    rules: tuple[PermissionRule, ...] = ()
    """The rules; their order does not matter."""


@dataclass(frozen=True, kw_only=True)
class LimitEntry:
    """A rate limit for each matching principal; the first entry that matches applies."""

    __pydantic_config__: ClassVar[Any] = STRICT

    principals: tuple[str, ...] = ()
    """Globs for principals; without these and `groups`, the entry matches everybody."""
    groups: tuple[str, ...] = ()
    """Globs for groups."""
    calls: Annotated[float, Gt(0)] | None = None
    """Tool calls, resource reads, prompts, completions and tasks in `per` seconds, on all
    replicas."""
    requests: Annotated[float, Gt(0)] | None = None
    """Requests of any kind in `per` seconds, including lists and searches; by default 10 times
    `calls`."""
    per: Seconds = defaults.RATE_PERIOD
    """The period for `calls` and `requests`, in seconds."""
    burst: Count | None = None
    """Calls that may be made at once; by default as many as `calls`."""
    concurrent: Count | None = None
    """Calls in progress at the same time, on all replicas."""


@dataclass(frozen=True, kw_only=True)
class ObserveSettings:
    """Metrics, traces and logs."""

    __pydantic_config__: ClassVar[Any] = STRICT

    metrics: Literal["off", "protected", "open"] = "off"
    """Prometheus metrics at `/metrics`: `protected` for operators and `metrics_readers`, `open` for
    everybody."""
    metrics_readers: tuple[str, ...] = ()
    """Principals besides operators who may read protected metrics, such as a scraper."""
    opentelemetry: bool = False
    """Whether to export spans and metrics with OpenTelemetry, configured by the `OTEL_`
    variables."""
    audit: str | None = None
    """The audit log: a file that records who called what, when, and with what outcome."""
    audit_bytes: Annotated[int, Ge(4096)] = defaults.AUDIT_BYTES
    """Size in bytes at which the audit log is rotated."""
    audit_files: Annotated[int, Ge(0)] = 0
    """How many rotated audit files to retain; 0 retains all."""
    arguments: Literal["caller", "operators", "off"] = "caller"
    """Who sees the arguments and error messages of calls on the dashboard, shortened and without
    secrets: only the caller, operators too, or nobody."""
    log: Literal["text", "json"] = "text"
    """The format of the gateway's own log, on standard error."""


@dataclass(frozen=True, kw_only=True)
class TrustSettings:
    """Whether new and changed tool definitions may be used without approval."""

    __pydantic_config__: ClassVar[Any] = STRICT

    mode: TrustMode = "first-use"
    """`first-use`: only changed tools need approval; `approve`: new ones need it too."""
    lock: str | None = None
    """The lock file, or `store` for the shared store; without a lock nothing is held back."""
    reordered: tuple[str, ...] = ()
    """Globs for servers whose definitions stay approved if only the order of words changes."""


@dataclass(frozen=True, kw_only=True)
class HttpSettings:
    """The HTTP server."""

    __pydantic_config__: ClassVar[Any] = STRICT

    allowed_hosts: tuple[str, ...] = ()
    """Host names to accept in requests, besides the address that the gateway listens on. Protects
    against DNS rebinding."""
    allowed_origins: tuple[str, ...] = ()
    """Origins of web pages that may call the gateway."""
    legacy: Literal["sessions", "stateless"] = "sessions"
    """How clients before MCP 2026-07-28 are served: with sessions that live in one replica, or
    without sessions."""
    max_sessions: Count = defaults.MAX_SESSIONS
    """How many sessions of clients before MCP 2026-07-28 can be open in one process."""
    max_sessions_per_principal: Count = defaults.MAX_SESSIONS_PER_PRINCIPAL
    """The same for one principal. At either limit, the least recently used idle session is
    ended."""
    max_connections: Count = defaults.MAX_CONNECTIONS
    """How many client connections can be open; fewer if the process has fewer file descriptors."""
    header_timeout: Seconds = defaults.HEADER_TIMEOUT
    """Seconds that a client has to send the headers of a request."""
    body_timeout: Seconds = defaults.BODY_TIMEOUT
    """Seconds that a client has to send the body of a request."""
    write_timeout: Seconds = defaults.WRITE_TIMEOUT
    """Seconds after which a connection is closed if the client does not read the response."""
    unauthenticated: bool = False
    """Whether other machines may use the gateway without `auth`. This also needs
    `PEGBOARD_UNAUTHENTICATED=1` in the environment."""
    operators: tuple[str, ...] = ()
    """Principals who may make changes on the dashboard and see everybody's calls. Without `auth`,
    everybody who can reach the dashboard may."""
    operator_groups: tuple[str, ...] = ()
    """Groups whose members are operators too."""
    add_commands: bool = False
    """Whether operators may add servers that run a command on this machine, on the dashboard. By
    default they can only add servers by URL."""


ModeSetting: TypeAlias = Literal[
    "auto", "eager", "stub", "index", "hierarchy", "proxy", "dynamic", "code"
]


@dataclass(frozen=True, kw_only=True)
class ServerEntry:
    """One MCP server, or changes to one that an imported file defines."""

    __pydantic_config__: ClassVar[Any] = STRICT

    command: str | None = None
    """The program to start (stdio)."""
    args: tuple[str, ...] = ()
    """Arguments of the program."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Environment variables for the program, in addition to the usual ones."""
    env_file: str | None = None
    """A file with further environment variables, one `NAME=value` on each line."""
    cwd: str | None = None
    """The working directory of the program."""
    url: str | None = None
    """The URL of the server (streamable HTTP, or SSE if `transport` is `sse`)."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """HTTP headers to send with every request."""
    transport: Literal["stdio", "http", "sse"] | None = None
    """The transport; by default `stdio` for a `command`, and `http` for a `url`, or `sse` if the
    `url` ends in `/sse`."""
    include: tuple[str, ...] = ()
    """Globs for the server's tool names: only these are shown."""
    exclude: tuple[str, ...] = ()
    """Globs for the server's tool names: these are not shown."""
    category: str | None = None
    """The category of its tools; by default the server's name."""
    prefix: str | None = None
    """The prefix of its tools' names, instead of its name; empty for bare names."""
    pins: tuple[str, ...] = ()
    """Its tools that every mode lists directly, by the server's own names or globs."""
    mode: ModeSetting | None = None
    """The mode for this server's tools, if it differs from the others."""
    timeout: Seconds | None = None
    """Timeout of one call, in seconds."""
    start_timeout: Seconds | None = None
    """Seconds that the server has to start and list its tools."""
    isolation: Isolation | None = None
    """Who shares one process: the sessions of one `principal`, one `session`, or everybody."""
    stateless: bool | None = None
    """Whether the server keeps no state between calls, so that one process can serve everybody."""
    idle_stop: Annotated[float, Ge(0)] | None = None
    """Seconds without a call after which the server is stopped; 0 keeps it running."""
    disabled: bool | None = None
    """Whether the server is disabled."""
    trust: TrustMode | None = None
    """Whether its new tools are usable at once or only after approval."""
    oauth: OAuthOptions | None = None
    """How to log in to the server, if the defaults do not work."""


@dataclass(frozen=True, kw_only=True)
class NameSettings:
    """How the tools of several servers are named."""

    __pydantic_config__: ClassVar[Any] = STRICT

    style: Literal["qualified", "bare"] = "qualified"
    """`qualified`: every name starts with its server's name; `bare`: only if several servers have a
    tool with that name."""
    separator: Literal["_", "__", "-", "."] = "_"
    """The text between server and tool. `.` is legal in MCP but refused by some model providers."""
    max_length: Annotated[int, Interval(ge=24, le=128)] = defaults.NAME_MAX_LENGTH
    """Longer names are shortened and get a digest as a suffix. Model providers accept 64
    characters, MCP 128."""


@dataclass(frozen=True, kw_only=True)
class RiskRules:
    """The risk of tools, by globs for tool names or `server.tool`; overrides annotations."""

    __pydantic_config__: ClassVar[Any] = STRICT

    read: tuple[str, ...] = ()
    """Tools that only read."""
    write: tuple[str, ...] = ()
    """Tools whose changes can be undone."""
    destructive: tuple[str, ...] = ()
    """Tools that destroy data; takes precedence over the other two."""
    strict: bool = False
    """Whether a tool whose risk cannot be told from a rule, its annotations or its name counts as
    `destructive`, as MCP assumes, instead of `write`. Rules that deny by risk always treat such
    tools as destructive."""
    dispatch: Literal["refuse", "allow", "read-only"] = "allow"
    """Which tools can be called by a meta-tool that serves all risks: `tools_dispatch`,
    `invoke_tool`, or the single `call_tool`."""


@dataclass(frozen=True, kw_only=True)
class Budgets:
    """Token budgets of the modes."""

    __pydantic_config__: ClassVar[Any] = STRICT

    auto_list: Count = defaults.EAGER_BUDGET
    """`auto` lists the whole catalog if it has at most this many tokens. The default is 2% of a
    context window of 200,000."""
    index_page: Count = defaults.INDEX_PAGE_TOKENS
    """A list in `index` mode with more tokens than this is split into pages, by category."""
    page_size: Annotated[int, Ge(0)] = 0
    """Tools on one page of `tools/list`. The default, 0, lists all, because many clients read only
    the first page."""
    tokenizer: Literal["o200k_base", "cl100k_base"] = defaults.TOKENIZER
    """The tokenizer for counting calls and results."""


@dataclass(frozen=True, kw_only=True)
class DynamicSettings:
    """`dynamic` mode: how many of the tools that were found stay enabled in a session."""

    __pydantic_config__: ClassVar[Any] = STRICT

    cap: Count = defaults.ENABLED_TOOLS_CAP
    """The maximum number of enabled tools in a session. The least recently used one is removed
    first; pins are never removed."""
    per_search: Annotated[int, Interval(ge=1, le=20)] = defaults.ENABLED_PER_SEARCH
    """How many tools one search enables."""
    category_tokens: Annotated[int, Interval(ge=0)] = defaults.CATEGORY_TOKENS
    """A search for a category, such as "issues", enables all its tools if they cost at most this \
many tokens; `0` never does."""


@dataclass(frozen=True, kw_only=True)
class CallSettings:
    """How calls are run."""

    __pydantic_config__: ClassVar[Any] = STRICT

    timeout: Seconds = defaults.CALL_TIMEOUT
    """Timeout of a call in seconds, unless the tool or the server sets another."""
    max_concurrency: Count = defaults.FAN_OUT_CONCURRENCY
    """Calls of one batch (`call_tools`, `call_many`) that run at the same time."""
    upstream_concurrency: Count = defaults.UPSTREAM_CONCURRENCY
    """Calls that are sent to one server at the same time; further calls wait in a queue."""
    queue: Annotated[int, Ge(0)] = defaults.UPSTREAM_QUEUE
    """Calls that can wait for one server; further calls fail as `busy`."""
    retries: Annotated[int, Interval(ge=0, le=5)] = defaults.CALL_RETRIES
    """Retries of a failed call, only for tools that are annotated as idempotent or read-only."""
    coerce: bool = True
    """Whether `"5"` is accepted as 5 where the schema requires a number."""
    breaker_failures: Count = defaults.BREAKER_FAILURES
    """Consecutive failures that open the circuit breaker of a tool or server."""
    breaker_cooldown: Seconds = defaults.BREAKER_COOLDOWN
    """Seconds until an open breaker admits one call as a probe."""


@dataclass(frozen=True, kw_only=True)
class ResultSettings:
    """How large results are handled."""

    __pydantic_config__: ClassVar[Any] = STRICT

    spill_tokens: Annotated[int, Ge(0)] = defaults.SPILL_TOKENS
    """A result with more tokens than this is stored and replaced by a preview and a handle; 0 turns
    this off."""
    spill_bytes: Annotated[int, Ge(0)] = defaults.SPILL_BYTES
    """If the images, audio and files of a result have more bytes than this, the largest are stored
    as resources; 0 turns this off."""
    spill_ttl: Seconds = defaults.SPILL_TTL
    """Seconds for which a stored result can be read."""
    clean: bool = False
    """Whether invisible characters and terminal escapes are removed from results of tools, prompts
    and resources. By default, results are relayed unchanged. Definitions are always cleaned."""
    learn_shapes: bool = True
    """Whether the result fields (names and types, no values) of tools that declare none are learned
    from calls, and shown to models."""
    tables: bool = True
    """Whether uniform records may be sent as a compact table."""
    table_saving: Annotated[float, Interval(ge=0, le=1)] = defaults.TABLE_SAVING
    """The fraction of tokens that a table must save to be used."""
    cache: Mapping[str, Seconds] = field(default_factory=dict[str, float])
    """How many seconds to cache results of read-only tools, by a glob for tool names; the first
    match applies."""


@dataclass(frozen=True, kw_only=True)
class CodeSettings:
    """Code mode: the limits of a program, and what is stored about it."""

    __pydantic_config__: ClassVar[Any] = STRICT

    in_proxy: bool = False
    """Whether `proxy` mode also lists the tools that run programs."""
    compute_time: Seconds = defaults.CODE_COMPUTE_TIME
    """Seconds that a program can compute, without the time that its calls take."""
    total_time: Seconds = defaults.CODE_TOTAL_TIME
    """Seconds that a program can take in total, including its calls."""
    sleep_time: Annotated[float, Ge(0)] = defaults.CODE_SLEEP_TIME
    """Seconds that a program can sleep in total."""
    memory_bytes: Annotated[int, Ge(1 << 20)] = defaults.CODE_MEMORY_BYTES
    """Bytes of memory that a program can use."""
    max_calls: Count = defaults.CODE_MAX_CALLS
    """Tool calls that one run can make."""
    max_parallel: Count = defaults.CODE_MAX_PARALLEL
    """Tool calls that one run can make at the same time."""
    program_bytes: Count = defaults.CODE_PROGRAM_BYTES
    """The maximum size of a program's text, in bytes."""
    print_bytes: Annotated[int, Ge(0)] = defaults.CODE_PRINT_BYTES
    """Bytes of printed text that are returned; the rest is dropped."""
    value_bytes: Count = defaults.CODE_VALUE_BYTES
    """The maximum size of a program's result, in bytes of JSON."""
    recursion: Count = defaults.CODE_RECURSION
    """How deep function calls in a program can be nested."""
    workers: Count = defaults.CODE_WORKERS
    """Programs that can run at the same time, each in its own process."""
    queue: Annotated[int, Ge(0)] = defaults.CODE_QUEUE
    """Programs that can wait for a free worker; further programs fail as `busy`."""
    record_ttl: Seconds = defaults.CODE_RECORD_TTL
    """Seconds for which a run that stopped, or that waits for consent, can be continued."""
    store_programs: bool = False
    """Whether events, the audit log and the dashboard contain the programs themselves."""
    confine: Literal["auto", "required", "off"] = "auto"
    """Whether workers run inside bubblewrap: `auto` if it works, `required` always (otherwise no
    program runs), `off` never."""


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """How tools are found."""

    __pydantic_config__: ClassVar[Any] = STRICT

    learn: Learning = "local"
    """Whose calls search learns from. `local`: those of the single user of a gateway on their own
    machine. `principals`: those of each signed-in caller, for that caller alone. `off`:
    nobody's."""
    store_queries: bool = False
    """Whether the text of a query is stored with what was learned from it. By default only its
    vector is stored."""


@dataclass(frozen=True, kw_only=True)
class UpstreamSettings:
    """Defaults for all servers, and limits for all of them together."""

    __pydantic_config__: ClassVar[Any] = STRICT

    start_concurrency: Count = defaults.START_CONCURRENCY
    """How many servers the first start lists at the same time."""
    start_timeout: Seconds = defaults.START_TIMEOUT
    """Seconds that a server has to start and list its tools."""
    idle_stop: Annotated[float, Ge(0)] = defaults.IDLE_STOP
    """Seconds without a call after which a server is stopped; 0 keeps it running."""
    isolation: Isolation | None = None
    """Who shares one process: one `principal`, one `session`, or everybody (`shared`)."""
    max_processes: Count = defaults.MAX_PROCESSES
    """The maximum number of server processes. At the limit, the process that has been idle longest
    is stopped."""
    max_processes_per_principal: Count = defaults.MAX_PROCESSES_PER_PRINCIPAL
    """The maximum number of server processes for one authenticated principal."""
    refresh: bool = True
    """Whether cached catalogs are refreshed in the background after the first response."""
    folder: str | None = None
    """Where catalogs and logs are stored; by default the user's cache folder."""
    log_bytes: Annotated[int, Ge(4096)] = defaults.SERVER_LOG_BYTES
    """The maximum size of the log of one server's stderr, in bytes."""
    max_message_bytes: Annotated[int, Ge(4096)] = defaults.MAX_MESSAGE_BYTES
    """The maximum size of a message from a server or an API, in bytes. A larger message is
    discarded, and the call fails; the connection stays open."""


@dataclass(frozen=True, kw_only=True)
class StoreSettings:
    """Where state that outlives a request is stored."""

    __pydantic_config__: ClassVar[Any] = STRICT

    url: str = field(default="memory://", repr=False)
    """`memory://`, or a `redis://`, `rediss://` or `unix://` URL that all replicas share."""
    prefix: str = "pegboard:"
    """The prefix of every key."""


@dataclass(frozen=True, kw_only=True)
class ProfileEntry:
    """A named part of the catalog, which a client can choose; all names are globs.

    A profile does not protect anything: see `[permissions]`.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    servers: tuple[str, ...] = ()
    """Servers to show, by their names in this file; all if none is given."""
    tools: tuple[str, ...] = ()
    """Tools to show, by `server.tool`, by the name that clients see, or by the server's own name;
    all tools of `servers` if none is given."""
    exclude: tuple[str, ...] = ()
    """Tools to leave out, written in the same way."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings of `pegboard.toml`."""

    # The key in the file is `import`, which cannot be a name in Python.
    __pydantic_config__: ClassVar[Any] = {
        **STRICT,
        "alias_generator": lambda name: "import" if name == "imports" else name,  # pyright: ignore[reportUnknownLambdaType]
    }

    mode: ModeSetting = "auto"
    """How clients see the catalog."""
    pins: tuple[str, ...] = ()
    """Tools that every mode lists directly, by name or glob."""
    risk: Literal["auto", "split", "single"] = "auto"
    """Whether there is one call tool for each risk (`split`) or a single one; by default a gateway
    has one for each risk."""
    structured: bool = False
    """Whether meta-tools also return structured content."""
    instructions: str | None = None
    """Instructions that this server sends to clients, before the mode's own."""
    imports: tuple[str, ...] = ()
    """Client files to import servers from, such as `~/.cursor/mcp.json`."""
    clients: Mapping[str, ModeSetting] = field(default_factory=dict[str, ModeSetting])
    """The mode for each client, by a glob for the client's name, for clients that send their
    name."""
    profile: str | None = None
    """The profile that clients see, unless they choose another by URL; by default all tools."""
    profiles: Mapping[str, ProfileEntry] = field(default_factory=dict[str, ProfileEntry])
    """Profiles by name."""
    names: NameSettings = NameSettings()
    risk_rules: RiskRules = RiskRules()
    budgets: Budgets = Budgets()
    dynamic: DynamicSettings = DynamicSettings()
    calls: CallSettings = CallSettings()
    results: ResultSettings = ResultSettings()
    code: CodeSettings = CodeSettings()
    search: SearchSettings = SearchSettings()
    upstreams: UpstreamSettings = UpstreamSettings()
    store: StoreSettings = StoreSettings()
    auth: AuthSettings = field(default_factory=AuthSettings)
    permissions: PermissionSettings = field(default_factory=PermissionSettings)
    limits: tuple[LimitEntry, ...] = ()
    """Rate limits for principals."""
    observe: ObserveSettings = field(default_factory=ObserveSettings)
    trust: TrustSettings = field(default_factory=TrustSettings)
    http: HttpSettings = field(default_factory=HttpSettings)
    oauth: LoginSettings = field(default_factory=LoginSettings)
    servers: Mapping[str, ServerEntry] = field(default_factory=dict[str, ServerEntry])
    """MCP servers by name."""
    sources: Mapping[str, SourceEntry] = field(default_factory=dict[str, SourceEntry])
    """OpenAPI documents by name."""
