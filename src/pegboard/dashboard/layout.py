"""The frame around every page: head, navigation, sign-in; and the static files."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

from pegboard.dashboard.interface import Dashboard, Section, Viewer
from pegboard.dashboard.markup import Child, Html, tag

STATIC = {
    "dashboard.css": "text/css; charset=utf-8",
    "dashboard.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


@cache
def read_static(name: str) -> bytes:
    """The content of a static file."""
    return files("pegboard.dashboard").joinpath("static", name).read_bytes()


@cache
def static_url(name: str) -> str:
    """The URL of a static file. It contains a digest, so that browsers can cache it forever."""
    return f"/ui/static/{name}?v={hashlib.sha256(read_static(name)).hexdigest()[:12]}"


def render_page(
    dashboard: Dashboard, viewer: Viewer | None, here: str, title: str, *body: Child, live: str = ""
) -> Html:
    """A complete page; `live` names its parts that are updated live."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} · {dashboard.name}"),
        tag("link", rel="icon", href=static_url("icon.svg"), type="image/svg+xml"),
        tag("link", rel="stylesheet", href=static_url("dashboard.css")),
        tag("script", src=static_url("dashboard.js"), defer=True),
    )
    body_tag = tag(
        "body",
        tag("a", "Skip to the content", class_="skip", href="#content"),
        _banner(dashboard, viewer, here, live),
        tag("main", *body, id="content", tabindex="-1"),
        data_live=live or None,
    )
    return Html(f"<!doctype html>{tag('html', head, body_tag, lang='en')}")


def _banner(dashboard: Dashboard, viewer: Viewer | None, here: str, live: str) -> Html:
    links = [("/", "Overview"), ("/ui/tools", "Tools"), ("/ui/calls", "Calls")]
    if dashboard.live.has_runs:  # most boards never run a program
        links.append(("/ui/runs", "Runs"))
    if viewer is not None and viewer.is_operator:
        links.append(("/ui/usage", "Usage"))
    if viewer is not None:
        links += [(f"/ui/{s.name}", s.title) for s in dashboard.sections if may_see(viewer, s)]
    items = [
        tag("li", tag("a", text, href=path, aria_current="page" if path == here else None))
        for path, text in links
    ]
    sign_out = None
    # On a personal machine nobody signs in, so there is nothing to sign out of.
    if viewer is not None and viewer.caller.principal != "local":
        sign_out = tag(
            "form",
            tag("span", viewer.caller.principal),
            tag("button", "Sign out", type="submit"),
            method="post",
            action="/ui/leave",
            class_="who",
        )
    updates: list[Html] = []
    if live:
        # The button stops live updates. It is hidden until the script starts them.
        updates = [
            tag("span", "", id="connection", role="status"),
            tag("button", "Pause", id="pause", type="button", aria_pressed="false", hidden=True),
        ]
    return tag(
        "header",
        tag("a", tag("img", src=static_url("icon.svg"), alt="", width=28, height=28),
            tag("span", dashboard.name), class_="name", href="/"),
        tag("nav", tag("ul", *items), aria_label="Pages") if viewer else None,
        tag("div", updates, sign_out, class_="side"),
    )  # fmt: skip


def may_see(viewer: Viewer, section: Section) -> bool:
    """Whether the viewer may open a section."""
    return viewer.is_operator or not section.operators_only


def sign_in_page(dashboard: Dashboard, *, refused: bool, page: str = "") -> Html:
    """The page for users who are not signed in; `page` is where they go on afterwards."""
    # Not said on the first visit, when nothing has been entered.
    problem = tag("p", "This key or token is not valid.", class_="problem", role="alert")
    return render_page(
        dashboard,
        None,
        "",
        "Sign in",
        tag("h1", "Sign in"),
        tag("p", "Use the API key or the access token that your client uses."),
        problem if refused else None,
        tag(
            "form",
            tag("label", "API key or token", for_="token"),
            tag("input", id="token", name="token", type="password", required=True,
                autocomplete="current-password", autofocus=True),
            tag("input", type="hidden", name="page", value=page) if page else None,
            tag("button", "Sign in", type="submit", class_="primary"),
            method="post",
            action="/ui/enter",
            class_="card stack",
        ),
    )  # fmt: skip


def error_page(
    dashboard: Dashboard, viewer: Viewer | None, title: str, message: str, path: str = "/"
) -> Html:
    """A page with an error message, and a way back to the page whose form was sent."""
    known = {f"/ui/{one.name}": one.title for one in dashboard.sections}
    back = next((page for page in known if path.startswith(f"{page}/")), "/")
    return render_page(
        dashboard, viewer, "", title, tag("h1", title), tag("p", message, role="alert"),
        tag("p", tag("a", f"Back to {known.get(back, 'the overview')}", href=back,
                     id="back" if back in known else None)),
    )  # fmt: skip
