"""What operators decide on the page of a gateway: definitions that wait, and the rollout."""

from __future__ import annotations

import time

from pegboard.core.cleaning import flags_of
from pegboard.core.json import JsonObject
from pegboard.core.lock import Locked, ServerLock
from pegboard.core.options import FACES
from pegboard.core.rollout import ARMS, Comparison, Rollout
from pegboard.errors import ConfigError, NotPermitted, ToolNotFound
from pegboard.gateway import rollouts
from pegboard.gateway.locks import Locks
from pegboard.ports import Store
from pegboard.web import Html, Section, Viewer, tag
from pegboard.web.panel import Form

_LINES = {"+": "added", "-": "removed", "@": "place"}
_FIGURES = {
    "calls": "Calls",
    "sessions": "Sessions",
    "errors": "Share of errors",
    "mean_ms": "Mean time (ms)",
    "calls_per_session": "Calls per session",
    "searches_per_session": "Searches per session",
    "tokens_per_session": "Tokens per session",
}


def trust_section(locks: Locks) -> Section:
    """Definitions that are held back, with what changed, to be approved."""

    async def body(viewer: Viewer, proof: Html) -> Html:
        items = [
            _waiting(server, tool, locked, proof)
            for server, record in sorted((await locks.all()).items())
            for tool, locked in sorted(record.waiting.items())
        ]
        if not items:
            return tag("p", "Nothing is held back.", class_="quiet")
        return tag("div", *items, class_="stack wide-stack")

    async def approve(viewer: Viewer, form: Form) -> None:
        name, seen = form.get("tool", ""), form.get("digest", "")

        def change(record: ServerLock) -> ServerLock:
            locked = record.tools.get(name)
            if locked is None:
                raise ToolNotFound(name, what="tool of the lock")
            if seen != _digest(locked):  # nobody approves what they have not been shown
                raise NotPermitted(f"{name} has changed again meanwhile. Look at it once more.")
            return record.approve([name], time.time())

        await locks.update(form.get("server", ""), change)

    return Section(name="trust", title="Trust", body=body, actions={"approve": approve})


def rollout_section(store: Store) -> Section:
    """The face under trial, how its arms do, and its share."""

    async def body(viewer: Viewer, proof: Html) -> Html:
        rollout, figures = await rollouts.show(store)
        return tag("div", _under_way(rollout, figures), _share_form(rollout, proof),
                   _stop_form(proof) if rollout else None)  # fmt: skip

    async def start(viewer: Viewer, form: Form) -> None:
        try:
            percent = float(form.get("percent", ""))
        except ValueError as exc:
            raise ConfigError("The share is a number of percent, such as 10.") from exc
        by = "client" if form.get("by") == "client" else "principal"
        await rollouts.start(store, Rollout(face=form.get("face", ""), percent=percent, by=by))

    async def stop(viewer: Viewer, form: Form) -> None:
        await rollouts.stop(store)

    return Section(
        name="rollout", title="Rollout", body=body, actions={"start": start, "stop": stop}
    )


def _waiting(server: str, tool: str, locked: Locked, proof: Html) -> Html:
    flags = flags_of(locked.waiting.definition) if locked.waiting else ()
    lines = [
        tag("span", line + "\n", class_=_LINES.get(line[:1], "same")) for line in locked.diff()
    ]
    return tag(
        "article",
        tag("h2", f"{server}.{tool}", " ", tag("span", locked.state, class_="badge warn")),
        [tag("p", f"Suspicious: {flag}", class_="problem") for flag in flags],
        tag("pre", *lines, class_="diff", tabindex="0", aria_label=f"Changes of {tool}"),
        tag(
            "form",
            proof,
            tag("input", type="hidden", name="server", value=server),
            tag("input", type="hidden", name="tool", value=tool),
            tag("input", type="hidden", name="digest", value=_digest(locked)),
            tag("button", f"Approve {tool}", type="submit", class_="primary"),
            method="post",
            action="/ui/trust/approve",
        ),
        class_="card",
    )


def _digest(locked: Locked) -> str:
    """Which definition an approval would let through."""
    seen = locked.waiting or locked.approved
    return seen.digest if seen else ""


def _under_way(rollout: Rollout | None, figures: Comparison) -> Html:
    if rollout is None:
        return tag("p", "No rollout is under way: everybody gets the configured face.")
    said = f"{rollout.percent:g} % of callers, by {rollout.by}, get the {rollout.face} face."
    arms = {arm: figures[arm].summary() for arm in ARMS}
    names = [tag("th", arm, scope="col", class_="number") for arm in ARMS]
    head = tag("tr", tag("td", ""), *names)
    rows = [
        tag("tr", tag("th", title, scope="row"), *[_figure(arms[arm], key) for arm in ARMS])
        for key, title in _FIGURES.items()
    ]
    table = tag("table", tag("thead", head), tag("tbody", *rows))
    return tag("div", tag("p", said), tag("div", table, class_="wide", tabindex="0"))


def _figure(summary: JsonObject, key: str) -> Html:
    value = summary[key]
    return tag("td", "–" if value is None else f"{value:,g}", class_="number")


def _share_form(rollout: Rollout | None, proof: Html) -> Html:
    chosen = rollout.face if rollout else "proxy"
    faces = [tag("option", f, value=f, selected=f == chosen) for f in FACES]
    by = rollout.by if rollout else "principal"
    keys = [tag("option", k, value=k, selected=k == by) for k in ("principal", "client")]
    percent = f"{rollout.percent:g}" if rollout else "10"
    return tag(
        "form",
        proof,
        tag("div", tag("label", "Face", for_="face"),
            tag("select", *faces, id="face", name="face")),
        tag("div", tag("label", "Percent", for_="percent"),
            tag("input", id="percent", name="percent", type="number", min=0, max=100, step="any",
                value=percent, required=True)),
        tag("div", tag("label", "By", for_="by"), tag("select", *keys, id="by", name="by")),
        tag("button", "Set", type="submit", class_="primary"),
        method="post",
        action="/ui/rollout/start",
        class_="fields",
    )  # fmt: skip


def _stop_form(proof: Html) -> Html:
    button = tag("button", "Stop: the configured face for everybody, at once", type="submit")
    return tag("form", proof, button, method="post", action="/ui/rollout/stop")
