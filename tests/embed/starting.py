"""A process that starts, opens a catalog, searches it, and says what that took.

`python -m tests.embed.starting CATALOG [prepare]`
"""

from __future__ import annotations

import json
import sys
import time

from tests.embed.conftest import TopicEmbedder

from pegboard import Pegboard


def main(path: str, *asked: str) -> None:
    """Open, perhaps prepare, search; one JSON object on standard output."""
    own = TopicEmbedder() if "topics" in asked else None
    board = Pegboard.from_catalog(path, embedder=own)
    if "prepare" in asked:
        board.prepare()
    began = time.process_time()
    matches = board.search("what will the weather be")
    told = {
        "cpu_ms": (time.process_time() - began) * 1e3,
        "found": [[match.tool.id, match.score] for match in matches],
        "lacking": len(board.index.tools_without_vector()),
        "embedded": None if own is None else len(own.passages),
        "is_kept": board.is_index_saved,
    }
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
