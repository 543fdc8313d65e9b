"""Writes `docs/reference/command-output.md`: what every command prints, by running it.

The commands run on a machine of their own: a home folder with one client whose two servers are the
examples of this repository. Paths are replaced by what a reader would have.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "command-output.md"
WIDTH = 100
MAX_LINES = 48
QUERIES = [
    {"query": "put this into another project", "relevant": ["tracker.move_issue"]},
    {"query": "give this bug to somebody", "relevant": ["tracker.assign_issue"]},
    {"query": "list the projects", "relevant": ["tracker.list_projects"]},
]


@dataclass(frozen=True)
class Shown:
    """One command: the text before it, and its words as somebody would type them."""

    title: str
    words: str
    about: str
    stdin: str = ""


SHOWN = (
    Shown("No command", "pegboard", "What to do next on this machine."),
    Shown("`clients`", "pegboard clients", "The MCP clients on this machine, and their servers."),
    Shown("`measure`", "pegboard measure --clients", "What each client pays for its tools."),
    Shown("", "pegboard measure mcp.json", "One file in every mode."),
    Shown("`install`", "pegboard install claude-desktop --dry-run",
          "What would change and what it saves; nothing is written."),
    Shown("`doctor`", "pegboard doctor --config mcp.json", "Whether every server works."),
    Shown("`list`", "pegboard list --config mcp.json --mode proxy", "What a client is shown."),
    Shown("`search`", 'pegboard search "hand a bug over to Ben" --config mcp.json --limit 3',
          "The tools that a model would find."),
    Shown("`describe`", "pegboard describe tracker_get_issue --config mcp.json",
          "The definition that a model would read."),
    Shown("`call`",
          "pegboard call tracker_get_issue issue=WEB-3 --include key,title --config mcp.json",
          "Calls a tool, here with two fields of its result."),
    Shown("`fields`", "pegboard fields tracker_list_projects --config mcp.json",
          "The fields that `--include` and `include_fields` accept."),
    Shown("`index`", "pegboard index --config mcp.json", "Builds the search index in advance."),
    Shown("`eval`", "pegboard eval --queries queries.jsonl --config mcp.json",
          "How often a search finds the right tool, on queries of your own."),
    Shown("`lock`", "pegboard lock diff --config locked.toml",
          "Definitions that changed since they were approved."),
    Shown("`--version`", "pegboard --version", "The version."),
)  # fmt: skip


def main() -> None:
    """Run everything and write the page."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        prepare(home)
        parts = [HEAD]
        for shown in SHOWN:
            parts += [f"## {shown.title}\n"] if shown.title else []
            parts.append(f"{shown.about}\n")
            parts.append(f"```console\n$ {shown.words}\n{run(shown, home)}\n```\n")
    PAGE.write_text("\n".join(parts), "utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {len(SHOWN)} commands")


HEAD = """<!-- Written by scripts/command_outputs.py: change the code, then run it. -->
# What commands print

The commands of the [command line](cli.md), run on a machine where Claude Desktop has two servers:
an issue tracker with 152 tools and a memory with 26. Long outputs are cut.
"""


def prepare(home: Path) -> None:
    """Make the home folder of somebody who uses Claude Desktop with two servers."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    env = {"PYTHONPATH": path, "PEGBOARD_MODE": "eager"}
    servers = {
        name: {"command": sys.executable, "args": ["-m", f"examples.{name}"], "env": env}
        for name in ("tracker", "memory")
    }
    text = json.dumps({"mcpServers": servers}, indent=2)
    client = home / ".config" / "Claude" / "claude_desktop_config.json"
    client.parent.mkdir(parents=True)
    client.write_text(text)
    (home / "mcp.json").write_text(text)
    (home / "locked.toml").write_text('import = ["mcp.json"]\n[trust]\nlock = "pegboard.lock"\n')
    (home / "queries.jsonl").write_text("".join(json.dumps(q) + "\n" for q in QUERIES))


def run(shown: Shown, home: Path) -> str:
    """What a command prints, as a reader would see it."""
    env = {
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": str(WIDTH),
        "PYTHONPATH": str(ROOT / "src"),
        "NO_COLOR": "1",
    }
    done = subprocess.run(
        shown.words, shell=True, cwd=home, env=env, text=True, input=shown.stdin, timeout=300,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    program = str(Path(sys.executable).with_name("pegboard"))
    text = done.stdout.replace(program, "~/.local/bin/pegboard").replace(sys.executable, "python")
    text = text.replace(str(ROOT), "/src/pegboard")
    text = re.sub(rf"{re.escape(str(home))}(/)?", r"~\1", text)
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    if len(lines) > MAX_LINES:
        lines = [*lines[:MAX_LINES], "..."]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
