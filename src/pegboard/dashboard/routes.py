"""The dashboard's routes: pages, forms, the live stream, sign-in, static files and `/metrics`."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Collection, Generator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import TypeAlias

import anyio
from anyio import to_thread
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from pegboard.core.events import OperatorActed, SignInFailed
from pegboard.core.tool_lock import hold_reason
from pegboard.dashboard import calls_page, layout, runs_page, tools_page, usage_page
from pegboard.dashboard.interface import Dashboard, Form, Section, Viewer
from pegboard.dashboard.layout import render_page
from pegboard.dashboard.live_updates import PART_NAMES, LiveParts
from pegboard.dashboard.markup import Child, Html, join, tag
from pegboard.dashboard.security import (
    CSRF_FIELD,
    CsrfTokens,
    delete_token_cookie,
    identify_viewer,
    read_form,
    request_token,
    set_token_cookie,
    with_security_headers,
)
from pegboard.dashboard.visibility import visibility
from pegboard.errors import AmbiguousName, NotPermitted, PegboardError, ToolNotFound
from pegboard.modes.mode import View, find_tool
from pegboard.ports import record_event

Handler: TypeAlias = Callable[[Request, Viewer], Awaitable[Response]]

_STATUS: dict[type[PegboardError], int] = {NotPermitted: 403, ToolNotFound: 404, AmbiguousName: 404}
_CACHE_FOREVER = "public, max-age=31536000, immutable"


def dashboard_routes(dashboard: Dashboard, *more: BaseRoute) -> list[BaseRoute]:
    """The routes of the dashboard, for any Starlette application; `more` are further pages."""
    pages = Pages(dashboard)
    routes: list[BaseRoute] = [
        Route("/", pages.signed_in(pages.overview)),
        Route("/ui/tools", pages.signed_in(pages.tools)),
        Route("/ui/tools/list", pages.signed_in(pages.listing)),
        Route("/ui/tool", pages.signed_in(pages.tool)),
        Route("/ui/tool/switch", pages.signed_in(pages.switch), methods=["POST"]),
        Route("/ui/calls", pages.signed_in(pages.calls)),
        Route("/ui/runs", pages.signed_in(pages.runs)),
        Route("/ui/run", pages.signed_in(pages.run)),
        Route("/ui/usage", pages.signed_in(pages.usage)),
        Route("/ui/result", pages.signed_in(pages.stored_result)),
        Route("/ui/live", pages.signed_in(pages.live)),
        Route("/ui/enter", pages.enter, methods=["GET", "POST"]),
        Route("/ui/leave", pages.leave, methods=["POST"]),
        Route("/ui/static/{name}", pages.static),
        Route("/favicon.ico", pages.icon),
    ]
    for section in dashboard.sections:
        routes.append(Route(f"/ui/{section.name}", pages.signed_in(pages.section(section))))
        routes.append(
            Route(
                f"/ui/{section.name}/{{action}}",
                pages.signed_in(pages.act(section)),
                methods=["POST"],
            )
        )
    return [*routes, *more, Route("/ui/{path:path}", pages.signed_in(pages.missing))]


class Pages:
    """The handlers of one dashboard."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard

    def signed_in(self, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        """A route for viewers who are signed in; all others get the sign-in page."""

        async def handle(request: Request) -> Response:
            viewer = await identify_viewer(request, self._dashboard)
            if viewer is None:
                # A request without a token is not a failed attempt: browsers have none at first.
                if request_token(request):
                    self._record_failed_sign_in(request)
                shown = layout.sign_in_page(self._dashboard, refused=False, page=request.url.path)
                return with_security_headers(HTMLResponse(shown, 401))
            try:
                return with_security_headers(await handler(request, viewer))
            except PegboardError as exc:
                status = _STATUS.get(type(exc), 400)
                shown = layout.error_page(
                    self._dashboard, viewer, "That did not work", exc.message, request.url.path
                )
                return with_security_headers(HTMLResponse(shown, status))

        return handle

    # Pages -------------------------------------------------------------------------------------

    async def overview(self, request: Request, viewer: Viewer) -> Response:
        names = ["statistics", "breakers"]
        names += ["usage"] if viewer.is_operator else []
        names += ["servers"] if self._dashboard.servers() else []
        names.append("calls")
        parts = await LiveParts(self._dashboard, viewer).render(names)
        body: list[Child] = [tag("h1", "Overview")]
        may_add = any(s.name == "servers" and layout.may_see(viewer, s) for s in
                      self._dashboard.sections)  # fmt: skip
        if may_add and not self._dashboard.servers():
            link = tag("a", "Add a server", href="/ui/servers")
            body.append(tag("p", "There are no tools yet. ", link, " to get some."))
        body += [_part(n, parts[n]) for n in names if n in ("statistics", "breakers", "usage")]
        if "servers" in names:
            body.append(_section("servers", "Servers", _part("servers", parts["servers"])))
        body.append(_section("calls", "Recent calls", _part("calls", parts["calls"])))
        return self._page(viewer, "/", "Overview", *body, live=" ".join(names))

    async def usage(self, request: Request, viewer: Viewer) -> Response:
        if not viewer.is_operator:
            raise NotPermitted("Only operators may see this.")
        query = usage_page.UsageQuery.parse(request.query_params)
        bars = usage_page.intervals(query, datetime.now().astimezone())
        visible = await visibility(self._dashboard, viewer)
        costs = await self._dashboard.costs.get_or_count(visible.view)
        rows = await to_thread.run_sync(self._dashboard.history.read, bars[0].begin)
        body = usage_page.render_usage(query, rows, bars, costs, visible.name)
        return self._page(viewer, "/ui/usage", "Usage", tag("h1", "Usage"), body)

    async def calls(self, request: Request, viewer: Viewer) -> Response:
        only_problems = request.query_params.get("only") == "problems"
        names = ("problem-calls",) if only_problems else ("all-calls", "stored")
        parts = await LiveParts(self._dashboard, viewer).render(names)
        body: list[Child] = [
            tag("h1", "Calls", id="calls-title"),
            calls_page.problems_link(only_problems=only_problems),
            _part(names[0], parts[names[0]]),
        ]
        if not only_problems:
            body.append(_section("stored", "Stored results", _part("stored", parts["stored"])))
        return self._page(viewer, "/ui/calls", "Calls", *body, live=" ".join(names))

    async def runs(self, request: Request, viewer: Viewer) -> Response:
        parts = await LiveParts(self._dashboard, viewer).render(("runs",))
        title = tag("h1", "Runs", id="runs-title")
        return self._page(
            viewer, "/ui/runs", "Runs", title, _part("runs", parts["runs"]), live="runs"
        )

    async def run(self, request: Request, viewer: Viewer) -> Response:
        visible = await visibility(self._dashboard, viewer)
        wanted = request.query_params.get("id", "")
        body = runs_page.render_run(visible, wanted)
        return self._page(viewer, "/ui/runs", f"Run {wanted}", body)

    async def stored_result(self, request: Request, viewer: Viewer) -> Response:
        title, body = await calls_page.stored_result_page(
            viewer, self._dashboard, request.query_params
        )
        return self._page(viewer, "/ui/calls", title, body)

    async def tools(self, request: Request, viewer: Viewer) -> Response:
        query, view, results = await self._find_tools(request, viewer)
        return self._page(
            viewer,
            "/ui/tools",
            "Tools",
            tag("h1", "Tools"),
            tools_page.filter_form(query, view),
            tag("div", results, id="results"),
        )

    async def listing(self, request: Request, viewer: Viewer) -> Response:
        """The results alone, for the script that searches while the user types."""
        _, _, results = await self._find_tools(request, viewer)
        return HTMLResponse(results)

    async def _find_tools(
        self, request: Request, viewer: Viewer
    ) -> tuple[tools_page.CatalogQuery, View, Html]:
        query = tools_page.CatalogQuery.parse(request.query_params)
        view = (await visibility(self._dashboard, viewer)).view
        # In a thread, since searching thousands of tools would block other requests.
        results = await to_thread.run_sync(
            tools_page.render_tools, query, view, self._dashboard.costs
        )
        return query, view, results

    async def tool(self, request: Request, viewer: Viewer) -> Response:
        visible = await visibility(self._dashboard, viewer)
        chosen = find_tool(visible.view, request.query_params.get("id", ""))
        csrf = CsrfTokens(request, viewer)
        statistics = visible.statistics()["tools"].get(chosen.id)
        may_switch = viewer.is_operator and hold_reason(chosen) is None
        switch = tools_page.switch_form(chosen, csrf.field) if may_switch else None
        related = visible.view.related(chosen)
        shown = visible.view.catalog.as_shown(chosen)
        body = tools_page.render_tool(
            shown, self._dashboard.costs.count_tool(chosen), statistics, related, switch
        )
        response = self._page(viewer, "/ui/tools", shown.name, body)
        csrf.set_cookie(response)
        return response

    async def live(self, request: Request, viewer: Viewer) -> Response:
        requested = request.query_params.get("parts", "").split()
        names = tuple(name for name in PART_NAMES if name in requested)
        events = LiveParts(self._dashboard, viewer).stream(
            names, lambda: identify_viewer(request, self._dashboard)
        )
        # nginx would buffer the stream otherwise.
        return _Events(events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    async def missing(self, request: Request, viewer: Viewer) -> Response:
        """The answer for a URL that has no page."""
        message = "The dashboard has no page at this address."
        shown = layout.error_page(self._dashboard, viewer, "Page not found", message)
        return HTMLResponse(shown, 404)

    # Changes -----------------------------------------------------------------------------------

    async def switch(self, request: Request, viewer: Viewer) -> Response:
        form = await read_form(request)
        enabled = bool(form.get("enabled"))
        with self._audited(request, viewer, f"tool.{'enable' if enabled else 'disable'}", form):
            self._check(request, viewer, form)
            view = (await visibility(self._dashboard, viewer)).view
            chosen = find_tool(view, form.get("id", ""))
            # The switch must not be a way around the lock.
            if hold_reason(chosen) is not None:
                raise NotPermitted(f"{chosen.name} is held back. Approve it first.")
            await self._dashboard.switch(chosen.id, enabled)
        return RedirectResponse(tools_page.tool_url(chosen), 303)

    def section(self, section: Section) -> Handler:
        """The page of a section."""

        async def handle(request: Request, viewer: Viewer) -> Response:
            if not layout.may_see(viewer, section):
                raise NotPermitted("Only operators may see this.")
            csrf = CsrfTokens(request, viewer)
            body = await section.body(viewer, csrf.field)
            heading = tag("h1", section.title)
            path = f"/ui/{section.name}"
            response = self._page(viewer, path, section.title, heading, body)
            csrf.set_cookie(response)
            return response

        return handle

    def act(self, section: Section) -> Handler:
        """An action of a section, which its forms post to."""

        async def handle(request: Request, viewer: Viewer) -> Response:
            name = request.path_params["action"]
            action = section.actions.get(name)
            if action is None:
                return HTMLResponse("There is no such action.", 404)
            form = await read_form(request)
            logged = {n: v for n, v in form.items() if n not in section.secret_fields}
            with self._audited(request, viewer, f"{section.name}.{name}", logged) as details:
                self._check(request, viewer, form)
                details.update(await action(viewer, form) or {})
            return RedirectResponse(f"/ui/{section.name}", 303)

        return handle

    def _check(self, request: Request, viewer: Viewer, form: Form) -> None:
        if not viewer.is_operator:
            raise NotPermitted("Only operators may change this.")
        CsrfTokens(request, viewer).check(form)

    @contextmanager
    def _audited(
        self, request: Request, viewer: Viewer, action: str, form: Form
    ) -> Generator[dict[str, str]]:
        """Record in the audit log what an operator did, or tried to do.

        Yields further details to record.
        """
        outcome, error = "failed", None
        more: dict[str, str] = {}
        try:
            yield more
            outcome = "ok"
        except PegboardError as exc:
            outcome, error = "refused", exc.kind
            raise
        finally:
            # Bounded: a form may be sent by anybody who is signed in.
            fields = {n[:50]: form[n][:200] for n in list(form)[:10] if n != CSRF_FIELD}
            event = OperatorActed(
                at=time.time(),
                action=action,
                outcome=outcome,
                source="dashboard",
                principal=viewer.actor,
                details={**fields, **more},
                address=request.client.host if request.client else None,
                error=error,
            )
            record_event(self._dashboard.observer, event)

    def _record_failed_sign_in(self, request: Request) -> None:
        """Record a request with an unknown token."""
        address = request.client.host if request.client else None
        path = request.url.path
        event = SignInFailed(at=time.time(), path=path, error="unknown_token", address=address)
        record_event(self._dashboard.observer, event)

    # Sign-in and static files ------------------------------------------------------------------

    async def enter(self, request: Request) -> Response:
        """Sign in with a token from the form, or from the URL that `pegboard ui` prints."""
        is_form = request.method == "POST"
        values = await read_form(request) if is_form else request.query_params
        token = values.get("token", "") if is_form or self._dashboard.accepts_links else ""
        page = values.get("page", "")
        if await self._dashboard.identify(token or None) is None:
            if token:
                self._record_failed_sign_in(request)
            refused = layout.sign_in_page(self._dashboard, refused=bool(token), page=page)
            return with_security_headers(HTMLResponse(refused, 401))
        # Only a page of this dashboard: also `//host` and `/\\host` would lead to another site.
        is_own = re.fullmatch(r"/ui/[A-Za-z0-9._~%-]+(/[A-Za-z0-9._~%-]+)?", page)
        response: Response = RedirectResponse(page if is_own else "/", 303)
        if not is_form:
            # A browser follows a redirect in the name of the page that sent it here. That is the
            # file of `pegboard ui`, another site, for which it would hold back the new cookie.
            home = tag("meta", http_equiv="refresh", content="0;url=/")
            response = HTMLResponse(f"<!doctype html>{home}")
        set_token_cookie(request, response, token)
        return with_security_headers(response)

    async def leave(self, request: Request) -> Response:
        """Sign out."""
        response = RedirectResponse("/", 303)
        delete_token_cookie(request, response)
        return with_security_headers(response)

    async def static(self, request: Request) -> Response:
        """A static file; it reveals nothing about the catalog, so no sign-in is needed."""
        name = request.path_params["name"]
        if name not in layout.STATIC:
            return with_security_headers(Response("There is no such file.", 404))
        file = Response(layout.read_static(name), media_type=layout.STATIC[name])
        return with_security_headers(file, cache=_CACHE_FOREVER)

    async def icon(self, request: Request) -> Response:
        """The icon where browsers look for it on their own, before they have read a page."""
        return RedirectResponse(layout.static_url("icon.svg"))

    def _page(
        self, viewer: Viewer, here: str, title: str, *body: Child, live: str = ""
    ) -> HTMLResponse:
        shown = render_page(self._dashboard, viewer, here, title, *body, live=live)
        # After the response, so that the first page does not wait for counting and indexing.
        soon = BackgroundTask(LiveParts(self._dashboard, viewer).prepare)
        return HTMLResponse(shown, background=soon)


class _Events(StreamingResponse):
    """A stream that ends quietly when the server shuts down."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # A canceled response would be logged as an error with a traceback.
        with suppress(anyio.get_cancelled_exc_class()):
            await super().__call__(scope, receive, send)


def _section(name: str, title: str, *body: Child) -> Html:
    return tag("section", tag("h2", title, id=f"{name}-title"), join(body))


def _part(name: str, html: Html) -> Html:
    return tag("div", html, data_part=name)


METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def metrics_route(
    dashboard: Dashboard, expose: Callable[[], bytes], readers: Collection[str] | None = ()
) -> Route:
    """The route; `readers` are principals beside operators, `None` lets everybody read."""

    async def metrics(request: Request) -> Response:
        if readers is not None:
            viewer = await identify_viewer(request, dashboard)
            if viewer is None:
                return Response("A key is needed.", 401, {"WWW-Authenticate": "Bearer"})
            if not viewer.is_operator and viewer.caller.principal not in readers:
                return Response("Metrics are for operators and `metrics_readers`.", 403)
        return Response(expose(), media_type=METRICS_TYPE)

    return Route("/metrics", metrics)
