"""Programs when something around them fails: workers, clients, the store, the process itself."""

from __future__ import annotations

import os
import signal
from typing import Any

import anyio
import pytest
from benchmarks.code_speed import workers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.programs.exits import SCRIPTS, find_bad_exits

from pegboard import CallResult, Pegboard
from pegboard.core.calls import Caller
from pegboard.core.events import RunFinished
from pegboard.core.options import CodeOptions
from pegboard.pipeline import Parts
from pegboard.ports import Store
from pegboard.store.memory import MemoryStore
from pegboard.store.redis import RedisStore, connect_redis
from pegboard.testing import RecordingObserver

pytestmark = pytest.mark.anyio

READ_ONLY = {"readOnlyHint": True}
RUN = "io.github.pegboard/run"


class World:
    """A board whose tools note what happened, and can be made to wait."""

    def __init__(self, code: CodeOptions | None = None, store: Store | None = None) -> None:
        self.notes: list[str] = []
        self.entered = anyio.Event()
        self.left: list[str] = []
        self.observer = RecordingObserver()
        self.board = Pegboard("faults", code=code or CodeOptions(workers=2, total_time=20))
        self.board.parts = Parts(
            observers=(self.observer,),
            is_closed=self.board.is_closed,
            store=MemoryStore() if store is None else store,
        )
        self.board.tool(annotations=READ_ONLY)(self.wait)
        self.board.tool(annotations=READ_ONLY)(self.number)
        self.board.tool(self.add_note)

    async def wait(self, seconds: float = 30) -> str:
        """Wait."""
        self.entered.set()
        try:
            await anyio.sleep(seconds)
        except BaseException:
            self.left.append("cancelled")
            raise
        self.left.append("done")
        return "waited"

    async def number(self, n: int) -> dict[str, int]:
        """Return the number."""
        return {"n": n}

    async def add_note(self, text: str) -> dict[str, str]:
        """Add a note."""
        self.notes.append(text)
        return {"text": text}

    async def delete(self) -> None:
        """Delete everything."""
        self.notes.append("deleted")

    async def run(self, program: str, **given: Any) -> CallResult:
        return await self.board.run_code(program, **given)


def text_of(result: CallResult) -> str:
    return "\n".join(block.get("text", "") for block in result.content)


async def test_no_worker_is_started_before_the_first_program() -> None:
    before = set(workers())
    world = World()
    await world.board.call("number", {"n": 1})
    # Workers of other boards may end meanwhile.
    assert not set(workers()) - before
    await world.run("1")
    assert set(workers()) - before


async def test_a_worker_that_dies_fails_its_program_alone() -> None:
    world = World()
    found: list[CallResult] = []
    await world.run("1")
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:

            async def run() -> None:
                program = "await add_note(text='a')\nawait wait()"
                found.append(await world.run(program, write=True))

            tasks.start_soon(run)
            await world.entered.wait()
            for pid in workers():
                os.kill(pid, signal.SIGKILL)
            world.entered = anyio.Event()
            await anyio.sleep(0.2)
            # The program waits for its call; its worker is only missed when it goes on.
            assert text_of(await world.run("(await number(n=3))['n']")) == "3"
            tasks.cancel_scope.cancel()
    assert world.notes == ["a"]


async def test_a_worker_that_dies_in_the_middle_of_a_call_is_reported() -> None:
    world = World()
    found: list[CallResult] = []
    await world.run("1")
    program = "print('once')\nawait add_note(text='a')\nawait wait(seconds=0.3)"
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:

            async def run() -> None:
                found.append(await world.run(program, write=True))

            tasks.start_soon(run)
            await world.entered.wait()
            for pid in workers():
                os.kill(pid, signal.SIGKILL)
    [stopped] = found
    assert "The worker of this program died.\nDone before that: add_note, wait." in text_of(stopped)
    assert text_of(stopped).count("once") == 1
    again = await world.run(program, write=True, after=stopped.structured["after"])
    assert not again.is_error
    assert (world.notes, world.left) == (["a"], ["done"])


async def test_a_worker_that_dies_before_the_first_call_is_replaced_and_prints_once() -> None:
    world = World()
    found: list[CallResult] = []
    await world.run("1")
    program = "print('once')\nfor n in range(9_000_000):\n    pass\nn"
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:

            async def run() -> None:
                found.append(await world.run(program))

            tasks.start_soon(run)
            await anyio.sleep(0.2)
            for pid in workers():
                os.kill(pid, signal.SIGKILL)
    assert text_of(found[0]) == "8999999\nPrinted:\nonce"


def agree_at_once(question: Any) -> bool:
    return True


async def test_a_program_that_wrote_and_finds_no_worker_later_has_a_record() -> None:
    world = World(code=CodeOptions(workers=1, queue=0))
    world.board.tool(annotations={"destructiveHint": True})(world.delete)
    program, found = "await add_note(text='a')\nawait delete()", list[CallResult]()
    async with anyio.create_task_group() as tasks:

        async def agree(question: Any) -> bool:
            tasks.start_soon(world.run, "await wait()")
            await world.entered.wait()
            return True

        with anyio.fail_after(20):
            found.append(await world.run(program, write=True, consent=agree))
        tasks.cancel_scope.cancel()
    [result] = found
    assert "Stopped: Too many programs are running already" in text_of(result)
    after = result.structured["after"]
    await world.run(program, write=True, after=after, consent=agree_at_once)
    assert world.notes == ["a", "deleted"]


