"""Servers with one fault each: `python misbehaving.py FAULT`."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import time

import raw


def garbage() -> None:
    """Prints what is no protocol before, between and inside its answers."""
    raw.out("Welcome to garbage v1!")
    raw.out('{"not": "json-rpc"}')

    def answer(message: raw.Message) -> raw.Message | None:
        raw.out(f"\x00\xff<<debug>> {message['method']}")
        return raw.tools() if message["method"] == "tools/list" else raw.said("fine")

    raw.serve(answer)


def only_garbage() -> None:
    while True:
        raw.out("ERROR: could not read my configuration")
        time.sleep(0.02)


def mute() -> None:
    time.sleep(600)


def late() -> None:
    """Answers a call after 0.6 s, everything else at once."""

    def answer(message: raw.Message) -> raw.Message | None:
        if message["method"] == "tools/call" and message["params"]["name"] == "slow":
            time.sleep(0.6)
        return raw.tools() if message["method"] == "tools/list" else raw.said("here")

    raw.serve(answer)


def dies_in_call() -> None:
    def answer(message: raw.Message) -> raw.Message | None:
        if message["method"] == "tools/call" and message["params"]["name"] == "die":
            raw.err("Segmentation fault (not really)")
            os.kill(os.getpid(), signal.SIGKILL)
        return raw.tools() if message["method"] == "tools/list" else raw.said(str(os.getpid()))

    raw.serve(answer)


def dies_at_start() -> None:
    raw.err("API_KEY is not set")
    sys.exit(7)


def dies_of_probe() -> None:
    """Ends at any request before the handshake, as some do."""
    first = sys.stdin.readline()
    if '"initialize"' not in first:
        sys.exit(1)
    raw.send({"id": raw.json.loads(first)["id"], "result": raw.greeting(None)})
    raw.serve(lambda message: raw.said("up"))


def slow_and_strict() -> None:
    """Takes 1.5 s to start, and writes down every method that it is sent."""
    time.sleep(1.5)
    with open(sys.argv[2], "w") as seen:
        for line in sys.stdin:
            message = raw.json.loads(line)
            seen.write(message["method"] + "\n")
            seen.flush()
            known = {"initialize": raw.greeting({"tools": {}}), "tools/list": raw.tools()}
            found = known.get(message["method"])
            end = {"result": found} if found else raw.not_found(message)
            if "id" in message:
                raw.send({"id": message["id"], **end})


def many_tools() -> None:
    def answer(message: raw.Message) -> raw.Message | None:
        start = int((message.get("params") or {}).get("cursor") or 0)
        page = [{**raw.TOOL, "name": f"tool_{n}"} for n in range(start, start + 500)]
        more = {"nextCursor": str(start + 500)} if start < 9500 else {}
        return raw.tools(*page, **more)

    raw.serve(answer)


def bad_tool() -> None:
    bad = {"name": "bad", "inputSchema": None}
    raw.serve(lambda message: raw.tools(raw.TOOL, bad, "not even an object"))


def broken_lists() -> None:
    """Lists tools, fails to list resources, and dies of being asked for prompts."""

    def answer(message: raw.Message) -> raw.Message | None:
        if message["method"] == "prompts/list":
            sys.exit(3)
        if message["method"].startswith("resources/"):
            return {"error": {"code": -32603, "message": "Fetch failed"}}
        return raw.tools() if message["method"] == "tools/list" else raw.said("here")

    raw.serve(answer, {"tools": {}, "resources": {}, "prompts": {}})


def cannot_list() -> None:
    """Fails to list its tools, in words that do not say who it is."""
    raw.serve(lambda message: {"error": {"code": -32603, "message": "Fetch failed"}})


def large_pages() -> None:
    """Lists 300 kB on every page."""
    pages = itertools.count()

    def answer(message: raw.Message) -> raw.Message | None:
        number = next(pages)
        tool = {**raw.TOOL, "name": f"tool_{number}", "description": "x" * 300_000}
        return raw.tools(tool, nextCursor=f"page-{number}")

    raw.serve(answer)


def same_cursor() -> None:
    raw.serve(lambda message: raw.tools(nextCursor="again"))


def endless_cursor() -> None:
    pages = itertools.count()
    raw.serve(lambda message: raw.tools(nextCursor=f"page-{next(pages)}"))


def huge() -> None:
    """Answers with as many bytes as it is asked for."""

    def answer(message: raw.Message) -> raw.Message | None:
        if message["method"] == "tools/list":
            return raw.tools()
        return raw.said("x" * message["params"]["arguments"]["size"])

    raw.serve(answer)


def loop() -> None:
    """Announces a change of its tools after every message, and never stops."""
    listed = itertools.count()

    def answer(message: raw.Message) -> raw.Message | None:
        for _ in range(200):
            raw.notify("notifications/tools/list_changed")
        if message["method"] == "tools/list":
            return raw.tools({**raw.TOOL, "description": "the same"})
        return raw.said(str(next(listed)))

    raw.serve(answer)


def changing() -> None:
    """Has another tool each time it is listed, and says so."""
    versions = itertools.count()

    def answer(message: raw.Message) -> raw.Message | None:
        if message["method"] == "tools/list":
            return raw.tools({**raw.TOOL, "name": f"version_{next(versions)}"})
        raw.notify("notifications/tools/list_changed")
        return raw.said("changed")

    raw.serve(answer)


def floods_stderr() -> None:
    for number in range(40_000):
        raw.err(f"line {number} " + "." * 80)
    raw.serve(lambda message: raw.said("still here"))


def deaf() -> None:
    """Ignores the end of its stdin and SIGTERM, and has a child that does too."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = os.fork()
    if child == 0:
        time.sleep(600)
        os._exit(0)
    raw.serve(lambda message: raw.said(f"{os.getpid()} {child}"))
    time.sleep(600)


def asks() -> None:
    """Asks for roots as soon as it is greeted, then waits for the answer to tell it."""
    known: list[str] = []
    waiting: list[raw.Message] = []
    for line in sys.stdin:
        message = raw.json.loads(line)
        if message.get("method") == "initialize":
            raw.send({"id": message["id"], "result": raw.greeting(None)})
        elif message.get("method") == "notifications/initialized":
            raw.send({"id": "roots-1", "method": "roots/list"})
        elif message.get("id") == "roots-1":
            known.append(str(message.get("result") or message.get("error")))
        elif message.get("method") == "tools/call":
            waiting.append(message)
        elif "id" in message:
            raw.send({"id": message["id"], **raw.not_found(message)})
        while known and waiting:
            raw.send({"id": waiting.pop()["id"], "result": raw.said(known[0])})


def tasks() -> None:
    """Answers a call with a task, and requests about it by its id."""

    def answer(message: raw.Message) -> raw.Message | None:
        params = message["params"]
        if message["method"] == "tools/call":
            return {"task": {"taskId": "42", "status": "working"}}
        if message["method"].startswith("tasks/"):
            related = {"io.modelcontextprotocol/related-task": {"taskId": params["taskId"]}}
            return {"taskId": params["taskId"], "status": message["method"], "_meta": related}
        return raw.not_found(message)

    raw.serve(answer)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
