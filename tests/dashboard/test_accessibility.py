"""Every page of the dashboard under axe, on a wide screen and on a phone, light and dark."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.conformance.clients import served
from tests.conftest import missing_part
from tests.dashboard.boards import ada_or_bob, large_board

from pegboard import Pegboard
from pegboard.core.tool_lock import ListedDefinition, ServerLock, TrustRule
from pegboard.dashboard import Viewer
from pegboard.gateway.lock_storage import FileLockStorage

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parents[2]
AXE = ROOT / "tests" / "typescript" / "node_modules" / "axe-core" / "axe.min.js"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
SIZES = {"wide": (1280, 900), "phone": (375, 740)}
PAGES = ("/", "/ui/tools", "/ui/tools?q=read+a+document", "/ui/tool?id=office_echo", "/ui/calls",
         "/ui/calls?only=problems", "/ui/usage?period=month", "/ui/usage?period=day",
         "/ui/servers", "/ui/trust")  # fmt: skip
CONFIGURATION = """
mode = "proxy"
[upstreams]
folder = "kept"
[trust]
lock = "pegboard.lock"
[servers.office]
command = {python}
args = {args}
env = {{ PYTHONPATH = {path}, PEGBOARD_MODE = "eager" }}
[servers.broken]
command = "no-such-program-here"
[servers.wiki]
url = "https://wiki.example/mcp"
disabled = true
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        missing_part("chromium is not installed")
    if not AXE.is_file():
        missing_part("axe-core is not installed")
    with sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield launched
        launched.close()


async def owner(token: str | None) -> Viewer | None:
    return Viewer(is_operator=True, name="ada")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A gateway as its owner sees it, after a few calls, with a definition that has changed."""
    folder = tmp_path_factory.mktemp("gateway")
    path = folder / "pegboard.toml"
    path.write_text(
        CONFIGURATION.format(
            python=json.dumps(sys.executable),
            args=json.dumps([str(ROOT / "tests" / "boards.py")]),
            path=json.dumps(f"{ROOT / 'src'}{os.pathsep}{ROOT}"),
        )
    )
    locks = FileLockStorage(folder / "pegboard.lock")
    other = {"name": "echo", "description": "Before.", "inputSchema": {"type": "object"}}
    record = partial(
        ServerLock.record, listed=[ListedDefinition.of(other)], rule=TrustRule(), now=1e9
    )
    locks.update_now("office", record)
    board = Pegboard.from_config(path)
    assert board.tools()
    with served(board.asgi(identify=owner, is_owner_only=True)) as address:
        ask(address, "tools/list")
        call(address, "office_list_issues")
        call(address, "office_get_issue", id="X-99")
        call(address, "office_nothing_of_that_name", project="WEB")
        yield address


def ask(url: str, method: str, **params: Any) -> None:
    """Send a request as a modern client does."""
    version = "2026-07-28"
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": version,
        "Mcp-Method": method,
        **({"Mcp-Name": params["name"]} if "name" in params else {}),
    }
    meta = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    httpx2.post(f"{url}/mcp/proxy", json=body, headers=headers, timeout=30).raise_for_status()


def call(url: str, name: str, **arguments: str) -> None:
    ask(url, "tools/call", name="call_tool", arguments={"name": name, "arguments": arguments})


def findings(page: Page) -> list[str]:
    """What axe finds on the page as it is now, the serious ones and worse."""
    # Not by a script element, which the policy of the pages forbids.
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{v['id']} ({v['impact']}): {v['nodes'][0]['html'][:120]}"
        for v in found["violations"]
        if v["impact"] in ("serious", "critical")
    ]


def hidden_columns(page: Page) -> int:
    """Regions that have to be scrolled sideways to see everything."""
    wider = "all => all.filter(e => e.scrollWidth > e.clientWidth + 1).length"
    return page.eval_on_selector_all(".wide", wider)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_no_page_has_a_serious_problem_or_hides_a_column(
    browser: Browser, url: str, size: str, scheme: str
) -> None:
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page = context.new_page()
    problems: list[str] = []
    for path in PAGES:
        page.goto(url + path)
        page.eval_on_selector_all("main details", "all => all.forEach(e => { e.open = true; })")
        problems += [f"{path}: {found}" for found in findings(page)]
        if page.evaluate("document.documentElement.scrollWidth") > width:
            problems.append(f"{path} is wider than the screen")
        if hidden_columns(page):
            problems.append(f"{path} hides a column")
        if folder := os.environ.get("PEGBOARD_GLANCES"):
            name = path.strip("/").replace("/", "-").partition("?")[0] or "overview"
            page.screenshot(path=Path(folder) / f"{name}-{size}-{scheme}.png", full_page=True)
    context.close()
    assert problems == []


def test_sign_in_errors_and_empty_pages_have_no_serious_problem(browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 375, "height": 740})
    problems: list[str] = []
    page.set_content("<html><img src='x'></html>")
    assert findings(page)  # so that no findings mean something
    with served(large_board(10).asgi(identify=ada_or_bob, accepts_links=True)) as address:
        page.goto(f"{address}/ui/enter?token=")
        problems += findings(page)
        page.goto(f"{address}/ui/enter?token=wrong")
        problems += findings(page)
        page.goto(f"{address}/ui/enter?token=ada-key")
        # The page that sets the cookie leads on by itself, and would interrupt the next navigation.
        page.wait_for_url(f"{address}/")
        page.goto(f"{address}/ui/rollout")
        problems += findings(page)
    with served(Pegboard("empty").asgi()) as address:
        for path in ("/", "/ui/tools", "/ui/tool?id=none", "/ui/calls", "/ui/usage"):
            page.goto(address + path)
            problems += [f"{path}: {found}" for found in findings(page)]
        page.goto("about:blank")
    page.close()
    assert problems == []


def test_a_stored_result_has_no_serious_problem(browser: Browser) -> None:
    board = Pegboard("notes", spill_tokens=100)

    @board.tool(annotations={"readOnlyHint": True})
    def read_notes() -> list[dict[str, str]]:
        """Read all notes."""
        return [{"title": f"note {n}", "text": "milk " * 30} for n in range(60)]

    page = browser.new_page(viewport={"width": 375, "height": 740})
    with served(board.asgi()) as address:
        call(address, "read_notes")
        page.goto(f"{address}/ui/calls")
        page.get_by_role("link", name="Open the result of read_notes").click()
        assert page.get_by_label("The result").inner_text()
        found = findings(page)
        page.goto("about:blank")
    page.close()
    assert found == []
