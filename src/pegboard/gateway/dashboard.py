"""The dashboard of a gateway: its servers, the definitions that wait for approval, the rollout."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args
from urllib.parse import quote

from anyio import to_thread

from pegboard.config.loader import Configuration
from pegboard.core.calls import Caller
from pegboard.core.redaction import Redactor
from pegboard.core.sanitization import find_flags
from pegboard.core.tool_lock import (
    LockAction,
    LockDecision,
    RecordedDefinition,
    ServerLock,
    ToolLock,
)
from pegboard.dashboard import Dashboard, Html, Section, ServerRow, Viewer, build_dashboard, tag
from pegboard.dashboard.interface import AddLogins, Form, Identify
from pegboard.dashboard.markup import (
    Child,
    Row,
    format_number,
    join,
    pluralize,
    render_table,
    time_tag,
)
from pegboard.dashboard.overview_page import problem_line, state_badges
from pegboard.dashboard.rollout_page import rollout_section
from pegboard.errors import NotPermitted
from pegboard.gateway.config_changes import ConfigEditor, PastedServers
from pegboard.gateway.gateway import Gateway
from pegboard.gateway.lock_storage import LockStorage, apply_decision
from pegboard.observe.logs import collect_secrets
from pegboard.upstream.downstream import build_downstream

if TYPE_CHECKING:
    from pegboard.config.settings import HttpSettings
    from pegboard.server.auth import Auth
    from pegboard.upstream.pool import UpstreamStatus


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
        note = "These tools cannot be used until somebody approves their current definitions."
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
    revoked = None
    if (revocation := locked.revoked) is not None:
        by = f" by {revocation.by}" if revocation.by else ""
        revoked = tag("p", f"Revoked{by}: ", time_tag(revocation.at, day=True))
    return tag(
        "article",
        tag("h2", f"{server}.{tool}", " ", tag("span", locked.state, class_="badge warn")),
        revoked,
        tag("p", "The same words in another order.") if reordered else None,
        [tag("p", f"Suspicious: {f}", class_="problem") for f in find_flags(seen.definition)],
        tag("pre", *lines, class_="diff", tabindex="0", aria_label=f"Changes of {tool}"),
        tag("div", _decision_form("approve", "Approve", server, tool, proof, shown, kind="primary"),
            _decision_form("reject", "Reject", server, tool, proof, shown) if may_reject else None,
            class_="row"),
        class_="card",
    )  # fmt: skip


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
        "add_logins": build_add_logins(gateway),
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


_PLACEHOLDER = """{
  "mcpServers": {
    "everything": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-everything"]
    }
  }
}"""
_URL_PLACEHOLDER = "https://mcp.example.com/mcp"
_COLUMNS = ("Server", "State", "Tools", "Runs", "")
_CANNOT_CHANGE = (
    "To add or disable servers here, open the dashboard with pegboard ui --config FILE, or sign in "
    "as an operator. Without that, anybody on this machine could change the configuration."
)


def build_servers_section(gateway: Gateway, editor: ConfigEditor | None) -> Section:
    """The servers of a gateway; with an editor, they can be added and disabled."""

    async def body(viewer: Viewer, csrf_field: Html) -> Html:
        may_change = editor is not None and viewer.is_authenticated
        rows = await build_add_logins(gateway)(viewer, build_server_rows(gateway))
        tools = Counter(tool.server for tool in gateway.board.known_catalog.enabled)
        table: Html = tag("p", "No server is configured yet.", class_="quiet")
        if rows:
            shown = [_row(row, tools[row.name], csrf_field, may_change=may_change) for row in rows]
            table = render_table(_COLUMNS, shown, label="All servers", numbers=("Tools",))
            # The script loads the table again while something changes.
            is_changing = any(row.state == "starting" for row in rows)
            table = tag("div", table, id="all-servers", data_refresh="" if is_changing else None)
        form: Html = tag("p", _CANNOT_CHANGE, class_="quiet")
        if may_change and editor is not None:
            form = _add_form(editor, csrf_field)
        return join([table, tag("section", tag("h2", "Add a server"), form)])

    async def start(viewer: Viewer, form: Form) -> None:
        name = form.get("server", "")
        async with gateway.pool.use(name, build_downstream(viewer.caller, None, {})):
            gateway.discovery.refresher.request_refresh(name)

    async def stop(viewer: Viewer, form: Form) -> None:
        await gateway.pool.stop(form.get("server", ""))

    async def change(configuration: Configuration, name: str) -> Mapping[str, str]:
        await gateway.reload(configuration)
        return {"servers": name, "file": str(_require(editor).path)}

    async def disable(viewer: Viewer, form: Form) -> Mapping[str, str]:
        writable = _require(editor, viewer)
        name, disabled = form.get("server", ""), form.get("disabled") == "1"
        changed = await to_thread.run_sync(lambda: writable.disable(name, disabled=disabled))
        return await change(changed, name)

    async def add(viewer: Viewer, form: Form) -> Mapping[str, str]:
        writable = _require(editor, viewer)
        pasted = PastedServers.parse(form.get("json", ""), form.get("name", "").strip())
        changed = await to_thread.run_sync(writable.add, pasted)
        return await change(changed, ", ".join(pasted.entries))

    return Section(
        name="servers",
        title="Servers",
        body=body,
        actions={"start": start, "stop": stop, "disable": disable, "add": add},
        secret_fields=frozenset({"json"}),
    )


def _require(editor: ConfigEditor | None, viewer: Viewer | None = None) -> ConfigEditor:
    """The editor, if this viewer may use it."""
    if editor is None or (viewer is not None and not viewer.is_authenticated):
        raise NotPermitted(_CANNOT_CHANGE)
    return editor


def build_add_logins(gateway: Gateway) -> AddLogins:
    """A function that adds the viewer's own logins to the rows of servers."""

    async def add_logins(viewer: Viewer, rows: Sequence[ServerRow]) -> list[ServerRow]:
        specs = {spec.name: spec for spec in gateway.pool.servers}
        principal, is_local = viewer.caller.principal, viewer.caller.is_local_user
        can_log_in, found = may_log_in(gateway, viewer), list[ServerRow]()
        for row in rows:
            spec = specs.get(row.name)
            if spec is None:
                found.append(row)
                continue
            is_refused = row.name in gateway.discovery.need_login
            # A login that the operator lacks says nothing about another viewer's token.
            login = await gateway.logins.state(spec, principal, is_refused=is_refused and is_local)
            if login is None and is_refused:
                login = "sign in"
            page = f"/ui/login/{quote(row.name, safe='')}" if can_log_in and login else None
            row = replace(row, login=login, login_page=page)
            if login is not None and row.state == "sign in":  # which is about the operator
                problem = None if login == "signed in" else row.problem
                row = replace(row, state=login, problem=problem)
            found.append(row)
        return found

    return add_logins


