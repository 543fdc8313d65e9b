"""One bad entry, record or message costs itself; a gateway that cannot serve says so and ends."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from tests.real_redis import RedisServer
from tests.robustness.world import listed, running, started, tool, wait_until, write

from pegboard.gateway.background_tasks import run_supervised
from pegboard.gateway.config_source import ConfigSource
from pegboard.gateway.operator_decisions import SWITCHES_KEY
from pegboard.gateway.runner import GatewayRunner

HALF = "\ud800"
LONG_AND_HALF = "x" * 70 + HALF


def deep(levels: int) -> Any:
    value: Any = {"type": "string"}
    for _ in range(levels):
        value = {"type": "array", "items": value}
    return value


def test_an_odd_entry_costs_itself_alone_also_after_a_restart(tmp_path: Path) -> None:
    odd = [
        tool(LONG_AND_HALF),
        tool("deep", a=deep(400)),
        {**tool("noted"), "annotations": {HALF: HALF, "title": HALF}, "_meta": {HALF: [HALF]}},
    ]
    servers = {
        "good": listed(tmp_path, "good", tool("fine")),
        "odd": listed(tmp_path, "odd", tool("usable"), *odd),
    }
    config = write(tmp_path, servers, 'mode = "proxy"\n')
    for _ in range(2):  # the second one reads what the first one stored
        with running(tmp_path, config) as gateway:
            assert {"good_fine", "odd_usable", "odd_noted"} <= gateway.names()
            assert gateway.text("good_fine", {}) == "2"
            assert gateway.text("odd_usable", {}) == "2"
            searched = gateway.text("search_tools", {"query": "usable"})
            assert "odd_usable" in searched
            assert gateway.health() == 200
    log = (tmp_path / "stderr.txt").read_text()
    assert "odd: deep: it has more than 200 levels" in log
    assert "Traceback" not in log


def test_tools_with_the_same_id_cost_one_of_them(tmp_path: Path) -> None:
    servers = {
        "a": listed(tmp_path, "a", tool("b.c"), tool("other")),
        "a.b": listed(tmp_path, "a.b", tool("c")),
    }
    with running(tmp_path, write(tmp_path, servers, 'mode = "proxy"\n')) as gateway:
        names = gateway.names()
        assert len(names) == 2, names
        assert gateway.text("a_other", {}) == "2"
        assert gateway.health() == 200
        assert "a: b.c is left out: its id belongs to the server a.b" in gateway.log.read_text()


@pytest.mark.parametrize("lock", ["folder/lock.json", "/proc/none/lock.json"])
def test_a_lock_that_cannot_be_read_or_written_ends_nothing(lock: str, tmp_path: Path) -> None:
    servers = {"s": listed(tmp_path, "s", tool("one"))}
    config = write(tmp_path, servers, f'mode = "proxy"\n[trust]\nlock = "{lock}"\n')
    with started(tmp_path, config) as gateway:
        wait_until(lambda: gateway.health() == 200, "it is there", gateway.log)
        if lock.startswith("folder"):
            gateway.names()
            wait_until(lambda: (tmp_path / lock).exists(), "it is locked", gateway.log)
            (tmp_path / lock).write_text("{ no lock file")
            said = "lock file"
            wait_until(lambda: said in gateway.log.read_text(), "it is noticed", gateway.log)
        assert gateway.health() == 200
        assert gateway.post("tools/list").status_code == 200
        assert gateway.process.poll() is None


def test_a_message_that_is_not_json_is_survived(tmp_path: Path, own_redis: RedisServer) -> None:
    settings = f'mode = "proxy"\n[store]\nurl = "redis://{own_redis.address}"\n'
    config = write(tmp_path, {"s": listed(tmp_path, "s", tool("one"), tool("two"))}, settings)
    with running(tmp_path, config) as gateway:
        wait_until(lambda: "s_one" in gateway.names(), "its tools are there", gateway.log)
        channels = own_redis.command("PUBSUB", "CHANNELS", "pegboard:*").splitlines()
        assert len(channels) > 1
        for channel in channels:
            own_redis.command("PUBLISH", channel, "{ this is not json")
        assert gateway.post("tools/list").status_code == 200
        assert gateway.health() == 200
        # What is decided afterwards is still followed.
        own_redis.command("SET", f"pegboard:{SWITCHES_KEY}", '["s.one"]')

        def is_off() -> bool:
            own_redis.command("PUBLISH", f"pegboard:{SWITCHES_KEY}", "null")
            return "s_one" not in gateway.names()

        wait_until(is_off, "the switch is followed", gateway.log)
        assert "s_two" in gateway.names()


@pytest.mark.anyio
async def test_a_gateway_that_cannot_go_on_fails_its_health_check_and_ends(tmp_path: Path) -> None:
    config = write(tmp_path, {"s": listed(tmp_path, "s", tool("one"))})
    environ = {"PEGBOARD_HOME": str(tmp_path / "home")}
    serving = GatewayRunner(ConfigSource.from_path(config, environ=environ))
    ended: list[bool] = []

    async def crash() -> None:
        raise RuntimeError("the core is broken")

    async def serve() -> None:
        ended.append(await serving.serve_http("127.0.0.1", 0))

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve)
            while not serving.gateway.is_alive:
                await anyio.lowlevel.checkpoint()
            await serving.gateway.check()
            serving.gateway._tasks.start_soon(crash)  # pyright: ignore[reportPrivateUsage, reportOptionalMemberAccess]
    assert ended == [False], "the process exits with a failure"
    with pytest.raises(RuntimeError, match="is not running"):
        await serving.gateway.check()


@pytest.mark.anyio
async def test_a_background_task_is_started_again_with_a_growing_pause(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("pegboard.gateway.background_tasks.FIRST_RESTART_PAUSE", 0.01)
    starts: list[float] = []

    async def work() -> None:
        starts.append(anyio.current_time())
        if len(starts) < 4:
            raise ValueError("not yet")

    with anyio.fail_after(5):
        await run_supervised("Testing", work)
    gaps = [later - earlier for earlier, later in pairwise(starts)]
    pauses = [float(pause) for pause in re.findall(r"again in ([\d.]+) s", caplog.text)]
    assert pauses == [0.01, 0.02, 0.04]
    # A busy machine may pause longer, but never shorter.
    assert all(gap > pause * 0.9 for gap, pause in zip(gaps, pauses, strict=True))
