"""A modern server whose every call ends with the input requests on its command line.

python demanding.py '{"name": {"method": "elicitation/create", "params": {}}}'
"""

from __future__ import annotations

import json
import sys

import raw

REQUESTS = json.loads(sys.argv[1])


def answer(message: raw.Message) -> raw.Message | None:
    match message["method"]:
        case "server/discover" if "legacy" not in sys.argv:
            versions = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
            return {**versions, "ttlMs": 0, "cacheScope": "private", "resultType": "complete"}
        case "tools/call":
            return {"resultType": "input_required", "inputRequests": REQUESTS}
        case _:
            return raw.not_found(message)


if __name__ == "__main__":
    raw.serve(answer)
