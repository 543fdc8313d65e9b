"""A server that lists what a file says, and answers every call with its own label and the tool.

    python labeled.py LABEL FILE [GATE]

FILE has the `tools` or an `error` instead of them, and `capabilities` where they are not the usual.
The list is answered when the file GATE exists.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import raw

LABEL, FILE, *GATE = sys.argv[1:]


def answer(message: raw.Message) -> raw.Message | None:
    listed = json.loads(Path(FILE).read_text(encoding="utf-8"))
    if message["method"] == "tools/list":
        while GATE and not Path(GATE[0]).exists():
            time.sleep(0.01)
        if "error" in listed:
            return {"error": listed["error"]}
        asked = (message.get("params") or {}).get("_meta") or {}
        return raw.tools(*listed["tools"], asked_with=asked)
    if message["method"] == "tools/call":
        return raw.said(f"{LABEL}:{message['params']['name']}")
    return raw.not_found(message)


if __name__ == "__main__":
    raw.serve(answer, json.loads(Path(FILE).read_text(encoding="utf-8")).get("capabilities"))
