"""How a board is shown and called: one frozen record, read once, passed down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias

from pegboard.core import defaults
from pegboard.core.tool_names import nearest
from pegboard.core.tools import RISKS, Risk
from pegboard.errors import ConfigError

ModeName: TypeAlias = Literal["eager", "stub", "index", "hierarchy", "proxy", "dynamic"]
MODES: tuple[ModeName, ...] = ("eager", "stub", "index", "hierarchy", "proxy", "dynamic")


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """What the author or operator decided; every field has a default that suits most."""

    mode: str = "auto"
    pins: tuple[str, ...] = ()
    risk: Literal["auto", "split", "single"] = "auto"
    risk_rules: Mapping[str, Risk] = field(default_factory=dict[str, Risk])
    """Globs over tool ids and names; the first that fits wins over a tool's annotations."""
    strict_risk: bool = False
    """Whether a tool whose risk neither a rule, its annotations nor its name tells is destructive,
    as MCP has it, and not only write."""
    structured: bool = False
    """Whether meta-tools answer with `structuredContent` beside their text, asked for or not."""
    eager_budget: int = defaults.EAGER_BUDGET
    """`auto` lists a catalogue of at most so many tokens whole: 2 % of a window of 200,000."""
    client_modes: Mapping[str, str] = field(default_factory=dict[str, str])
    """`auto` in the session era: mode by globs over client names, before the known clients."""
    page_tokens: int = defaults.INDEX_PAGE_TOKENS
    """How much one listing of the `index` mode may cost before it pages."""
    page_size: int | None = None
    """Tools per page of `tools/list`; `None` lists all on one page, which every client can read."""
    list_ttl: float = 300.0
    """Seconds for which a modern client may keep `tools/list`."""
    session_cap: int = defaults.ENABLED_TOOLS_CAP
    """Enabled tools of one `dynamic` session, beyond its pins."""
    enabled_per_search: int = defaults.ENABLED_PER_SEARCH
    """Tools that one search of a `dynamic` session enables."""
    category_tokens: int = defaults.CATEGORY_TOKENS
    """A search for a whole category enables all of it where its tools cost at most so much."""
    dispatch_risk: Literal["allow", "refuse", "read-only"] = "allow"
    """What a meta-tool may call that carries all risks under one name, such as `tools_dispatch` or
    `invoke_tool`: all, all but destructive, or only read-only tools."""
    max_parallel: int = defaults.FAN_OUT_CONCURRENCY
    """Calls of one fan-out that run at the same time."""
    fan_out_deadline: float = 300.0
    """Seconds that all calls of one fan-out may take together."""
    fan_out: bool = True
    """Whether several calls may be made in one request."""
    coerce: bool = True
    """Whether numbers and booleans that arrive as text are understood where that is unambiguous."""
    upstream_concurrency: int = defaults.UPSTREAM_CONCURRENCY
    """Calls that one server gets at the same time; more wait in line."""
    upstream_queue: int = defaults.UPSTREAM_QUEUE
    """Calls that may wait for one server; further ones are told that it is busy."""
    timeout: float | None = defaults.CALL_TIMEOUT
    """Seconds that a call may take, where neither the tool nor its server says otherwise."""
    attempts: int = defaults.CALL_RETRIES + 1
    """How often a call that may be repeated is tried when its server cannot be reached."""
    breaker_failures: int = defaults.BREAKER_FAILURES
    """Failures in a row after which a tool or server is not asked any more for a while."""
    breaker_cooldown: float = defaults.BREAKER_COOLDOWN
    """Seconds until one call is let through again to see."""
    spill_tokens: int | None = defaults.SPILL_TOKENS
    """Tokens above which a result is kept back and read in parts; `None` sends all whole."""
    spill_per_tool: Mapping[str, int | None] = field(default_factory=dict[str, int | None])
    """Other such bounds, by tool."""
    spill_bytes: int | None = defaults.SPILL_BYTES
    """Bytes of images, audio and files in one result above which these are kept as resources."""
    spill_ttl: float = defaults.SPILL_TTL
    """Seconds for which a result that was kept back can be read."""
    clean_results: bool = False
    """Whether invisible characters and terminal escapes are removed from results."""
    tables: bool = True
    """Whether lists of like records are sent as tables where that saves tokens."""
    table_saving: float = defaults.TABLE_SAVING
    """The part of its tokens that another encoding must save to be used."""
    cache: Mapping[str, float] = field(default_factory=dict[str, float])
    """Read-only tools whose results may be kept, by globs over names, with seconds for which."""
    tokenizer: str = defaults.TOKENIZER
    """What tokens are counted by."""
    metrics: bool = False
    """Whether a board that is served over HTTP has Prometheus figures at `/metrics`."""
    schema_cache_size: int = 1_024
    """Generated schemas that a board holds at most; the least recently used go first."""
    schema_cache_ttl: float = 300.0
    """Seconds after which a schema is generated again."""


_CHOICES: dict[str, tuple[str, ...]] = {
    "risk": ("auto", "split", "single"),
    "dispatch_risk": ("allow", "refuse", "read-only"),
}
_AT_LEAST_ONE = (
    "page_size", "page_tokens", "session_cap", "enabled_per_search", "max_parallel", "attempts",
    "upstream_concurrency", "schema_cache_size",
)  # fmt: skip


def make_options(**given: Any) -> Options:
    """Options out of keyword arguments.

    Raises:
        ConfigError: One is unknown or has a value it cannot have; says what would be right.
    """
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
    """A mode's name, or an error that lists them."""
    if name == "auto" or name in MODES:
        return name
    meant = nearest(name, MODES, limit=1)
    hint = f" Did you mean {meant[0]!r}?" if meant else ""
    raise ConfigError(
        f"Unknown mode {name!r}.{hint} Modes: auto, {', '.join(MODES)}.", nearest=meant
    )


def reject_unknown_keys(given: Mapping[str, Any], record: type, what: str) -> None:
    """Refuse keywords that a record has no field for, naming the nearest that it has."""
    known = [field.name for field in fields(record)]
    for key in given:
        if key not in known:
            meant = nearest(key, known, limit=1)
            hint = f" Did you mean {meant[0]!r}?" if meant else f" Known: {', '.join(known)}."
            raise ConfigError(f"Unknown {what} {key!r}.{hint}", nearest=meant)
