"""A gateway as an ASGI application: the dashboard, `/mcp`, `/mcp/<mode>`, `/health`, `/ready`."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Route
from starlette.types import Scope

from pegboard.core.calls import Caller
from pegboard.core.events import SignInFailed
from pegboard.core.json import JsonObject
from pegboard.dashboard import dashboard_routes, metrics_route
from pegboard.gateway.config_changes import ConfigEditor
from pegboard.gateway.config_source import ConfigSource
from pegboard.gateway.dashboard import build_gateway_dashboard, build_identify
from pegboard.gateway.from_settings import ReloadableKeys, build_auth, build_risk_scopes
from pegboard.gateway.gateway import Gateway
from pegboard.gateway.login_page import find_public_address, login_routes
from pegboard.gateway.mcp_server import build_gateway_server
from pegboard.ports import record_event
from pegboard.server import mcp_private
from pegboard.server.auth import Auth, JwtTokens, is_loopback, refuse_exposure
from pegboard.server.board_operations import health_routes
from pegboard.server.host_guard import HostGuard
from pegboard.server.http_sessions import Admit, SessionLimits, SessionOwners
from pegboard.server.serving import asgi_app

logger = logging.getLogger(__name__)


def build_gateway_app(
    gateway: Gateway,
    host: str,
    *,
    environ: Mapping[str, str] = os.environ,
    auth: Auth | None = None,
    source: ConfigSource | None = None,
    is_owner_only: bool = False,
    **dashboard: Any,
) -> Starlette:
    """An application that starts the gateway when it starts, and stops it when it stops.

    Args:
        gateway: Not running yet.
        host: The address that the application will listen on.
        environ: Where `PEGBOARD_MODE` and `PEGBOARD_UNAUTHENTICATED` may be.
        auth: How callers are authenticated, instead of as configured.
        source: The configuration, where operators may change it on the dashboard.
        is_owner_only: Whether only the user who started this process has access, as with
            `pegboard ui`.
        dashboard: Fields of `pegboard.dashboard.Dashboard` that differ from the usual.

    Raises:
        ConfigError: Other machines could reach it without authentication.
    """
    http = gateway.configuration.settings.http
    auth = _prepare_auth(gateway, auth)
    refuse_exposure(host, auth, environ, allowed=http.unauthenticated)
    # Without authentication, everybody on a loopback address is treated as the same person.
    single_user = is_loopback(host) and not http.allowed_hosts
    if auth is None and not single_user:
        _warn_about_refused_clients(gateway)
        # The caller is unknown, so nobody is shown the contents of calls.
        dashboard = {"arguments": lambda: "off", **dashboard}
    editor = None
    # A file that was found in a folder is trusted only while unchanged, and servers imported from
    # clients have no file here.
    if source is not None and source.text is None and source.trust is None:
        editor = ConfigEditor(source, allows_commands=is_owner_only or http.add_commands)
    app = asgi_app(
        build_gateway_server(gateway, environ=environ, single_user=single_user),
        HostGuard.bound_to(host, hosts=http.allowed_hosts, origins=http.allowed_origins),
        *_build_routes(gateway, auth, editor, dashboard),
        auth=auth,
        stateless=http.legacy == "stateless",
        sessions=SessionLimits(http.max_sessions, http.max_sessions_per_principal),
        admit=_build_admission(gateway),
    )
    if http.legacy != "stateless":
        owners = Middleware(SessionOwners, store=gateway.store, replica=gateway.replicas.id)
        app.user_middleware.append(owners)
    _run_with_app(gateway, app)
    return app


def _prepare_auth(gateway: Gateway, auth: Auth | None) -> Auth | None:
    """The given or configured authentication; failures are recorded as events."""
    settings = gateway.configuration.settings
    if auth is None:
        auth = build_auth(settings)
        if auth is not None and settings.auth.kind == "keys":
            keys = ReloadableKeys(lambda: gateway.configuration.settings)
            auth = replace(auth, verifier=keys)
    if auth is None:
        return None

    def record_failure(event: SignInFailed) -> None:
        record_event(gateway.board.parts.observer, event)

    def exchanges_tokens() -> bool:
        """Whether any server exchanges the tokens that callers have for this gateway."""
        return any(
            spec.uses_oauth and spec.oauth.exchanges_caller_token for spec in gateway.pool.servers
        )

    if isinstance(auth.verifier, JwtTokens):
        auth = replace(auth, verifier=replace(auth.verifier, keep_token=exchanges_tokens))
    has_scopes = build_risk_scopes(settings) is not None
    missing_scope = _build_scope_check(gateway) if has_scopes else None
    return replace(auth, refused=record_failure, missing_scope=missing_scope)


def _build_scope_check(gateway: Gateway) -> Callable[[Scope, JsonObject], str | None]:
    """Find the scope that the token of a request lacks for the tools that it calls."""
    from pegboard.server.protected_resource import called_names

    def find_missing(scope: Scope, params: JsonObject) -> str | None:
        scopes = build_risk_scopes(gateway.configuration.settings)
        if scopes is None:
            return None
        who = mcp_private.identity_from_scope(scope)
        caller = Caller(who.principal, scopes=who.scopes, groups=who.groups)
        # Only what the caller may see: a challenge must not reveal that a hidden tool exists.
        visible = gateway.board.policy.visible(gateway.board.known_catalog, caller)
        found = [visible.matching(name) for name in called_names(params)]
        # A name of several tools is refused later, with the candidates.
        missing = {scopes.missing(tools[0], who.scopes) for tools in found if len(tools) == 1}
        # The highest: it includes the others.
        return max(missing - {None}, key=scopes.in_order.index, default=None)

    return find_missing


def _build_routes(
    gateway: Gateway, auth: Auth | None, editor: ConfigEditor | None, dashboard: Mapping[str, Any]
) -> list[BaseRoute]:
    """The routes besides `/mcp`: the dashboard, health, and metrics where they are on."""
    settings = gateway.configuration.settings
    if auth is not None:
        dashboard = {"identify": build_identify(auth, settings.http), **dashboard}
    built = build_gateway_dashboard(gateway, editor, **dashboard)
    state = _build_readiness(gateway, names_servers=auth is None)
    logins: list[Route] = []
    if auth is not None:
        logins = login_routes(gateway, built, find_public_address(settings.auth))
    routes = [*dashboard_routes(built, *logins), *health_routes(state, gateway.check)]
    if gateway.observability.metrics is not None:
        observe = settings.observe
        readers = None if observe.metrics == "open" else observe.metrics_readers
        routes.append(metrics_route(built, gateway.observability.metrics, readers))
    return routes


def _build_readiness(
    gateway: Gateway, *, names_servers: bool
) -> Callable[[], tuple[bool, JsonObject]]:
    """What `/ready` answers: whether the gateway is ready, and details."""

    def state() -> tuple[bool, JsonObject]:
        details: JsonObject = {}
        if not gateway.decisions.are_known:
            details["reason"] = "Operators' decisions cannot be read, so no tool is usable yet."
        # `/ready` needs no token. Where callers have to authenticate, it does not name servers.
        if names_servers:
            details["tools"] = len(gateway.board.known_catalog)
            details["pending"] = sorted(gateway.pending)
            details["unavailable"] = sorted(gateway.unavailable)
            details["disabled"] = sorted(spec.name for spec in gateway.configuration.disabled)
            details["in_flight"] = len(gateway.drain)
        return gateway.is_ready, details

    return state


def _run_with_app(gateway: Gateway, app: Starlette) -> None:
    """Start and stop the gateway with the application."""
    inner = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(application: Starlette) -> AsyncGenerator[Any]:
        try:
            async with gateway, inner(application) as state:
                yield state
        except BaseException as exc:
            # uvicorn only logs an exception of the lifespan. The process has to end with it.
            gateway.fail(exc)
            raise

    app.router.lifespan_context = lifespan


def _warn_about_refused_clients(gateway: Gateway) -> None:
    """Name the servers that callers without a session cannot use."""
    isolated = [s.name for s in gateway.pool.servers if s.sharing != "shared"]
    if isolated:
        logger.warning(
            "There is no authentication. Servers may keep data for each user, so clients without "
            "a session (MCP 2026-07-28) are refused by: %s. Set `auth`, or declare each server "
            'that everybody may share with `stateless = true` or `isolation = "shared"`.',
            ", ".join(isolated),
        )


def _build_admission(gateway: Gateway) -> Admit:
    """The rate limit for opening a session: it counts as a call."""

    async def admit(scope: Scope) -> None:
        identity = mcp_private.identity_from_scope(scope)
        caller = Caller(identity.principal, scopes=identity.scopes, groups=identity.groups)
        if gateway.limits is not None:
            async with gateway.limits.call(caller):
                return

    return admit
