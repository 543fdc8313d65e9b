"""The servers page of the dashboard: every configured server, and what operators can do with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from urllib.parse import quote

from anyio import to_thread

from pegboard.config.loader import Configuration
from pegboard.dashboard import Html, Section, ServerRow, Viewer, tag
from pegboard.dashboard.interface import Form
from pegboard.dashboard.markup import Child, format_number, join
from pegboard.dashboard.overview_page import problem_line, state_badge
from pegboard.dashboard.tables import Row, render_table
from pegboard.errors import NotPermitted
from pegboard.gateway.config_editing import ConfigEditor, PastedServers
from pegboard.gateway.gateway import Gateway
from pegboard.upstream.downstream import build_downstream

_PLACEHOLDER = """{
  "mcpServers": {
    "everything": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-everything"]
    }
  }
}"""
_COLUMNS = ("Server", "State", "Tools", "Runs", "")
_CANNOT_CHANGE = (
    "To add or disable servers here, open the dashboard with pegboard ui --config FILE, or sign in "
    "as an operator. Without that, anybody on this machine could change the configuration."
)


def build_servers_section(gateway: Gateway, editor: ConfigEditor | None) -> Section:
    """The servers of a gateway; with an editor, they can be added and disabled."""

    async def body(viewer: Viewer, csrf_field: Html) -> Html:
        may_change = editor is not None and viewer.is_authenticated
        rows = build_server_rows(gateway)
        tools = Counter(tool.server for tool in gateway.board.known_catalog.enabled)
        table: Html = tag("p", "No server is configured yet.", class_="quiet")
        if rows:
            shown = [_row(row, tools[row.name], csrf_field, may_change=may_change) for row in rows]
            table = render_table(_COLUMNS, shown, label="All servers", numbers=("Tools",))
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


def _row(line: ServerRow, tools: int, csrf_field: Html, *, may_change: bool) -> Row:
    name = tag("a", line.name, href=f"/ui/tools?server={quote(line.name)}") if tools else line.name
    version = tag("small", f"MCP {line.version}") if line.version else None
    buttons: list[Child] = []
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
            state_badge(line.state),
            format_number(tools),
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
    note = f"Paste the JSON from the server's README. It is written to {editor.path}.{limit}"
    return tag(
        "form",
        csrf_field,
        tag("p", note, id="add-note", class_="quiet"),
        tag("div", tag("label", "Configuration of the server, as JSON", for_="json"),
            tag("textarea", "", id="json", name="json", rows=8, required=True, spellcheck="false",
                placeholder=_PLACEHOLDER, aria_describedby="add-note")),
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
    rows = [
        ServerRow(
            name=status.server,
            # Its process is not running yet, but it is being listed for the first time.
            state="starting"
            if status.server in pending and status.state == "cold"
            else status.state,
            version=status.version,
            era=status.era,
            address=labels.get(status.server),
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
    disabled = configuration.disabled
    return rows + [ServerRow(name=s.name, state="disabled", address=s.label) for s in disabled]
