"""`pegboard install` and `pegboard uninstall`: one entry in a client instead of many, and back."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegboard.cli.boards import JsonOption
from pegboard.cli.output import EXIT_FAILED, line, out, print_json
from pegboard.core.json import Json, JsonObject
from pegboard.install.clients import find_client, load_clients, this_machine

if TYPE_CHECKING:
    from pegboard.install.plan import Plan


def _complete(incomplete: str) -> list[str]:
    return [key for key in load_clients() if key.startswith(incomplete)]


ClientArgument = Annotated[
    str,
    typer.Argument(
        metavar="CLIENT",
        help=", ".join(load_clients()),
        autocompletion=_complete,
        show_default=False,
    ),
]
FileOption = Annotated[
    Path | None,
    typer.Option(
        "--file", metavar="FILE", help="Another file of that client, such as a project's."
    ),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show the change, write nothing.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def install(
    client: ClientArgument,
    file: FileOption = None,
    mode: Annotated[
        str | None, typer.Option(metavar="MODE", help="Another mode than the one that suits it.")
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="SERVER", help="Leave this server where it is; may be repeated."),
    ] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Put Pegboard in front of the servers of an MCP client."""
    from pegboard.install import carrying_out
    from pegboard.install.plan import plan_install

    plan = plan_install(
        find_client(client),
        this_machine(),
        command=_command(),
        file=file,
        mode=mode,
        keep=keep or (),
    )
    if not as_json:
        _show_install(plan)
    done = False
    if not dry_run and (plan.is_change or not plan.ours.record.exists()):
        _ask(yes, as_json, f"Change {plan.path}?")
        carrying_out.install(plan)
        done = True
    if as_json:
        print_json({**_as_json(plan), "done": done})
    elif done:
        out.print(f"Done. Restart {plan.client.title}; `pegboard uninstall {client}` undoes it.")


def uninstall(
    client: ClientArgument,
    file: FileOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Take Pegboard out of an MCP client and put its servers back."""
    from pegboard.install import carrying_out
    from pegboard.install.plan import plan_uninstall

    plan = plan_uninstall(find_client(client), this_machine(), file=file)
    if not as_json:
        _show_diff(plan)
    if not dry_run:
        _ask(yes, as_json, f"Put {plan.path} back?")
        carrying_out.uninstall(plan)
    if as_json:
        print_json({**_as_json(plan), "done": not dry_run})
    elif not dry_run:
        out.print(f"Done. {plan.client.title} has its servers back; restart it.")


def _command() -> tuple[str, ...]:
    """What starts Pegboard: by its full path, since clients look in few folders."""
    running = Path(sys.argv[0])
    if running.stem == "pegboard" and running.is_file():
        return (str(running.absolute()),)
    found = shutil.which("pegboard")
    return (found,) if found else (sys.executable, "-m", "pegboard")


def _ask(yes: bool, as_json: bool, question: str) -> None:
    if yes:
        return
    if as_json or not sys.stdin.isatty():
        raise typer.BadParameter("nobody can be asked here: say --yes, or --dry-run to look only")
    if not typer.confirm(question):
        raise typer.Exit(EXIT_FAILED)


def _show_install(plan: Plan) -> None:
    client = plan.client
    if not plan.is_change and plan.ours.record.exists():
        out.print(f"{client.title} has Pegboard already; nothing to change in {plan.path}.")
        return
    _show_diff(plan)
    if plan.taken:
        out.print(f"Taken over: {', '.join(plan.taken)}")
    else:
        out.print(f"No servers to take over; add some to {plan.ours.settings}.")
    for left in plan.left:
        out.print(f"Stays: {left.name} ({left.reason})")
    out.print(f"Mode: {plan.mode}. Servers are kept in {plan.ours.folder}.")


def _show_diff(plan: Plan) -> None:
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for changed in _shown_diff(plan).splitlines():
        style = "bold" if changed.startswith(("+++", "---")) else styles.get(changed[:1], "")
        out.print(line((changed, style)), soft_wrap=True)


def _shown_diff(plan: Plan) -> str:
    """The difference without the secrets that clients keep in their files."""
    from pegboard.config.documents import parse_document
    from pegboard.core.redaction import Redactor

    plain = Redactor()
    secrets: list[str] = []
    for data in (plan.content.data, plan.after):
        if data:
            value = parse_document(data.decode("utf-8-sig"), plan.path).value
            secrets += _changed_texts(value, plain.value(value))
    return Redactor(secrets).text(plan.diff())


def _changed_texts(before: Json, after: Json) -> list[str]:
    """The texts of a value that are secret, which its redacted twin shows."""
    if isinstance(before, str):
        return [] if before == after else [before]
    if isinstance(before, dict):
        parts: Any = after if isinstance(after, dict) else {}
        return [t for k, v in before.items() for t in _changed_texts(v, parts.get(k))]
    if isinstance(before, list):
        items: Any = after if isinstance(after, list) else [None] * len(before)
        return [t for v, w in zip(before, items, strict=False) for t in _changed_texts(v, w)]
    return []


def _as_json(plan: Plan) -> JsonObject:
    return {
        "client": plan.client.key,
        "title": plan.client.title,
        "file": str(plan.path),
        "mode": plan.mode or None,
        "changed": plan.is_change,
        "taken": list(plan.taken),
        "left": [{"name": left.name, "reason": left.reason} for left in plan.left],
        "config": str(plan.ours.settings),
        "backup": str(plan.ours.backup),
        "diff": _shown_diff(plan),
    }
