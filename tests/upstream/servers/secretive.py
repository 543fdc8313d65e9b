"""A server with secrets for the fuzzer: `python secretive.py`."""

from __future__ import annotations

import json
from typing import Any

import raw

SECRETS = {"ann": "the secret of ann", "bob": "the secret of bob"}
EMAIL = r"^(?!.*\.\.)\S+@\S+\.\S+$"


def listed() -> list[dict[str, Any]]:
    def tool(name: str, **properties: Any) -> dict[str, Any]:
        schema = {"type": "object", "properties": properties}
        return {"name": name, "description": f"Do {name}.", "inputSchema": schema}

    number, text = {"type": "integer"}, {"type": "string"}
    private = [
        tool(f"{kind}_of_{name}", n=number) for name in SECRETS for kind in ("secret", "big")
    ]
    return [
        *private,
        tool("echo", text=text, nested={"type": "object"}),
        tool("mail", to={**text, "pattern": EMAIL}, cc={"type": "array", "uniqueItems": True}),
    ]


def answer(message: raw.Message) -> raw.Message | None:
    if message["method"] == "tools/list":
        return raw.tools(*listed())
    if message["method"] != "tools/call":
        return raw.not_found(message)
    name = message["params"]["name"]
    owner = name.rpartition("_")[2]
    if name.startswith("secret_of_"):
        return raw.said(SECRETS[owner])
    if name.startswith("big_of_"):
        return raw.said(json.dumps([{"text": SECRETS[owner], "row": n} for n in range(200)]))
    return raw.said(str(message["params"].get("arguments"))[:100])


if __name__ == "__main__":
    raw.serve(answer)
