"""What `--help` prints: examples for each command, and flags without a type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from typer.core import TyperCommand, TyperGroup

EXAMPLES: dict[str, tuple[str, ...]] = {
    "serve": (
        "pegboard serve --config ~/.cursor/mcp.json",
        "pegboard serve --config pegboard.toml --http 127.0.0.1:8000",
        "pegboard serve --config pegboard.toml --profile work",
    ),
    "demo": ("pegboard demo",),
    "list": (
        "pegboard list",
        "pegboard list --config ~/.cursor/mcp.json --mode proxy",
        "pegboard list --catalog tools.json --json",
    ),
    "search": (
        'pegboard search "create an issue"',
        'pegboard search "delete old branches" --risk destructive --limit 5',
    ),
    "describe": ("pegboard describe github_create_issue", "pegboard describe git.git_log --json"),
    "call": (
        "pegboard call time_get_current_time timezone=Europe/Berlin",
        'pegboard call github_create_issue \'{"title": "Typo", "labels": ["docs"]}\'',
        "pegboard call github_list_issues --include title,number",
    ),
    "replay": ("pegboard replay r-5f2c1d8e9a7b3c40 --config pegboard.toml",),
    "run": ("pegboard run report.py", "pegboard run cleanup.py --write --config pegboard.toml"),
    "fields": (
        "pegboard fields github_list_issues",
        "pegboard fields github_list_issues --try result.json --include title,number",
    ),
    "index": ("pegboard index", "pegboard index --config pegboard.toml"),
    "eval": ("pegboard eval --queries queries.jsonl --catalog tools.json --misses 5",),
    "doctor": ("pegboard doctor", "pegboard doctor --config pegboard.toml --json"),
    "login": (
        "pegboard login notion",
        "pegboard login notion --no-browser",
        "pegboard login notion --config pegboard.toml --as ann",
    ),
    "logout": ("pegboard logout notion",),
    "try": ("pegboard try", 'pegboard try "what changed since yesterday?"'),
    "measure": (
        "pegboard measure --clients",
        "pegboard measure ~/.cursor/mcp.json",
        "pegboard measure https://mcp.example.com/mcp",
        "pegboard measure -- npx -y @modelcontextprotocol/server-everything",
    ),
    "install": (
        "pegboard install cursor --dry-run",
        "pegboard install claude-desktop --keep filesystem",
        "pegboard install vscode --file .vscode/mcp.json",
        "pegboard install cursor --profile work",
    ),
    "uninstall": ("pegboard uninstall cursor", "pegboard uninstall vscode --file .vscode/mcp.json"),
    "clients": ("pegboard clients", "pegboard clients --json"),
    "ui": ("pegboard ui", "pegboard ui --config pegboard.toml --port 8080 --no-browser"),
    "lock diff": ("pegboard lock diff", "pegboard lock diff github --config pegboard.toml"),
    "lock approve": ("pegboard lock approve", "pegboard lock approve github.create_issue"),
    "lock reject": ("pegboard lock reject github.create_issue",),
    "lock revoke": ("pegboard lock revoke github.delete_repository",),
    "rollout start": ("pegboard rollout start proxy --percent 10 --config pegboard.toml",),
    "rollout show": ("pegboard rollout show --config pegboard.toml",),
    "rollout stop": ("pegboard rollout stop --store redis://localhost:6379/0",),
}


def help_epilog(command: str) -> str:
    """The examples of a command as Typer prints them at the end of its help."""
    return _epilog(EXAMPLES[command])


def group_epilog(group: str) -> str:
    """One example of each command of a group."""
    return _epilog([examples[0] for name, examples in EXAMPLES.items() if name.split()[0] == group])


def start_epilog() -> str:
    """The examples of `pegboard --help`."""
    return _epilog(["pegboard", *(EXAMPLES[name][0] for name in ("measure", "install", "search"))])


def _epilog(examples: Iterable[str]) -> str:
    # Typer reads markup here, so a bracket is escaped.
    lines = [f"  $ {one}".replace("[", r"\[") for one in examples]
    return "\n".join(["[bold]Examples[/bold]", *lines])


class Command(TyperCommand):
    """A command whose help shows `--json`, not `--json <bool>`."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_flag_types(super().get_params(ctx))


class Group(TyperGroup):
    """A group of commands whose help shows `--version`, not `--version <bool>`."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_flag_types(super().get_params(ctx))


def _without_flag_types(params: list[Any]) -> list[Any]:
    # Typer 0.29 prints a type after flags, which take no value. An empty name for the value
    # replaces it, also for the options that Typer adds by itself, such as `--help`.
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
    return params
