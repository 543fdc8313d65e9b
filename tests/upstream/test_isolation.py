"""Who shares a process, how many there may be, and whose fault stays whose: real processes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.upstream.support import Gateway, gateway, script
from tests.upstream.test_pool import is_running

from pegboard.core.calls import Caller
from pegboard.errors import Busy, NotPermitted, UpstreamUnavailable
from pegboard.upstream.downstream import Downstream
from pegboard.upstream.listing import stream_listings
from pegboard.upstream.pool import ConnectionPool, PoolLimits
from pegboard.upstream.relay import UpstreamRequest
from pegboard.upstream.spec import UpstreamSpec

pytestmark = pytest.mark.anyio

ANN, BOB, EVE = (Caller(name) for name in ("ann", "bob", "eve"))


async def call(
    through: Gateway, caller: Caller, tool: str = "read", server: str = "ledger", **arguments: Any
) -> tuple[int, str]:
    """The process that answered a caller, and what it keeps."""
    outgoing = UpstreamRequest(server, "tools/call", {"name": tool, "arguments": arguments})
    result = await through.relay.request(outgoing, Downstream(caller, None, {}))
    pid, _, rows = result["content"][0]["text"].partition(" ")
    return int(pid), rows


def ledger(*args: str, **settings: Any) -> UpstreamSpec:
    return script("ledger", *args, **settings)


def processes(through: Gateway) -> list[int]:
    return [pid for status in through.pool.status() for pid in status.pids]


# Who shares.


@pytest.mark.parametrize("manner", ["", "quiet"], ids=["modern", "legacy"])
async def test_principals_do_not_share_a_process_of_either_era(manner: str) -> None:
    async with gateway(ledger(manner)) as through:
        await call(through, ANN, "put", value="hers")
        await call(through, BOB, "put", value="his")
        assert (await call(through, ANN))[1] == "hers"
        assert (await call(through, BOB))[1] == "his"


async def test_the_first_start_of_all_is_not_shared_either() -> None:
    """Nothing is known of the server yet, and everybody comes at once."""
    callers = [Caller(f"p{n}") for n in range(5)]
    seen: set[int] = set()

    async def use(through: Gateway, caller: Caller) -> None:
        seen.add((await call(through, caller, "put", value=caller.principal))[0])
        assert (await call(through, caller))[1] == caller.principal

    async with gateway(ledger("")) as through, anyio.create_task_group() as tasks:
        for caller in callers:
            tasks.start_soon(use, through, caller)
    assert len(seen) == 5


async def test_an_unidentified_caller_is_refused_by_a_server_that_is_not_shared() -> None:
    stranger = Caller(anonymous=True)
    async with gateway(ledger(), ledger(server="open", stateless=True)) as through:
        with pytest.raises(NotPermitted, match="does not know who its users are"):
            await call(through, stranger)
        assert processes(through) == []
        await call(through, stranger, "put", server="open", value="for all")
        assert (await call(through, stranger, server="open"))[1] == "for all"


@pytest.mark.parametrize("isolation", ["session", "principal"])
async def test_no_isolation_lets_strangers_share(isolation: Any) -> None:
    async with gateway(ledger(isolation=isolation)) as through:
        with pytest.raises(NotPermitted):
            await call(through, Caller(anonymous=True))


async def test_a_catalog_is_not_read_from_the_process_of_one_of_several_people() -> None:
    async with gateway(ledger()) as through:
        of_ann, _ = await call(through, ANN)
        async with through.pool.visit("ledger") as connection:
            assert connection.pid not in (None, of_ann)
        of_local, _ = await call(through, Caller())
        async with through.pool.visit("ledger") as connection:
            assert connection.pid == of_local


# How many.


async def test_at_the_cap_the_process_that_was_idle_longest_makes_room() -> None:
    now = 0.0
    limits = PoolLimits(processes=2)
    async with gateway(ledger(), clock=lambda: now, limits=limits) as through:
        pids: dict[str, int] = {}
        for caller in (ANN, BOB, ANN, EVE):
            now += 1
            pids[caller.principal], _ = await call(through, caller)
        assert set(processes(through)) == {pids["ann"], pids["eve"]}
        assert not is_running(pids["bob"])


async def test_one_principal_at_its_cap_gives_up_its_own_and_nobody_elses() -> None:
    servers = [ledger(server=name) for name in "abc"]
    async with gateway(*servers, limits=PoolLimits(per_principal=2)) as through:
        of_bob, _ = await call(through, BOB, server="a")
        mine = [(await call(through, ANN, server=name))[0] for name in "abc"]
        assert [is_running(pid) for pid in mine] == [False, True, True]
        assert is_running(of_bob)


async def test_the_local_user_may_have_all_processes() -> None:
    servers = [ledger(server=name) for name in "abc"]
    async with gateway(*servers, limits=PoolLimits(per_principal=1)) as through:
        for name in "abc":
            await call(through, Caller(), server=name)
        assert len(processes(through)) == 3


@pytest.mark.parametrize(
    ("limits", "setting"),
    [
        (PoolLimits(processes=1, wait=0.1), "max_processes"),
        (PoolLimits(per_principal=1, wait=0.1), "max_processes_per_principal"),
    ],
)
async def test_without_room_the_error_names_the_setting(limits: PoolLimits, setting: str) -> None:
    async with gateway(ledger(), ledger(server="other"), limits=limits) as through:
        async with through.pool.use("ledger", Downstream(ANN, None, {})) as busy:
            with pytest.raises(Busy, match=rf"cannot be started: .*\(`{setting}`\)"):
                await call(through, ANN, server="other")
            assert busy.is_usable
        await call(through, ANN, server="other")


async def test_a_caller_waits_a_little_for_room() -> None:
    limits = PoolLimits(processes=1, wait=10)
    async with gateway(ledger(), limits=limits) as through:
        of_ann, _ = await call(through, ANN)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: call(through, ANN, "wait", seconds=0.3))
            while not through.pool.status()[0].in_flight:
                await anyio.lowlevel.checkpoint()
            of_bob, _ = await call(through, BOB)
            assert of_bob != of_ann
            assert processes(through) == [of_bob]


async def test_many_callers_at_the_cap_never_exceed_it() -> None:
    most = 0

    async def use(through: Gateway, caller: Caller) -> None:
        nonlocal most
        await call(through, caller)
        most = max(most, len(processes(through)))

    async with gateway(ledger(), limits=PoolLimits(processes=3, wait=15)) as through:
        async with anyio.create_task_group() as tasks:
            for number in range(12):
                tasks.start_soon(use, through, Caller(f"p{number}"))
        assert 0 < most <= 3


# Faults.


async def test_the_crash_of_one_clients_process_delays_nobody_else() -> None:
    async with gateway(ledger()) as through:
        await call(through, BOB, "put", value="his")
        for _ in range(3):
            with pytest.raises(UpstreamUnavailable):
                await call(through, ANN, "die")
        with pytest.raises(UpstreamUnavailable, match=r"tried again in|was ended by"):
            await call(through, ANN)
        assert (await call(through, BOB))[1] == "his"
        await call(through, EVE)


async def test_what_one_process_printed_is_not_quoted_to_another_client() -> None:
    async with gateway(ledger()) as through:
        await call(through, ANN, "put", value="secret")
        pid, _ = await call(through, BOB)
        with pytest.raises(UpstreamUnavailable, match="secret"):
            await call(through, ANN, "die")

        async def end() -> None:
            while not through.pool.status()[0].in_flight:
                await anyio.lowlevel.checkpoint()
            os.kill(pid, 9)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(end)
            with pytest.raises(UpstreamUnavailable, match="SIGKILL") as caught:
                await call(through, BOB, "wait", seconds=5)
            assert "secret" not in str(caught.value)


async def test_failures_of_people_who_left_are_forgotten() -> None:
    now = 0.0
    async with gateway(
        script("misbehaving", "dies_at_start", server="bad"), clock=lambda: now
    ) as through:
        server: Any = through.pool._servers["bad"]  # pyright: ignore[reportPrivateUsage]
        for number in range(5):
            with pytest.raises(UpstreamUnavailable):
                await call(through, Caller(f"p{number}"), server="bad")
        assert len(server._backoffs) == 5
        now = 700.0
        await through.pool.sweep()
        assert len(server._backoffs) == 0


# Eras.


async def listed_in(spec: UpstreamSpec) -> tuple[float, str | None]:
    """Seconds until a server that nothing is known of is listed, and its era."""
    with anyio.fail_after(20):
        async with ConnectionPool([spec]) as pool, stream_listings(pool) as found:
            one = await found.receive()
            assert one.error is None, one.error
            return one.seconds, pool.status()[0].era


async def test_a_server_that_never_answers_the_question_for_its_era_is_not_waited_for() -> None:
    seconds, era = await listed_in(ledger("quiet"))
    assert (era, seconds < 4) == ("legacy", True)


async def test_a_modern_server_that_is_slow_to_start_is_not_taken_for_an_old_one() -> None:
    assert (await listed_in(ledger("slow")))[1] == "modern"
    assert (await listed_in(ledger("dual")))[1] == "modern"


async def test_a_handshake_is_sent_once(tmp_path: Path) -> None:
    """Some servers end when they are greeted twice."""
    seen = tmp_path / "seen"
    assert (await listed_in(script("misbehaving", "slow_and_strict", str(seen))))[1] == "legacy"
    assert seen.read_text().split()[:3] == [
        "server/discover", "initialize", "notifications/initialized",
    ]  # fmt: skip
    assert seen.read_text().split().count("initialize") == 1
