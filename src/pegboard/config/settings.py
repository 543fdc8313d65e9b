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

from pegboard.config.setting_types import STRICT, Count, Seconds
from pegboard.config.source_settings import SourceEntry
from pegboard.core import defaults
from pegboard.core.options import Learning
from pegboard.oauth.options import LoginSettings, OAuthOptions
from pegboard.upstream.spec import Isolation, TrustMode


@dataclass(frozen=True, kw_only=True)
class ApiKey:
    """A static key; only its hash is stored."""

    __pydantic_config__: ClassVar[Any] = STRICT

    principal: str
    """The principal that it authenticates."""
    sha256: str
    """The SHA-256 hash of the key, in hexadecimal."""
    groups: tuple[str, ...] = ()
    """Its groups, for permissions."""
    scopes: tuple[str, ...] = ()
    """Its scopes, for permissions."""


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
    """No authentication, static keys, or tokens of an OAuth 2.1 authorization server."""
    keys: tuple[ApiKey, ...] = ()
    issuer: str | None = None
    """The authorization server, exactly as it calls itself in its metadata and tokens."""
    audience: str | None = None
    """The audience that tokens must have: this gateway's own address. Tokens for `resource`, and
    for the address of one mode below it, are accepted too."""
    jwks_url: str | None = None
    """The URL of its keys, if they cannot be found from `issuer`."""
    resource: str | None = None
    """This gateway's public address, for clients that discover where to get a token; by default
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
    """Categories of tools as this file gives them: a server's tools are in the category of its
    entry, or else in one with the server's name. Categories declared by a server are ignored."""
    tools: tuple[str, ...] = ()
    """Tools, by the name that clients see, by `server.tool`, or by the server's own name. The last
    matches that tool of every server: name the `servers` too."""
    risks: tuple[Literal["read", "write", "destructive"], ...] = ()
    """Risks of tools. A rule that denies `destructive` also denies tools whose risk is unknown."""


@dataclass(frozen=True, kw_only=True)
class PermissionSettings:
    """Who may see and call which tools; to everybody else a tool does not exist."""

    __pydantic_config__: ClassVar[Any] = STRICT

    default: Literal["allow", "deny"] = "allow"
    """What applies to tools that no rule matches."""
    rules: tuple[PermissionRule, ...] = ()
    """The rules; their order does not matter."""


@dataclass(frozen=True, kw_only=True)
class LimitEntry:
    """A rate limit for each of some principals; the first entry that matches applies."""

    __pydantic_config__: ClassVar[Any] = STRICT

    principals: tuple[str, ...] = ()
    """Globs over principals; everybody if neither these nor groups are given."""
    groups: tuple[str, ...] = ()
    """Globs over groups."""
    calls: Annotated[float, Gt(0)] | None = None
    """Tool calls, reads, prompts, completions and tasks in `per` seconds, over all replicas."""
    requests: Annotated[float, Gt(0)] | None = None
    """Requests of any kind in `per` seconds, lists and searches too; default: 10 times `calls`."""
    per: Seconds = defaults.RATE_PERIOD
    """The period for `calls` and `requests`, in seconds."""
    burst: Count | None = None
    """Calls that may be made at once; by default as many as `calls`."""
    concurrent: Count | None = None
    """Calls in progress at a time, over all replicas."""


@dataclass(frozen=True, kw_only=True)
class ObserveSettings:
    """Metrics, traces and logs."""

    __pydantic_config__: ClassVar[Any] = STRICT

    metrics: Literal["off", "protected", "open"] = "off"
    """Prometheus metrics at `/metrics`: for operators and `metrics_readers`, or for everybody."""
    metrics_readers: tuple[str, ...] = ()
    """Principals besides operators who may read protected metrics, such as a scraper."""
    opentelemetry: bool = False
    """Whether to export spans and metrics by OpenTelemetry, as the usual `OTEL_` variables say."""
    audit: str | None = None
    """The audit log: a file that records who called what, when, and with what outcome."""
    audit_bytes: Annotated[int, Ge(4096)] = defaults.AUDIT_BYTES
    """Size in bytes at which the audit log is rotated."""
    audit_files: Annotated[int, Ge(0)] = 0
    """Rotated audit files to keep; 0 keeps all."""
    arguments: Literal["caller", "operators", "off"] = "caller"
    """Who sees the arguments and error messages of calls on the dashboard, shortened and without
    secrets: whoever made the call, operators too, or nobody."""
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
    """Globs over servers whose definitions stay approved if only the order of words changes."""


