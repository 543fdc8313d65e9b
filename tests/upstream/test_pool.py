"""When connections begin and end, who shares them, and what is left behind: nothing."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.upstream.servers.everything import Everything
from tests.upstream.support import NOBODY, Gateway, gateway, in_memory, memory, script

from pegboard.errors import ConfigError
from pegboard.upstream.pool import ConnectionPool
from pegboard.upstream.relay import UpstreamRequest

pytestmark = pytest.mark.anyio


async def call(through: Gateway, server: str = "polite", tool: str = "echo") -> str:
    params: dict[str, Any] = {"name": tool, "arguments": {}}
    result = await through.relay.request(UpstreamRequest(server, "tools/call", params), NOBODY)
    return result["content"][0]["text"]


def is_running(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


async def test_nothing_starts_before_it_is_used() -> None:
    async with gateway(script("polite")) as through:
        status = through.pool.status()[0]
        assert (status.state, status.pids, status.era) == ("cold", (), None)
        await call(through)
        status = through.pool.status()[0]
        assert (status.state, status.era, status.version) == ("ready", "legacy", "2025-11-25")
        assert len(status.pids) == 1
        assert status.latency is not None
        assert status.latency > 0


async def test_concurrent_first_calls_share_one_start(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    async with gateway(script("polite", str(starts))) as through:
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(call, through)
        assert starts.read_text() == "started\n"


async def test_a_caller_that_gives_up_does_not_end_the_start_of_the_others(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    async with gateway(script("polite", str(starts))) as through:
        with anyio.move_on_after(0):
            await call(through)
        await call(through)
        assert starts.read_text() == "started\n"


async def test_an_idle_server_is_stopped_and_started_again_on_the_next_call() -> None:
    now = 0.0
    async with gateway(script("polite", idle_stop=600.0), clock=lambda: now) as through:
        first = await call(through)
        now = 599.0
        await through.pool.sweep()
        assert await call(through) == first
        now = 599.0 + 600.0
        await through.pool.sweep()
        second = await call(through)
        assert second != first
        assert not is_running(int(first))


async def test_a_server_in_use_is_not_idle() -> None:
    now = 0.0
    async with (
        gateway(script("polite"), clock=lambda: now) as through,
        through.pool.use("polite", NOBODY) as connection,
    ):
        now = 10_000.0
        await through.pool.sweep()
        assert connection.is_usable


async def test_idle_stop_zero_keeps_a_server() -> None:
    now = 0.0
    async with gateway(script("polite", idle_stop=0.0), clock=lambda: now) as through:
        first = await call(through)
        now = 1e9
        await through.pool.sweep()
        assert await call(through) == first


async def test_closing_the_pool_ends_processes_and_what_they_started() -> None:
    async with gateway(script("polite")) as through:
        parent, child = int(await call(through)), int(await call(through, tool="child"))
        assert is_running(parent)
        assert is_running(child)
    assert not is_running(parent)
    assert not is_running(child)


async def test_a_cancelled_pool_leaves_no_process_behind() -> None:
    pids: list[int] = []
    with anyio.CancelScope() as scope:
        async with ConnectionPool([script("polite")]) as pool:
            through = Gateway(pool)
            pids += [int(await call(through)), int(await call(through, tool="child"))]
            scope.cancel()
            await anyio.sleep_forever()
    assert not any(is_running(pid) for pid in pids)


async def test_a_server_that_ignores_every_request_to_exit_is_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pegboard.upstream.child_process.EXIT_TIMEOUT", 0.1)
    monkeypatch.setattr("pegboard.upstream.child_process.TERMINATE_TIMEOUT", 0.1)
    async with gateway(script("misbehaving", "deaf", server="deaf")) as through:
        pids = [int(pid) for pid in (await call(through, "deaf")).split()]
        assert all(is_running(pid) for pid in pids)
    assert not any(is_running(pid) for pid in pids)


async def test_a_stopped_server_starts_again_on_the_next_call() -> None:
    async with gateway(script("polite")) as through:
        first = await call(through)
        await through.pool.stop("polite")
        assert through.pool.status()[0].state == "cold"
        assert await call(through) != first


async def test_stderr_goes_to_a_bounded_file_of_its_own(tmp_path: Path) -> None:
    noisy = script("misbehaving", "floods_stderr", server="noisy/1")
    async with gateway(noisy, script("polite"), logs=tmp_path) as through:
        assert await call(through, "noisy/1") == "still here"
        await call(through)
    assert (tmp_path / "polite.log").read_text().startswith("polite is up\n")
    names = sorted(name for name in os.listdir(tmp_path) if name.startswith("noisy"))
    assert names == ["noisy_1.log", "noisy_1.log.1"]
    assert all((tmp_path / name).stat().st_size <= 1 << 20 for name in names)


async def test_a_log_that_cannot_be_written_does_not_stop_the_server(tmp_path: Path) -> None:
    (tmp_path / "polite.log").mkdir()
    async with gateway(script("polite"), logs=tmp_path) as through:
        assert (await call(through)).isdigit()


async def test_draining_waits_for_the_calls_in_flight() -> None:
    async with gateway(script("polite")) as through:
        await call(through)
        done: list[float] = []

        async def slow() -> None:
            params = {"name": "slow", "arguments": {"seconds": 0.2}}
            await through.relay.request(UpstreamRequest("polite", "tools/call", params), NOBODY)
            done.append(anyio.current_time())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(slow)
            await anyio.lowlevel.checkpoint()
            await through.pool.drain(5)
            assert done
        before = anyio.current_time()
        await through.pool.drain(5)
        assert anyio.current_time() - before < 1


async def test_a_new_configuration_ends_what_changed_and_keeps_the_rest() -> None:
    kept = script("polite", server="kept")
    async with gateway(kept, script("polite", server="gone"), script("polite")) as through:
        pids = [await call(through, name) for name in ("kept", "gone", "polite")]
        await through.pool.replace([kept, script("polite", timeout=5.0)])
        assert [spec.name for spec in through.pool.servers] == ["kept", "polite"]
        assert await call(through, "kept") == pids[0]
        assert not is_running(int(pids[1]))
        assert await call(through) != pids[2]
        with pytest.raises(ConfigError, match="no server 'gone'"):
            await call(through, "gone")


# Who shares a process.


@pytest.mark.parametrize(
    ("era", "client_era", "settings", "connections"),
    [
        ("modern", "legacy", {}, 2),
        ("modern", "modern", {}, 1),
        ("legacy", "legacy", {}, 2),
        ("legacy", "modern", {}, 1),
        ("legacy", "legacy", {"stateless": True}, 1),
        ("modern", "legacy", {"stateless": True}, 1),
        ("legacy", "legacy", {"isolation": "shared"}, 1),
        ("modern", "legacy", {"isolation": "session"}, 2),
        ("legacy", "legacy", {"isolation": "principal"}, 1),
        ("modern", "legacy", {"isolation": "principal"}, 1),
        ("modern", "legacy", {"isolation": "session", "stateless": True}, 2),
    ],
)
async def test_two_clients_share_a_connection_as_the_era_and_the_spec_say(
    era: str, client_era: str, settings: dict[str, Any], connections: int
) -> None:
    mode = "legacy" if client_era == "legacy" else "auto"
    async with (
        gateway(
            in_memory("e", **settings), open_transport=memory({"e": (Everything(), era)})
        ) as through,
        through.client(mode) as one,
        through.client(mode) as two,
    ):
        for client in (one, two, one, two):
            await client.call_tool("e.echo", {})
        assert through.pool.status()[0].connections == connections


async def test_a_legacy_session_that_ends_takes_its_connection_with_it() -> None:
    async with gateway(script("polite")) as through:
        async with through.client("legacy") as client:
            result: Any = await client.call_tool("polite.echo", {})
            pid = int(result.content[0].text)
            assert is_running(pid)
        with anyio.fail_after(5):
            while through.pool.status()[0].connections:
                await anyio.lowlevel.checkpoint()
        assert not is_running(pid)


async def test_the_environment_of_a_server_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEGBOARD_TEST_SECRET", "x")
    assert "PEGBOARD_TEST_SECRET" in os.environ
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[1]); import raw; "
        "raw.serve(lambda m: raw.said(' '.join(sorted(k for k in os.environ if 'TEST' in k))))"
    )
    spec = script("polite", env={"MY_TEST": "1"})
    folder = str(Path(spec.args[0]).parent)
    spec = replace(spec, args=("-c", code, folder))
    async with gateway(spec) as through:
        assert "MY_TEST" in await call(through)
        assert "PEGBOARD_TEST_SECRET" not in await call(through)
