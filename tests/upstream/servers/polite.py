"""A server with nothing wrong: what must go on working beside the others.

`echo` answers with its process id; `child` starts a process of its own and answers with that one's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import raw

CHILDREN: list[subprocess.Popen[bytes]] = []


def answer(message: raw.Message) -> raw.Message | None:
    if message["method"] == "tools/list":
        return raw.tools()
    if message["method"] != "tools/call":
        return raw.not_found(message)
    name = message["params"]["name"]
    if name == "child":
        CHILDREN.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]))
        return raw.said(str(CHILDREN[-1].pid))
    if name == "slow":
        time.sleep(message["params"]["arguments"]["seconds"])
    return raw.said(str(os.getpid()))


if __name__ == "__main__":
    if len(sys.argv) > 1:  # a file that counts starts
        with Path(sys.argv[1]).open("a") as starts:
            starts.write("started\n")
    raw.err("polite is up")
    raw.serve(answer)
