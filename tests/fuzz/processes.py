"""The fuzzer against real gateways: over HTTP and on stdio, in both eras.

Each gateway is a process of its own, with a real server behind it. On HTTP a bystander keeps
listing tools, and notes the longest time that the attack made it wait.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from typing import Any
from urllib.parse import urlsplit

import anyio
from tests.fuzz.hostile import KEYS, Attacker, Findings, Hostile
from tests.gateway.support import SERVERS
from tests.replicas.world import MODERN_META
from tests.robustness.world import Bystander, Gateway, running

AT_ONCE = 8
BARRIER = 100
"""Messages on stdio after which an answer is awaited."""
_SERVER = SERVERS / "secretive.py"


@dataclass
class Report:
    """What an attack on one gateway came to."""

    way: str
    requests: int = 0
    findings: Findings = field(default_factory=Findings)
    errors: Counter[int] = field(default_factory=Counter[int])
    tracebacks: list[str] = field(default_factory=list[str])
    warm: float = 0.0
    """Resident megabytes after a tenth of the requests."""
    grown: float = 0.0
    """Megabytes more at the end."""
    worst_delay: float | None = None
    seconds: float = 0.0

    def summary(self) -> dict[str, Any]:
        statuses = self.findings.statuses
        return {
            "way": self.way,
            "requests": self.requests,
            "seconds": round(self.seconds, 1),
            "statuses": dict(sorted(statuses.items())) or dict(sorted(self.errors.items())),
            "5xx": sum(count for status, count in statuses.items() if status >= 500),
            "internal errors": len(self.findings.crashes),
            "first internal errors": self.findings.crashes[:3],
            "tracebacks": len(self.tracebacks),
            "first tracebacks": self.tracebacks[:3],
            "leaks": self.findings.leaks[:3],
            "memory after warm-up, MB": round(self.warm, 1),
            "memory growth since, MB": round(self.grown, 1),
            **(
                {}
                if self.worst_delay is None
                else {"worst delay of another client, ms": round(self.worst_delay * 1000)}
            ),
        }

    @property
    def is_clean(self) -> bool:
        return not (self.findings.crashes or self.findings.leaks or self.tracebacks)


def config(folder: Path, *, keys: bool) -> Path:
    """A gateway in front of the server with the secrets, which few may see."""
    lines = ['mode = "proxy"', "[results]", "spill_tokens = 200", "[http]"]
    # The attack opens sessions all the time and holds their streams open.
    lines += ["max_sessions = 50", "max_sessions_per_principal = 30"]
    if keys:
        lines += ["[auth]", 'kind = "keys"']
        for name, key in KEYS.items():
            hashed = hashlib.sha256(key.encode()).hexdigest()
            lines += ["[[auth.keys]]", f'principal = "{name}"', f'sha256 = "{hashed}"']
        lines += ["[permissions]", 'default = "deny"']
        lines += ["[[permissions.rules]]", 'tools = ["s_echo", "s_mail"]']
        for name in KEYS:
            lines += ["[[permissions.rules]]", f'principals = ["{name}"]']
            lines += [f'tools = ["s_*_of_{name}"]']
    lines += ["[servers.s]", f"command = {json.dumps(sys.executable)}"]
    lines += [f"args = [{json.dumps(str(_SERVER))}]"]
    path = folder / "pegboard.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


# HTTP --------------------------------------------------------------------------------------------


def attack_http(folder: Path, requests: int, seed: int) -> Report:
    """Send so many requests, of both eras, to a gateway behind keys."""
    folder.mkdir(parents=True, exist_ok=True)
    report = Report("HTTP, both eras")
    with running(folder, config(folder, keys=True)) as gateway:
        gateway.headers = {"Authorization": f"Bearer {KEYS['ann']}"}
        with Bystander(gateway) as other:
            began = time.monotonic()
            anyio.run(_attack_http, gateway, requests, seed, report)
            report.seconds = time.monotonic() - began
        report.worst_delay = other.worst
        report.grown = gateway.memory() - report.warm
        assert gateway.health() == 200
    report.tracebacks = tracebacks(folder / "stderr.txt")
    return report


async def _attack_http(gateway: Gateway, requests: int, seed: int, report: Report) -> None:
    attacker = Attacker(seed)
    left = iter(range(requests))

    async def send() -> None:
        for _ in left:
            sent = attacker.request()
            with anyio.move_on_after(30):
                status, headers, text = await _exchange(host, port, sent)
                report.findings.note(sent, status, text)
                attacker.learn(headers.get("mcp-session-id"), text)
            report.requests += 1
            if report.requests == max(requests // 10, 1):
                report.warm = gateway.memory()

    address = urlsplit(gateway.url)
    host, port = str(address.hostname), int(address.port or 0)
    async with anyio.create_task_group() as tasks:
        for _ in range(AT_ONCE):
            tasks.start_soon(send)


async def _exchange(host: str, port: int, sent: Hostile) -> tuple[int, dict[str, str], str]:
    """Send a request as it is, legal or not, on a connection of its own, and read the answer."""
    lines = [f"{sent.verb} {sent.path} HTTP/1.1", f"Content-Length: {len(sent.body)}"]
    lines += ["Connection: close", *(f"{name}: {value}" for name, value in sent.headers)]
    data = b""
    async with await anyio.connect_tcp(host, port) as stream:
        with suppress(anyio.BrokenResourceError, anyio.EndOfStream):
            await stream.send("\r\n".join([*lines, "", ""]).encode() + sent.body)
            while True:
                data += await stream.receive(1 << 20)
                if sent.verb == "GET" and b"text/event-stream" in data:
                    break  # a stream without an end
    head, _, body = data.partition(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in rest if ": " in line)
    status = int(first.split(" ")[1]) if first.startswith("HTTP/1.1 ") else 0
    return status, headers, body.decode("utf-8", "replace")


# stdio -------------------------------------------------------------------------------------------


def attack_stdio(folder: Path, requests: int, seed: int, era: str) -> Report:
    """Send so many messages of one era to a gateway on pipes."""
    folder.mkdir(parents=True, exist_ok=True)
    report = Report(f"stdio, {era}")
    attacker = Attacker(seed)
    began = time.monotonic()
    with _on_pipes(folder) as (process, answers):
        messages = _messages(attacker, era)
        for number in range(requests):
            _write(process, next(messages))
            report.requests += 1
            if number % BARRIER == BARRIER - 1:
                _await_barrier(process, answers, number, era, report)
            if number == requests // 10:
                report.warm = _memory(process.pid)
        _await_barrier(process, answers, requests, era, report)
        report.grown = _memory(process.pid) - report.warm
    report.seconds = time.monotonic() - began
    report.tracebacks = tracebacks(folder / "stderr.txt")
    return report


@contextmanager
def _on_pipes(folder: Path) -> Generator[tuple[subprocess.Popen[bytes], Queue[bytes]]]:
    line = [sys.executable, "-m", "pegboard", "serve", "--config", str(config(folder, keys=False))]
    answers: Queue[bytes] = Queue()
    env = {"PEGBOARD_HOME": str(folder / "home"), "PATH": "/usr/bin:/bin"}
    with (folder / "stderr.txt").open("w") as stderr:
        process = subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, env=env
        )

    def read() -> None:
        assert process.stdout is not None
        for one in process.stdout:
            answers.put(one)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield process, answers
    finally:
        assert process.stdin is not None
        with suppress(OSError):
            process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.wait()
        reader.join(5)
        assert process.stdout is not None
        process.stdout.close()


def _messages(attacker: Attacker, era: str) -> Iterator[bytes]:
    if era == "legacy":
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "old", "version": "1"},
        }
        yield json.dumps(
            {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}
        ).encode()
        yield b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    while True:
        body = attacker.request().body.replace(b"\n", b" ").replace(b"\r", b" ")
        # Of the other era's envelope, half are left: what does not belong is tried, too.
        if era == "legacy" and attacker.random.random() < 0.5:
            body = body.replace(b"io.modelcontextprotocol/", b"x/")
        yield body


def _write(process: subprocess.Popen[bytes], line: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(line + b"\n")
    process.stdin.flush()


def _await_barrier(
    process: subprocess.Popen[bytes], answers: Queue[bytes], number: int, era: str, report: Report
) -> None:
    """Ask for the list of tools and read everything up to its answer."""
    name = f"barrier-{number}"
    params: dict[str, Any] = {"_meta": MODERN_META} if era == "modern" else {}
    asked = {"jsonrpc": "2.0", "id": name, "method": "tools/list", "params": params}
    _write(process, json.dumps(asked).encode())
    while True:
        try:
            line = answers.get(timeout=30)
        except Empty:
            report.findings.crashes.append(f"no answer to {name}: {process.poll()}")
            return
        answer: dict[str, Any] = json.loads(line)
        code = answer.get("error", {}).get("code", 0)
        report.errors[code] += 1
        if "Internal error" in line.decode("utf-8", "replace"):
            report.findings.crashes.append(line[:300].decode("utf-8", "replace"))
        if answer.get("id") == name:
            if "result" not in answer:
                report.findings.crashes.append(f"{name}: {line[:300]!r}")
            return


def _memory(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def tracebacks(log: Path) -> list[str]:
    """The ends of all tracebacks in a log."""
    parts = log.read_text(errors="replace").split("Traceback (most recent call last):")[1:]
    return [part.strip()[-300:] for part in parts]
