"""A client's first requests are answered from the record of an earlier start."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.support import SERVERS

from pegboard import __version__
from pegboard.server.early_answers import MAX_ANSWERS, AnswerRecord

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")

INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "some-client", "version": "1"},
}
SEARCH = {"query": "echo"}
ENDLESS_IMPORT = "import time; time.sleep(600)"
"""What is imported in place of a package of the SDK, to see what works before it is there."""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "pegboard.toml"
    write_config(path, "proxy")
    return path


def write_config(path: Path, mode: str) -> None:
    command, script = json.dumps(sys.executable), json.dumps(str(SERVERS / "polite.py"))
    path.write_text(f'mode = "{mode}"\n[servers.one]\ncommand = {command}\nargs = [{script}]\n')


class Session:
    """A client that writes and reads lines."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._number = 0

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        self._number += 1
        with_params = {} if params is None else {"params": params}
        self.send({"id": self._number, "method": method, **with_params})
        answer = self.receive()
        assert answer["id"] == self._number
        return answer["result"]

    def open(self, params: dict[str, Any] = INITIALIZE) -> tuple[dict[str, Any], dict[str, Any]]:
        """The answers to `initialize` and to the first list."""
        answer = self.request("initialize", params)
        self.send({"method": "notifications/initialized"})
        return answer, self.request("tools/list")


def environ(config: Path) -> dict[str, str]:
    return {**os.environ, "PEGBOARD_HOME": str(config.parent / "home")}


def load(config: Path) -> dict[str, Any]:
    return AnswerRecord.of(config, environ(config), version=__version__).answers


@contextmanager
def started(config: Path, *, has_sdk: bool = True) -> Generator[Session]:
    """A gateway on pipes; without the SDK, its import never ends."""
    variables = environ(config)
    if not has_sdk:
        package = config.parent / "endless" / "anyio"
        package.mkdir(parents=True, exist_ok=True)
        (package / "__init__.py").write_text(ENDLESS_IMPORT)
        variables["PYTHONPATH"] = str(package.parent)
    line = [sys.executable, "-m", "pegboard", "serve", "--config", str(config)]
    with subprocess.Popen(
        line,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=variables,
    ) as process:
        try:
            yield Session(process)
        finally:
            process.kill()


def record_of(config: Path) -> Path:
    """The record, after as many starts as it takes to know the servers."""
    home, deadline = config.parent / "home", time.monotonic() + 30
    while not (found := list(home.glob("first_answers/*.json"))):
        assert time.monotonic() < deadline, "no start has saved its answers"
        with started(config) as client:
            names = [tool["name"] for tool in client.open()[1]["tools"]]
            if "search_tools" in names:  # which starts the server
                client.request("tools/call", {"name": "search_tools", "arguments": SEARCH})
            client.request("ping")
    return found[0]


def test_first_requests_are_answered_before_the_sdk_is_imported(config: Path) -> None:
    record_of(config)
    with started(config) as client:
        answers = client.open()
    with started(config, has_sdk=False) as client:
        assert client.open() == answers
    assert "search_tools" in [tool["name"] for tool in answers[1]["tools"]]


def test_every_request_is_answered_once_and_calls_follow(config: Path) -> None:
    record_of(config)
    with started(config) as client:
        for number, method, params in [
            (1, "initialize", INITIALIZE),
            (None, "notifications/initialized", None),
            (2, "tools/list", None),
            (3, "tools/call", {"name": "search_tools", "arguments": SEARCH}),
            (4, "ping", None),
            (5, "tools/list", None),
        ]:
            message = {"id": number, "method": method, "params": params}
            client.send({key: value for key, value in message.items() if value is not None})
        client.process.stdin.close()  # type: ignore[union-attr]
        lines = [json.loads(line) for line in client.process.stdout or ()]
    assert sorted(line["id"] for line in lines) == [1, 2, 3, 4, 5]
    found = next(line["result"] for line in lines if line["id"] == 3)
    assert "echo" in json.dumps(found["content"])


def test_a_changed_configuration_makes_the_record_void(config: Path) -> None:
    record_of(config)
    write_config(config, "index")
    with started(config) as client:
        names = [tool["name"] for tool in client.open()[1]["tools"]]
    assert "list_available_tools" in names


def test_a_wrong_record_is_corrected_and_the_client_notified(config: Path) -> None:
    record = record_of(config)
    saved = json.loads(record.read_text())
    for result in saved["answers"].values():
        if "tools" in result:
            result["tools"] = []
    record.write_text(json.dumps(saved))
    with started(config) as client:
        assert client.open()[1]["tools"] == []
        assert client.receive()["method"] == "notifications/tools/list_changed"
        truth = client.request("tools/list")
    assert truth["tools"]
    with started(config, has_sdk=False) as client:
        assert client.open()[1] == truth


def test_a_list_of_the_catalog_is_void_once_the_catalog_changes(config: Path) -> None:
    write_config(config, "eager")
    record_of(config)
    with started(config, has_sdk=False) as client:
        listed = client.open()[1]["tools"]
    assert "echo" in json.dumps(listed)
    (catalog,) = (config.parent / "home" / "catalogs").iterdir()
    catalog.write_bytes(catalog.read_bytes() + b" ")
    assert load(config) == {}


def test_each_client_gets_its_own_list(config: Path) -> None:
    write_config(config, "auto")
    modes = 'clients = { some-client = "proxy", claude-code = "eager" }\n'
    config.write_text(modes + config.read_text())
    record_of(config)
    deferring = {**INITIALIZE, "clientInfo": {"name": "claude-code", "version": "1"}}
    lists = []
    for params in (INITIALIZE, deferring, INITIALIZE, deferring):
        with started(config) as client:
            lists.append([tool["name"] for tool in client.open(params)[1]["tools"]])
    assert lists[:2] == lists[2:]
    assert lists[0] != lists[1]
    assert load(config)


def test_a_record_is_private_and_survives_damage(config: Path) -> None:
    record = record_of(config)
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    for damage in (b"", b"[]", b"{", b'{"format": 1}', record.read_bytes()[:-9], b"\0" * 99):
        record.write_bytes(damage)
        assert load(config) == {}
    with started(config) as client:
        assert client.open()[1]["tools"]


def test_a_record_that_others_can_write_is_ignored(config: Path) -> None:
    record = record_of(config)
    assert load(config)
    record.chmod(0o620)
    assert load(config) == {}


def test_a_record_is_bounded(config: Path) -> None:
    for number in range(2 * MAX_ANSWERS):
        AnswerRecord.of(config, environ(config), version=__version__).save(
            {str(number): {}}, [config]
        )
    assert list(load(config)) == [str(number) for number in range(MAX_ANSWERS, 2 * MAX_ANSWERS)]
