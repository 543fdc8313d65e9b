"""A start that is cancelled: nothing of it is left behind."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from pegboard.upstream.child_process import run_process
from pegboard.upstream.server_log import BoundedLog
from pegboard.upstream.spec import UpstreamSpec


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("steps", [1, 3, 6])
def test_a_start_that_is_cancelled_leaves_no_process_and_no_warning(
    steps: int, caplog: pytest.LogCaptureFixture
) -> None:
    """asyncio warns of a process that ends after its loop: "Loop ... that handles pid ..."."""
    program = "import time; time.sleep(30)"
    spec = UpstreamSpec("x", command=sys.executable, args=("-c", program))

    async def run() -> None:
        async with run_process(spec, BoundedLog()):
            await anyio.sleep_forever()

    async def cancelled() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()

    anyio.run(cancelled)
    assert _children() == []
    assert "is closed" not in caplog.text


def _children() -> list[str]:
    """The processes that this one has started and that are still there."""
    found = [Path(f"/proc/self/task/{task}/children") for task in os.listdir("/proc/self/task")]
    pids = [pid for path in found for pid in path.read_text().split()]
    return [pid for pid in pids if "time.sleep(30)" in Path(f"/proc/{pid}/cmdline").read_text()]
