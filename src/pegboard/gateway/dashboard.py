"""The dashboard of a gateway: its servers, the definitions that wait for approval, the rollout."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, get_args

from pegboard.core.calls import Caller
from pegboard.core.sanitization import find_flags
from pegboard.core.tool_lock import (
    LockAction,
    LockDecision,
    RecordedDefinition,
    Revocation,
    ServerLock,
    ToolLock,
)
from pegboard.dashboard import Dashboard, Html, Section, ServerRow, Viewer, build_dashboard, tag
from pegboard.dashboard.interface import Form, Identify
from pegboard.dashboard.markup import pluralize, time_tag
from pegboard.dashboard.rollout_page import rollout_section
from pegboard.gateway.gateway import Gateway
from pegboard.gateway.lock_storage import LockStorage, apply_decision

if TYPE_CHECKING:
    from pegboard.config.settings import HttpSettings
    from pegboard.server.auth import Auth


_DIFF_CLASSES = {"+": "added", "-": "removed", "@": "place"}


def build_trust_section(locks: LockStorage) -> Section:
    """Definitions that wait for a decision, and approved ones, which can be revoked."""

    async def body(viewer: Viewer, proof: Html) -> Html:
        records = sorted((await locks.all()).items())
        items = [
            _pending_card(server, *undecided, proof)
            for server, record in records
            for undecided in record.undecided()
        ]
        nothing = tag("p", "Nothing is held back.", class_="quiet")
        held_back = tag("div", *items, class_="stack wide-stack") if items else nothing
        return tag("div", held_back, *[_approved_table(*record, proof) for record in records])

    def action(name: LockAction) -> Callable[[Viewer, Form], Awaitable[None]]:
        async def act(viewer: Viewer, form: Form) -> None:
            decision = LockDecision(
                name,
                form.get("server", ""),
                form.get("tool", ""),
                by=viewer.actor,
                at=time.time(),
                digest=form.get("digest"),
            )
            await apply_decision(locks, decision)

        return act

    actions = {name: action(name) for name in get_args(LockAction)}
    return Section(name="trust", title="Trust", body=body, actions=actions)


def _pending_card(
    server: str, tool: str, locked: ToolLock, seen: RecordedDefinition, proof: Html
) -> Html:
    lines = [
        tag("span", line + "\n", class_=_DIFF_CLASSES.get(line[:1], "same"))
        for line in locked.diff(seen)
    ]
    shown = tag("input", type="hidden", name="digest", value=seen.digest)
    may_reject = locked.approved is not None and seen is not locked.approved
    reordered = seen is not locked.approved and locked.is_reordered(seen)
    return tag(
        "article",
        tag("h2", f"{server}.{tool}", " ", tag("span", locked.state, class_="badge warn")),
        _revocation_line(locked.revoked) if locked.revoked else None,
        tag("p", "The same words in another order.") if reordered else None,
        [tag("p", f"Suspicious: {f}", class_="problem") for f in find_flags(seen.definition)],
        tag("pre", *lines, class_="diff", tabindex="0", aria_label=f"Changes of {tool}"),
        tag("div", _decision_form("approve", "Approve", server, tool, proof, shown, kind="primary"),
            _decision_form("reject", "Reject", server, tool, proof, shown) if may_reject else None,
            class_="row"),
        class_="card",
    )  # fmt: skip


def _revocation_line(revocation: Revocation) -> Html:
    by = f" by {revocation.by}" if revocation.by else ""
    return tag("p", f"Revoked{by}: ", time_tag(revocation.at, day=True))


def _approved_table(server: str, record: ServerLock, proof: Html) -> Html | None:
    """The approved tools of a server, each with the form that revokes it."""
    rows = [
        tag("tr", tag("th", tool, scope="row"), tag("td", time_tag(locked.approved.at, day=True)),
            tag("td", locked.approved.by or ""),
            tag("td", _decision_form("revoke", "Revoke", server, tool, proof)))
        for tool, locked in sorted(record.tools.items())
        if locked.revoked is None and locked.approved is not None
    ]  # fmt: skip
    if not rows:
        return None
    heads = [tag("th", name, scope="col") for name in ("Tool", "Approved", "By", "")]
    table = tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *rows))
    summary = tag("summary", f"{server}: ", pluralize(len(rows), "tool"), " approved")
    return tag("details", summary, tag("div", table, class_="wide", tabindex="0"))


def _decision_form(
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


def build_gateway_dashboard(gateway: Gateway, **changes: Any) -> Dashboard:
    """The dashboard of a gateway; `changes` are fields that differ from the usual."""
    sections = [rollout_section(gateway.decisions.store)]
    if gateway.decisions.trust.locks is not None:
        sections.insert(0, build_trust_section(gateway.decisions.trust.locks))
    own: dict[str, Any] = {
        "view": gateway.view,
        "switch": gateway.switch,
        "servers": lambda: _build_server_rows(gateway),
        "observer": gateway.board.parts.observer,
        "sections": tuple(sections),
    }
    return build_dashboard(gateway.board, gateway.board.parts, **{**own, **changes})


def build_identify(auth: Auth, settings: HttpSettings) -> Identify:
    """A function from a token to its viewer: any token that clients could use is accepted."""

    async def identify(token: str | None) -> Viewer | None:
        known = await auth.identify(token)
        if known is None:
            return None
        groups = frozenset[str]((known.claims or {}).get("groups") or ())
        caller = Caller(
            known.subject or known.client_id, scopes=frozenset(known.scopes), groups=groups
        )
        is_operator = caller.principal in settings.operators
        return Viewer(caller, is_operator or bool(groups & set(settings.operator_groups)))

    return identify


def _build_server_rows(gateway: Gateway) -> list[ServerRow]:
    """One row for each server, API, and server that is left out or disabled."""
    configuration, failures, pending = gateway.configuration, gateway.failures, gateway.pending
    rows = [
        ServerRow(
            name=status.server,
            # Its process is not running yet, but it is being listed for the first time.
            state="starting"
            if status.server in pending and status.state == "cold"
            else status.state,
            version=status.version,
            era=status.era,
            in_flight=status.in_flight,
            latency=status.latency,
            problem=failures.get(status.server) or status.last_error,
            retry_after=round(status.retry_after),
        )
        for status in gateway.pool.status()
    ]
    for name in gateway.catalogs.apis:
        problem = failures.get(name)
        state = "failed" if problem else "starting" if name in pending else "ready"
        rows.append(ServerRow(name=name, state=state, problem=problem))
    for name, reason in configuration.unusable.items():
        rows.append(ServerRow(name=name, state="left out", problem=reason))
    return rows + [ServerRow(name=spec.name, state="disabled") for spec in configuration.disabled]
