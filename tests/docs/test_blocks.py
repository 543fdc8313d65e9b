"""Every block of code in the documentation is a snippet, is generated, or is tried here."""

from __future__ import annotations

import ast
import re
import shlex
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import anyio
import pytest
import typer
from docs_src.quickstart import board as quickstart

from pegboard import Pegboard
from pegboard.cli.app import app
from pegboard.config.loader import load_configuration
from pegboard.config.server_entries import ConfigEnvironment

ROOT = Path(__file__).parents[2]
VARIABLES = {
    "SHOP_TOKEN": "x",
    "CI_KEY": "x",
    "GITHUB_TOKEN": "x",
    "GITHUB_CLIENT_SECRET": "x",
    "PEGBOARD_CLIENT_SECRET": "x",
    "GOOGLE_CLIENT_SECRET": "x",
    "PEGBOARD_OAUTH_KEY": "x" * 32,
}
GENERATED = (
    "cli", "command-output", "meta-tools", "methods", "settings", "errors", "tracker", "memory",
)  # fmt: skip
"""Pages that other tests compare with what the code gives."""
_SNIPPET = re.compile(r"<!-- snippet: .*?<!-- /snippet -->", re.DOTALL)
_BLOCK = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
SHELL = ("sh", "console", "bash")


@dataclass(frozen=True)
class Block:
    page: Path
    language: str
    text: str

    @property
    def is_of_others(self) -> bool:
        """Whether it shows the code that a migration starts from."""
        return self.page.parent.name == "migration"


def blocks() -> Iterator[Block]:
    pages = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    for page in [*pages, ROOT / "examples" / "README.md"]:
        if page.stem not in GENERATED:
            text = _SNIPPET.sub("", page.read_text("utf-8"))
            for _, language, body in _BLOCK.findall(text):
                yield Block(page, language, textwrap.dedent(body))


ALL = list(blocks())


def of(*languages: str) -> list[Any]:
    chosen = [b for b in ALL if b.language in languages]
    return [pytest.param(b, id=f"{b.page.stem}-{n}") for n, b in enumerate(chosen)]


def test_every_kind_of_block_is_known() -> None:
    known = {"", "text", "json", "toml", "yaml", "python", "rust", "typescript", *SHELL}
    assert {b.language for b in ALL} <= known
    commands = [b for b in ALL if b.language == "" and re.match(r"\$? ?pegboard ", b.text)]
    assert not commands, [f"{b.page.name}: say ```sh" for b in commands]


@pytest.mark.parametrize("block", of("toml"))
def test_a_configuration_is_right(block: Block, tmp_path: Path) -> None:
    taken = tmp_path / ".cursor" / "mcp.json"
    taken.parent.mkdir()
    taken.write_text('{"mcpServers": {"github": {"command": "github-server"}}}')
    path = tmp_path / "pegboard.toml"
    path.write_text(block.text, "utf-8")
    assert not load_configuration(path, ConfigEnvironment(VARIABLES, tmp_path, tmp_path)).problems


def _commands(block: Block) -> Iterator[list[str]]:
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line.removeprefix("$ "), comments=True)
        if words:
            yield words


@pytest.mark.parametrize("block", of(*SHELL))
def test_a_command_is_one_that_there_is(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "result.json").write_text("{}")
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    for program, *words in _commands(block):
        if program == "make":
            assert set(words) <= set(targets), words
        elif program == "pegboard" and words:
            _parse(words[: words.index(">")] if ">" in words else words)
        else:
            known = ("pegboard", "pip", "pipx", "python", "python3", "uv", "git", "docker", "helm")
            assert program in known, program


def _parse(words: list[str]) -> None:
    """Raise what the command line raises for a command, an option or an argument it has not."""
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands"):
        if not words:  # `pegboard` alone shows what to do next
            return
        name, *words = words
        command = command.commands[name]
    command.make_context("pegboard", words)


GITHUB = """
from pegboard import Pegboard
board = Pegboard("github")
@board.tool
def get_issue(number: int) -> int:
    return number
board.run()
"""


class Issue(TypedDict):
    id: int


@pytest.mark.parametrize("block", [p for p in of("python") if not p.values[0].is_of_others])
def test_python_runs(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PEGBOARD_HOME", str(tmp_path / "home"))
    server = tmp_path / "github.py"
    server.write_text(GITHUB)
    entry = f'{{"command": "{sys.executable}", "args": ["{server}"], '
    env = f'"env": {{"PYTHONPATH": "{ROOT / "src"}", "PEGBOARD_MODE": "eager"}}}}'
    (tmp_path / "mcp.json").write_text(f'{{"mcpServers": {{"github": {entry}{env}}}}}')
    given: dict[str, Any] = {"Pegboard": Pegboard, "Issue": Issue, "board": quickstart}
    body = textwrap.indent(f"{block.text}\nreturn locals()", "    ")
    source = f"async def run():\n    global board\n{body}" if "board =" in block.text else (
        f"async def run():\n{body}"
    )  # fmt: skip
    exec(compile(source, block.page.name, "exec"), given)
    defined = anyio.run(given["run"])
    if "register" in defined:
        defined["register"](board := Pegboard("issues"))
        assert [tool.name for tool in board.tools()] == ["get_issue"]


@pytest.mark.parametrize("block", [p for p in of("python") if p.values[0].is_of_others])
def test_what_a_migration_starts_from_is_python(block: Block) -> None:
    body = textwrap.indent(block.text, "    ")
    assert ast.parse(f"async def run():\n{body}").body
