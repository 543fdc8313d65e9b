"""The dashboard of a gateway: its servers, the definitions that wait for approval, the rollout."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, get_args

from pegboard.core.calls import Caller
from pegboard.core.redaction import Redactor
from pegboard.core.sanitization import find_flags
from pegboard.core.tool_lock import (
    LockAction,
    LockDecision,
    RecordedDefinition,
    Revocation,
    ServerLock,
    ToolLock,
)
from pegboard.dashboard import Dashboard, Html, Section, Viewer, build_dashboard, tag
from pegboard.dashboard.interface import Form, Identify
from pegboard.dashboard.markup import join, pluralize, time_tag
from pegboard.dashboard.rollout_page import rollout_section
from pegboard.dashboard.tables import Row, render_table
from pegboard.gateway.config_editing import ConfigEditor
from pegboard.gateway.gateway import Gateway
from pegboard.gateway.lock_storage import LockStorage, apply_decision
from pegboard.gateway.servers_section import build_server_rows, build_servers_section
from pegboard.observe.logs import collect_secrets

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
        note = "These tools cannot be used until somebody approves what their servers say now."
        held_back = nothing
        if items:
            cards = tag("div", *items, class_="stack wide-stack")
            held_back = join([tag("p", note, class_="quiet"), cards])
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
        Row(
            [
                tool,
                time_tag(locked.approved.at, day=True),
                locked.approved.by or "first use",
                _decision_form("revoke", "Revoke", server, tool, proof),
            ]
        )
        for tool, locked in sorted(record.tools.items())
        if locked.revoked is None and locked.approved is not None
    ]
    if not rows:
        return None
    summary = tag("summary", f"{server}: ", pluralize(len(rows), "tool"), " approved")
    table = render_table(("Tool", "Approved", "By", ""), rows, label=f"Approved tools of {server}")
    return tag("details", summary, table)


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


def build_gateway_dashboard(
    gateway: Gateway, editor: ConfigEditor | None = None, **changes: Any
) -> Dashboard:
    """The dashboard of a gateway; `changes` are fields that differ from the usual."""
    sections = [build_servers_section(gateway, editor)]
    if gateway.decisions.trust.locks is not None:
        sections.append(build_trust_section(gateway.decisions.trust.locks))
    settings = gateway.configuration.settings
    # A rollout compares groups of callers, and a single user has none.
    if settings.auth.kind != "none" or not settings.store.url.startswith("memory:"):
        sections.append(rollout_section(gateway.decisions.store))
    own: dict[str, Any] = {
        "view": gateway.view,
        "switch": gateway.switch,
        "servers": lambda: build_server_rows(gateway),
        "arguments": lambda: gateway.configuration.settings.observe.arguments,
        "redactor": _current_redactor(gateway),
        "observer": gateway.board.parts.observer,
        "sections": tuple(sections),
    }
    return build_dashboard(gateway.board, gateway.board.parts, **{**own, **changes})


def _current_redactor(gateway: Gateway) -> Callable[[], Redactor]:
    """Gives the redactor for the current configuration; collecting its secrets takes a while."""
    configuration, redactor = (
        gateway.configuration,
        Redactor(collect_secrets(gateway.configuration)),
    )

    def current() -> Redactor:
        nonlocal configuration
        if configuration is not gateway.configuration:
            configuration = gateway.configuration
            redactor.learn(collect_secrets(configuration))  # old secrets are still in old calls
        return redactor

    return current


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