def may_log_in(gateway: Gateway, viewer: Viewer) -> bool:
    """Whether a viewer can log in to servers on the dashboard, for themselves."""
    # The redirect leads to this gateway, or for its own user to a port of this machine.
    has_return = gateway.logins.page is not None or viewer.caller.is_local_user
    return viewer.is_authenticated and has_return


def _row(line: ServerRow, tools: int, csrf_field: Html, *, may_change: bool) -> Row:
    name = tag("a", line.name, href=f"/ui/tools?server={quote(line.name)}") if tools else line.name
    version = tag("small", f"MCP {line.version}") if line.version else None
    buttons: list[Child] = []
    if line.login_page and line.login != "signed in":
        about = {"class_": "button primary", "aria_label": f"Log in to {line.name}"}
        buttons.append(tag("a", "Log in", href=line.login_page, **about))
    if line.state in ("cold", "failed"):
        buttons.append(_button("start", "Start", line.name, csrf_field))
    if line.state in ("ready", "starting"):
        buttons.append(_button("stop", "Stop", line.name, csrf_field))
    if may_change and line.state not in ("left out",) and line.address:
        off = line.state == "disabled"
        field = tag("input", type="hidden", name="disabled", value="" if off else "1")
        label = "Enable" if off else "Disable"
        buttons.append(_button("disable", label, line.name, join([csrf_field, field])))
    return Row(
        [
            [name, version],
            state_badges(line),
            format_number(tools) if tools or line.is_listed else "–",
            tag("code", line.address) if line.address else "–",
            tag("div", *buttons, class_="row end"),
        ],
        problem_line(line),
    )


def _button(action: str, label: str, server: str, fields: Html) -> Html:
    return tag(
        "form",
        fields,
        tag("input", type="hidden", name="server", value=server),
        tag("button", label, type="submit", aria_label=f"{label} {server}"),
        method="post",
        action=f"/ui/servers/{action}",
    )


def _add_form(editor: ConfigEditor, csrf_field: Html) -> Html:
    limit = "" if editor.allows_commands else " Servers that run a command cannot be added here."
    note = (
        f"Paste the JSON from the server's README, or its URL. It is written to {editor.path}."
        f"{limit}"
    )
    return tag(
        "form",
        csrf_field,
        tag("p", note, id="add-note", class_="quiet"),
        tag("div", tag("label", "JSON or URL of the server", for_="json"),
            tag("textarea", "", id="json", name="json", rows=8, required=True, spellcheck="false",
                placeholder=_PLACEHOLDER if editor.allows_commands else _URL_PLACEHOLDER,
                aria_describedby="add-note")),
        tag("div", tag("label", "Name, if the JSON does not have one", for_="name"),
            tag("input", id="name", name="name", maxlength=100, autocomplete="off")),
        tag("div", tag("button", "Add", type="submit", class_="primary")),
        method="post",
        action="/ui/servers/add",
        class_="card stack wide-stack",
    )  # fmt: skip


def build_server_rows(gateway: Gateway) -> list[ServerRow]:
    """One row for each server, API, and server that is left out or disabled."""
    configuration, failures, pending = gateway.configuration, gateway.failures, gateway.pending
    labels = {spec.name: spec.label for spec in gateway.pool.servers}

    def find_state(status: UpstreamStatus) -> str:
        if status.server in pending and status.state == "cold":
            return "starting"  # not its process yet, but it is being listed for the first time
        is_refused = status.server in gateway.discovery.need_login
        return "sign in" if is_refused and status.state != "ready" else status.state

    rows = [
        ServerRow(
            name=status.server,
            state=find_state(status),
            version=status.version,
            era=status.era,
            address=labels.get(status.server),
            in_flight=status.in_flight,
            latency=status.latency,
            problem=failures.get(status.server)
            or (f"{status.server} {status.last_error}." if status.last_error else None),
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
    disabled = configuration.disabled
    return rows + [ServerRow(name=s.name, state="disabled", address=s.label) for s in disabled]
