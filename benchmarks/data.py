"""Where the data of benchmarks is: catalogues and queries, which the project does not hold."""

from __future__ import annotations

import os
from pathlib import Path


def bench_folder() -> Path | None:
    """The folder in `PEGBOARD_BENCH`, or `../shared/bench` where that exists; else none."""
    given = os.environ.get("PEGBOARD_BENCH")
    folder = Path(given) if given else Path(__file__).parents[2] / "shared" / "bench"
    return folder if folder.is_dir() else None
