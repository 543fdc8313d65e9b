"""The dashboard's routes: pages, forms, the live stream, sign-in, static files and `/metrics`."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Generator
from contextlib import contextmanager, suppress
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
from pegboard.dashboard import calls_page, layout, tools_page
from pegboard.dashboard.interface import Dashboard, Form, Section, Viewer
from pegboard.dashboard.layout import document
from pegboard.dashboard.live_updates import NAMES, Parts
from pegboard.dashboard.markup import Child, Html, join, tag
from pegboard.dashboard.security import (
    PROOF,
    CsrfTokens,
    forget,
    identify_viewer,
    read_form,
    remember,
    token_of,
    with_security_headers,
)
from pegboard.dashboard.visibility import visibility
from pegboard.errors import AmbiguousName, NotPermitted, PegboardError, ToolNotFound
from pegboard.modes.mode import find_tool
from pegboard.ports import record_event

Answer: TypeAlias = Callable[[Request, Viewer], Awaitable[Response]]

_STATUS: dict[type[PegboardError], int] = {NotPermitted: 403, ToolNotFound: 404, AmbiguousName: 404}
_FOR_EVER = "public, max-age=31536000, immutable"


def dashboard_routes(dashboard: Dashboard) -> list[BaseRoute]:
    """The routes of the page, for any Starlette application."""
    page = Page(dashboard)
    routes: list[BaseRoute] = [
        Route("/", page.shown(page.overview)),
        Route("/ui/tools", page.shown(page.tools)),
        Route("/ui/tools/list", page.shown(page.listing)),
        Route("/ui/tool", page.shown(page.tool)),
        Route("/ui/tool/switch", page.shown(page.switch), methods=["POST"]),
        Route("/ui/calls", page.shown(page.calls)),
        Route("/ui/kept", page.shown(page.kept)),
        Route("/ui/live", page.shown(page.live)),
        Route("/ui/enter", page.enter, methods=["GET", "POST"]),
        Route("/ui/leave", page.leave, methods=["POST"]),
        Route("/ui/static/{name}", page.static),
    ]
    for section in dashboard.sections:
        routes.append(Route(f"/ui/{section.name}", page.shown(page.section(section))))
        routes.append(
            Route(f"/ui/{section.name}/{{action}}", page.shown(page.act(section)), methods=["POST"])
        )
    return routes


class Page:
    """The answers of one dashboard."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard

    def shown(self, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
        """The answer for whoever may look; a way in for everybody else."""

        async def handle(request: Request) -> Response:
            viewer = await identify_viewer(request, self._dashboard)
            if viewer is None:
                if token_of(request):
                    self._refused(request)
                return with_security_headers(
                    HTMLResponse(layout.sign_in(self._dashboard, refused=False), 401)
                )
            try:
                return with_security_headers(await answer(request, viewer))
            except PegboardError as exc:
                status = _STATUS.get(type(exc), 400)
                shown = layout.failure(self._dashboard, viewer, "That did not work", exc.message)
                return with_security_headers(HTMLResponse(shown, status))

        return handle

    # Looking -----------------------------------------------------------------------------------

    async def overview(self, request: Request, viewer: Viewer) -> Response:
        names = ("figures", "servers", "breakers", "calls")
        if not self._dashboard.servers():
            names = ("figures", "breakers", "calls")
        parts = await Parts(self._dashboard, viewer).render(names)
        titles = {"servers": "Servers", "breakers": "Breakers", "calls": "Last calls"}
        body: list[Child] = [tag("h1", "Overview"), _part("figures", parts["figures"])]
        body += [_section(n, titles[n], _part(n, parts[n])) for n in names if n != "figures"]
        return self._page(viewer, "/", "Overview", *body, live=" ".join(names))

    async def calls(self, request: Request, viewer: Viewer) -> Response:
        parts = await Parts(self._dashboard, viewer).render(("all-calls", "kept"))
        return self._page(
            viewer,
            "/ui/calls",
            "Calls",
            tag("h1", "Calls", id="calls-title"),
            _part("all-calls", parts["all-calls"]),
            _section("kept", "Results kept back", _part("kept", parts["kept"])),
            live="all-calls kept",
        )

    async def kept(self, request: Request, viewer: Viewer) -> Response:
        title, body = await calls_page.spilled_result_page(
            viewer, self._dashboard, request.query_params
        )
        return self._page(viewer, "/ui/calls", title, body)

    async def tools(self, request: Request, viewer: Viewer) -> Response:
        asked = tools_page.CatalogQuery.of(request.query_params)
        view = (await visibility(self._dashboard, viewer)).view
        found = await to_thread.run_sync(
            tools_page.render_tools, asked, view, self._dashboard.costs
        )
        return self._page(
            viewer,
            "/ui/tools",
            "Tools",
            tag("h1", "Tools"),
            tools_page.filter_form(asked, view),
            tag("div", found, id="results"),
        )

    async def listing(self, request: Request, viewer: Viewer) -> Response:
        """The results alone, for the script that searches while one types."""
        asked = tools_page.CatalogQuery.of(request.query_params)
        view = (await visibility(self._dashboard, viewer)).view
        found = await to_thread.run_sync(
            tools_page.render_tools, asked, view, self._dashboard.costs
        )
        return HTMLResponse(found)

    async def tool(self, request: Request, viewer: Viewer) -> Response:
        visible = await visibility(self._dashboard, viewer)
        chosen = find_tool(visible.view, request.query_params.get("id", ""))
        proofs = CsrfTokens(request, viewer)
        figures = visible.figures()["tools"].get(chosen.id)
        may_switch = viewer.is_operator and hold_reason(chosen) is None
        switch = tools_page.switch_form(chosen, proofs.field) if may_switch else None
        related = visible.view.related(chosen)
        body = tools_page.render_tool(
            chosen, self._dashboard.costs.tool(chosen), figures, related, switch
        )
        response = self._page(viewer, "/ui/tools", chosen.name, body)
        proofs.keep(response)
        return response

    async def live(self, request: Request, viewer: Viewer) -> Response:
        asked = request.query_params.get("parts", "").split()
        names = tuple(name for name in NAMES if name in asked)
        events = Parts(self._dashboard, viewer).stream(
            names, lambda: identify_viewer(request, self._dashboard)
        )
        return _Events(events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    # Changing ----------------------------------------------------------------------------------

    async def switch(self, request: Request, viewer: Viewer) -> Response:
        form = await read_form(request)
        enabled = bool(form.get("enabled"))
        with self._recorded(request, viewer, f"tool.{'enable' if enabled else 'disable'}", form):
            self._check(request, viewer, form)
            view = (await visibility(self._dashboard, viewer)).view
            chosen = find_tool(view, form.get("id", ""))
            if hold_reason(chosen) is not None:
                raise NotPermitted(f"{chosen.name} is held back. It has to be approved first.")
            await self._dashboard.switch(chosen.id, enabled)
        return RedirectResponse(tools_page.tool_url(chosen), 303)

    def section(self, section: Section) -> Answer:
        """A further page."""

        async def answer(request: Request, viewer: Viewer) -> Response:
            self._permit(viewer, section)
            proofs = CsrfTokens(request, viewer)
            body = await section.body(viewer, proofs.field)
            heading = tag("h1", section.title)
            path = f"/ui/{section.name}"
            response = self._page(viewer, path, section.title, heading, body)
            proofs.keep(response)
            return response

        return answer

    def act(self, section: Section) -> Answer:
        """An action of a further page."""

        async def answer(request: Request, viewer: Viewer) -> Response:
            name = request.path_params["action"]
            action = section.actions.get(name)
            if action is None:
                return HTMLResponse("There is no such action.", 404)
            form = await read_form(request)
            with self._recorded(request, viewer, f"{section.name}.{name}", form):
                self._check(request, viewer, form)
                await action(viewer, form)
            return RedirectResponse(f"/ui/{section.name}", 303)

        return answer

    def _check(self, request: Request, viewer: Viewer, form: Form) -> None:
        if not viewer.is_operator:
            raise NotPermitted("Only operators may change this.")
        CsrfTokens(request, viewer).check(form)

    @contextmanager
    def _recorded(
        self, request: Request, viewer: Viewer, action: str, form: Form
    ) -> Generator[None]:
        """Tell who did what, or tried to."""
        outcome, error = "failed", None
        try:
            yield
            outcome = "ok"
        except PegboardError as exc:
            outcome, error = "refused", exc.kind
            raise
        finally:
            said = {name[:50]: form[name][:200] for name in list(form)[:10] if name != PROOF}
            event = OperatorActed(
                at=time.time(),
                action=action,
                outcome=outcome,
                source="dashboard",
                principal=viewer.actor,
                details=said,
                address=request.client.host if request.client else None,
                error=error,
            )
            record_event(self._dashboard.observer, event)

    def _refused(self, request: Request) -> None:
        """Tell that somebody came with a token that is not known."""
        address = request.client.host if request.client else None
        path = request.url.path
        event = SignInFailed(at=time.time(), path=path, error="unknown_token", address=address)
        record_event(self._dashboard.observer, event)

    def _permit(self, viewer: Viewer, section: Section) -> None:
        if not layout.may_see(viewer, section):
            raise NotPermitted("Only operators may see this.")

    # Coming and going --------------------------------------------------------------------------

    async def enter(self, request: Request) -> Response:
        """Take a token from a form, or from the address that `pegboard ui` prints."""
        given = request.query_params
        token = (await read_form(request) if request.method == "POST" else given).get("token", "")
        if await self._dashboard.identify(token or None) is None:
            if token:
                self._refused(request)
            refused = layout.sign_in(self._dashboard, refused=bool(token))
            return with_security_headers(HTMLResponse(refused, 401))
        response: Response = RedirectResponse("/", 303)
        if request.method == "GET":
            # A browser follows a redirect in the name of the page that sent it here. That is the
            # file of `pegboard ui`, another site, for which it would hold back the new cookie.
            home = tag("meta", http_equiv="refresh", content="0;url=/")
            response = HTMLResponse(f"<!doctype html>{home}")
        remember(request, response, token)
        return with_security_headers(response)

    async def leave(self, request: Request) -> Response:
        """Forget the token."""
        response = RedirectResponse("/", 303)
        forget(request, response)
        return with_security_headers(response)

    async def static(self, request: Request) -> Response:
        """A file of ours; it says nothing about the catalogue, so everybody may have it."""
        name = request.path_params["name"]
        if name not in layout.STATIC:
            return with_security_headers(Response("There is no such file.", 404))
        file = Response(layout.read_static(name), media_type=layout.STATIC[name])
        return with_security_headers(file, cache=_FOR_EVER)

    def _page(
        self, viewer: Viewer, here: str, title: str, *body: Child, live: str = ""
    ) -> HTMLResponse:
        shown = document(self._dashboard, viewer, here, title, *body, live=live)
        soon = BackgroundTask(Parts(self._dashboard, viewer).prepare)
        return HTMLResponse(shown, background=soon)


class _Events(StreamingResponse):
    """A stream that lasts until somebody ends it; that the server does is no failure to report."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
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
