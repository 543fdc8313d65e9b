"""Servers that misbehave, each a real process: what the caller gets, and that others go on."""

from __future__ import annotations

import sys

import anyio
import pytest
from tests.upstream.support import NOBODY, Gateway, gateway, script

from pegboard.errors import PegboardError, UpstreamError, UpstreamTimeout, UpstreamUnavailable
from pegboard.upstream.listing import Listing, ListingRefresher, ListingResult, stream_listings
from pegboard.upstream.relay import UpstreamRequest
from pegboard.upstream.spec import UpstreamSpec

pytestmark = pytest.mark.anyio


def faulty(fault: str, **settings: float) -> UpstreamSpec:
    return script("misbehaving", fault, server=fault, **settings)


async def call(through: Gateway, server: str, tool: str = "echo", **arguments: object) -> str:
    params = {"name": tool, "arguments": arguments}
    result = await through.relay.request(UpstreamRequest(server, "tools/call", params), NOBODY)
    return result["content"][0]["text"]


async def listed(through: Gateway, server: str) -> Listing:
    async with stream_listings(through.pool, [server]) as found:
        one = await found.receive()
    if one.error is not None:
        raise one.error
    assert one.listing is not None
    return one.listing


async def failure(through: Gateway, server: str, tool: str = "echo") -> PegboardError:
    with pytest.raises(PegboardError) as caught:
        await call(through, server, tool)
    assert (await call(through, "polite")).isdigit(), "the other servers go on"
    return caught.value


async def test_a_server_that_does_not_exist_is_named_with_what_to_fix() -> None:
    missing = UpstreamSpec("missing", command="no-such-command-anywhere")
    async with gateway(missing, script("polite")) as through:
        error = await failure(through, "missing")
        assert isinstance(error, UpstreamUnavailable)
        assert "no command 'no-such-command-anywhere'" in error.message


async def test_a_folder_that_does_not_exist_is_a_failed_start() -> None:
    lost = UpstreamSpec("lost", command=sys.executable, cwd="/no/such/folder")
    async with gateway(lost, script("polite")) as through:
        assert "cannot be started" in (await failure(through, "lost")).message


async def test_garbage_between_the_messages_does_no_harm() -> None:
    async with gateway(faulty("garbage")) as through:
        assert await call(through, "garbage") == "fine"


async def test_a_server_that_prints_only_garbage_is_reported_with_its_output() -> None:
    async with gateway(faulty("only_garbage", start_timeout=0.5), script("polite")) as through:
        error = await failure(through, "only_garbage")
        assert "did not answer within 0.5 s" in error.message
        assert "'ERROR: could not read my configuration'" in error.message


async def test_a_server_that_never_answers_is_given_up_and_ended() -> None:
    async with gateway(faulty("mute", start_timeout=0.5), script("polite")) as through:
        assert "did not answer within 0.5 s" in (await failure(through, "mute")).message
        await through.pool.stop("mute")
        assert through.pool.status()[0].pids == ()


async def test_an_answer_after_the_timeout_is_dropped_and_the_connection_goes_on() -> None:
    async with gateway(faulty("late", timeout=0.2), script("polite")) as through:
        error = await failure(through, "late", "slow")
        assert isinstance(error, UpstreamTimeout)
        assert "within 0.2 s" in error.message
        pids = through.pool.status()[0].pids
        with anyio.fail_after(5):
            while True:
                try:
                    assert await call(through, "late") == "here"
                    break
                except UpstreamTimeout:
                    continue  # it still sleeps over the first call
        assert through.pool.status()[0].pids == pids


async def test_death_in_the_middle_of_a_call_is_explained_and_healed_by_the_next() -> None:
    async with gateway(faulty("dies_in_call"), script("polite")) as through:
        first = await call(through, "dies_in_call")
        error = await failure(through, "dies_in_call", "die")
        assert isinstance(error, UpstreamUnavailable)
        assert "was ended by SIGKILL" in error.message
        assert "Segmentation fault (not really)" in error.message
        assert "Whether the call took effect is not known" in error.message
        assert await call(through, "dies_in_call") != first


async def test_death_ends_every_call_in_flight_on_that_connection_and_no_other() -> None:
    outcomes: list[str] = []

    async def one(through: Gateway, server: str, tool: str) -> None:
        try:
            answer = await call(through, server, tool, seconds=0.3)
            outcomes.append(f"{server} {answer.isdigit()}")
        except UpstreamUnavailable:
            outcomes.append(f"{server} died")

    async with gateway(faulty("dies_in_call"), script("polite")) as through:
        await call(through, "dies_in_call")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one, through, "polite", "slow")
            for _ in range(3):
                tasks.start_soon(one, through, "dies_in_call", "die")
    assert sorted(outcomes) == ["dies_in_call died"] * 3 + ["polite True"]


