"""A legacy server that lists a tool for each thing that its client can be asked for.

`plain` is listed to everybody, `only_plain` to clients that can be asked nothing. The first
argument is a file that gets a line for each start; the second may name further tools.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import raw


def main() -> None:
    with Path(sys.argv[1]).open("a") as starts:
        starts.write("started\n")
    declared: dict[str, object] = {}
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        if message["method"] == "initialize":
            declared = message["params"]["capabilities"]
            raw.send({"id": message["id"], "result": raw.greeting(None)})
        elif message["method"] == "tools/list":
            asked = [n for n in ("elicitation", "roots", "sampling") if n in declared]
            names = ["plain", *(f"needs_{name}" for name in asked)] + ["only_plain"] * (not asked)
            more = Path(sys.argv[2]) if len(sys.argv) > 2 else None
            names += more.read_text().split() if more and more.exists() else []
            if asked and "dies_if_asked" in names:
                sys.exit(1)
            if asked and "sleeps_if_asked" in names:
                time.sleep(30)
            listed = [{**raw.TOOL, "name": name} for name in names]
            raw.send({"id": message["id"], "result": raw.tools(*listed)})
        elif message["method"] == "tools/call":
            text = f"{message['params']['name']} {sorted(declared)}"
            raw.send({"id": message["id"], "result": raw.said(text)})
        else:
            raw.send({"id": message["id"], **raw.not_found(message)})


if __name__ == "__main__":
    main()
