"""The files of `deploy/`: they fit together, and what they run is a gateway that drains."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from ruamel.yaml import YAML
from tests.real_redis import RedisServer
from tests.replicas.world import Replica, World, free_port

from pegboard.config.loader import load_configuration
from pegboard.config.server_entries import ConfigEnvironment
from pegboard.gateway.runner import SHUTDOWN_TIMEOUT
from pegboard.server.host_guard import HostGuard

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CONFIG = "/etc/pegboard/pegboard.toml"
HOME = "/var/lib/pegboard"


def documents(name: str) -> list[dict[str, Any]]:
    return list(YAML(typ="safe").load_all((DEPLOY / name).read_text()))


@pytest.fixture
def compose() -> dict[str, Any]:
    (found,) = documents("compose.yaml")
    return found


@pytest.fixture
def deployment() -> dict[str, Any]:
    return documents("kubernetes.yaml")[0]


@pytest.fixture
def container(deployment: dict[str, Any]) -> dict[str, Any]:
    return deployment["spec"]["template"]["spec"]["containers"][0]


def seconds(duration: str) -> float:
    found = re.fullmatch(r"(\d+)s", duration)
    assert found
    return float(found.group(1))


class Started:
    """A gateway as a file starts it, with a port, folders and a Redis of our own instead."""

    def __init__(
        self, arguments: list[str], environ: dict[str, str], folder: Path, redis: RedisServer
    ) -> None:
        redis.command("-n", "3", "FLUSHDB")
        world = World(folder, f"redis://127.0.0.1:{redis.port}/3", '[http]\nlegacy = "stateless"\n')
        self.port = free_port()
        ours = {
            CONFIG: world.config,
            HOME: str(folder / "home"),
            "0.0.0.0:8000": f"127.0.0.1:{self.port}",
            "redis://redis:6379/0": world.store,
        }
        line = [sys.executable, "-m", "pegboard", *(ours.get(word, word) for word in arguments)]
        assert not set(line) & set(ours), "every address is one of ours now"
        own = {**os.environ, **{name: ours.get(value, value) for name, value in environ.items()}}
        self.process = subprocess.Popen(line, env=own, text=True)
        self.replica = Replica(self.process, f"http://127.0.0.1:{self.port}", folder / "no-log")

    def is_ready(self, path: str) -> bool:
        try:
            return httpx2.get(f"{self.replica.url}{path}").status_code == 200
        except httpx2.TransportError:
            return False

    def drained(self) -> tuple[str, float]:
        """The answer to a call that was under way at SIGTERM, and how long the end took."""
        while "work_wait" not in self.replica.listed():
            pass
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(self.replica.text, "work_wait", seconds=2)
            while not httpx2.get(f"{self.replica.url}/ready").json()["in_flight"]:
                pass
            began = time.monotonic()
            self.process.send_signal(signal.SIGTERM)
            answer = waiting.result()
            assert self.process.wait(timeout=SHUTDOWN_TIMEOUT) == 0
        return answer, time.monotonic() - began


@pytest.fixture
def started(
    request: pytest.FixtureRequest, tmp_path: Path, redis_server: RedisServer,
    compose: dict[str, Any], container: dict[str, Any],
) -> Iterator[Started]:  # fmt: skip
    if request.param == "compose":
        service = compose["services"]["pegboard"]
        arguments, environ = service["command"], service["environment"]
    else:
        arguments = container["args"]
        environ = {entry["name"]: entry["value"] for entry in container["env"]}
    made = Started(arguments, environ, tmp_path, redis_server)
    yield made
    made.replica.client.close()
    if made.process.poll() is None:
        made.process.kill()
        made.process.wait()


def test_compose_builds_from_the_folder_that_has_the_wheel(compose: dict[str, Any]) -> None:
    build = compose["services"]["pegboard"]["build"]
    context = (DEPLOY / build["context"]).resolve()
    assert context == ROOT / "dist", "the folder that `make package` writes"
    assert (context / build["dockerfile"]).resolve() == DEPLOY / "Dockerfile"
    copied = re.findall(r"^COPY (\S+)", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    assert copied == ["pegboard-*.whl"]


@pytest.mark.parametrize("started", ["compose"], indirect=True)
def test_what_compose_runs_becomes_healthy_and_drains_in_time(
    started: Started, compose: dict[str, Any]
) -> None:
    service = compose["services"]["pegboard"]
    kind, program, *arguments = service["healthcheck"]["test"]
    assert (kind, program) == ("CMD", "python")
    check = [sys.executable, *(a.replace("8000", str(started.port)) for a in arguments)]
    while subprocess.run(check, capture_output=True, check=False).returncode:
        assert started.process.poll() is None
    answer, took = started.drained()
    assert answer == "waited"
    assert took < seconds(service["stop_grace_period"])
    assert seconds(service["stop_grace_period"]) > SHUTDOWN_TIMEOUT


@pytest.mark.parametrize("started", ["kubernetes"], indirect=True)
def test_what_kubernetes_runs_answers_its_probes_and_drains_in_time(
    started: Started, deployment: dict[str, Any], container: dict[str, Any]
) -> None:
    for probe in ("livenessProbe", "readinessProbe"):
        while not started.is_ready(container[probe]["httpGet"]["path"]):
            assert started.process.poll() is None
    answer, took = started.drained()
    assert answer == "waited"
    pause = float(container["lifecycle"]["preStop"]["exec"]["command"][1])
    grace = deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    assert pause + took < grace
    assert grace > pause + SHUTDOWN_TIMEOUT


def test_the_parts_of_the_kubernetes_example_name_each_other(
    deployment: dict[str, Any], container: dict[str, Any]
) -> None:
    service = documents("kubernetes.yaml")[1]
    pod = deployment["spec"]["template"]
    assert deployment["spec"]["selector"]["matchLabels"] == pod["metadata"]["labels"]
    assert service["spec"]["selector"] == pod["metadata"]["labels"]
    (port,) = container["ports"]
    assert service["spec"]["ports"][0]["targetPort"] == port["name"]
    for probe in ("livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["port"] == port["name"]
    volumes = {volume["name"] for volume in pod["spec"]["volumes"]}
    mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
    assert {mount["name"] for mount in mounts.values()} == volumes
    assert not mounts[HOME].get("readOnly"), "what is kept must be written on a read-only root"
    assert Path(CONFIG).parent == Path(next(path for path in mounts if "etc" in path))


def test_the_image_runs_the_program_as_somebody_who_is_not_root() -> None:
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    assert 'ENTRYPOINT ["pegboard"]' in lines
    user = next(line.split()[1] for line in lines if line.startswith("USER "))
    assert int(user) > 0
    extras = re.search(r"pegboard-\*\.whl\)\[([a-z,]+)\]", "\n".join(lines))
    assert extras
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(extras.group(1).split(",")) <= set(project["optional-dependencies"])


def test_what_people_decide_is_kept_on_disk_by_the_redis_of_compose(
    compose: dict[str, Any],
) -> None:
    redis = compose["services"]["redis"]
    assert redis["command"][-2:] == ["--appendonly", "yes"]
    assert redis["volumes"][0].split(":")[0] in compose["volumes"]


def test_the_configuration_beside_them_is_read_without_a_complaint(tmp_path: Path) -> None:
    found = load_configuration(DEPLOY / "pegboard.toml", ConfigEnvironment({}, tmp_path, tmp_path))
    assert not found.problems
    http = found.settings.http
    guard = HostGuard.bound_to("0.0.0.0", hosts=http.allowed_hosts)
    for host in ("tools.example.com", "pegboard", "10.1.2.3:8000", "127.0.0.1:8000"):
        assert guard.refuses(host, None) is None, host
    assert guard.refuses("evil.example", None) is not None
