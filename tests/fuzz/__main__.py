"""`python -m tests.fuzz --requests 100000`: hostile requests against real gateways, and a summary.

Of the requests 70 % go to a gateway over HTTP, in both eras, the rest to gateways on stdio, one for
each era. It fails where anything answered 5xx, leaked, logged a traceback or grew.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.processes import attack_http, attack_stdio

MOST_GROWTH = 40
"""Megabytes that a process may gain after warm-up."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    began = time.monotonic()
    on_http = options.requests * 7 // 10
    on_pipes = (options.requests - on_http) // 2
    with tempfile.TemporaryDirectory() as folder:
        reports = [
            attack_http(Path(folder, "http"), on_http, options.seed),
            attack_stdio(Path(folder, "modern"), on_pipes, options.seed + 1, "modern"),
            attack_stdio(Path(folder, "legacy"), on_pipes, options.seed + 2, "legacy"),
        ]
    summary = {
        "requests": sum(report.requests for report in reports),
        "seed": options.seed,
        "seconds": round(time.monotonic() - began, 1),
        "ways": [report.summary() for report in reports],
    }
    print(json.dumps(summary, indent=1))  # noqa: T201
    is_flat = all(report.grown < MOST_GROWTH for report in reports)
    sys.exit(not (is_flat and all(report.is_clean for report in reports)))


if __name__ == "__main__":
    main()