async def test_a_worker_that_dies_while_it_computes_is_reported() -> None:
    world = World()
    found: list[CallResult] = []
    await world.run("1")
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:

            async def run() -> None:
                program = "await add_note(text='a')\nwhile True:\n    pass"
                found.append(await world.run(program, write=True))

            tasks.start_soon(run)
            await anyio.sleep(0.5)
            for pid in workers():
                os.kill(pid, signal.SIGKILL)
    result = found[0]
    assert result.is_error
    assert result.structured["ran"] == "stopped"
    assert result.structured["done"] == [{"tool": "add_note", "times": 1}]
    assert result.structured["after"]


async def test_an_idle_worker_that_died_is_replaced_without_a_word() -> None:
    world = World()
    await world.run("1")
    for pid in workers():
        os.kill(pid, signal.SIGKILL)
    await anyio.sleep(0.1)
    assert text_of(await world.run("(await number(n=3))['n']")) == "3"


async def test_a_client_that_leaves_ends_the_calls_and_the_record_stays() -> None:
    world = World()
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:

            async def run() -> None:
                await world.run("await add_note(text='a')\nawait wait()", write=True)

            tasks.start_soon(run)
            await world.entered.wait()
            tasks.cancel_scope.cancel()
    assert world.left == ["cancelled"]
    ended = [event for event in world.observer.events if isinstance(event, RunFinished)]
    assert [(event.outcome, event.writes) for event in ended] == [("cancelled", 1)]
    again = await world.run("await add_note(text='a')", write=True, after=ended[0].id)
    assert not again.is_error
    assert world.notes == ["a"]


async def test_nothing_runs_after_the_answer() -> None:
    world = World()
    with anyio.fail_after(20):
        failing = "async def fail():\n    await number(n=1)\n    1 / 0\n"
        result = await world.run(f"{failing}await asyncio.gather(wait(), fail())")
    assert result.is_error
    assert world.left == ["cancelled"]


async def test_a_total_time_ends_a_program_that_waits() -> None:
    world = World(code=CodeOptions(total_time=0.5, workers=1))
    with anyio.fail_after(10):
        result = await world.run("await wait()")
    assert "total_time" in text_of(result)
    assert world.left == ["cancelled"]


async def test_two_programs_share_one_worker_one_after_another() -> None:
    world = World(code=CodeOptions(workers=1))
    values: list[str] = []

    async def run(n: int) -> None:
        program = f"x = await gather(*[number(n={n}) for _ in range(5)])\nsum(i['n'] for i in x)"
        values.append(text_of(await world.run(program)))

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            for n in range(6):
                tasks.start_soon(run, n)
    assert sorted(values) == ["0", "10", "15", "20", "25", "5"]


async def test_programs_see_nothing_of_each_other() -> None:
    world = World(code=CodeOptions(workers=1))
    assert text_of(await world.run("secret = 'mine'\nsecret")) == "mine"
    other = await world.run("secret")
    assert other.is_error
    assert "mine" not in text_of(other)


async def test_without_its_store_a_program_runs_and_has_no_handle() -> None:
    store = RedisStore(connect_redis("redis://127.0.0.1:1/0"))
    world = World(store=store)
    with anyio.fail_after(30):
        finished = await world.run("(await number(n=2))['n']")
        failed = await world.run("await add_note(text='a')\n1 / 0", write=True)
    assert text_of(finished) == "2"
    assert failed.structured["ran"] == "stopped"
    assert failed.structured["done"] == [{"tool": "add_note", "times": 1}]
    assert "after" not in failed.structured


async def test_a_record_belongs_to_who_made_it() -> None:
    world = World()
    failed = await world.run("await add_note(text='a')\n1 / 0", write=True)
    handle = failed.structured["after"]
    stranger = Caller(principal="eve")
    with pytest.raises(Exception, match="unknown, expired") as theirs:
        await world.run("await add_note(text='a')", write=True, after=handle, caller=stranger)
    with pytest.raises(Exception, match="unknown, expired") as nobodys:
        await world.run("await add_note(text='a')", write=True, after="r-0000000000000000")
    assert str(theirs.value) == str(nobodys.value)
    assert world.notes == ["a"]


SHARED = World()


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    notes=st.lists(st.sampled_from("abc"), min_size=1, max_size=6),
    fails_after=st.lists(st.integers(0, 6), min_size=1, max_size=3),
    at_once=st.booleans(),
)
def test_no_write_happens_twice_wherever_a_program_fails(
    notes: list[str], fails_after: list[int], at_once: bool
) -> None:
    async def attempts() -> None:
        SHARED.notes.clear()
        handle: str | None = None
        for stop in [*(n for n in fails_after if n < len(notes)), None]:
            done = notes[:stop] if stop is not None else notes
            calls = ", ".join(f"add_note(text={note!r})" for note in done)
            program = (
                f"await gather({calls})" if at_once else f"[{calls.replace('add', 'await add')}]"
            )
            program += "\n1 / 0" if stop is not None else "\n'done'"
            result = await SHARED.run(program, write=True, after=handle)
            if stop is not None:
                handle = result.structured.get("after", handle)
            else:
                assert not result.is_error
        assert sorted(SHARED.notes) == sorted(notes)

    anyio.run(attempts)


def test_processes_that_ran_programs_exit_cleanly() -> None:
    assert find_bad_exits(20, tuple(end for end in SCRIPTS if end != "a board")) == []
    assert find_bad_exits(2, ("a board",)) == []
