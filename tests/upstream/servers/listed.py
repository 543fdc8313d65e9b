"""A server that lists the tools in a file: `python listed.py TOOLS.json [ROWS]`.

A call answers with the number of characters of its arguments; `rows` answers with that many rows.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import raw


def main() -> None:
    path = Path(sys.argv[1])

    def answer(message: raw.Message) -> raw.Message | None:
        if message["method"] == "tools/list":
            return raw.tools(*json.loads(path.read_text()))
        if message["method"] != "tools/call":
            return raw.not_found(message)
        if message["params"]["name"] == "rows":
            count = message["params"]["arguments"]["count"]
            rows = [{"id": n, "text": "ab" * 20, "tags": ["x", "y", str(n)]} for n in range(count)]
            return raw.said(json.dumps(rows))
        return raw.said(str(len(json.dumps(message["params"]["arguments"]))))

    raw.serve(answer)


main()
