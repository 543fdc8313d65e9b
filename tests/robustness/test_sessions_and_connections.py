"""Clients that open sessions without end, send slowly, never read, or take every descriptor."""

from __future__ import annotations

import hashlib
import json
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from tests.replicas.world import free_port
from tests.robustness.world import (
    MODERN_META,
    Bystander,
    Gateway,
    initialize,
    listed,
    post,
    running,
    tool,
    wait_until,
    write,
)

MOST_GROWTH = 150
"""Megabytes that an attack may add."""


SETTINGS = """
mode = "eager"
[results]
spill_tokens = 0
[http]
max_sessions = 50
header_timeout = 1.0
body_timeout = 1.5
write_timeout = 1.0
"""
HEADER_TIMEOUT = 1.0


def config(folder: Path, settings: str) -> Path:
    tools = [tool("one"), tool("rows", count={"type": "integer"})]
    return write(folder, {"s": listed(folder, "s", *tools)}, settings)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Generator[Gateway]:
    folder = tmp_path_factory.mktemp("limits")
    with running(folder, config(folder, SETTINGS)) as made:
        made.call("s_one", {})
        yield made


def ping(client: httpx2.Client, session: str) -> int:
    headers = {
        "Accept": "application/json, text/event-stream",
        "Mcp-Session-Id": session,
        "MCP-Protocol-Version": "2025-11-25",
    }
    body = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    return client.post("/mcp", json=body, headers=headers).status_code


# Sessions ----------------------------------------------------------------------------------------


def test_opening_sessions_with_large_names_takes_no_memory(gateway: Gateway) -> None:
    with gateway.client() as client:
        assert initialize(client).status_code == 200
        before = gateway.memory()
        for _ in range(20):
            assert initialize(client, "n" * 3_900_000).status_code == 413
        refused = initialize(client, "n" * 70_000)
        assert "at most 65,536 bytes" in refused.json()["error"]["message"]
        for _ in range(150):
            assert initialize(client, "n" * 60_000).status_code == 200
        assert gateway.memory() - before < MOST_GROWTH
        assert initialize(client).status_code == 200


def test_limits_are_for_each_principal_and_in_all(tmp_path: Path) -> None:
    names = ("ann", "bob", "cat")
    settings = "[http]\nmax_sessions_per_principal = 3\nmax_sessions = 4\n"
    settings += '[[limits]]\nprincipals = ["cat"]\ncalls = 2\nper = 60.0\nburst = 2\n'
    settings += '[auth]\nkind = "keys"\n'
    for name in names:
        hashed = hashlib.sha256(name.encode()).hexdigest()
        settings += f'[[auth.keys]]\nprincipal = "{name}"\nsha256 = "{hashed}"\n'
    with running(tmp_path, config(tmp_path, settings)) as gateway, ExitStack() as stack:

        def client(name: str) -> httpx2.Client:
            headers = {"Authorization": f"Bearer {name}"}
            return stack.enter_context(httpx2.Client(base_url=gateway.url, headers=headers))

        ann, bob, cat = (client(name) for name in names)
        _check_sessions(ann, bob)
        _check_rate(cat)


def _check_sessions(ann: httpx2.Client, bob: httpx2.Client) -> None:
    first = initialize(bob).headers["mcp-session-id"]
    mine = [initialize(ann).headers["mcp-session-id"] for _ in range(3)]
    assert ping(ann, mine[0]) == 200  # the second one is the least recently used now
    mine.append(initialize(ann).headers["mcp-session-id"])
    assert [ping(ann, one) for one in mine] == [200, 404, 200, 200]
    assert ping(bob, first) == 200
    second = initialize(bob).headers["mcp-session-id"]  # beyond the limit for all
    assert ping(bob, second) == ping(bob, first) == 200, "who has most makes room"
    assert [ping(ann, one) for one in mine].count(200) == 2


def _check_rate(cat: httpx2.Client) -> None:
    answers = [initialize(cat) for _ in range(4)]
    assert [a.status_code for a in answers] == [200, 200, 429, 429]
    assert int(answers[-1].headers["retry-after"]) >= 1


