"""What the first search of a process costs, with its index on disk and without. Prints JSON.

    python -m benchmarks.first_search [--catalog FILE] [--rounds 5]

Every round is a process of its own that opens the catalog and searches once; counted is the
processor time from the call of `search` to its answer, with everything that is loaded for it, and
beside it `import numpy` alone. Without a file the catalog is that of the tracker example.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from pegboard import Pegboard

_FIRST = """
import sys, time
from pegboard import Pegboard
board = Pegboard.from_catalog(sys.argv[1])
board.known_catalog
began = time.process_time()
board.search("let everybody know that it is done")
print(time.process_time() - began)
"""
_NUMPY = (
    "import time; began = time.process_time(); import numpy; print(time.process_time() - began)"
)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--catalog", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pegboard-") as folder:
        path = options.catalog or _tracker(Path(folder) / "tracker.json")
        home = Path(folder) / "home"
        built = [_run(_FIRST, path, Path(folder) / str(n)) for n in range(options.rounds)]
        board = Pegboard.from_catalog(path)
        board.folder = home
        board.prepare()
        kept = [_run(_FIRST, path, home) for _ in range(options.rounds)]
        numpy = [_run(_NUMPY, path, home) for _ in range(options.rounds)]
    figures = {"built": built, "from disk": kept, "of which numpy": numpy}
    report = {name: round(statistics.median(times) * 1e3, 1) for name, times in figures.items()}
    print(json.dumps({"tools": len(board.catalog), "first search, ms of processor": report}))


def _run(program: str, path: Path, home: Path) -> float:
    env = {**os.environ, "PEGBOARD_HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program, str(path)]
    return float(subprocess.run(command, env=env, capture_output=True, check=True).stdout)


def _tracker(path: Path) -> Path:
    from examples.tracker import build_board

    tools = [{**tool.wire(), "id": tool.id} for tool in build_board(seeded=False).tools()]
    path.write_text(json.dumps(tools), encoding="utf-8")
    return path


if __name__ == "__main__":
    main()
