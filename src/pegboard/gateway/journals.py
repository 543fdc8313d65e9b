"""Where a gateway on stdio leaves word of its calls, and `pegboard ui` finds it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from pegboard.observe.journal import Journal, JournalReader, sweep
from pegboard.ports import Observer

if TYPE_CHECKING:
    from starlette.applications import Starlette

LOOK_EVERY = 0.5
"""Seconds between two looks at the journals."""


@contextmanager
def journal_of(folder: Path, config: Path) -> Generator[Journal]:
    """The journal that this process writes for a configuration; old ones are swept away."""
    journal = Journal(folder / "journals", _key(config))
    sweep(journal.path.parent, now=time.time())
    try:
        yield journal
    finally:
        journal.close()


def follow(app: Starlette, observer: Observer, folder: Path, config: Path) -> None:
    """Have an observer told, while an application runs, of what others do with a configuration."""
    reader = JournalReader(folder / "journals", _key(config))
    serving = app.router.lifespan_context

    async def look() -> None:
        while True:
            for event in await to_thread.run_sync(reader.new):
                observer.record(event)
            await anyio.sleep(LOOK_EVERY)

    @asynccontextmanager
    async def lifespan(application: Starlette) -> AsyncGenerator[Any]:
        async with serving(application) as state, anyio.create_task_group() as tasks:
            tasks.start_soon(look)
            yield state
            tasks.cancel_scope.cancel()

    app.router.lifespan_context = lifespan


def _key(config: Path) -> str:
    """Which configuration a journal is about, without saying where that lies."""
    return hashlib.sha256(str(config.resolve()).encode()).hexdigest()[:16]
