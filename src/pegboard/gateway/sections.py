"""What operators decide on the page of a gateway: definitions that wait."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import get_args

from pegboard.core.cleaning import flags_of
from pegboard.core.lock import Action, Decision, Locked, Revocation, Seen, ServerLock
from pegboard.gateway.locks import Locks, decide
from pegboard.web import Html, Section, Viewer, tag
from pegboard.web.panel import Form
from pegboard.web.words import clock, several

_LINES = {"+": "added", "-": "removed", "@": "place"}


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
                by=viewer.actor,
                at=time.time(),
                digest=form.get("digest"),
            )
            await decide(locks, decision)

        return act

    actions = {name: action(name) for name in get_args(Action)}
    return Section(name="trust", title="Trust", body=body, actions=actions)


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
