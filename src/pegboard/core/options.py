"""How a board is shown and called: one frozen record, built once and passed down.

`CodeOptions` is its part for code mode: what a program may use, and what is stored about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias

from pegboard.core import defaults
from pegboard.core.similar_names import nearest
from pegboard.core.tools import RISKS, Risk
from pegboard.errors import ConfigError

Confinement: TypeAlias = Literal["auto", "required", "off"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeOptions:
    """Limits of one program, and of all together. Durations are seconds."""

    in_proxy: bool = False
    """Whether the `proxy` mode lists the tools that run programs, too."""
    compute_time: float = defaults.CODE_COMPUTE_TIME
    """How long a program may compute, without the time that its calls take."""
    total_time: float = defaults.CODE_TOTAL_TIME
    """How long it may take in total, including its calls."""
    sleep_time: float = defaults.CODE_SLEEP_TIME
    """How long it may sleep in total."""
    memory_bytes: int = defaults.CODE_MEMORY_BYTES
    max_calls: int = defaults.CODE_MAX_CALLS
    """Calls of tools in one run."""
    max_parallel: int = defaults.CODE_MAX_PARALLEL
    """Calls of one run at the same time."""
    program_bytes: int = defaults.CODE_PROGRAM_BYTES
    print_bytes: int = defaults.CODE_PRINT_BYTES
    """Bytes of printed text that come back; what is printed beyond is dropped."""
    value_bytes: int = defaults.CODE_VALUE_BYTES
    """Bytes of JSON that the value of a program may have."""
    recursion: int = defaults.CODE_RECURSION
    workers: int = defaults.CODE_WORKERS
    """Programs that run at the same time, each in a process of its own."""
    queue: int = defaults.CODE_QUEUE
    """Programs that may wait for a free worker; further ones fail with `Busy`."""
    record_ttl: float = defaults.CODE_RECORD_TTL
    """For how long a suspended run, or the record of a run that stopped, can be continued."""
    store_programs: bool = False
    """Whether events and records contain the programs themselves, not only their digests."""
    confine: Confinement = "auto"
    """Whether workers run inside bubblewrap: where it is installed, always, or never."""


ModeName: TypeAlias = Literal["eager", "stub", "index", "hierarchy", "proxy", "dynamic", "code"]
MODES: tuple[ModeName, ...] = ("eager", "stub", "index", "hierarchy", "proxy", "dynamic", "code")
Learning: TypeAlias = Literal["local", "principals", "off"]
"""From whom search learns: the one local user, each signed-in principal alone, or nobody."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """The settings of a board; each has a default that suits most boards."""

    mode: str = "auto"
    pins: tuple[str, ...] = ()
    risk: Literal["auto", "split", "single"] = "auto"
    risk_rules: Mapping[str, Risk] = field(default_factory=dict[str, Risk])
    """Risks by globs over tool ids and names; the first match overrides a tool's annotations."""
    strict_risk: bool = False
    """Whether a tool of unknown risk (no rule, no annotations, a name that says nothing) counts as
    destructive, which is MCP's own default, instead of write."""
    structured: bool = False
    """Whether meta-tools always answer with `structuredContent` besides their text."""
    eager_budget: int = defaults.EAGER_BUDGET
    """Tokens up to which `auto` lists the whole catalog: 2% of a window of 200,000."""
    client_modes: Mapping[str, str] = field(default_factory=dict[str, str])
    """For `auto` in the legacy era: modes by globs over client names, before the known clients."""
    page_tokens: int = defaults.INDEX_PAGE_TOKENS
    """Tokens of one page of a listing in the `index` mode."""
    page_size: int | None = None
    """Tools per page of `tools/list`; `None` lists all on one page, which every client can read."""
    list_ttl: float = 300.0
    """Seconds for which a modern client may cache `tools/list`."""
    session_cap: int = defaults.ENABLED_TOOLS_CAP
    """The most enabled tools of one `dynamic` session, besides its pins."""
    enabled_per_search: int = defaults.ENABLED_PER_SEARCH
    """Tools that one search of a `dynamic` session enables."""
    category_tokens: int = defaults.CATEGORY_TOKENS
    """A search for a whole category enables all its tools if they have at most this many tokens."""
    dispatch_risk: Literal["allow", "refuse", "read-only"] = "allow"
    """What a meta-tool may call that has one name for all risks, such as `tools_dispatch` or
    `invoke_tool`: all tools, all but destructive ones, or only read-only ones."""
    max_parallel: int = defaults.FAN_OUT_CONCURRENCY
    """Calls of one batch that run at the same time."""
    fan_out_deadline: float = 300.0
    """Seconds that all calls of one batch may take together."""
    fan_out: bool = True
    """Whether several calls may be made in one request."""
    coerce: bool = True
    """Whether strings become the numbers and booleans they contain where that is unambiguous."""
    upstream_concurrency: int = defaults.UPSTREAM_CONCURRENCY
    """Calls that run on one server at the same time; more wait in a queue."""
    upstream_queue: int = defaults.UPSTREAM_QUEUE
    """Calls that may wait for one server; further ones fail with `Busy`."""
    timeout: float | None = defaults.CALL_TIMEOUT
    """Seconds that a call may take, unless the tool or its server sets its own timeout."""
    attempts: int = defaults.CALL_RETRIES + 1
    """How often a call that is safe to repeat is tried when its server cannot be reached."""
    breaker_failures: int = defaults.BREAKER_FAILURES
    """Failures in a row that open the circuit breaker of a tool or server."""
    breaker_cooldown: float = defaults.BREAKER_COOLDOWN
    """Seconds until an open circuit breaker lets one call through as a probe."""
    spill_tokens: int | None = defaults.SPILL_TOKENS
    """Tokens above which a result is spilled and read in parts; `None` never spills."""
    spill_per_tool: Mapping[str, int | None] = field(default_factory=dict[str, int | None])
    """The same limit by tool."""
    spill_bytes: int | None = defaults.SPILL_BYTES
    """Bytes of images, audio and files in one result above which they are stored as resources."""
    spill_ttl: float = defaults.SPILL_TTL
    """Seconds for which a spilled result can be read."""
    clean_results: bool = False
    """Whether invisible characters and terminal escapes are removed from results."""
    learn_shapes: bool = True
    """Whether names and types of fields are learned from results of tools that declare none."""
    learn_searches: Learning = "local"
    """Whether search learns from calls: a tool that was called after a search is found sooner."""
    store_queries: bool = False
    """Whether the text of queries is stored too, and not only their vectors."""
    tables: bool = True
    """Whether lists of similar records are sent as tables where that saves tokens."""
    table_saving: float = defaults.TABLE_SAVING
    """The share of the tokens that a table must save to be used."""
    cache: Mapping[str, float] = field(default_factory=dict[str, float])
    """Seconds for which results of read-only tools may be cached, by globs over names."""
    tokenizer: str = defaults.TOKENIZER
    """The tokenizer that counts tokens."""
    metrics: bool = False
    """Whether a board that is served over HTTP has Prometheus metrics at `/metrics`."""
    code: CodeOptions = field(default_factory=CodeOptions)
    """The limits of programs, and whether `proxy` offers to run them."""
    schema_cache_size: int = defaults.SCHEMA_CACHE_SIZE
    """The most generated schemas that a board caches."""
    schema_cache_ttl: float = defaults.SCHEMA_CACHE_TTL
    """Seconds after which a schema is generated again."""


