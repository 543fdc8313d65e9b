"""A gateway as an ASGI application: the page, `/mcp`, `/mcp/<mode>`, `/health`, `/ready`."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.types import Scope

from pegboard.core.calls import Caller
from pegboard.core.events import SignInFailed
from pegboard.core.json import JsonObject
from pegboard.dashboard import dashboard_routes, metrics_route
from pegboard.gateway.dashboard import build_gateway_panel, build_identify
from pegboard.gateway.from_settings import ReloadableKeys, build_auth
from pegboard.gateway.gateway import Gateway
from pegboard.gateway.mcp_server import build_gateway_server
from pegboard.ports import record_event
from pegboard.server import mcp_private
from pegboard.server.auth import Auth, is_loopback, refuse_exposure
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
    **page: Any,
) -> Starlette:
    """The application of a gateway that runs for as long as the application does.

    Args:
        gateway: Not running yet.
        host: The address that the application will listen on.
        environ: Where `PEGBOARD_MODE` and `PEGBOARD_UNAUTHENTICATED` may be.
        auth: How callers are asked who they are, in place of what is configured.
        page: Fields of `pegboard.dashboard.Dashboard` that differ from the usual.

    Raises:
        ConfigError: Other machines could reach it and nobody would be asked who they are.
    """
    allowed = gateway.configuration.settings.http
    auth = auth or _reloadable_auth(gateway)
    refuse_exposure(host, auth, environ, allowed=allowed.unauthenticated)
    guard = HostGuard.bound_to(host, hosts=allowed.allowed_hosts, origins=allowed.allowed_origins)

    def state() -> tuple[bool, JsonObject]:
        found: JsonObject = {}
        if not gateway.decisions.are_known:
            found["reason"] = "Operators' decisions cannot be read, so no tool is usable yet."
        if auth is None:  # else nobody has been asked who they are: servers are not named
            found["tools"] = len(gateway.board.known_catalog)
            found["pending"] = sorted(gateway.pending)
            found["unavailable"] = sorted(gateway.unavailable)
            found["disabled"] = sorted(spec.name for spec in gateway.configuration.disabled)
            found["in_flight"] = len(gateway.work)
        return gateway.is_ready, found

    def refused(event: SignInFailed) -> None:
        record_event(gateway.board.parts.observer, event)

    if auth is not None:
        auth = replace(auth, refused=refused)
        page = {"identify": build_identify(auth, allowed), **page}
    panel = build_gateway_panel(gateway, **page)
    routes = [*dashboard_routes(panel), *health_routes(state, gateway.check)]
    if gateway.observing.metrics is not None:
        observe = gateway.configuration.settings.observe
        readers = None if observe.metrics == "open" else observe.metrics_readers
        routes.append(metrics_route(panel, gateway.observing.metrics, readers))
    stateless = allowed.legacy == "stateless"
    single_user = is_loopback(host) and not allowed.allowed_hosts
    if auth is None and not single_user:
        _warn_about_refused_clients(gateway)
    app = asgi_app(
        build_gateway_server(gateway, environ=environ, single_user=single_user),
        guard,
        *routes,
        auth=auth,
        stateless=stateless,
        sessions=SessionLimits(allowed.max_sessions, allowed.max_sessions_per_principal),
        admit=_build_admission(gateway),
    )
    if not stateless:
        noted = Middleware(SessionOwners, store=gateway.store, replica=gateway.replicas.id)
        app.user_middleware.append(noted)
    serving = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(application: Starlette) -> AsyncGenerator[Any]:
        try:
            async with gateway, serving(application) as state:
                yield state
        except BaseException as exc:
            gateway.fail(exc)
            raise

    app.router.lifespan_context = lifespan
    return app


def _warn_about_refused_clients(gateway: Gateway) -> None:
    """Name the servers that callers without a session cannot use."""
    kept_apart = [s.name for s in gateway.pool.servers if s.sharing != "shared"]
    if kept_apart:
        logger.warning(
            "Nobody is asked who they are. Servers may keep data for each user, so clients without "
            "a session (MCP 2026-07-28) are refused by: %s. Set `auth`, or declare each server "
            'that everybody may share with `stateless = true` or `isolation = "shared"`.',
            ", ".join(kept_apart),
        )


def _build_admission(gateway: Gateway) -> Admit:
    """The rate limit of whoever opens a session: the same as for calls."""

    async def admit(scope: Scope) -> None:
        who = mcp_private.identity_from_scope(scope)
        caller = Caller(who.principal, scopes=who.scopes, groups=who.groups)
        if gateway.limits is not None:
            async with gateway.limits.call(caller):
                return

    return admit


def _reloadable_auth(gateway: Gateway) -> Auth | None:
    """How callers are asked who they are; static keys as they are in the file now."""
    settings = gateway.configuration.settings
    auth = build_auth(settings)
    if auth is not None and settings.auth.kind == "keys":
        return replace(auth, verifier=ReloadableKeys(lambda: gateway.configuration.settings))
    return auth
