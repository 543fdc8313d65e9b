"""The official conformance suite against `pegboard serve --http`, in both eras that it knows.

`docs/reference/conformance.md` lists what came of it; a test holds it to what the suite says.
Install the suite with `npm ci` in `tests/official`.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path

import anyio
import pytest
from tests.conftest import missing_part
from tests.e2e.test_serving import running_gateway
from tests.gateway.support import ROOT

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

HERE = Path(__file__).parent
PAGE = ROOT / "docs" / "reference" / "conformance.md"
REVISIONS = ("2025-11-25", "2026-07-28")
TASKS = "not supported here: tasks are an extension, and the server behind the gateway has none"
REPAIRED = (
    "differs on purpose: schemas are rewritten so that all model providers accept them (a "
    "top-level `allOf` or `else` is moved inside, `$anchor` is resolved); arguments are checked "
    "against the original schema"
)
REASONS = {
    **dict.fromkeys(
        (
            "tasks-lifecycle",
            "tasks-capability-negotiation",
            "tasks-wire-fields",
            "tasks-request-state-removal",
            "tasks-mrtr-input",
            "tasks-request-headers",
            "tasks-dispatch-and-envelope",
            "tasks-required-task-error",
            "tasks-mrtr-composition",
        ),
        TASKS,
    ),
    "json-schema-2020-12": REPAIRED,
}
"""Scenarios that do not pass; the suite scores none of them for these revisions."""

NOT_TESTED = {
    "server-sse-polling": (
        "the suite only warns, because streams here have no priming event and no `retry` "
        "field, which are optional"
    ),
    "tasks-status-notifications": "the suite skips its one check",
}
"""Scenarios without a check that passed or failed."""

_RESULT_FOLDER = re.compile(r"server-(.+?)-\d{4}-\d\d-\d\dT[\d-]+Z")
_UNSCORED = re.compile(r"^  [✓✗] ([a-z0-9-]+) \(", re.MULTILINE)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_every_scenario_passes_that_applies(revision: str, tmp_path: Path) -> None:
    printed = await play(revision, tmp_path)
    results = checks_by_scenario(tmp_path / "results")
    assert len(results) > 30, printed[-2000:]
    failing = {name for name, statuses in results.items() if statuses["FAILURE"]}
    assert failing <= set(REASONS), printed[-4000:]
    assert failing <= set(_UNSCORED.findall(printed)), "the suite scores a scenario that fails"
    assert rendered(revision, results) in PAGE.read_text("utf-8"), rendered(revision, results)


async def play(revision: str, folder: Path) -> str:
    """What the suite prints about a gateway in front of the server that it expects."""
    suite = HERE / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    node = HERE / "node_modules" / "node" / "bin" / "node"
    if not suite.exists() or not node.exists():
        missing_part("the official conformance suite is not installed (npm ci in tests/official)")
    config = folder / "pegboard.toml"
    config.write_text(
        f"mode = 'eager'\n[servers.c]\ncommand = '{sys.executable}'\n"
        f"args = ['{HERE / 'server.py'}']\nprefix = ''\n"
    )
    async with running_gateway(folder, config, patience=240) as (url, _):
        command = [str(node), str(suite), "server", "--url", f"{url}/mcp"]
        command += ["--requirements", revision, "-o", str(folder / "results")]
        done = await anyio.run_process(command, check=False, cwd=folder)
    return done.stdout.decode()


def checks_by_scenario(folder: Path) -> dict[str, Counter[str]]:
    """How many checks of each scenario ended in which status, as the suite wrote it down."""
    found: dict[str, Counter[str]] = {}
    for path in sorted(folder.glob("*/checks.json")):
        name = _RESULT_FOLDER.fullmatch(path.parent.name)
        assert name is not None, path
        found[name[1]] = Counter(check["status"] for check in json.loads(path.read_text("utf-8")))
    return found


def rendered(revision: str, results: dict[str, Counter[str]]) -> str:
    """The page's section about one revision."""
    rows = [f"| `{name}` | {verdict(name, found)} |" for name, found in sorted(results.items())]
    head = f"## {revision}\n\n| scenario | result |\n|---|---|\n"
    return head + "\n".join(rows) + "\n"


def verdict(name: str, statuses: Counter[str]) -> str:
    """What a scenario shows: one whose checks were all skipped shows nothing."""
    if statuses["FAILURE"]:
        return REASONS.get(name, "fails")
    passed, skipped = statuses["SUCCESS"], statuses["SKIPPED"]
    if not passed:
        return f"not tested: {NOT_TESTED.get(name, 'the suite ran no check')}"
    noted = f", {skipped} skipped by the suite" if skipped else ""
    return f"passes ({passed} check{'s' if passed > 1 else ''}{noted})"