_CHOICES: dict[str, tuple[str, ...]] = {
    "risk": ("auto", "split", "single"),
    "dispatch_risk": ("allow", "refuse", "read-only"),
    "learn_searches": ("local", "principals", "off"),
}
_AT_LEAST_ONE = (
    "page_size", "page_tokens", "session_cap", "enabled_per_search", "max_parallel", "attempts",
    "upstream_concurrency", "schema_cache_size",
)  # fmt: skip


def make_options(**given: Any) -> Options:
    """Options from keyword arguments.

    Raises:
        ConfigError: One is unknown or has an invalid value; says what would be right.
    """
    # A board in code has no configuration file, whose schema would catch these mistakes.
    # Checked by hand, because the core does not import pydantic.
    reject_unknown_keys(given, Options, "option")
    check_mode(given.get("mode", "auto"))
    for name in given.get("client_modes", {}).values():
        check_mode(name)
    for key, allowed in _CHOICES.items():
        if key in given and given[key] not in allowed:
            raise ConfigError(f"{key} is {given[key]!r}; it must be one of {', '.join(allowed)}.")
    for pattern, risk in given.get("risk_rules", {}).items():
        if risk not in RISKS:
            raise ConfigError(
                f"The risk of {pattern!r} is {risk!r}, not one of {', '.join(RISKS)}."
            )
    for key in _AT_LEAST_ONE:
        if given.get(key) is not None and given[key] < 1:
            raise ConfigError(f"{key} is {given[key]}; it must be at least 1.")
    if given.get("schema_cache_ttl", 1.0) <= 0:
        raise ConfigError(
            f"schema_cache_ttl is {given['schema_cache_ttl']}; it must be more than 0 seconds."
        )
    return Options(**given)


def check_mode(name: str) -> str:
    """The name of a mode, or `auto`; for anything else an error that lists them."""
    if name == "auto" or name in MODES:
        return name
    # Models and people type this name, so the error carries what they meant, as data too.
    meant = nearest(name, MODES, limit=1)
    hint = f" Did you mean {meant[0]!r}?" if meant else ""
    raise ConfigError(
        f"Unknown mode {name!r}.{hint} Modes: auto, {', '.join(MODES)}.", nearest=meant
    )


def reject_unknown_keys(given: Mapping[str, Any], record: type, what: str) -> None:
    """Raise `ConfigError` for a key that a record has no field for; suggests a similar one."""
    # A misspelled setting that is silently ignored costs hours, so every unknown key is an error.
    known = [field.name for field in fields(record)]
    for key in given:
        if key not in known:
            meant = nearest(key, known, limit=1)
            hint = f" Did you mean {meant[0]!r}?" if meant else f" Known: {', '.join(known)}."
            raise ConfigError(f"Unknown {what} {key!r}.{hint}", nearest=meant)
