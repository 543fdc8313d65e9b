"""Build the parts of a gateway from its settings.

    settings.permissions                        -->  Policy: who may see and call which tools
    settings.limits                             -->  RateLimits
    settings.store                              -->  Store
    settings.auth                               -->  Auth
    settings.budgets, calls, results, code ...  -->  options of the board
    settings.observe                            -->  Observability: metrics, traces, the audit log

The parts that need the SDK or another large package import it when they are built, because commands
that only read build a policy and options and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegboard.config.settings import ScopeSettings, Settings
from pegboard.core.options import CodeOptions
from pegboard.core.policy import Policy, Profile, Rule
from pegboard.core.token_bucket import RateLimit
from pegboard.core.tools import Risk
from pegboard.dispatch.rate_limit import LimitRule, RateLimits
from pegboard.errors import ConfigError
from pegboard.observe.call_history import config_key
from pegboard.observe.rollouts import ArmObserver
from pegboard.ports import Layer, Observer, Records, Store
from pegboard.private_files import home_folder
from pegboard.store.files import FileRecords
from pegboard.store.memory import MemoryStore
from pegboard.upstream.namespaces import Naming

if TYPE_CHECKING:
    from mcp.server.auth.provider import AccessToken

    from pegboard.core.risk import RiskScopes
    from pegboard.oauth.grant_storage import GrantStorage
    from pegboard.oauth.logins import Logins
    from pegboard.server.auth import Auth
    from pegboard.upstream.pool import PoolLimits

REQUESTS_PER_CALL = 10
"""Requests of any kind that a principal gets for each allowed call, unless configured."""

# Permissions and limits ------------------------------------------------------------------------


def build_policy(settings: Settings) -> Policy:
    """Who may see and call what."""
    permissions = settings.permissions
    rules = [Rule(**asdict(rule)) for rule in permissions.rules]
    profiles = {name: Profile(**asdict(entry)) for name, entry in settings.profiles.items()}
    if settings.profile is not None and settings.profile not in profiles:
        known = ", ".join(profiles) or "none"
        raise ConfigError(f"There is no profile {settings.profile!r}. Profiles: {known}.")
    return Policy(rules, default=permissions.default, profiles=profiles, profile=settings.profile)


def build_rate_limits(settings: Settings, store: Store) -> RateLimits | None:
    """The rate limits of principals; `None` if there are none."""
    if not settings.limits:
        return None
    rules: list[LimitRule] = []
    for entry in settings.limits:
        requests, request_burst = entry.requests, None
        if requests is None and entry.calls is not None:
            requests = entry.calls * REQUESTS_PER_CALL
            request_burst = None if entry.burst is None else entry.burst * REQUESTS_PER_CALL
        request_limit = None
        if requests is not None:
            request_limit = RateLimit(
                calls=requests, per=entry.per, burst=request_burst, unit="requests"
            )
        limit = RateLimit(
            calls=entry.calls, per=entry.per, burst=entry.burst, concurrent=entry.concurrent
        )
        rules.append(
            LimitRule(
                limit=limit,
                requests=request_limit,
                principals=entry.principals,
                groups=entry.groups,
            )
        )
    return RateLimits(store=store, rules=rules)


def build_pool_limits(settings: Settings) -> PoolLimits:
    """How many processes of servers may run."""
    from pegboard.upstream.pool import PoolLimits

    upstreams = settings.upstreams
    return PoolLimits(upstreams.max_processes, upstreams.max_processes_per_principal)


# The store -------------------------------------------------------------------------------------


def open_store(settings: Settings, observer: Observer | None) -> Store:
    """The store for state: memory, or shared, with memory as its fallback."""
    url = settings.store.url
    if url.startswith("memory:"):
        return MemoryStore()
    try:
        from pegboard.store.redis import RedisStore
    except ImportError as exc:
        raise ConfigError(
            "A shared store needs the Redis client: pip install 'pegboard[redis]'."
        ) from exc
    from pegboard.store.fallback import FallbackStore

    shared = RedisStore.from_url(url, prefix=settings.store.prefix)
    return FallbackStore(shared, observer=observer)


def open_run_records(settings: Settings, folder: Path, files: Sequence[Path]) -> Records | None:
    """Where programs wait for consent; `None` for the store.

    A shared store outlives this process. Memory does not, so such runs are in files of this user.
    Each configuration has its own folder, because the same name may mean another tool elsewhere.
    """
    if not settings.store.url.startswith("memory:") or not files:
        return None
    return FileRecords(folder / "runs" / config_key(files[0]))


def build_grant_storage(settings: Settings, store: Store | None) -> GrantStorage:
    """Where logins to servers are stored: in files of this user, or in the shared store.

    Raises:
        ConfigError: They cannot be stored as the settings say.
    """
    from pegboard.oauth.encryption import ConfiguredKey, KeyringKey, NoKey
    from pegboard.oauth.grant_storage import FileGrants, StoreGrants, grants_folder

    where, key = settings.oauth.store, settings.oauth.key
    is_shared = not settings.store.url.startswith("memory:")
    if where == "store" and not (is_shared and key):
        raise ConfigError(
            'Logins can be stored in the shared store (`[oauth] store = "store"`) only if there is '
            "one (`[store] url`), and a `key` in `[oauth]` to encrypt them with."
        )
    if store is not None and is_shared and key and where in ("auto", "store"):
        # Without the fallback: memory has no logins, so everybody would have to log in again.
        return StoreGrants(getattr(store, "shared", store), ConfiguredKey(key))
    folder = grants_folder(os.environ)
    if key:
        return FileGrants(folder, ConfiguredKey(key))
    if where == "file":
        return FileGrants(folder, NoKey())
    return FileGrants(folder, KeyringKey(folder, is_required=where == "keyring"))


def build_logins(settings: Settings, store: Store | None) -> Logins:
    """The logins to servers. Raises `ConfigError` as `build_grant_storage`."""
    from pegboard.oauth.logins import Logins

    storage = build_grant_storage(settings, store)
    return Logins(storage, metadata_url=settings.oauth.client_metadata_url)


async def close_store(store: Store) -> None:
    """Close the connections of a store, if it has any."""
    aclose = getattr(store, "aclose", None)
    if aclose is not None:
        await aclose()


# Authentication --------------------------------------------------------------------------------


class ReloadableKeys:
    """Verifies static keys by the current configuration, so that one can be revoked."""

    def __init__(self, current: Callable[[], Settings]) -> None:
        self._current = current
        self._settings: Settings | None = None
        self._auth: Auth | None = None

    async def verify_token(self, token: str) -> AccessToken | None:
        """The principal of a key; `None` if the key is unknown."""
        settings = self._current()
        if settings is not self._settings:
            self._settings = settings
            self._auth = build_auth(settings) if settings.auth.kind == "keys" else self._auth
        return await self._auth.verifier.verify_token(token) if self._auth else None


def build_auth(settings: Settings) -> Auth | None:
    """How callers over HTTP are authenticated; `None` if they are not.

    Raises:
        ConfigError: A setting that this kind of authentication needs is missing.
    """
    auth = settings.auth
    if auth.kind == "none":
        return None
    from pegboard.server.auth import Auth, JwtTokens, KeySet, StaticKey, StaticKeys

    if auth.kind == "keys":
        if not auth.keys:
            raise ConfigError("`auth.kind` is `keys`, but there are no keys: add [[auth.keys]].")
        keys = [StaticKey(k.principal, k.sha256, k.scopes, k.groups) for k in auth.keys]
        return Auth(verifier=StaticKeys(keys), required_scopes=auth.required_scopes)
    from pegboard.server.protected_resource import check_scopes

    if not auth.issuer or not auth.audience:
        raise ConfigError("`auth.kind` is jwt: set `issuer` and `audience` under [auth].")
    scopes = build_risk_scopes(settings)
    by_risk = tuple(scope for scope in scopes.in_order if scope) if scopes else ()
    # First without its verifier: the audiences to accept are those of the resource that it
    # describes.
    built = Auth(
        verifier=StaticKeys(()),
        required_scopes=auth.required_scopes,
        issuer=auth.issuer,
        resource=auth.resource or (auth.audience if auth.audience.startswith("http") else None),
        scopes=(scopes.read,) if scopes and scopes.read else (),
        further_scopes=by_risk,
    )
    check_scopes((*auth.required_scopes, *by_risk))
    own = built.protected.audiences if built.protected is not None else ()
    verifier = JwtTokens(
        issuer=auth.issuer,
        audience=(auth.audience, *own),
        keys=KeySet(auth.issuer, auth.jwks_url),
        groups_claim=auth.groups_claim,
    )
    return replace(built, verifier=verifier)


def build_risk_scopes(settings: Settings) -> RiskScopes | None:
    """The scopes that calls need; `None` if they need none, or callers have no token."""
    scopes = settings.auth.scopes
    if settings.auth.kind == "none" or scopes == ScopeSettings():
        return None
    from pegboard.core.risk import RiskScopes

    return RiskScopes(read=scopes.read, write=scopes.write, destructive=scopes.destructive)


def build_scope_layers(settings: Settings) -> tuple[Layer, ...]:
    """The layer that checks these scopes, where they are configured."""
    scopes = build_risk_scopes(settings)
    if scopes is None:
        return ()
    from pegboard.dispatch.required_scopes import require_scopes

    return (require_scopes(scopes),)


# Options of the board --------------------------------------------------------------------------


def settings_to_options(settings: Settings) -> dict[str, Any]:
    """The keyword arguments of `Pegboard` for these settings, without pins.

    Pins are globs here and ids there: they are matched when the tools are known.
    """
    rules = settings.risk_rules
    by_risk: tuple[tuple[Risk, tuple[str, ...]], ...] = (
        ("destructive", rules.destructive),  # first, because the first match decides
        ("write", rules.write),
        ("read", rules.read),
    )
    return {
        "mode": settings.mode,
        # Decided once: servers that are listed later must not change the list of meta-tools.
        "risk": "split" if settings.risk == "auto" else settings.risk,
        "structured": settings.structured,
        "client_modes": dict(settings.clients),
        "risk_rules": {pattern: risk for risk, patterns in by_risk for pattern in patterns},
        "eager_budget": settings.budgets.auto_list,
        "page_tokens": settings.budgets.index_page,
        "page_size": settings.budgets.page_size or None,
        "session_cap": settings.dynamic.cap,
        "enabled_per_search": settings.dynamic.per_search,
        "category_tokens": settings.dynamic.category_tokens,
        "strict_risk": rules.strict,
        "dispatch_risk": rules.dispatch,
        "max_parallel": settings.calls.max_concurrency,
        "coerce": settings.calls.coerce,
        # The connection of each server measures it: only the connection knows when the server waits
        # for a person, and pauses the clock.
        "timeout": None,
        "upstream_concurrency": settings.calls.upstream_concurrency,
        "upstream_queue": settings.calls.queue,
        "attempts": settings.calls.retries + 1,
        "breaker_failures": settings.calls.breaker_failures,
        "breaker_cooldown": settings.calls.breaker_cooldown,
        "spill_tokens": settings.results.spill_tokens or None,
        "spill_bytes": settings.results.spill_bytes or None,
        "spill_ttl": settings.results.spill_ttl,
        "clean_results": settings.results.clean,
        "learn_shapes": settings.results.learn_shapes,
        "learn_searches": settings.search.learn,
        "store_queries": settings.search.store_queries,
        "tables": settings.results.tables,
        "table_saving": settings.results.table_saving,
        "cache": dict(settings.results.cache),
        "tokenizer": settings.budgets.tokenizer,
        "code": CodeOptions(
            **{field.name: getattr(settings.code, field.name) for field in fields(CodeOptions)}
        ),
    }


def build_naming(settings: Settings) -> Naming:
    """How the tools of several servers are named."""
    names = settings.names
    return Naming(style=names.style, separator=names.separator, max_length=names.max_length)


def find_data_folder(settings: Settings, environ: Mapping[str, str], config_folder: Path) -> Path:
    """Where catalogs and logs are stored: as configured, `PEGBOARD_HOME`, or the user's cache."""
    if settings.upstreams.folder:
        return config_folder / Path(settings.upstreams.folder).expanduser()
    return home_folder(environ)


