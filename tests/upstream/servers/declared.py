"""A legacy server that says of itself what its command line has as JSON.

    python declared.py '{"instructions": "..."}' '[{"name": "echo", "inputSchema": {}}]'

The first is merged into the result of the handshake, the second is its list of tools.
"""

from __future__ import annotations

import json
import sys

from raw import TOOL, Message, not_found, said, serve, tools


def main(greeting: str, listed: str = "[]") -> None:
    entries = json.loads(listed) or [TOOL]

    def answer(message: Message) -> Message | None:
        match message["method"]:
            case "tools/list":
                return tools(*entries)
            case "tools/call":
                return said("done")
            case _:
                return not_found(message)

    serve(answer, **json.loads(greeting))


if __name__ == "__main__":
    main(*sys.argv[1:])
