"""Live updates: the parts of a page that change, and the stream that sends them to the browser.

A page names its live parts (`data-live`). The script opens a stream of server-sent events for them
and replaces each part that arrives. The stream polls the state, renders the parts, and sends those
that differ from what it sent before:

    state changed? --render--> parts --differ from those sent?--> data: {"calls": "<table>..."}
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TypeAlias

import anyio
from anyio import to_thread

from pegboard.core.json import JsonObject, compact
from pegboard.dashboard import calls_page, overview_page, runs_page, usage_page
from pegboard.dashboard.interface import Dashboard, ServerRow, Viewer
from pegboard.dashboard.markup import Html
from pegboard.dashboard.visibility import visibility

IdentifyAgain: TypeAlias = Callable[[], Awaitable[Viewer | None]]
"""Identifies the viewer of a stream again; `None` once the key is no longer valid."""

PART_NAMES = (
    "statistics", "breakers", "usage", "servers", "calls", "all-calls", "problem-calls", "stored",
    "runs",
)  # fmt: skip
POLL_INTERVAL = 0.5
"""Seconds between two checks for changes."""
HEARTBEAT_INTERVAL = 15.0
"""Seconds after which an idle stream sends a comment, so that no proxy closes it."""
STREAM_LIFETIME = 600.0
"""Seconds after which a stream ends; the browser reconnects."""
CALLS_ON_OVERVIEW = 12
OVERVIEW_DAYS = 14
PREPARE_DELAY = 0.3
"""Seconds that a browser has to fetch styles and script before background work starts."""


class LiveParts:
    """The changing parts of pages, as one viewer sees them."""

    def __init__(self, dashboard: Dashboard, viewer: Viewer) -> None:
        self._dashboard = dashboard
        self._viewer = viewer

    async def render(self, names: Sequence[str]) -> dict[str, Html]:
        """The current HTML of these parts."""
        visible = await visibility(self._dashboard, self._viewer)
        view, statistics = visible.view, visible.statistics()
        cost = self._dashboard.costs.get_cached(view)
        calls = calls_page.render_calls
        servers: Sequence[ServerRow] = ()
        if "servers" in names:
            servers = await self._dashboard.add_logins(self._viewer, visible.servers())
        renderers = {
            "statistics": lambda: overview_page.render_statistics(view, statistics, cost),
            "servers": lambda: overview_page.render_servers(servers, view, statistics),
            "breakers": lambda: overview_page.render_breakers(visible.breakers()),
            "calls": lambda: calls(visible, most=CALLS_ON_OVERVIEW),
            "all-calls": lambda: calls(visible),
            "problem-calls": lambda: calls(visible, only_problems=True),
            "stored": lambda: calls_page.render_stored_results(visible),
            "runs": lambda: runs_page.render_runs(visible),
        }
        usage = Html("")
        # The charts are for operators: the history does not say whose calls they were.
        if "usage" in names and self._viewer.is_operator:
            bars = usage_page.day_intervals(OVERVIEW_DAYS, datetime.now().astimezone())
            rows = await to_thread.run_sync(self._dashboard.history.read, bars[0].begin)
            usage = usage_page.render_recent(rows, bars, cost)
        return {name: usage if name == "usage" else renderers[name]() for name in names}

    async def prepare(self) -> None:
        """Count tokens and build the search index in the background, for the next page."""
        # This is the last thing in its task: a server that shuts down may simply cancel it.
        with suppress(anyio.get_cancelled_exc_class()):
            await anyio.sleep(PREPARE_DELAY)
            await self._count_tokens()
            view = (await visibility(self._dashboard, self._viewer)).view
            await to_thread.run_sync(view.index)

    async def _count_tokens(self) -> bool:
        """Count the catalog's tokens unless they are known; whether they were counted now."""
        view = (await visibility(self._dashboard, self._viewer)).view
        is_new = self._dashboard.costs.get_cached(view) is None
        if is_new:
            await self._dashboard.costs.get_or_count(view)
        return is_new

    async def stream(self, names: tuple[str, ...], identify: IdentifyAgain) -> AsyncIterator[str]:
        """Server-sent events, each with the parts that have changed, by name.

        The viewer is identified again before anything is sent: the stream ends when the key is
        revoked, and never shows more than the viewer may see at that moment.
        """
        # The browser reconnects two seconds after the stream has ended.
        yield "retry: 2000\n\n"
        sent: dict[str, Html] = {}
        rendered_state: object = None
        started = last_sent = anyio.current_time()
        while (now := anyio.current_time()) - started < STREAM_LIFETIME:
            viewer = await identify()
            if viewer is None:
                return
            self._viewer = viewer
            dashboard = self._dashboard
            # Everything the parts depend on that is cheap to compare; rendering is not.
            state = (viewer, dashboard.gate(), dashboard.live.changes, tuple(dashboard.servers()))
            if state != rendered_state:
                rendered_state = state
                parts = await self.render(names)
                new: JsonObject = {n: html for n, html in parts.items() if sent.get(n) != html}
                if new:
                    sent, last_sent = parts, now
                    yield f"data: {compact(new)}\n\n"
                if await self._count_tokens():
                    rendered_state = None  # the counts are known now: render again
            if now - last_sent >= HEARTBEAT_INTERVAL:
                last_sent = now
                yield ": heartbeat\n\n"
            await anyio.sleep(POLL_INTERVAL)
