"""What a viewer of the dashboard may see.

Operators see everything, except the arguments of other people's calls, unless the configuration
allows that. Other viewers see their own catalog (its tools, the servers of these, the
circuit breakers of both) and the statistics of their own calls. Why a server fails is shown only to
operators: the last lines of its stderr may contain anything.

Every page and the live stream read statistics, servers, breakers and calls through this module, and
in no other way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pegboard.core.call_preview import redact_preview
from pegboard.core.circuit_breaker import BreakerState
from pegboard.core.events import CallFinished, CallRejected, CallStarted, RunFinished
from pegboard.core.json import JsonObject
from pegboard.dashboard.interface import Dashboard, ServerRow, Viewer
from pegboard.modes.mode import View

UNAVAILABLE = "Not available at the moment. Operators can see why."


async def visibility(dashboard: Dashboard, viewer: Viewer) -> Visibility:
    """What this viewer may see now."""
    view = await dashboard.view(viewer.caller, everything=viewer.is_operator)
    return Visibility(dashboard, viewer, view)


@dataclass(frozen=True, slots=True)
class CallDetails:
    """What a viewer may see of the contents of a call."""

    arguments: JsonObject | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Visibility:
    """Filters what a dashboard has for one viewer."""

    dashboard: Dashboard
    viewer: Viewer
    view: View

    def statistics(self) -> JsonObject:
        """The statistics of all calls, or of the viewer's own."""
        if self.viewer.is_operator:
            return self.dashboard.live.snapshot()
        own = self.dashboard.live.snapshot_of(self.viewer.caller.principal)
        return {**own, "in_flight": len(self.running())}

    def running(self) -> list[CallStarted]:
        """The calls in progress."""
        calls = self.dashboard.in_flight.calls
        if self.viewer.is_operator:
            return list(calls)
        return [call for call in calls if call.principal == self.viewer.caller.principal]

    def recent(self) -> list[CallFinished]:
        """The recent calls, newest first."""
        if self.viewer.is_operator:
            return self.dashboard.live.recent()
        return self.dashboard.live.recent_of(self.viewer.caller.principal)

    def rejected(self) -> list[CallRejected]:
        """The recent calls that were rejected before a tool was found for them, newest first."""
        if self.viewer.is_operator:
            return self.dashboard.live.rejected()
        return self.dashboard.live.rejected_of(self.viewer.caller.principal)

    def runs(self) -> list[RunFinished]:
        """The recent runs of programs, newest first."""
        if self.viewer.is_operator:
            return self.dashboard.live.recent_runs()
        return self.dashboard.live.recent_runs_of(self.viewer.caller.principal)

    def details(self, call: CallFinished | CallRejected) -> CallDetails:
        """The arguments and the error message of a call, as far as the viewer may see them."""
        setting = self.dashboard.arguments()
        is_own = call.principal == self.viewer.caller.principal
        may_see = is_own or (setting == "operators" and self.viewer.is_operator)
        if setting == "off" or not may_see:
            return CallDetails()
        return CallDetails(*redact_preview(call, self.dashboard.redactor()))

    def name(self, tool_id: str) -> str:
        """The name by which clients know a tool, or its id if it no longer exists."""
        tool = self.view.catalog.get(tool_id)
        return tool_id if tool is None else self.view.catalog.address(tool)

    def servers(self) -> Sequence[ServerRow]:
        """The servers behind the board."""
        lines = self.dashboard.servers()
        if self.viewer.is_operator:
            return lines
        running = Counter(call.upstream for call in self.running())
        return [
            replace(
                line,
                in_flight=running[line.name],
                # Times and counts of other callers are not theirs to see.
                latency=None,
                address=None,
                problem=UNAVAILABLE if line.problem else None,
            )
            for line in lines
            if self._knows_server(line.name)
        ]

    def breakers(self) -> dict[str, BreakerState]:
        """The breakers that are not closed, by `scope:name`."""
        found = self.dashboard.live.breakers
        if self.viewer.is_operator:
            return found
        known: dict[str, BreakerState] = {}
        for key, state in found.items():
            scope, _, name = key.partition(":")
            # The key names a server or a tool, and neither may be known to exist.
            is_server = scope == "upstream"
            if self._knows_server(name) if is_server else self.view.catalog.get(name):
                known[key] = state
        return known

    def _knows_server(self, name: str) -> bool:
        return self.dashboard.gate().can_see_server(self.viewer.caller, name)
