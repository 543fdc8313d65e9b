"""The smallest MCP client on stdio, and what `/proc` says of the process that it speaks to.

A session-era client of a few lines, so that hardly any of the time measured is the client's.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

PROTOCOL = "2025-11-25"
TICKS = os.sysconf("SC_CLK_TCK")


class Ended(RuntimeError):
    """The process ended, or kept silent for too long."""


class Process:
    """A server process that has been greeted; `request` and `call` speak to it."""

    def __init__(
        self, command: list[str], env: Mapping[str, str] | None = None, *, patience: float = 120
    ) -> None:
        self.patience = patience
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **(env or {})},
        )
        self._buffer = b""
        self._number = 0
        client = {"name": "benchmark", "version": "1"}
        hello = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client}
        try:
            greeting = self.request("initialize", hello)
        except Ended:
            self.close()
            raise
        self.instructions: str = greeting.get("instructions") or ""
        """What it says about itself, which clients pass on to the model."""
        self.send({"method": "notifications/initialized"})

    @property
    def age(self) -> float:
        """Seconds since the process was started."""
        return time.perf_counter() - self.began

    @property
    def pid(self) -> int:
        return self.process.pid

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        return self.answers([self.post(method, params)])[0]

    def post(self, method: str, params: dict[str, Any] | None = None) -> int:
        """Send a request and wait for nothing; the number to ask `answers` for."""
        self._number += 1
        self.send({"id": self._number, "method": method, "params": params or {}})
        return self._number

    def answers(self, numbers: Iterable[int]) -> list[dict[str, Any]]:
        """The results of these requests, in order, when all are there."""
        wanted = list(numbers)
        found: dict[int, dict[str, Any]] = {}
        while len(found) < len(wanted):
            message = json.loads(self._line())
            if message.get("id") in wanted and "method" not in message:
                found[message["id"]] = message
        return [_result(found[number]) for number in wanted]

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return self.request("tools/call", {"name": name, "arguments": arguments})

    def tools(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        cursor: dict[str, Any] = {}
        while True:
            page = self.request("tools/list", cursor)
            found += page["tools"]
            if not page.get("nextCursor"):
                return found
            cursor = {"cursor": page["nextCursor"]}

    def _line(self) -> bytes:
        assert self.process.stdout
        until = time.monotonic() + self.patience
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if not selector.select(max(0.0, until - time.monotonic())):
                    raise Ended(f"no answer within {self.patience:.0f} s")
                chunk = os.read(self.process.stdout.fileno(), 1 << 20)
                if not chunk:
                    raise Ended(f"the process ended: {self.process.args}")
                self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def close(self) -> None:
        """End the process and what it started, gently first."""
        started = descendants(self.pid)
        for stream in (self.process.stdin, self.process.stdout):
            if stream:
                stream.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        for pid in started:
            _end(pid)

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _end(pid: int) -> None:
    try:
        os.kill(pid, 9)
    except ProcessLookupError:
        return


def _result(message: dict[str, Any]) -> dict[str, Any]:
    if "error" in message:
        return {"isError": True, "content": [{"type": "text", "text": json.dumps(message)}]}
    return message["result"]


def text_of(result: dict[str, Any]) -> str:
    """What a model reads of a result."""
    return "\n".join(block.get("text", "") for block in result.get("content", ()))


def descendants(pid: int) -> list[int]:
    found: list[int] = []
    for child in _children(pid):
        found += [child, *descendants(child)]
    return found


def _children(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(p) for task in tasks for p in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def memory_mb(*pids: int) -> float:
    """Resident memory of these processes together."""
    total = 0
    for pid in pids:
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        total += sum(int(s.split()[1]) for s in status.splitlines() if s.startswith("VmRSS"))
    return total / 1024


def cpu_seconds(*pids: int) -> float:
    """User and system time of these processes together; one that has ended counts nothing."""
    return sum(map(_cpu, pids))


def _cpu(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


Times: TypeAlias = dict[tuple[int, str], int]
"""Nanoseconds of CPU by process and thread."""


def cpu_times(*pids: int) -> Times:
    """The CPU of every thread that runs now: finer than ticks, and threads that end are left out."""
    return {
        (pid, task.name): spent
        for pid in pids
        for task in sorted(Path(f"/proc/{pid}/task").glob("*"))
        if (spent := _spent(task)) is not None
    }


def cpu_between(before: Times, after: Times) -> float:
    """Seconds of CPU of the threads that are in both, and of those that came."""
    return sum(spent - before.get(thread, 0) for thread, spent in after.items()) / 1e9


def _spent(task: Path) -> int | None:
    try:
        return int((task / "schedstat").read_text().split()[0])
    except (OSError, IndexError):
        return None


def settle(pid: int, patience: float = 400) -> None:
    """Until a process and what it started rest: what it does for itself must not be measured.

    Raises:
        Ended: It does not come to rest.
    """
    until, calm = time.monotonic() + patience, 0
    while calm < 2:
        if time.monotonic() > until:
            raise Ended(f"process {pid} did not come to rest within {patience:.0f} s")
        before = cpu_seconds(pid, *descendants(pid))
        time.sleep(0.4)
        used = cpu_seconds(pid, *descendants(pid)) - before
        calm = calm + 1 if used <= 0.03 else 0
