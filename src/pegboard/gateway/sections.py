"""What operators decide on the page of a gateway: definitions that wait, and the rollout."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import get_args

from pegboard.core.cleaning import flags_of
from pegboard.core.json import JsonObject
from pegboard.core.lock import Action, Decision, Locked, Revocation, Seen, ServerLock
from pegboard.core.options import FACES
from pegboard.core.rollout import ARMS, Comparison, Rollout
from pegboard.errors import ConfigError
from pegboard.gateway import rollouts
from pegboard.gateway.locks import Locks, decide
from pegboard.ports import Store
from pegboard.web import Html, Section, Viewer, tag
from pegboard.web.panel import Form
from pegboard.web.words import clock, several

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
    """Definitions that wait for a decision, and approved ones, which can be revoked."""

    async def body(viewer: Viewer, proof: Html) -> Html:
        records = sorted((await locks.all()).items())
        items = [
            _waiting(server, *undecided, proof)
            for server, record in records
            for undecided in record.undecided()
        ]
        nothing = tag("p", "Nothing is held back.", class_="quiet")
        held_back = tag("div", *items, class_="stack wide-stack") if items else nothing
        return tag("div", held_back, *[_let_through(*record, proof) for record in records])

    def action(name: Action) -> Callable[[Viewer, Form], Awaitable[None]]:
        async def act(viewer: Viewer, form: Form) -> None:
            decision = Decision(
                name,
                form.get("server", ""),
                form.get("tool", ""),
                by=viewer.caller.principal,
                at=time.time(),
                digest=form.get("digest"),
            )
            await decide(locks, decision)

        return act

    actions = {name: action(name) for name in get_args(Action)}
    return Section(name="trust", title="Trust", body=body, actions=actions)


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


def _waiting(server: str, tool: str, locked: Locked, seen: Seen, proof: Html) -> Html:
    lines = [
        tag("span", line + "\n", class_=_LINES.get(line[:1], "same")) for line in locked.diff(seen)
    ]
    shown = tag("input", type="hidden", name="digest", value=seen.digest)
    may_reject = locked.approved is not None and seen is not locked.approved
    reordered = seen is not locked.approved and locked.is_reordered(seen)
    return tag(
        "article",
        tag("h2", f"{server}.{tool}", " ", tag("span", locked.state, class_="badge warn")),
        _revoked(locked.revoked) if locked.revoked else None,
        tag("p", "The same words in another order.") if reordered else None,
        [tag("p", f"Suspicious: {f}", class_="problem") for f in flags_of(seen.definition)],
        tag("pre", *lines, class_="diff", tabindex="0", aria_label=f"Changes of {tool}"),
        tag("div", _decision("approve", "Approve", server, tool, proof, shown, kind="primary"),
            _decision("reject", "Reject", server, tool, proof, shown) if may_reject else None,
            class_="row"),
        class_="card",
    )  # fmt: skip


def _revoked(revocation: Revocation) -> Html:
    by = f" by {revocation.by}" if revocation.by else ""
    return tag("p", f"Revoked{by}: ", clock(revocation.at, day=True))


def _let_through(server: str, record: ServerLock, proof: Html) -> Html | None:
    """The approved tools of a server, each with the form that revokes it."""
    rows = [
        tag("tr", tag("th", tool, scope="row"), tag("td", clock(locked.approved.at, day=True)),
            tag("td", locked.approved.by or ""),
            tag("td", _decision("revoke", "Revoke", server, tool, proof)))
        for tool, locked in sorted(record.tools.items())
        if locked.revoked is None and locked.approved is not None
    ]  # fmt: skip
    if not rows:
        return None
    heads = [tag("th", name, scope="col") for name in ("Tool", "Let through", "By", "")]
    table = tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *rows))
    said = tag("summary", f"{server}: ", several(len(rows), "tool"), " let through")
    return tag("details", said, tag("div", table, class_="wide", tabindex="0"))


def _decision(
    action: str, label: str, server: str, tool: str, proof: Html, *more: Html, kind: str = ""
) -> Html:
    """The form of one decision about one tool."""
    return tag(
        "form",
        proof,
        tag("input", type="hidden", name="server", value=server),
        tag("input", type="hidden", name="tool", value=tool),
        *more,
        tag("button", label, type="submit", class_=kind or None,
            aria_label=f"{label} {server}.{tool}"),
        method="post",
        action=f"/ui/trust/{action}",
    )  # fmt: skip


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
