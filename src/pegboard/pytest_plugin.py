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
    """Fails the test when a server's list costs more than `max_tokens`; returns its cost."""

    def __call__(self, server: Any, mode: str = "proxy", max_tokens: int = 500) -> int: ...


@pytest.fixture
def pegboard_budget() -> Budget:
    """Holds a server to a budget of tokens for its list; works in plain and in async tests."""
    # Here, so that test runs that do not use the fixture import nothing of it.
    from concurrent.futures import ThreadPoolExecutor

    import anyio

    from pegboard.testing import listed_costs

    def check(server: Any, mode: str = "proxy", max_tokens: int = 500) -> int:
        __tracebackhide__ = True
        # In a thread, since the test may run an event loop itself.
        with ThreadPoolExecutor(1) as thread:
            costs = thread.submit(anyio.run, listed_costs, server, mode).result()
        total = sum(costs.values())
        if total > max_tokens:
            largest = sorted(costs, key=lambda name: -costs[name])[:3]
            named = ", ".join(f"{name} ({costs[name]:,})" for name in largest)
            pytest.fail(
                f"The list costs {total:,} tokens in the mode {mode!r}, {total - max_tokens:,} "
                f"more than {max_tokens:,}. The most expensive tools: {named}.",
                pytrace=False,
            )
        return total

    return check