@dataclass(frozen=True, kw_only=True)
class HttpSettings:
    """The HTTP server."""

    __pydantic_config__: ClassVar[Any] = STRICT

    allowed_hosts: tuple[str, ...] = ()
    """Host headers to accept besides the address it listens on; protects against DNS rebinding."""
    allowed_origins: tuple[str, ...] = ()
    """Origins of web pages that may call it."""
    legacy: Literal["sessions", "stateless"] = "sessions"
    """Clients before MCP 2026-07-28: sessions that live in one replica, or no sessions."""
    max_sessions: Count = defaults.MAX_SESSIONS
    """Sessions of clients before MCP 2026-07-28 that may be open in one process."""
    max_sessions_per_principal: Count = defaults.MAX_SESSIONS_PER_PRINCIPAL
    """The same for one principal. At either limit, the least recently used idle one is ended."""
    max_connections: Count = defaults.MAX_CONNECTIONS
    """Connections of clients; fewer if the process has fewer file descriptors."""
    header_timeout: Seconds = defaults.HEADER_TIMEOUT
    """Seconds for a client to send the headers of a request."""
    body_timeout: Seconds = defaults.BODY_TIMEOUT
    """Seconds for a client to send the body of a request."""
    write_timeout: Seconds = defaults.WRITE_TIMEOUT
    """Seconds for which a client may leave a response unread."""
    unauthenticated: bool = False
    """Whether other machines may use it without `auth`; also needs PEGBOARD_UNAUTHENTICATED=1."""
    operators: tuple[str, ...] = ()
    """Principals who may make changes on the dashboard and see everybody's calls, with `auth`.
    Without `auth`, everybody who can reach the dashboard may."""
    operator_groups: tuple[str, ...] = ()
    """Groups whose members are operators too."""
    add_commands: bool = False
    """Whether operators may add servers on the dashboard that run a command on this machine. If
    not, they can add servers by URL only."""


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
    """Environment variables that it gets in addition to the usual ones."""
    env_file: str | None = None
    """A file of further environment variables, one `NAME=value` on each line."""
    cwd: str | None = None
    """Its working folder."""
    url: str | None = None
    """Its URL (streamable HTTP, or SSE if `transport` says so)."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """HTTP headers of every request to it."""
    transport: Literal["stdio", "http", "sse"] | None = None
    """Its transport; by default it follows from `command` or `url`."""
    include: tuple[str, ...] = ()
    """Globs over the server's tool names: only these are shown."""
    exclude: tuple[str, ...] = ()
    """Globs over the server's tool names: these are not shown."""
    category: str | None = None
    """The category of its tools; by default the server's name."""
    prefix: str | None = None
    """The prefix of its tools' names, instead of its name; empty for bare names."""
    pins: tuple[str, ...] = ()
    """Its tools that every mode lists as themselves, by the server's own names or globs."""
    mode: ModeSetting | None = None
    """The mode of its tools, if it differs from the rest."""
    timeout: Seconds | None = None
    """Timeout of one call, in seconds."""
    start_timeout: Seconds | None = None
    """Timeout of starting and listing it, in seconds."""
    isolation: Isolation | None = None
    """Who shares one process: the sessions of one `principal`, one `session`, or everybody."""
    stateless: bool | None = None
    """Whether it keeps no state between calls, so that one process can serve everybody."""
    idle_stop: Annotated[float, Ge(0)] | None = None
    """Seconds without a call after which it is stopped; 0 keeps it running."""
    disabled: bool | None = None
    """Whether it is disabled."""
    trust: TrustMode | None = None
    """Whether its new tools are usable at once or only after approval."""
    oauth: OAuthOptions | None = None
    """How to log in to it, where the defaults do not do."""


@dataclass(frozen=True, kw_only=True)
class NameSettings:
    """How the tools of several servers are named."""

    __pydantic_config__: ClassVar[Any] = STRICT

    style: Literal["qualified", "bare"] = "qualified"
    """`qualified`: every name starts with its server's; `bare`: only names that servers share."""
    separator: Literal["_", "__", "-", "."] = "_"
    """Between server and tool. `.` is legal in MCP but refused by some model providers."""
    max_length: Annotated[int, Interval(ge=24, le=128)] = defaults.NAME_MAX_LENGTH
    """Longer names are cut and get a digest; model providers accept 64 characters, MCP 128."""


