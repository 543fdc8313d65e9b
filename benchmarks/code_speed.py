"""What a program costs beside its calls: checking it, each call, many calls at once, going on later."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio

from benchmarks.code_tasks import TASKS
from benchmarks.code_workspace import build_workspace
from benchmarks.runner import WrongAnswer, spread
from benchmarks.wire import descendants, memory_mb
from pegboard import CallResult, Pegboard
from pegboard.pipeline import Parts
from pegboard.ports import Store
from pegboard.store.memory import MemoryStore

READ_ONLY = {"readOnlyHint": True}
CALLS, READS, AT_ONCE, READ_TIME = 150, 100, 16, 0.05
META = "io.github.pegboard/run"


def build_board(store: Store | None = None) -> Pegboard:
    """A few tools whose own time is known."""
    board = Pegboard("speed")
    if store is not None:
        board.parts = Parts(store=store, is_closed=board.is_closed)

    @board.tool(annotations=READ_ONLY)
    def number(n: int) -> dict[str, int]:
        """Return the number."""
        return {"n": n}

    @board.tool(annotations=READ_ONLY)
    async def slow_number(n: int) -> dict[str, int]:
        """Return the number after 50 ms."""
        await anyio.sleep(READ_TIME)
        return {"n": n}

    @board.tool
    def add_note(text: str) -> dict[str, str]:
        """Add a note."""
        NOTES.append(text)
        return {"text": text}

    @board.tool(annotations={"destructiveHint": True})
    def delete_note(text: str) -> dict[str, str]:
        """Delete a note."""
        NOTES.remove(text)
        return {"text": text}

    return board


NOTES: list[str] = []


async def measure_speed(rounds: int) -> dict[str, Any]:
    """Every figure, each the spread of several rounds."""
    others = len(workers())  # of boards that were measured before
    board = build_board()
    # What is loaded with the first call and the first program is not what is measured.
    await board.call("number", {"n": 1})
    before = len(workers()) - others
    await _finished(board.run_code("await slow_number(n=1)"))
    # A round takes a tenth of a second, so that other load on the machine affects only a few.
    overheads = [await _overhead(board) for _ in range(5 * rounds)]
    found = {
        "workers_before_first_use": before,
        "check_ms": await _check(rounds),
        "overhead_per_call_ms": spread(overheads),
        "reads_of_ideal": spread([await _reads(board) for _ in range(rounds)]),
        "no_calls_ms": spread([await _timed(board.run_code, "1 + 1") * 1e3 for _ in range(20)]),
        "worker_idle_mb": max(memory_mb(pid) for pid in workers()),
        "resume_ms": spread([await _resume() for _ in range(rounds)]),
        "writes_repeated": await _repeated(board),
    }
    return found


async def _check(rounds: int) -> dict[str, float]:
    """A program of the tasks with one wrong name: checked, refused, nothing called."""
    board = build_workspace()
    times: list[float] = []
    for number in range(rounds + 1):
        for task in TASKS:
            program = f"{task.program.strip()}\nnot_defined_{number}"
            taken = await _timed(board.run_code, program, write=True, ends="nothing")
            times += [taken * 1e3] if number else []  # the first round warms the workers
    return {**spread(times), "p95": round(statistics.quantiles(times, n=20)[-1], 3)}


async def _overhead(board: Pegboard) -> float:
    """Milliseconds that a call in a program takes longer than the same call by itself."""
    program = f"for i in range({CALLS}):\n    await number(n=i)\n1"
    began = time.perf_counter()
    for number in range(CALLS):
        await board.call("number", {"n": number})
    alone = time.perf_counter() - began
    empty = await _timed(board.run_code, f"for i in range({CALLS}):\n    number\n1")
    return (await _timed(board.run_code, program) - empty - alone) / CALLS * 1e3


async def _reads(board: Pegboard) -> float:
    """The time of many slow reads at once, of the time that the same number of tasks takes."""
    limit = anyio.Semaphore(AT_ONCE)

    async def one() -> None:
        async with limit:
            await anyio.sleep(READ_TIME)

    began = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(READS):
            tasks.start_soon(one)
    ideal = time.perf_counter() - began
    program = f"len(await asyncio.gather(*[slow_number(n=i) for i in range({READS})]))"
    return await _timed(board.run_code, program) / ideal


async def _resume() -> float:
    """Milliseconds from the person's consent until the deletion was made, after a restart.

    The first board stops in front of the deletion and is closed; a second one, which has a warm
    worker and the same store, goes on.
    """
    NOTES[:] = ["a"]
    store = MemoryStore()
    first = build_board(store)
    stopped = await first.run_code("await delete_note(text='a')", write=True)
    second = build_board(store)
    await second.run_code("1")
    began = time.perf_counter()
    await _finished(second.resume_run(stopped.structured["run"]))
    taken = (time.perf_counter() - began) * 1e3
    if NOTES:
        raise WrongAnswer("the deletion was not made")
    return taken


async def _repeated(board: Pegboard) -> int:
    """Writes that were made twice when a program was fixed and run again."""
    NOTES.clear()
    program = "for i in range(6):\n    await add_note(text=str(i))\n    if i == 3: 1 / 0\n'done'"
    stopped = await board.run_code(program, write=True)
    after = stopped.structured["after"]
    await _finished(board.run_code(program.replace("1 / 0", "pass"), write=True, after=after))
    if sorted(set(NOTES)) != [str(number) for number in range(6)]:
        raise WrongAnswer(f"not all notes were added: {NOTES}")
    return len(NOTES) - len(set(NOTES))


async def _timed(
    run: Callable[..., Awaitable[CallResult]], program: str, ends: str = "finished", **given: Any
) -> float:
    began = time.perf_counter()
    result = await run(program, **given)
    taken = time.perf_counter() - began
    if result.meta[META]["ran"] != ends:
        raise WrongAnswer(f"{program[:80]}: {result.content}")
    return taken


async def _finished(run: Awaitable[CallResult]) -> None:
    result = await run
    if result.meta[META]["ran"] != "finished":
        raise WrongAnswer(str(result.content))


def workers() -> list[int]:
    """The processes of the sandbox below this one, confined or not."""
    names = ("monty", "worker")
    return [
        pid
        for pid in descendants(os.getpid())
        if Path(f"/proc/{pid}/comm").read_text().strip() in names
    ]