async def test_death_at_every_start_is_tried_again_less_and_less_often() -> None:
    now = 0.0
    async with gateway(
        faulty("dies_at_start"), script("polite"), clock=lambda: now, roll=lambda: 0.5
    ) as through:
        for _ in range(2):  # the first retry is free
            error = await failure(through, "dies_at_start")
            assert "exited with code 7; last line on stderr: 'API_KEY is not set'" in error.message
        for pause in (1.0, 2.0, 4.0):
            refused = await failure(through, "dies_at_start")
            assert refused.details["retry_after"] == pause
            now += pause
            assert "retry_after" in (await failure(through, "dies_at_start")).details


async def test_a_server_that_dies_of_the_modern_question_is_reached_by_the_old_handshake() -> None:
    async with gateway(faulty("dies_of_probe")) as through:
        assert await call(through, "dies_of_probe") == "up"
        assert through.pool.status()[0].era == "legacy"


async def test_ten_thousand_tools_are_listed_whole() -> None:
    async with gateway(faulty("many_tools")) as through:
        names = [tool["name"] for tool in (await listed(through, "many_tools")).tools]
        assert names == [f"tool_{n}" for n in range(10_000)]


async def test_a_bad_tool_stays_raw_beside_the_good_ones() -> None:
    async with gateway(faulty("bad_tool")) as through:
        tools = (await listed(through, "bad_tool")).tools
        assert [tool["name"] for tool in tools] == ["echo", "bad"]


@pytest.mark.parametrize("fault", ["same_cursor", "endless_cursor"])
async def test_pages_that_never_end_are_an_error_of_that_server(fault: str) -> None:
    async with gateway(faulty(fault)) as through:
        with pytest.raises(UpstreamError, match="never end"):
            await listed(through, fault)


async def test_fifty_megabytes_arrive() -> None:
    async with gateway(faulty("huge")) as through:
        assert len(await call(through, "huge", size=50_000_000)) == 50_000_000


async def test_announcements_in_a_loop_cause_few_looks_and_calls_go_on() -> None:
    looks: list[ListingResult] = []

    async def note(found: ListingResult) -> None:
        looks.append(found)

    async with gateway(faulty("loop")) as through, anyio.create_task_group() as tasks:
        refresher = ListingRefresher(through.pool, note, debounce=0.05, cooldown=0.2)
        through.pool.add_listener(refresher.on_event)
        tasks.start_soon(refresher.run)
        with anyio.fail_after(60):
            for _ in range(40):
                assert (await call(through, "loop")).isdigit()
            while not looks:
                await call(through, "loop")
        tasks.cancel_scope.cancel()
    assert len(looks) == 1, "what it announces is never new after the first look"


async def test_tools_that_change_are_found_again() -> None:
    seen: list[list[str]] = []
    changed = anyio.Event()

    async def note(found: ListingResult) -> None:
        assert found.listing is not None
        seen.append([tool["name"] for tool in found.listing.tools])
        changed.set()

    async with gateway(faulty("changing")) as through, anyio.create_task_group() as tasks:
        refresher = ListingRefresher(through.pool, note, debounce=0.1, cooldown=0.01)
        through.pool.add_listener(refresher.on_event)
        tasks.start_soon(refresher.run)
        for _ in range(2):
            changed = anyio.Event()
            assert await call(through, "changing") == "changed"
            await changed.wait()
        tasks.cancel_scope.cancel()
    assert seen[:2] == [["version_0"], ["version_1"]]


async def test_a_slow_or_dead_server_holds_up_no_other() -> None:
    specs = [
        faulty("mute", start_timeout=1.5),
        faulty("dies_at_start"),
        UpstreamSpec("missing", command="no-such-command-anywhere"),
        *(script("polite", server=f"polite{n}") for n in range(3)),
    ]
    order: list[tuple[int, int, str, bool]] = []

    def progress(done: int, total: int, found: ListingResult) -> None:
        order.append((done, total, found.server, found.listing is not None))

    async with (
        gateway(*specs) as through,
        stream_listings(through.pool, bound=4, progress=progress) as found,
    ):
        listings = [one async for one in found]
    assert [done for done, *_ in order] == [1, 2, 3, 4, 5, 6]
    assert {name for *_, name, good in order if good} == {"polite0", "polite1", "polite2"}
    assert listings[-1].server == "mute"
    assert all(one.error is not None for one in listings if one.listing is None)
