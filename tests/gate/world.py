"""A gateway in a process of its own, with keys, rules and servers, as people with keys see it."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from tests.replicas.world import MODERN_META, free_port, message

ROOT = Path(__file__).parents[2]
SERVER = ROOT / "tests" / "upstream" / "servers" / "offering.py"
WAIT = 15.0


def keys(*principals: str) -> str:
    """Keys of these principals: `ann` has `key-of-ann`."""
    entries = [
        f'[[auth.keys]]\nprincipal = "{who}"\nsha256 = "{hashed(f"key-of-{who}")}"\n'
        for who in principals
    ]
    return '[auth]\nkind = "keys"\n' + "".join(entries)


def hashed(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def eventually(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT
    while not holds():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)


@dataclass
class Person:
    """Somebody with a key, and the gateway that they use."""

    url: str
    key: str
    client: httpx2.Client = field(init=False)

    def __post_init__(self) -> None:
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        self.client = httpx2.Client(base_url=self.url, headers=headers, timeout=20)

    def get(self, path: str) -> httpx2.Response:
        return self.client.get(path)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The JSON-RPC answer to a request of the modern era."""
        body, headers = _request(method, params)
        answer = self.client.post("/mcp", json=body, headers=headers)
        assert answer.status_code < 500, answer.text
        return message(answer)

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        return self.ask("tools/call", name=name, arguments=arguments)["result"]

    def text(self, name: str, **arguments: Any) -> str:
        return self.call(name, **arguments)["content"][0]["text"]

    def error(self, method: str, **params: Any) -> str:
        """The message of a request's error."""
        answer = self.ask(method, **params)
        assert "error" in answer, answer
        return answer["error"]["message"]

    def switch(self, tool_id: str, *, on: bool) -> None:
        """Switch a tool on or off on the dashboard."""
        self.post("tool/switch", f"tool?id={tool_id}", id=tool_id, enabled="1" if on else "")

    def post(self, action: str, page: str, **form: str) -> httpx2.Response:
        """Post a form of the dashboard, as it is on this page of it."""
        shown = self.client.get(f"/ui/{page}").text
        proof = shown.split('name="csrf_token" value="')[1].split('"')[0]
        answer = self.client.post(f"/ui/{action}", data={"csrf_token": proof, **form})
        assert answer.status_code == 303, answer.text
        return answer

    @contextmanager
    def listening(self, *uris: str) -> Generator[Stream]:
        """A stream of changes of these resources."""
        wanted = {"resourceSubscriptions": list(uris), "toolsListChanged": True}
        body, headers = _request("subscriptions/listen", {"notifications": wanted})
        with self.client.stream("POST", "/mcp", json=body, headers=headers) as answer:
            stream = Stream(answer)
            stream.until("acknowledged")
            yield stream

    @contextmanager
    def events(self, path: str) -> Generator[Stream]:
        """A stream of server-sent events of the dashboard."""
        with self.client.stream("GET", path) as answer:
            yield Stream(answer)


class Stream:
    """What a server sends, line by line."""

    def __init__(self, answer: httpx2.Response) -> None:
        self.answer = answer
        self.lines: list[str] = []
        self._source: Iterator[str] = answer.iter_lines()

    def until(self, wanted: str) -> str:
        """Read on to the line that has these words."""
        deadline = time.monotonic() + WAIT
        for line in self._source:
            self.lines.append(line)
            if wanted in line:
                return line
            assert time.monotonic() < deadline, f"no {wanted} yet: {self.lines}"
        raise AssertionError(f"the stream ended without {wanted}: {self.lines}")

    def rest(self) -> list[str]:
        """Read on to the end."""
        rest: list[str] = []
        deadline = time.monotonic() + WAIT
        for line in self._source:
            rest.append(line)
            assert time.monotonic() < deadline, f"it does not end: {rest}"
        self.lines += rest
        return rest


def _request(method: str, params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": method,
    }
    if name := params.get("name") or params.get("uri"):
        headers["Mcp-Name"] = name
    params = {**params, "_meta": MODERN_META}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, headers


@dataclass
class World:
    """A folder, a configuration, and the gateway that runs with it."""

    folder: Path
    settings: str
    servers: dict[str, dict[str, Any]]
    extra: str = ""
    process: subprocess.Popen[str] | None = None
    url: str = ""
    _people: dict[str, Person] = field(default_factory=dict[str, Person])

    @property
    def config(self) -> Path:
        return self.folder / "pegboard.toml"

    @property
    def environ(self) -> dict[str, str]:
        return {**os.environ, "PEGBOARD_HOME": str(self.folder / "home")}

    def write(self, settings: str | None = None) -> None:
        """Write the configuration."""
        self.settings = self.settings if settings is None else settings
        text = [self.settings, self.extra]
        for name, offer in self.servers.items():
            offer = {"name": name, "log": str(self.log(name)), **offer}
            more = offer.pop("settings", "")
            arguments = [str(SERVER), json.dumps(offer)]
            text.append(
                f"[servers.{name}]\ncommand = {json.dumps(sys.executable)}\n"
                f"args = {json.dumps(arguments)}\n{more}\n"
            )
        self.config.write_text("\n".join(text), "utf-8")

    def log(self, server: str) -> Path:
        return self.folder / f"{server}.log"

    def was_asked(self, server: str, what: str) -> bool:
        """Whether a server got a request that begins like this."""
        log = self.log(server)
        return log.exists() and any(line.startswith(what) for line in log.read_text().splitlines())

    def start(self) -> World:
        self.write()
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        line = [sys.executable, "-m", "pegboard", "serve", "--config", str(self.config)]
        with (self.folder / "stderr.txt").open("w") as stderr:
            self.process = subprocess.Popen(
                [*line, "--http", f"127.0.0.1:{port}"],
                stderr=stderr, env=self.environ, text=True,
            )  # fmt: skip
        eventually(self._is_ready)
        return self

    def _is_ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.stderr
        try:
            return httpx2.get(f"{self.url}/ready").status_code == 200
        except httpx2.HTTPError:
            return False

    @property
    def stderr(self) -> str:
        return (self.folder / "stderr.txt").read_text()

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command of the command line with this configuration."""
        line = [sys.executable, "-m", "pegboard", *words, "--config", str(self.config)]
        return subprocess.run(line, capture_output=True, text=True, check=False, env=self.environ)

    def reload(self, settings: str) -> None:
        """Have the gateway take other settings."""
        assert self.process is not None
        before = self.stderr.count("was read again")
        self.write(settings)
        self.process.send_signal(signal.SIGHUP)
        eventually(lambda: self.stderr.count("was read again") > before)

    def person(self, name: str) -> Person:
        return self._met(f"key-of-{name}")

    def stranger(self) -> Person:
        return self._met("")

    def _met(self, key: str) -> Person:
        if key not in self._people:
            self._people[key] = Person(self.url, key)
        return self._people[key]

    def audit(self) -> list[dict[str, Any]]:
        """The lines of the audit log."""
        lines = (self.folder / "audit.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def stop(self) -> None:
        for person in self._people.values():
            person.client.close()
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
