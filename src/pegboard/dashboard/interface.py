"""`Dashboard`: everything that the pages read and change, supplied by the server behind them.

    board or gateway --build_dashboard--> Dashboard --dashboard_routes--> Starlette routes

The pages know neither the gateway nor the board, only these functions and values.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from pegboard.core.calls import LOCAL_CALLER, Caller
from pegboard.core.policy import AccessControl, Policy
from pegboard.core.redaction import Redactor
from pegboard.core.tools import Catalog
from pegboard.dashboard.markup import Html
from pegboard.dashboard.token_costs import TokenCosts
from pegboard.modes.mode import View
from pegboard.observe.call_history import CallHistory
from pegboard.observe.statistics import InFlight, LiveStatistics
from pegboard.ports import Observer

ArgumentsSetting: TypeAlias = Literal["caller", "operators", "off"]


@dataclass(frozen=True, slots=True)
class Viewer:
    """A user of the dashboard; an operator sees everybody's calls and may change things."""

    caller: Caller = LOCAL_CALLER
    is_operator: bool = False
    name: str | None = None
    """The name of the user, if it is not the principal: the user of this machine."""
    is_authenticated: bool = True
    """Whether a key or token proved who this is. Without that, nobody may change the
    configuration: other users of the machine can reach the dashboard too."""

    @property
    def actor(self) -> str:
        """The name in the audit log."""
        return self.name or self.caller.principal


Identify: TypeAlias = Callable[[str | None], Awaitable[Viewer | None]]
"""Identifies the holder of a token, or of none; `None` refuses access."""


async def allow_everybody(token: str | None) -> Viewer:
    """Treats everybody who can reach the dashboard as an operator: for a personal machine."""
    return Viewer(LOCAL_CALLER, is_operator=True, is_authenticated=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRow:
    """The state of one server behind the board."""

    name: str
    state: str
    version: str | None = None
    era: str | None = None
    address: str | None = None
    """The command that starts it, or its URL."""
    in_flight: int = 0
    latency: float | None = None
    problem: str | None = None
    retry_after: float = 0.0
    login: str | None = None
    """The state of the viewer's login: signed in, sign in, or sign in again."""
    login_page: str | None = None
    """Where the viewer can log in to it."""

    @property
    def is_listed(self) -> bool:
        """Whether its tools are known, so that a count of 0 means that it has none."""
        return self.state in ("cold", "ready")


AddLogins: TypeAlias = Callable[[Viewer, Sequence[ServerRow]], Awaitable[Sequence[ServerRow]]]
"""Adds the state of a viewer's logins to the rows of servers."""


async def without_logins(viewer: Viewer, rows: Sequence[ServerRow]) -> Sequence[ServerRow]:
    """The rows as they are, for a board without servers that need a login."""
    return rows


Form: TypeAlias = Mapping[str, str]
Action: TypeAlias = Callable[[Viewer, Form], Awaitable[Mapping[str, str] | None]]
"""Does what a form asks for; returns further details for the audit log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A further page at `/ui/NAME`; its forms post to `/ui/NAME/ACTION`.

    `body` gets the viewer and the hidden field with the CSRF token, which each form must contain.
    Only operators can run an action; they see the message of a `PegboardError` that it raises.
    """

    name: str
    title: str
    body: Callable[[Viewer, Html], Awaitable[Html]]
    actions: Mapping[str, Action] = field(default_factory=dict[str, Action])
    operators_only: bool = True
    secret_fields: frozenset[str] = frozenset()
    """Fields of its forms that may contain secrets and are not written to the audit log."""


class GetView(Protocol):
    """The board as a caller sees it, or with `everything` as an operator does."""

    def __call__(self, caller: Caller, /, *, everything: bool = False) -> Awaitable[View]: ...


@dataclass(frozen=True, kw_only=True)
class Dashboard:
    """What the pages show, and what their forms change."""

    name: str
    view: GetView
    switch: Callable[[str, bool], Awaitable[None]]
    """Switches a tool on or off, by its id."""
    live: LiveStatistics
    in_flight: InFlight
    history: CallHistory = field(default_factory=CallHistory)
    arguments: Callable[[], ArgumentsSetting] = lambda: "caller"
    """Who sees arguments and error messages of calls."""
    redactor: Callable[[], Redactor] = Redactor
    """Removes secrets from them."""
    gate: Callable[[], AccessControl] = AccessControl
    """The permissions that apply now."""
    servers: Callable[[], Sequence[ServerRow]] = tuple
    add_logins: AddLogins = without_logins
    identify: Identify = allow_everybody
    accepts_links: bool = False
    """Whether a token in a URL signs a browser in. Browsers and proxies store URLs, so this is only
    for the tokens of `pegboard ui`, which are valid as long as the command runs."""
    observer: Observer | None = None
    """Records what operators do, and sign-ins that failed."""
    sections: tuple[Section, ...] = ()
    costs: TokenCosts = field(default_factory=TokenCosts)


class StatisticsSource(Protocol):
    """The statistics that a dashboard reads."""

    @property
    def live(self) -> LiveStatistics: ...

    @property
    def in_flight(self) -> InFlight: ...

    @property
    def history(self) -> CallHistory: ...


class Board(Protocol):
    """The part of a board that a dashboard needs."""

    name: str

    policy: Policy

    @property
    def view(self) -> GetView: ...

    @property
    def known_catalog(self) -> Catalog: ...

    def enable(self, name: str) -> None: ...

    def disable(self, name: str) -> None: ...


def build_dashboard(board: Board, parts: StatisticsSource, **overrides: Any) -> Dashboard:
    """The dashboard of a board; `overrides` are fields of `Dashboard`."""

    # A gateway overrides this: its switches apply to all replicas.
    async def switch(tool_id: str, enabled: bool) -> None:
        (board.enable if enabled else board.disable)(tool_id)

    own: dict[str, Any] = {
        "name": board.name,
        "view": board.view,
        "switch": switch,
        "gate": lambda: AccessControl(board.policy, board.known_catalog),
        "live": parts.live,
        "in_flight": parts.in_flight,
        "history": parts.history,
    }
    return Dashboard(**{**own, **overrides})
