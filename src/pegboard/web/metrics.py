"""`/metrics`: figures of everybody's calls, with the names of servers and failing tools.

So they are for operators, as on the dashboard, and for principals that are named for them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pegboard.web.panel import Panel
from pegboard.web.security import viewer_of

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def metrics_route(
    panel: Panel, expose: Callable[[], bytes], readers: Collection[str] | None = ()
) -> Route:
    """The route; `readers` are principals beside operators, `None` lets everybody read."""

    async def metrics(request: Request) -> Response:
        if readers is not None:
            viewer = await viewer_of(request, panel)
            if viewer is None:
                return Response("A key is needed.", 401, {"WWW-Authenticate": "Bearer"})
            if not viewer.is_operator and viewer.caller.principal not in readers:
                return Response("Metrics are for operators and `metrics_readers`.", 403)
        return Response(expose(), media_type=METRICS_TYPE)

    return Route("/metrics", metrics)