# Observability ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Observability:
    """Who observes a gateway."""

    observers: tuple[Observer, ...] = ()
    """Called with every event."""
    layers: tuple[Layer, ...] = ()
    """Layers that record calls."""
    metrics: Callable[[], bytes] | None = None
    """Returns the text that `/metrics` answers."""
    arms: tuple[ArmObserver, ...] = ()
    """Called with the figures of a rollout's arms."""
    wants_tokens: bool = False
    """Whether some observer reads token counts; otherwise they are counted for rollouts only."""


def build_observability(settings: Settings, config_folder: Path) -> Observability:
    """The observers that a configuration names.

    Args:
        settings: The settings of the gateway.
        config_folder: The folder where relative paths start.

    Raises:
        ConfigError: The audit log cannot be written, or a package is missing.
    """
    from pegboard.observe.otel import OtelRolloutMetrics, configure_otel
    from pegboard.server.board_operations import make_prometheus

    observe, audit = settings.observe, build_audit(settings, config_folder)
    observers: list[Observer] = list(audit.observers)
    arms: list[ArmObserver] = [OtelRolloutMetrics()]
    metrics: Callable[[], bytes] | None = None
    if observe.opentelemetry:
        configure_otel(os.environ)
    if observe.metrics != "off":
        prometheus = make_prometheus()
        observers.append(prometheus)
        arms.append(prometheus.arms)
        metrics = prometheus.exposition
    return Observability(
        observers=tuple(observers),
        layers=audit.layers,
        metrics=metrics,
        arms=tuple(arms),
        wants_tokens=metrics is not None or observe.opentelemetry,
    )


def build_audit(settings: Settings, config_folder: Path) -> Observability:
    """The audit log alone, if the configuration names one.

    Raises:
        ConfigError: It cannot be written.
    """
    observe = settings.observe
    if not observe.audit:
        return Observability()
    from pegboard.observe.audit import AuditLog, AuditObserver, audit_calls

    path = config_folder / Path(observe.audit).expanduser()
    try:
        log = AuditLog(path, max_bytes=observe.audit_bytes, max_files=observe.audit_files)
    except OSError as exc:
        raise ConfigError(f"The audit log {path} cannot be written: {exc}") from exc
    return Observability(observers=(AuditObserver(log),), layers=(audit_calls(log),))
