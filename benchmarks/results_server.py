"""A server of the official SDK on stdio that gives results: `results_server.py`.

`sample(name)` answers with what tools of our example servers and this project's own files give
(real), or with results of the shapes that tools give, made up in any length (made).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
from mcp.server import MCPServer

from benchmarks.results_data import listings
from examples import memory, tracker

ROOT = Path(__file__).parents[1]
ROWS = (20, 400)


def _called(build: Callable[[], Any], name: str, arguments: dict[str, Any]) -> Any:
    async def call() -> Any:
        return (await build().call(name, arguments)).structured

    return anyio.run(call)


def _board(module: Any, name: str, **arguments: Any) -> Callable[[], Any]:
    return lambda: _called(module.build_board, name, arguments)


REAL: dict[str, Callable[[], Any]] = {
    "issues of the tracker": _board(tracker, "list_issues"),
    "activity of the tracker": _board(tracker, "list_activity"),
    "episodes of the memory": _board(memory, "list_episodes"),
    "one episode": _board(memory, "get_episode", episode_id=memory.RICH_EPISODE),
    "tools of the tracker": lambda: {
        "tools": [tool.wire() for tool in tracker.build_board().tools()]
    },
    "a licence": lambda: (ROOT / "LICENSE").read_text(encoding="utf-8"),
    "a changelog": lambda: (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
}
MADE: dict[str, Callable[[], Any]] = {
    f"{name}, {rows}": lambda n=name, r=rows: listings(r)[n]
    for rows in ROWS
    for name in listings(1)
}
SAMPLES = REAL | MADE


def text_of(name: str) -> str:
    """A result as a server sends it: indented, as most do."""
    value = SAMPLES[name]()
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def main() -> None:
    texts = {name: text_of(name) for name in SAMPLES}
    server = MCPServer("samples", log_level="WARNING")

    @server.tool(structured_output=False)
    def sample(name: str) -> str:
        """A result of that name."""
        return texts[name]

    server.run()


if __name__ == "__main__":
    main()
