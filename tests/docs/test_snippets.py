"""Every snippet of the documentation is a file that runs, and every page shows it as it is."""

from __future__ import annotations

import inspect
import os
import runpy
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from scripts.snippets import pages, with_snippets
from tests.docs.snippet_claims import count_claims

from pegboard.testing import connect

ROOT = Path(__file__).parents[2]
SNIPPETS = sorted((ROOT / "docs_src").glob("*.py"))
PROGRAMS = [s for s in SNIPPETS if "def main(" in s.read_text("utf-8")]
SERVERS = {"attach_fastmcp", "quickstart", "todo"}
"""Snippets that only define a server; tests of their own call its tools."""


@pytest.mark.parametrize("page", pages(), ids=lambda p: p.name)
def test_a_page_shows_its_snippets_as_the_files_have_them(page: Path) -> None:
    text = page.read_text("utf-8")
    assert with_snippets(text) == text, "run `python scripts/snippets.py`"


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda p: p.stem)
def test_a_snippet_runs(snippet: Path) -> None:
    defined = runpy.run_path(str(snippet))
    assert "board" in defined or "server" in defined or "main" in defined


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda p: p.stem)
def test_a_snippet_claims_something(snippet: Path) -> None:
    claims = count_claims(snippet)
    if snippet.stem in SERVERS:
        assert claims == {}
    else:
        assert claims
        assert all(claims.values()), claims


@pytest.mark.parametrize("snippet", PROGRAMS, ids=lambda p: p.stem)
def test_what_a_snippet_claims_holds(snippet: Path) -> None:
    assert count_claims(snippet)["main"] > 0
    main = runpy.run_path(str(snippet))["main"]
    if inspect.iscoroutinefunction(main):
        anyio.run(main)
    else:
        main()


@pytest.mark.anyio
async def test_the_quick_start_saves_and_reads_a_note() -> None:
    board = runpy.run_path(str(ROOT / "docs_src" / "quickstart.py"))["board"]
    board.check()
    await board.call("save_note", {"title": "todo", "text": "buy milk"})
    assert (await board.call("read_note", {"title": "todo"})).output == {"result": "buy milk"}


@pytest.mark.anyio
async def test_an_attached_server_lists_meta_tools_and_calls_its_own() -> None:
    server = runpy.run_path(str(ROOT / "docs_src" / "attach_fastmcp.py"))["server"]
    async with connect(server) as client:
        listed = {tool.name for tool in (await client.list_tools()).tools}
        assert "search_tools" in listed
        assert "forecast" not in listed
        result = await client.call_tool("forecast", {"city": "Bonn"})
        assert "Bonn: sunny for 3 days" in str(result.content)


def test_the_snippets_that_are_tests_pass() -> None:
    tests = [str(path) for path in SNIPPETS if path.name.startswith("test_")]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "pegboard.pytest_plugin", *tests]
    marked = "-o", "anyio_mode=auto"
    done = subprocess.run(
        [*command, *marked],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
