"""Redis servers of our own for the tests: plain, restartable, a cluster, and behind a sentinel."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import missing_part


class RedisServer:
    """A `redis-server` of our own on a free port of the loopback, which keeps nothing on disk."""

    def __init__(self, program: str, folder: Path, *options: str) -> None:
        self.port = _free_port()
        # A file comes first, if there is one: that is where `redis-server` looks for it.
        files = [o for o in options if o.endswith(".conf")]
        rest = [o for o in options if o not in files]
        self._command = [program, *files, "--port", str(self.port), "--bind", "127.0.0.1"]
        self._command += ["--dir", str(folder), *rest]
        self._process: subprocess.Popen[str] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Run it and wait until it says that it is ready."""
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        said: list[str] = []
        for line in self._process.stdout or ():
            said.append(line)
            if "Ready to accept connections" in line or "+monitor master" in line:
                return
        self.stop()
        raise RuntimeError(f"redis-server ended: {''.join(said[-5:])}")

    def stop(self) -> None:
        """End this process, and no other."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate(timeout=10)

    def command(self, *words: str) -> str:
        """The answer of one command, sent as a person would."""
        line = ["redis-cli", "-p", str(self.port), *words]
        return subprocess.run(line, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(scope="session")
def redis_program() -> str:
    path = shutil.which("redis-server")
    return path or missing_part("redis-server is not installed (apt-get install redis-server)")


@pytest.fixture(scope="session")
def redis_server(
    redis_program: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RedisServer]:
    """One plain server for the whole run; each test keeps to a prefix of its own."""
    yield from _running(RedisServer(redis_program, tmp_path_factory.mktemp("redis"), "--save", ""))


@pytest.fixture
def own_redis(redis_program: str, tmp_path: Path) -> Iterator[RedisServer]:
    """A server that the test may stop and start."""
    yield from _running(RedisServer(redis_program, tmp_path, "--save", ""))


@pytest.fixture(scope="session")
def redis_cluster(
    redis_program: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RedisServer]:
    """A cluster of one node, which holds every slot."""
    folder = tmp_path_factory.mktemp("cluster")
    # Its own port for the cluster's talk: the usual one, 10,000 higher, may be beyond the last.
    bus = ("--cluster-port", str(_free_port()))
    server = RedisServer(redis_program, folder, "--save", "", "--cluster-enabled", "yes", *bus)
    for running in _running(server):
        running.command("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        while "cluster_state:ok" not in running.command("CLUSTER", "INFO"):
            pass
        yield running


@pytest.fixture(scope="session")
def redis_sentinel(
    redis_program: str, redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RedisServer]:
    """A sentinel that looks after the plain server under the name `board`."""
    folder = tmp_path_factory.mktemp("sentinel")
    conf = folder / "sentinel.conf"
    conf.write_text(f"sentinel monitor board 127.0.0.1 {redis_server.port} 1\n")
    yield from _running(RedisServer(redis_program, folder, str(conf), "--sentinel"))


def _running(server: RedisServer) -> Iterator[RedisServer]:
    server.start()
    try:
        yield server
    finally:
        server.stop()


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]