@dataclass(frozen=True, kw_only=True)
class RiskRules:
    """The risk of tools, by globs over tool names or `server.tool`; overrides annotations."""

    __pydantic_config__: ClassVar[Any] = STRICT

    read: tuple[str, ...] = ()
    """Tools that only read."""
    write: tuple[str, ...] = ()
    """Tools whose changes can be undone."""
    destructive: tuple[str, ...] = ()
    """Tools that destroy data; takes precedence over the other two."""
    strict: bool = False
    """Whether tools whose risk neither rules, annotations nor names tell count as
    destructive, which is the default of MCP, instead of `write`. Rules that deny by risk always
    treat them as destructive."""
    dispatch: Literal["refuse", "allow", "read-only"] = "allow"
    """What a meta-tool may call that carries all risks under one name: `tools_dispatch`,
    `invoke_tool`, or the single `call_tool`."""


@dataclass(frozen=True, kw_only=True)
class Budgets:
    """Token budgets of the modes."""

    __pydantic_config__: ClassVar[Any] = STRICT

    auto_list: Count = defaults.EAGER_BUDGET
    """Tokens up to which `auto` lists the whole catalog: 2 % of 200,000."""
    index_page: Count = defaults.INDEX_PAGE_TOKENS
    """Tokens above which the `index` mode pages by category."""
    page_size: Annotated[int, Ge(0)] = 0
    """Tools on one page of `tools/list`; 0 for all, because many clients read only one page."""
    tokenizer: Literal["o200k_base", "cl100k_base"] = defaults.TOKENIZER
    """The tokenizer for counting calls and results."""


@dataclass(frozen=True, kw_only=True)
class DynamicSettings:
    """The `dynamic` mode: how many found tools stay enabled in a session."""

    __pydantic_config__: ClassVar[Any] = STRICT

    cap: Count = defaults.ENABLED_TOOLS_CAP
    """Enabled tools in a session; the least recently used is evicted, pins never."""
    per_search: Annotated[int, Interval(ge=1, le=20)] = defaults.ENABLED_PER_SEARCH
    """Tools that one search enables."""
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
    """Calls of one fan-out that run at the same time."""
    upstream_concurrency: Count = defaults.UPSTREAM_CONCURRENCY
    """Calls that one server gets at the same time; more wait in a queue."""
    queue: Annotated[int, Ge(0)] = defaults.UPSTREAM_QUEUE
    """Calls that may wait for one server; further ones fail as busy."""
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
    """Tokens above which a result is stored and replaced by a preview and a handle; 0 for never."""
    spill_bytes: Annotated[int, Ge(0)] = defaults.SPILL_BYTES
    """Bytes above which images, audio and files are stored as resources; 0 for never."""
    spill_ttl: Seconds = defaults.SPILL_TTL
    """Seconds for which a stored result can be read."""
    clean: bool = False
    """Whether invisible characters and terminal escapes are removed from results of tools, prompts
    and resources. Definitions are always cleaned; by default, results are relayed unchanged."""
    learn_shapes: bool = True
    """Whether the fields of results (names and types, no values) are learned from calls of tools
    that declare none, and shown to models."""
    tables: bool = True
    """Whether uniform records may be sent as a compact table."""
    table_saving: Annotated[float, Interval(ge=0, le=1)] = defaults.TABLE_SAVING
    """The fraction of tokens that a table must save to be used."""
    cache: Mapping[str, Seconds] = field(default_factory=dict[str, float])
    """Results of read-only tools to cache: glob over tool names = seconds; first match applies."""


