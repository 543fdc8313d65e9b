"""`Dashboard`: everything that the page reads and does, handed in by whoever serves it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from pegboard.core.calls import LOCAL_CALLER, Caller
from pegboard.core.policy import AccessControl, Policy
from pegboard.core.tools import Catalog
from pegboard.dashboard.markup import Html
from pegboard.dashboard.token_costs import Costs
from pegboard.modes.mode import View
from pegboard.observe.observers import InFlight
from pegboard.observe.statistics import LiveStatistics
from pegboard.ports import Observer


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks at the page; an operator sees everybody's calls and may change things."""

    caller: Caller = LOCAL_CALLER
    is_operator: bool = False
    name: str | None = None
    """Who it is, where the principal does not say: the user of this machine."""

    @property
    def actor(self) -> str:
        """Whom the record names for what they do."""
        return self.name or self.caller.principal


Identify: TypeAlias = Callable[[str | None], Awaitable[Viewer | None]]
"""Whom a token stands for, or its absence; `None` for nobody who may look."""


async def anybody(token: str | None) -> Viewer:
    """Whoever can reach the page operates it: on one's own machine, where nobody is asked."""
    return Viewer(LOCAL_CALLER, is_operator=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRow:
    """One server behind the board at a glance."""

    name: str
    state: str
    version: str | None = None
    era: str | None = None
    in_flight: int = 0
    latency: float | None = None
    problem: str | None = None
    retry_after: float = 0.0


Form: TypeAlias = Mapping[str, str]
Action: TypeAlias = Callable[[Viewer, Form], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A further page of the dashboard, at `/ui/NAME`; its actions are posted to `/ui/NAME/ACTION`.

    `body` is given the viewer and the hidden field that each of its forms must contain. An action
    is carried out for operators only; a `PegboardError` of it is shown to them.
    """

    name: str
    title: str
    body: Callable[[Viewer, Html], Awaitable[Html]]
    actions: Mapping[str, Action] = field(default_factory=dict[str, Action])
    operators_only: bool = True


class ViewOf(Protocol):
    """The board as one caller sees it, or as an operator does: `everything`."""

    def __call__(self, caller: Caller, /, *, everything: bool = False) -> Awaitable[View]: ...


def no_servers() -> Sequence[ServerRow]:
    """What a board has that stands for itself."""
    return ()


@dataclass(frozen=True, kw_only=True)
class Dashboard:
    """What one page is about."""

    name: str
    view: ViewOf
    switch: Callable[[str, bool], Awaitable[None]]
    """Turns a tool on or off, by its id."""
    live: LiveStatistics
    in_flight: InFlight
    gate: Callable[[], AccessControl] = AccessControl
    """The permissions in force now."""
    servers: Callable[[], Sequence[ServerRow]] = no_servers
    identify: Identify = anybody
    observer: Observer | None = None
    """Told of what operators do, and of sign-ins that failed."""
    sections: tuple[Section, ...] = ()
    costs: Costs = field(default_factory=Costs)


class Observed(Protocol):
    """What a dashboard reads the figures of."""

    @property
    def live(self) -> LiveStatistics: ...

    @property
    def in_flight(self) -> InFlight: ...


class Board(Protocol):
    """What a dashboard needs of a board."""

    name: str

    policy: Policy

    @property
    def view(self) -> ViewOf: ...

    @property
    def known_catalog(self) -> Catalog: ...

    def enable(self, name: str) -> None: ...

    def disable(self, name: str) -> None: ...


def build_dashboard(board: Board, parts: Observed, **further: Any) -> Dashboard:
    """The dashboard of a board; `further` are fields of `Dashboard` that differ from the usual."""

    async def switch(tool_id: str, enabled: bool) -> None:
        (board.enable if enabled else board.disable)(tool_id)

    own: dict[str, Any] = {
        "name": board.name,
        "view": board.view,
        "switch": switch,
        "gate": lambda: AccessControl(board.policy, board.known_catalog),
        "live": parts.live,
        "in_flight": parts.in_flight,
    }
    return Dashboard(**{**own, **further})
