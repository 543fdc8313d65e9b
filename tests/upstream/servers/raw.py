"""The least that a legacy server must do, without the SDK: it starts in milliseconds."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

Message = dict[str, Any]
Answer = Callable[[Message], Message | None]
"""A request's result; `None` to leave it unanswered, an `error` key to answer with an error."""

TOOL: Message = {"name": "echo", "inputSchema": {"type": "object"}}


def send(message: Message) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def out(text: str) -> None:
    """Print what is no protocol where protocol belongs."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def err(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def notify(method: str, **params: Any) -> None:
    send({"method": method, "params": params})


def tools(*entries: Any, **more: Any) -> Message:
    return {"tools": list(entries or (TOOL,)), **more}


def said(text: str) -> Message:
    return {"content": [{"type": "text", "text": text}]}


def serve(answer: Answer, capabilities: Message | None = None, **more: Any) -> None:
    """Answer requests until stdin closes; `answer` gets all but the handshake.

    `more` goes into the result of the handshake.
    """
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        is_first = message["method"] == "initialize"
        result = {**greeting(capabilities), **more} if is_first else answer(message)
        if result is not None:
            kind = {"error": result["error"]} if "error" in result else {"result": result}
            send({"id": message["id"], **kind})


def greeting(capabilities: Message | None) -> Message:
    return {
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities or {"tools": {"listChanged": True}},
        "serverInfo": {"name": "raw", "version": "1"},
    }


def not_found(message: Message) -> Message:
    return {"error": {"code": -32601, "message": f"Method not found: {message['method']}"}}
