"""The page of a gateway: what it knows of its servers, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pegboard.core.calls import Caller
from pegboard.gateway.gateway import Gateway
from pegboard.gateway.sections import trust_section
from pegboard.upstream.servers import UpstreamStatus
from pegboard.web import Panel, ServerLine, Viewer, panel_of
from pegboard.web.panel import Identify
from pegboard.web.rollout import rollout_section

if TYPE_CHECKING:
    from pegboard.config.governance import HttpSettings
    from pegboard.server.auth import Auth


def gateway_panel(gateway: Gateway, **further: Any) -> Panel:
    """The panel of a gateway; `further` are fields of `Panel` that differ from the usual."""

    def servers() -> list[ServerLine]:
        lines = [server_line(status, gateway) for status in gateway.pool.status()]
        lines += [_api_line(name, gateway) for name in gateway.offers.apis]
        configuration = gateway.configuration
        lines += [
            ServerLine(name=name, state="left out", problem=why)
            for name, why in configuration.unusable.items()
        ]
        return lines + [ServerLine(name=s.name, state="disabled") for s in configuration.disabled]

    sections = [rollout_section(gateway.decisions.store)]
    if gateway.decisions.trust.locks is not None:
        sections.insert(0, trust_section(gateway.decisions.trust.locks))
    own: dict[str, Any] = {
        "view": gateway.view,
        "switch": gateway.switch,
        "servers": servers,
        "observer": gateway.board.parts.observer,
        "sections": tuple(sections),
    }
    return panel_of(gateway.board, gateway.board.parts, **{**own, **further})


def known_to(auth: Auth, settings: HttpSettings) -> Identify:
    """Whoever has a token that clients could use; the operators among them as configured."""

    async def identify(token: str | None) -> Viewer | None:
        known = await auth.identify(token)
        if known is None:
            return None
        groups = frozenset[str]((known.claims or {}).get("groups") or ())
        caller = Caller(
            known.subject or known.client_id, scopes=frozenset(known.scopes), groups=groups
        )
        operates = caller.principal in settings.operators
        return Viewer(caller, operates or bool(groups & set(settings.operator_groups)))

    return identify


def server_line(status: UpstreamStatus, gateway: Gateway) -> ServerLine:
    """One server at a glance; one that is listed for the first time is starting, not cold."""
    is_new = status.server in gateway.pending
    return ServerLine(
        name=status.server,
        state="starting" if is_new and status.state == "cold" else status.state,
        version=status.version,
        era=status.era,
        in_flight=status.in_flight,
        latency=status.latency,
        problem=gateway.failures.get(status.server) or status.last_error,
        retry_after=round(status.retry_after),
    )


def _api_line(name: str, gateway: Gateway) -> ServerLine:
    problem = gateway.failures.get(name)
    state = "failed" if problem else "starting" if name in gateway.pending else "ready"
    return ServerLine(name=name, state=state, problem=problem)
