"""A pytest plugin for authors of MCP servers: the fixture `pegboard_budget`.

    def test_the_tools_stay_affordable(pegboard_budget):
        pegboard_budget(server, mode="proxy", max_tokens=500)

Installed with Pegboard and imported by every pytest run, so it imports nothing but pytest.
"""

from __future__ import annotations

from typing import Any, Protocol

import pytest

__all__ = ["Budget", "pegboard_budget"]


class Budget(Protocol):
    """Fails the test when a server's list costs more than it may; gives what it costs."""

    def __call__(self, server: Any, mode: str = "proxy", max_tokens: int = 500) -> int: ...


@pytest.fixture
def pegboard_budget() -> Budget:
    """Holds a server to a budget of tokens for its list; works in plain and in async tests."""
    return _hold


def _hold(server: Any, mode: str = "proxy", max_tokens: int = 500) -> int:
    __tracebackhide__ = True
    tokens, dearest = _counted(server, mode)
    if tokens > max_tokens:
        pytest.fail(
            f"The list costs {tokens:,} tokens under the mode {mode!r}, {tokens - max_tokens:,} "
            f"more than {max_tokens:,}. The most expensive tools: {', '.join(dearest)}.",
            pytrace=False,
        )
    return tokens


def _counted(server: Any, mode: str) -> tuple[int, list[str]]:
    """Count in a thread of its own, since the test may have an event loop already."""
    from concurrent.futures import ThreadPoolExecutor

    import anyio

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(anyio.run, _count, server, mode).result()


async def _count(server: Any, mode: str) -> tuple[int, list[str]]:
    from pegboard.testing import listed_costs

    costs = await listed_costs(server, mode)
    dearest = sorted(costs, key=lambda name: -costs[name])[:3]
    return sum(costs.values()), [f"{name} ({costs[name]:,})" for name in dearest]
