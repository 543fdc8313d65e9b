"""Short processes that run a program and end, each in another state of its sandbox.

An interpreter that shuts down while a library's thread still works for it can be aborted. How often
depends on chance, so one exit shows nothing: see `python -m tests.programs --exits 1000`.
"""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice

_HEAD = """
import sys
import anyio
from pegboard.core.code.steps import SandboxLimits
from pegboard.core.options import CodeOptions
from pegboard.sandbox.monty import MontySandbox

sandbox = MontySandbox(CodeOptions(workers=1))
limits = SandboxLimits(
    compute_time=5, sleep_time=1, memory_bytes=1 << 26, recursion=99, max_calls=9, print_bytes=99
)

def start(session, program):
    return session.start(program, ["f"], stops=lambda name: True, is_async=False)

async def main():
"""
_ENDS = {
    "after a program": """
    async with sandbox.open(limits) as session:
        assert (await start(session, "1 + 1")).value == 2
""",
    "in front of a call": """
    async with sandbox.open(limits) as session:
        assert (await start(session, "f()")).stopped_at.name == "f"
""",
    "while it computes": """
    async with sandbox.open(limits) as session:
        with anyio.move_on_after(0.05):
            await start(session, "while True: pass")
""",
    "with an open session": """
    opened = sandbox.open(limits)
    session = await opened.__aenter__()
    await start(session, "1")
""",
    "by sys.exit": """
    async with sandbox.open(limits) as session:
        await start(session, "1")
        sys.exit(0)
""",
}
SCRIPTS = {end: f"{_HEAD}{body}\nanyio.run(main)\n" for end, body in _ENDS.items()}
SCRIPTS["a board"] = """
import anyio
from pegboard import Pegboard

board = Pegboard("exits")

@board.tool(annotations={"readOnlyHint": True})
async def number(n: int) -> int:
    return n

async def main():
    result = await board.run_code("await asyncio.gather(*[number(n=i) for i in range(20)])")
    assert not result.is_error, result

anyio.run(main)
"""


def find_bad_exits(times: int, ends: tuple[str, ...] = tuple(SCRIPTS)) -> list[str]:
    """What so many processes left that did not end with 0 and in silence."""

    def run(end: str) -> str:
        ended = subprocess.run(
            [sys.executable, "-c", SCRIPTS[end]],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        is_clean = (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
        return "" if is_clean else f"{end}: exit code {ended.returncode}, {ended.stderr}"

    with ThreadPoolExecutor(2) as pool:
        return [bad for bad in pool.map(run, islice(cycle(ends), times)) if bad]
