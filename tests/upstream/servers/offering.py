"""A server that offers what its argument, a JSON object, says, and logs what it is asked for.

    {"log": FILE, "tools": [names], "resources": [URIs], "templates": [texts], "prompts": [names]}

`start` begins a task with an id that anybody can guess, `link` answers with a link to `uri`,
`announce` says that the resource `uri` has changed, `fail` fails as a broken backend does, and
`wait` takes a minute. Every other tool answers with its name.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from pathlib import Path

import raw

OFFER: raw.Message = json.loads(sys.argv[1])
CAPABILITIES: raw.Message = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {},
    "completions": {},
    "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}},
}
ids = itertools.count(1)


def note(text: str) -> None:
    with Path(OFFER["log"]).open("a") as log:
        log.write(text + "\n")


def answer(message: raw.Message) -> raw.Message | None:
    method, params = message["method"], message.get("params") or {}
    note(f"{method} {params.get('name') or params.get('uri') or params.get('taskId') or ''}")
    if method == "tools/list":
        return raw.tools(*[{**raw.TOOL, "name": name} for name in OFFER["tools"]])
    if method == "resources/list":
        return {"resources": [{"uri": uri, "name": uri} for uri in OFFER.get("resources", ())]}
    if method == "resources/templates/list":
        found = [{"uriTemplate": t, "name": t} for t in OFFER.get("templates", ())]
        return {"resourceTemplates": found}
    if method == "prompts/list":
        return {"prompts": [{"name": name} for name in OFFER.get("prompts", ())]}
    if method == "resources/read":
        text = f"{OFFER['name']} has {params['uri']}"
        return {"contents": [{"uri": params["uri"], "text": text}]}
    if method == "prompts/get":
        said = {"type": "text", "text": f"{OFFER['name']} says {params['name']}"}
        return {"messages": [{"role": "user", "content": said}]}
    if method == "completion/complete":
        return {"completion": {"values": [OFFER["name"]]}}
    if method in ("resources/subscribe", "resources/unsubscribe"):
        return {}
    if method.startswith("tasks/"):
        return {"taskId": params["taskId"], "status": method}
    if method == "tools/call":
        return called(params["name"], params.get("arguments") or {})
    return raw.not_found(message)


def called(name: str, arguments: raw.Message) -> raw.Message:
    if name == "start":
        return {"task": {"taskId": str(next(ids)), "status": "working"}}
    if name == "link":
        link = {"type": "resource_link", "uri": arguments["uri"], "name": "a link"}
        return {"content": [link]}
    if name == "announce":
        raw.notify("notifications/resources/updated", uri=arguments["uri"])
    if name == "fail":
        return {**raw.said("connection refused by the database at db:5432"), "isError": True}
    if name == "wait":
        time.sleep(60)
    return raw.said(f"{OFFER['name']} did {name}")


if __name__ == "__main__":
    if OFFER.get("dies"):
        raw.err(OFFER["dies"])
        sys.exit(3)
    raw.serve(answer, CAPABILITIES)
