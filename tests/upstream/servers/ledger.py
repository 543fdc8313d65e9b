"""A modern server without the SDK that keeps rows in memory: it starts in milliseconds.

`python ledger.py [quiet|dual|slow]`: `quiet` never answers before the handshake, as old SDKs do;
`dual` accepts the handshake too; `slow` is `dual` and takes two seconds to start; `deaf` ignores
the end of its stdin and SIGTERM, and has a child that does too, whose id is its first row.
"""

from __future__ import annotations

import os
import signal
import sys
import time

import raw

rows: list[str] = []
manner = sys.argv[1] if len(sys.argv) > 1 else ""
TOOLS = [{**raw.TOOL, "name": name} for name in ("put", "read", "die", "wait")]


def answer(message: raw.Message) -> raw.Message | None:
    method, params = message["method"], message.get("params") or {}
    if method == "server/discover":
        versions = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
        return {**versions, "ttlMs": 0, "cacheScope": "private", "resultType": "complete"}
    if method == "tools/list":
        return {"tools": TOOLS, "ttlMs": 0, "cacheScope": "private", "resultType": "complete"}
    if params.get("name") == "put":
        rows.append(params["arguments"]["value"])
    elif params.get("name") == "die":
        raw.err(f"{rows} were in memory")
        os.abort()
    elif params.get("name") == "wait":
        time.sleep(params["arguments"]["seconds"])
    return {**raw.said(f"{os.getpid()} {' '.join(rows)}"), "resultType": "complete"}


def main() -> None:
    if manner == "slow":
        time.sleep(2)
    if manner == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = os.fork()
        if child == 0:
            time.sleep(600)
            os._exit(0)
        rows.append(str(child))
    greeted = False
    for line in sys.stdin:
        message = raw.json.loads(line)
        method = message.get("method")
        too_early = manner == "quiet" and not greeted and method != "initialize"
        if "id" not in message or method is None or too_early:
            continue
        if method == "initialize":
            greeted = True
            refusal = raw.not_found(message)["error"]
            end = {"result": raw.greeting(None)} if manner else {"error": refusal}
        else:
            end = {"result": answer(message)}
        raw.send({"id": message["id"], **end})
    if manner == "deaf":
        time.sleep(600)


main()