@dataclass(frozen=True, kw_only=True)
class CodeSettings:
    """Programs that models write: what one may use, and what is stored about it."""

    __pydantic_config__: ClassVar[Any] = STRICT

    in_proxy: bool = False
    """Whether the `proxy` mode offers to run programs too, as the `code` mode does."""
    compute_time: Seconds = defaults.CODE_COMPUTE_TIME
    """Seconds that a program may compute, without the time that its calls take."""
    total_time: Seconds = defaults.CODE_TOTAL_TIME
    """Seconds that a program may take in all, with its calls."""
    sleep_time: Annotated[float, Ge(0)] = defaults.CODE_SLEEP_TIME
    """Seconds that a program may sleep in all."""
    memory_bytes: Annotated[int, Ge(1 << 20)] = defaults.CODE_MEMORY_BYTES
    """Bytes of memory of a program."""
    max_calls: Count = defaults.CODE_MAX_CALLS
    """Calls of tools in one run."""
    max_parallel: Count = defaults.CODE_MAX_PARALLEL
    """Calls of one run at the same time."""
    program_bytes: Count = defaults.CODE_PROGRAM_BYTES
    """Bytes of a program."""
    print_bytes: Annotated[int, Ge(0)] = defaults.CODE_PRINT_BYTES
    """Bytes of printed text that come back; the rest is dropped."""
    value_bytes: Count = defaults.CODE_VALUE_BYTES
    """Bytes of JSON that the value of a program may have."""
    recursion: Count = defaults.CODE_RECURSION
    """How deep functions of a program may call each other."""
    workers: Count = defaults.CODE_WORKERS
    """Programs that run at the same time, each in a process of its own."""
    queue: Annotated[int, Ge(0)] = defaults.CODE_QUEUE
    """Programs that may wait for a free worker; further ones fail as busy."""
    record_ttl: Seconds = defaults.CODE_RECORD_TTL
    """Seconds for which a run that stopped, or that waits for consent, can be continued."""
    store_programs: bool = False
    """Whether events, the audit log and the dashboard contain the programs themselves."""
    confine: Literal["auto", "required", "off"] = "auto"
    """Whether workers run inside bubblewrap: where it works, always, or never."""


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """How tools are found."""

    __pydantic_config__: ClassVar[Any] = STRICT

    learn: Learning = "local"
    """From whose calls search learns: `local` from the one user of a gateway on their own machine,
    `principals` from each signed-in caller for that caller alone, `off` from nobody."""
    store_queries: bool = False
    """Whether the text of queries is stored with what was learned; by default only a vector is."""


@dataclass(frozen=True, kw_only=True)
class UpstreamSettings:
    """Defaults for all servers, and limits for all of them together."""

    __pydantic_config__: ClassVar[Any] = STRICT

    start_concurrency: Count = 8
    """Servers that are started at the same time on the first start."""
    start_timeout: Seconds = defaults.START_TIMEOUT
    """Timeout of starting and listing it, in seconds."""
    idle_stop: Annotated[float, Ge(0)] = defaults.IDLE_STOP
    """Seconds without a call after which a server is stopped; 0 keeps it running."""
    isolation: Isolation | None = None
    """Who shares one process: one `principal`, one `session`, or everybody (`shared`)."""
    max_processes: Count = defaults.MAX_PROCESSES
    """Server processes at a time; the one that was idle longest is stopped to make room."""
    max_processes_per_principal: Count = defaults.MAX_PROCESSES_PER_PRINCIPAL
    """Server processes of one authenticated principal."""
    refresh: bool = True
    """Whether cached catalogs are refreshed in the background after the first answer."""
    folder: str | None = None
    """Where catalogs and logs are stored; by default the user's cache folder."""
    log_bytes: Annotated[int, Ge(4096)] = defaults.SERVER_LOG_BYTES
    """Size in bytes of the log of one server's stderr."""
    max_message_bytes: Annotated[int, Ge(4096)] = defaults.MAX_MESSAGE_BYTES
    """The largest message in bytes that is accepted from a server or an API. A larger one is
    discarded and the call fails; the connection stays open."""


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
    """A named part of the catalog; all names are globs. It is a choice, not a permission."""

    __pydantic_config__: ClassVar[Any] = STRICT

    servers: tuple[str, ...] = ()
    """Servers to show, by their names in this file; all if none is given."""
    tools: tuple[str, ...] = ()
    """Tools to show, by `server.tool`, by the name that clients see, or by the server's own name;
    all tools of `servers` if none is given."""
    exclude: tuple[str, ...] = ()
    """Tools to leave out, written in the same ways."""


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
    """Tools that every mode lists as themselves, by name or glob."""
    risk: Literal["auto", "split", "single"] = "auto"
    """Whether there is one call tool for each risk; by default a gateway has one for each."""
    structured: bool = False
    """Whether meta-tools answer with structured content too."""
    instructions: str | None = None
    """Instructions that clients get from this server, before those of the mode."""
    imports: tuple[str, ...] = ()
    """Files of clients whose servers are imported, such as `~/.cursor/mcp.json`."""
    clients: Mapping[str, ModeSetting] = field(default_factory=dict[str, ModeSetting])
    """The mode by the name of the client (a glob), for clients that send their name."""
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
