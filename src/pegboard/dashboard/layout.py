"""The frame around every page, and the files that go with it."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

from pegboard.dashboard.interface import Dashboard, Viewer
from pegboard.dashboard.markup import Child, Html, join, tag

STATIC = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


@cache
def read_static(name: str) -> bytes:
    """A file of ours."""
    return files("pegboard.dashboard").joinpath("static", name).read_bytes()


@cache
def static_url(name: str) -> str:
    """Where a file of ours is; a changed file has another address, so it can be kept for ever."""
    return f"/ui/static/{name}?v={hashlib.sha256(read_static(name)).hexdigest()[:12]}"


def document(
    dashboard: Dashboard, viewer: Viewer | None, here: str, title: str, *body: Child, live: str = ""
) -> Html:
    """A whole page; `live` names the parts of it that are kept up to date."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} · {dashboard.name}"),
        tag("link", rel="icon", href=static_url("icon.svg"), type="image/svg+xml"),
        tag("link", rel="stylesheet", href=static_url("page.css")),
        tag("script", src=static_url("page.js"), defer=True),
    )
    shown = tag(
        "body",
        tag("a", "Skip to the content", class_="skip", href="#content"),
        _banner(dashboard, viewer, here, live),
        tag("main", *body, id="content", tabindex="-1"),
        data_live=live or None,
    )
    return Html(f"<!doctype html>{tag('html', head, shown, lang='en')}")


def _banner(dashboard: Dashboard, viewer: Viewer | None, here: str, live: str) -> Html:
    links = [("/", "Overview"), ("/ui/tools", "Tools"), ("/ui/calls", "Calls")]
    if viewer is not None:
        links += [(f"/ui/{s.name}", s.title) for s in dashboard.sections if may_see(viewer, s)]
    items = [
        tag("li", tag("a", text, href=path, aria_current="page" if path == here else None))
        for path, text in links
    ]
    return tag(
        "header",
        tag("a", tag("img", src=static_url("icon.svg"), alt="", width=28, height=28),
            tag("span", dashboard.name), class_="name", href="/"),
        tag("nav", tag("ul", *items), aria_label="Pages") if viewer else None,
        tag("div", _pause() if live else None, _who(viewer), class_="side"),
    )  # fmt: skip


def _pause() -> Html:
    """Moving parts can be stopped; hidden until the script finds that they move."""
    return join(
        [
            tag("span", "", id="connection", role="status"),
            tag("button", "Pause", id="pause", type="button", aria_pressed="false", hidden=True),
        ]
    )


def _who(viewer: Viewer | None) -> Html | None:
    if viewer is None or viewer.caller.principal == "local":
        return None
    return tag(
        "form",
        tag("span", viewer.caller.principal),
        tag("button", "Sign out", type="submit"),
        method="post",
        action="/ui/leave",
        class_="who",
    )


def may_see(viewer: Viewer, section: object) -> bool:
    """Whether a section is there for this viewer."""
    return viewer.is_operator or not getattr(section, "operators_only", False)


def sign_in(dashboard: Dashboard, *, refused: bool) -> Html:
    """The page for whoever is not known yet."""
    problem = tag("p", "This token is not known here.", class_="problem", role="alert")
    return document(
        dashboard,
        None,
        "",
        "Sign in",
        tag("h1", "Sign in"),
        tag("p", "This page is for those who may use its tools. Give the key or the access "
                 "token that your client uses."),
        problem if refused else None,
        tag(
            "form",
            tag("label", "Key or token", for_="token"),
            tag("input", id="token", name="token", type="password", required=True,
                autocomplete="current-password", autofocus=True),
            tag("button", "Sign in", type="submit", class_="primary"),
            method="post",
            action="/ui/enter",
            class_="card stack",
        ),
    )  # fmt: skip


def failure(dashboard: Dashboard, viewer: Viewer | None, title: str, message: str) -> Html:
    """A page that says what went wrong."""
    return document(
        dashboard, viewer, "", title, tag("h1", title), tag("p", message, role="alert"),
        tag("p", tag("a", "Back to the overview", href="/")),
    )  # fmt: skip
