"""The parts of a page that change while one looks at it, and the stream that brings them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias

import anyio
from anyio import to_thread

from pegboard.core.json import JsonObject, compact
from pegboard.dashboard import calls_page, overview_page
from pegboard.dashboard.interface import Dashboard, Viewer
from pegboard.dashboard.markup import Html
from pegboard.dashboard.visibility import visibility

Again: TypeAlias = Callable[[], Awaitable[Viewer | None]]
"""Who a stream is for, asked anew; `None` when their key is no longer good."""

NAMES = ("figures", "servers", "breakers", "calls", "all-calls", "kept")
EVERY = 0.5
"""Seconds between two looks at whether there is something new."""
BEAT = 15.0
"""Seconds after which an idle stream says that it is alive, so that nobody in between cuts it."""
LIFE = 600.0
"""Seconds that one stream lasts: the browser comes back and is asked again who it is."""
ON_OVERVIEW = 12
SETTLED = 0.3
"""Seconds after a page in which the browser fetches what goes with it, before we work ahead."""


class Parts:
    """The changing parts as one viewer sees them."""

    def __init__(self, dashboard: Dashboard, viewer: Viewer) -> None:
        self._dashboard = dashboard
        self._viewer = viewer

    async def render(self, names: tuple[str, ...]) -> dict[str, Html]:
        """These parts as they are now."""
        visible = await visibility(self._dashboard, self._viewer)
        view, figures = visible.view, visible.figures()
        running, done = visible.running(), visible.recent()
        cost = self._dashboard.costs.known(view)
        made = {
            "figures": lambda: overview_page.render_figures(view, figures, cost),
            "servers": lambda: overview_page.render_servers(visible.servers(), view, figures),
            "breakers": lambda: overview_page.render_breakers(visible.breakers()),
            "calls": lambda: calls_page.render_calls(running, done, most=ON_OVERVIEW),
            "all-calls": lambda: calls_page.render_calls(running, done, most=len(done)),
            "kept": lambda: calls_page.render_spilled_results(
                self._viewer, done, view.options.spill_ttl
            ),
        }
        return {name: made[name]() for name in names}

    async def prepare(self) -> None:
        """Make ready what a page can do without and the next one wants: figures, the index."""
        # Nothing comes after this in its task; a server that stops is no failure to report.
        with suppress(anyio.get_cancelled_exc_class()):
            await anyio.sleep(SETTLED)
            await self._count()
            view = (await visibility(self._dashboard, self._viewer)).view
            await to_thread.run_sync(view.index)

    async def _count(self) -> bool:
        """Count what has not been counted; whether there was any."""
        view = (await visibility(self._dashboard, self._viewer)).view
        is_new = self._dashboard.costs.known(view) is None
        if is_new:
            await self._dashboard.costs.of(view)
        return is_new

    async def stream(self, names: tuple[str, ...], identify: Again) -> AsyncIterator[str]:
        """Server-sent events: each holds the parts that are new, by name.

        The viewer is identified again before anything is sent: the stream ends with their key, and
        shows no more than they may see now.
        """
        yield "retry: 2000\n\n"
        sent: dict[str, Html] = {}
        seen: object = None
        began = spoke = anyio.current_time()
        while (now := anyio.current_time()) - began < LIFE:
            viewer = await identify()
            if viewer is None:
                return
            self._viewer = viewer
            dashboard = self._dashboard
            state = (viewer, dashboard.gate(), dashboard.live.changes, tuple(dashboard.servers()))
            if state != seen:
                seen = state
                parts = await self.render(names)
                new: JsonObject = {n: html for n, html in parts.items() if sent.get(n) != html}
                if new:
                    sent, spoke = parts, now
                    yield f"data: {compact(new)}\n\n"
                if await self._count():
                    seen = None
            if now - spoke >= BEAT:
                spoke = now
                yield ": still here\n\n"
            await anyio.sleep(EVERY)
