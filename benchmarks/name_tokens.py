"""What each separator costs: tokens of `server<separator>tool` over a catalog of JSON lines.

python benchmarks/name_tokens.py CATALOG.jsonl
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from splintr import Tokenizer


def main(path: Path) -> None:
    tokenizer = Tokenizer.from_pretrained("o200k_base")
    lines = path.read_text(encoding="utf-8").splitlines()
    tools = [(t.get("server") or "server", t["name"]) for t in map(json.loads, lines)]
    print(f"{len(tools)} tools of {len({s for s, _ in tools})} servers, o200k_base tokens per name")
    for separator in (".", "_", "-", "__"):
        total = sum(len(tokenizer.encode(f"{s}{separator}{t}")) for s, t in tools)
        print(f"  {separator!r:6} {total / len(tools):.2f}")
    print(f"  bare   {sum(len(tokenizer.encode(t)) for _, t in tools) / len(tools):.2f}")
    long = sum(len(f"{s}_{t}") > 64 for s, t in tools)
    print(f"  over 64 characters with its server: {long}; different bare names: ", end="")
    print(len({t for _, t in tools}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
