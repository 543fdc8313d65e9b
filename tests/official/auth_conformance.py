"""The official client scenarios about logins, `auth/*`, through a gateway, in every version.

    python -m tests.official.auth_conformance         run all, and write the table of the page
    python -m tests.official.auth_conformance NAME    run one, and print what the suite says

`auth_client.py` is the client that the suite runs. All scenarios take a few minutes; the tests run
a few of them.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "reference" / "conformance.md"
NODE = HERE / "node_modules" / "node" / "bin" / "node"
SUITE = HERE / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
TITLE = "## Logins to servers"
EXTENSION = "extension"
NOT_SUPPORTED = {
    "auth/dpop": "not supported: tokens that are bound to a key (DPoP, an extension)",
    "auth/dpop-nonce": "not supported: tokens that are bound to a key (DPoP, an extension)",
    "auth/wif-jwt-bearer": "not supported: workload identities (an extension)",
}
_SCENARIO = re.compile(r"^\s+- (auth/\S+) \[([^\]]+)\]$", re.MULTILINE)


@dataclass(frozen=True)
class Scenario:
    """One scenario in one version of the protocol; `extension` for one that no version has."""

    name: str
    version: str

    def command(self, results: Path) -> list[str]:
        client = f"{sys.executable} {HERE / 'auth_client.py'}"
        chosen = ["--scenario", self.name, "-o", str(results)]
        version = [] if self.version == EXTENSION else ["--spec-version", self.version]
        return [str(NODE), str(SUITE), "client", "--command", client, *chosen, *version]


def list_scenarios() -> list[Scenario]:
    """Every scenario about logins that the suite knows, in each of its versions."""
    listed = subprocess.run(
        [str(NODE), str(SUITE), "list", "--client"], capture_output=True, text=True, check=True
    )
    return [
        Scenario(name, version)
        for name, versions in _SCENARIO.findall(listed.stdout)
        for version in versions.split(",")
    ]


def play(scenario: Scenario) -> tuple[Counter[str], str]:
    """How many checks ended in which status, and what the suite printed."""
    with tempfile.TemporaryDirectory() as folder:
        command = scenario.command(Path(folder))
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        found: Counter[str] = Counter()
        for path in Path(folder).rglob("checks.json"):
            found += Counter(check["status"] for check in json.loads(path.read_text("utf-8")))
    return found, done.stdout + done.stderr


def verdict(name: str, statuses: Counter[str]) -> str:
    """The result of one scenario, as the page has it."""
    if name in NOT_SUPPORTED:
        return NOT_SUPPORTED[name]
    if statuses["FAILURE"] or statuses["WARNING"] or not statuses["SUCCESS"]:
        return "fails"
    return "passes"


def main(names: list[str]) -> None:
    scenarios = [one for one in list_scenarios() if not names or one.name in names]
    played = [one for one in scenarios if one.name not in NOT_SUPPORTED]
    with ThreadPoolExecutor(2) as pool:
        results = dict(zip(played, pool.map(play, played), strict=True))
    rows: list[str] = []
    for one in scenarios:
        statuses, printed = results.get(one, (Counter[str](), ""))
        rows.append(f"| `{one.name}` | {one.version} | {verdict(one.name, statuses)} |")
        print(printed if names else rows[-1])  # noqa: T201
    if names:
        return
    head, _, _ = PAGE.read_text("utf-8").partition(TITLE)
    intro = (
        "The client scenarios of the suite, with a gateway as the client: the suite is the server "
        "and the authorization server.\n`python -m tests.official.auth_conformance` runs them and "
        "writes this table.\n\n| scenario | version | result |\n|---|---|---|\n"
    )
    table = "\n".join(rows)
    PAGE.write_text(f"{head.rstrip()}\n\n{TITLE}\n\n{intro}{table}\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
