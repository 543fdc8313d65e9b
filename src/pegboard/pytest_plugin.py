"""A pytest plugin for authors of MCP servers: the fixture `pegboard_budget`.

    def test_the_tools_stay_affordable(pegboard_budget):
        pegboard_budget(server, face="proxy", max_tokens=500)

Installed with Pegboard and imported by every pytest run, so it imports nothing but pytest.
"""

from __future__ import annotations

from typing import Any, Protocol

import pytest

__all__ = ["Budget", "pegboard_budget"]


class Budget(Protocol):
    """Fails the test when a server's list costs more than it may; gives what it costs."""

    def __call__(self, server: Any, face: str = "proxy", max_tokens: int = 500) -> int: ...


@pytest.fixture
def pegboard_budget() -> Budget:
    """Holds a server to a budget of tokens for its list; works in plain and in async tests."""
    return _hold


def _hold(server: Any, face: str = "proxy", max_tokens: int = 500) -> int:
    __tracebackhide__ = True
    tokens, dearest = _counted(server, face)
    if tokens > max_tokens:
        pytest.fail(
            f"The list costs {tokens:,} tokens under the face {face!r}, {tokens - max_tokens:,} "
            f"more than {max_tokens:,}. The dearest tools: {', '.join(dearest)}.",
            pytrace=False,
        )
    return tokens


def _counted(server: Any, face: str) -> tuple[int, list[str]]:
    """Count in a thread of its own, since the test may have an event loop already."""
    from concurrent.futures import ThreadPoolExecutor

    import anyio

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(anyio.run, _count, server, face).result()


async def _count(server: Any, face: str) -> tuple[int, list[str]]:
    from pegboard.testing import listed_costs

    costs = await listed_costs(server, face)
    dearest = sorted(costs, key=lambda name: -costs[name])[:3]
    return sum(costs.values()), [f"{name} ({costs[name]:,})" for name in dearest]
