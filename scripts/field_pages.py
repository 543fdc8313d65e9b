"""Generates the field reference of the example servers in `docs/reference/fields/`.

The example values come from real results: the script makes the example calls of every tool, on the
demo data and at a fixed time. With `--check` it only prints the pages that are out of date.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import anyio

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from examples import memory, tracker  # noqa: E402 the folder beside this one
from pegboard import Pegboard, PegboardError, Tool  # noqa: E402
from pegboard.core.json import Json  # noqa: E402
from pegboard.core.results.output_fields import render_fields_page  # noqa: E402

PAGES = ROOT / "docs" / "reference" / "fields"
_RISKS = ("read", "write", "destructive")


def boards() -> dict[str, Pegboard]:
    """The example servers, each at a time after all of its demo data."""
    return {
        "memory": memory.build_board(now=_always(datetime(2026, 2, 20, 8, tzinfo=UTC))),
        "tracker": tracker.build_board(now=_always(datetime(2026, 3, 9, 8, tzinfo=UTC))),
    }


def pages() -> dict[Path, str]:
    """The current content of every page, by path."""
    return {
        PAGES / f"{name}.md": render_fields_page(name, board.tools(), anyio.run(samples, board))
        for name, board in boards().items()
    }


async def samples(board: Pegboard) -> dict[str, Json]:
    """A result of each tool, by id; tools that only read are called first."""
    found: dict[str, Json] = {}
    for tool in sorted(board.tools(), key=lambda t: (_RISKS.index(t.risk), t.id)):
        result = await _first_result(board, tool)
        if result is not None:
            found[tool.id] = result
    return found


async def _first_result(board: Pegboard, tool: Tool) -> Json:
    for arguments in [dict(e.invocation) for e in tool.examples] or [{}]:
        try:
            return (await board.call(tool.id, arguments)).structured
        except PegboardError:
            continue  # it needs arguments, or data that an earlier call has removed
    return None


def _always(moment: datetime) -> Callable[[], datetime]:
    return lambda: moment


def main() -> int:
    """Rewrite or check all pages."""
    stale = [(p, t) for p, t in pages().items() if not p.exists() or p.read_text("utf-8") != t]
    for path, text in stale:
        if "--check" not in sys.argv:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        print(path.relative_to(ROOT))
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
