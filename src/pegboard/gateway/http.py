"""A gateway as an ASGI application: the page, `/mcp`, `/mcp/<face>`, `/health`, `/ready`."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route

from pegboard.core.json import JsonObject
from pegboard.gateway.gateway import Gateway
from pegboard.gateway.governing import CurrentKeys, auth_of
from pegboard.gateway.page import gateway_panel, known_to
from pegboard.gateway.server import build_server
from pegboard.server.auth import Auth, refuse_exposure
from pegboard.server.guard import Guard
from pegboard.server.operations import metrics_endpoint, probes
from pegboard.server.serve import asgi_app
from pegboard.server.sessions import SessionNotes
from pegboard.web import page_routes


def gateway_app(
    gateway: Gateway, host: str, *, environ: Mapping[str, str] = os.environ, **page: Any
) -> Starlette:
    """The application of a gateway that runs for as long as the application does.

    Args:
        gateway: Not running yet.
        host: The address that the application will listen on.
        environ: Where `PEGBOARD_FACE` and `PEGBOARD_UNAUTHENTICATED` may be.
        page: Fields of `pegboard.web.Panel` that differ from the usual.

    Raises:
        ConfigError: Other machines could reach it and nobody would be asked who they are.
    """
    allowed = gateway.configuration.settings.http
    auth = _current_auth(gateway)
    refuse_exposure(host, auth, environ, allowed=allowed.unauthenticated)
    guard = Guard.bound_to(host, hosts=allowed.allowed_hosts, origins=allowed.allowed_origins)

    def state() -> tuple[bool, JsonObject]:
        if auth is not None:  # nobody has been asked who they are: servers are not named
            return gateway.is_ready, {}
        return gateway.is_ready, {
            "tools": len(gateway.board.known_catalog),
            "pending": sorted(gateway.pending),
            "unavailable": sorted(gateway.failures),
            "in_flight": len(gateway.work),
        }

    if auth is not None:
        page = {"identify": known_to(auth, allowed), **page}
    shown = page_routes(gateway_panel(gateway, **page))
    routes = [*shown, *probes(state)]
    if gateway.observing.metrics is not None:
        routes.append(Route("/metrics", _metrics_endpoint(gateway, auth)))
    stateless = allowed.legacy == "stateless"
    app = asgi_app(
        build_server(gateway, environ=environ), guard, *routes, auth=auth, stateless=stateless
    )
    if not stateless:
        noted = Middleware(SessionNotes, store=gateway.store, replica=gateway.replicas.id)
        app.user_middleware.append(noted)
    serving = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(application: Starlette) -> AsyncGenerator[Any]:
        async with gateway, serving(application) as state:
            yield state

    app.router.lifespan_context = lifespan
    return app


def _current_auth(gateway: Gateway) -> Auth | None:
    """How callers are asked who they are; static keys as they are in the file now."""
    settings = gateway.configuration.settings
    auth = auth_of(settings)
    if auth is not None and settings.auth.kind == "keys":
        return replace(auth, verifier=CurrentKeys(lambda: gateway.configuration.settings))
    return auth


def _metrics_endpoint(gateway: Gateway, auth: Auth | None) -> Any:
    assert gateway.observing.metrics is not None
    endpoint = metrics_endpoint(gateway.observing.metrics)
    if auth is None or gateway.configuration.settings.observe.metrics == "open":
        return endpoint
    return auth.required(endpoint)
