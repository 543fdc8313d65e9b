"""What operators decide on the page of a gateway: definitions that wait."""

from __future__ import annotations

import time

from pegboard.core.cleaning import flags_of
from pegboard.core.lock import Locked, ServerLock
from pegboard.errors import NotPermitted, ToolNotFound
from pegboard.gateway.locks import Locks
from pegboard.web import Html, Section, Viewer, tag
from pegboard.web.panel import Form
from pegboard.web.words import clock, several

_LINES = {"+": "added", "-": "removed", "@": "place"}


def trust_section(locks: Locks) -> Section:
    """Definitions that are held back, to be approved, and those let through, to be taken back."""

    async def body(viewer: Viewer, proof: Html) -> Html:
        records = sorted((await locks.all()).items())
        items = [
            _waiting(server, tool, locked, proof)
            for server, record in records
            for tool, locked in sorted(record.waiting.items())
        ]
        nothing = tag("p", "Nothing is held back.", class_="quiet")
        held_back = tag("div", *items, class_="stack wide-stack") if items else nothing
        return tag("div", held_back, *[_let_through(*record, proof) for record in records])

    async def approve(viewer: Viewer, form: Form) -> None:
        name, seen = form.get("tool", ""), form.get("digest", "")

        def change(record: ServerLock) -> ServerLock:
            if seen != _digest(_locked(record, name)):  # nobody approves what they were not shown
                raise NotPermitted(f"{name} has changed again meanwhile. Look at it once more.")
            return record.approve([name], time.time())

        await locks.update(form.get("server", ""), change)

    async def revoke(viewer: Viewer, form: Form) -> None:
        name = form.get("tool", "")

        def change(record: ServerLock) -> ServerLock:
            _locked(record, name)
            return record.revoke([name])

        await locks.update(form.get("server", ""), change)

    actions = {"approve": approve, "revoke": revoke}
    return Section(name="trust", title="Trust", body=body, actions=actions)


def _waiting(server: str, tool: str, locked: Locked, proof: Html) -> Html:
    flags = flags_of(locked.waiting.definition) if locked.waiting else ()
    lines = [
        tag("span", line + "\n", class_=_LINES.get(line[:1], "same")) for line in locked.diff()
    ]
    shown = tag("input", type="hidden", name="digest", value=_digest(locked))
    return tag(
        "article",
        tag("h2", f"{server}.{tool}", " ", tag("span", locked.state, class_="badge warn")),
        [tag("p", f"Suspicious: {flag}", class_="problem") for flag in flags],
        tag("pre", *lines, class_="diff", tabindex="0", aria_label=f"Changes of {tool}"),
        _decision("approve", "Approve", server, tool, proof, shown, kind="primary"),
        class_="card",
    )


def _let_through(server: str, record: ServerLock, proof: Html) -> Html | None:
    """The tools of a server that are in use, each with the form that holds it back."""
    rows = [
        tag("tr", tag("th", tool, scope="row"), tag("td", clock(locked.approved.at, day=True)),
            tag("td", _decision("revoke", "Revoke", server, tool, proof)))
        for tool, locked in sorted(record.tools.items())
        if locked.state == "usable" and locked.approved is not None
    ]  # fmt: skip
    if not rows:
        return None
    heads = [tag("th", name, scope="col") for name in ("Tool", "Let through", "")]
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


def _locked(record: ServerLock, name: str) -> Locked:
    locked = record.tools.get(name)
    if locked is None:
        raise ToolNotFound(name, what="tool of the lock")
    return locked


def _digest(locked: Locked) -> str:
    """Which definition an approval would let through."""
    seen = locked.waiting or locked.approved
    return seen.digest if seen else ""
