"""A server that hides text wherever it can, repaints terminals, and prints its secrets.

`echo` answers with what it received, as ASCII JSON, so that a test sees exactly what arrived.
"""

from __future__ import annotations

import json
import os
import sys

import raw
from hostile_texts import HIDDEN, PROMPTS, RESOURCES, TEMPLATES, TOOLS


def received(message: raw.Message) -> str:
    return json.dumps(message["params"])


def answer(message: raw.Message) -> raw.Message | None:
    match message["method"]:
        case "tools/list":
            return {"tools": TOOLS}
        case "prompts/list":
            return {"prompts": PROMPTS}
        case "resources/list":
            return {"resources": RESOURCES}
        case "resources/templates/list":
            return {"resourceTemplates": TEMPLATES}
        case "prompts/get":
            text = {"type": "text", "text": received(message) + HIDDEN}
            return {"messages": [{"role": "user", "content": text}]}
        case "resources/read":
            uri = message["params"]["uri"]
            return {"contents": [{"uri": uri, "text": received(message) + HIDDEN}]}
        case "completion/complete":
            return {"completion": {"values": [received(message)]}}
        case "tools/call":
            return call(message)
        case _:
            return raw.not_found(message)


def call(message: raw.Message) -> raw.Message:
    secret = os.environ.get("SERVICE_PASSWORD", "nothing")
    name = message["params"]["name"]
    if name == "fail":
        text = f"cannot log in with {secret}{HIDDEN}" + "x" * 100_000
        return {
            "error": {"code": -32000, "message": text, "data": {"tried": secret + "y" * 100_000}}
        }
    if name == "die":
        raw.err(f"connecting with {secret} failed")
        sys.exit(3)
    return raw.said(received(message) + HIDDEN)


if __name__ == "__main__":
    if secret := os.environ.get("SERVICE_PASSWORD"):
        raw.err(f"starting with {secret}")
    offered = {"tools": {}, "prompts": {}, "resources": {}, "completions": {}}
    raw.serve(answer, offered)