def test_a_request_of_very_many_values_is_refused_and_long_texts_are_not(gateway: Gateway) -> None:
    with gateway.client() as client:
        with Bystander(gateway) as other:
            dense = post(client, "tools/call", name="s_one", arguments={"a": [[]] * 900_000})
            text = post(client, "tools/call", name="s_one", arguments={"a": "1,[{" * 900_000})
        assert dense.status_code == 413
        assert "250,000 values" in dense.json()["error"]["message"]
        assert text.status_code == 200
        assert other.worst < 1


# Connections -------------------------------------------------------------------------------------


def connect(gateway: Gateway) -> socket.socket:
    address = urlsplit(gateway.url)
    return socket.create_connection((address.hostname, address.port), timeout=20)


HEAD = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n"


@pytest.mark.parametrize(
    ("sent", "drip"),
    [(b"", b""), (HEAD, b"X-A: b\r\n"), (HEAD + b"\r\n{", b" ")],
    ids=["nothing", "headers", "body"],
)
def test_a_client_that_sends_slowly_is_cut_off(sent: bytes, drip: bytes, gateway: Gateway) -> None:
    with connect(gateway) as slow:
        slow.sendall(sent)
        began = time.monotonic()

        def is_closed() -> bool:
            slow.settimeout(0.1)
            try:
                slow.sendall(drip)
                return slow.recv(1) == b""
            except TimeoutError:
                return False
            except OSError:
                return True

        wait_until(is_closed, "it is cut off", gateway.log, seconds=10)
        assert time.monotonic() - began > 0.5
    assert gateway.health() == 200


def test_an_idle_connection_between_requests_stays_open(gateway: Gateway) -> None:
    with connect(gateway) as one:
        for _ in range(2):
            one.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            answer = b""
            while b'"ok"}' not in answer:
                part = one.recv(1000)
                assert part, "it was closed"
                answer += part
            wait_until(_passed(1.3 * HEADER_TIMEOUT), "longer than the header timeout")


def _passed(seconds: float) -> Callable[[], bool]:
    until = time.monotonic() + seconds
    return lambda: time.monotonic() > until


def test_a_client_that_does_not_read_is_cut_off(gateway: Gateway) -> None:
    params = {"name": "s_rows", "arguments": {"count": 100_000}, "_meta": MODERN_META}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    head = (
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n"
        f"Mcp-Method: tools/call\r\nMcp-Name: s_rows\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with connect(gateway) as lazy:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.sendall((head + body).encode())
        pid, port = gateway.process.pid, urlsplit(gateway.url).port
        wait_until(lambda: _connections(pid, port) == 1, "it is being answered", gateway.log)
        wait_until(lambda: _connections(pid, port) == 0, "it is cut off", gateway.log)
    assert gateway.text("s_one", {}) == "2", "others are served"


def _connections(pid: int, port: int | None) -> int:
    """Established connections of a process at its own port."""
    lines = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    return sum(
        f":{port:04X} " in f"{line.split()[1]} " and line.split()[3] == "01" for line in lines
    )


def test_with_few_descriptors_new_clients_are_served_and_the_log_stays_small(
    tmp_path: Path,
) -> None:
    path = config(tmp_path, 'mode = "proxy"')

    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    port = free_port()
    line = [sys.executable, "-m", "pegboard", "serve", "--config", str(path)]
    log = tmp_path / "few.txt"
    env = {"PEGBOARD_HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [*line, "--http", f"127.0.0.1:{port}"],
            stderr=stderr,
            env=env,
            preexec_fn=few,
            text=True,
        )
    gateway = Gateway(process, f"http://127.0.0.1:{port}", log)
    held: list[socket.socket] = []
    try:
        wait_until(lambda: gateway.health() == 200, "it is there", log)
        held.extend(connect(gateway) for _ in range(200))
        used = _cpu(process.pid)
        answers: list[Any] = [gateway.health() for _ in range(10)]
        assert answers.count(200) == 10
        wait_until(_passed(2.0), "two seconds have passed")
        assert _cpu(process.pid) - used < 1.0
        assert log.stat().st_size < 20_000, log.read_text()[-3_000:]
    finally:
        for one in held:
            one.close()
        process.kill()
        process.wait()


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100
