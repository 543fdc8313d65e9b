"""What a permission check and a lock check cost, and how much memory rules and sessions take.

python -m benchmarks.company_checks
"""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import time

from pegboard.core.calls import Caller
from pegboard.core.enabled_tools import EnabledTools, EnabledToolsPolicy
from pegboard.core.policy import Policy, Rule
from pegboard.core.tool_lock import hold_reason
from pegboard.core.tools import Catalog, Tool, constant_definition
from pegboard.store.memory import MemoryStore

RULES = 10_000
SESSIONS = 100_000
TOOLS = 500
ROUNDS = 100_000


def memory() -> float:
    """Resident megabytes now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6


def catalog() -> Catalog:
    schema = constant_definition({"type": "object"})
    tools = [Tool(f"t{i}", schema, f"s{i % 50}.t{i}", f"s{i % 50}") for i in range(TOOLS)]
    return Catalog(tools)


def rules() -> list[Rule]:
    personal = [Rule(principals=(f"user{i}",), servers=(f"s{i % 50}",)) for i in range(RULES - 500)]
    teams = [Rule(groups=(f"team-{i}-*",), tools=(f"t{i}*",)) for i in range(500)]
    return personal + teams


def check(policy: Policy, tools: Catalog) -> dict[str, float]:
    callers = [Caller(f"user{i}", groups=frozenset({f"team-{i % 500}-x"})) for i in range(200)]
    began = time.perf_counter()
    for caller in callers:
        policy.visible(tools, caller)
    first = (time.perf_counter() - began) / len(callers)
    tool = tools.tools[0]
    began = time.perf_counter()
    for number in range(ROUNDS):
        policy.allows(callers[number % 200], tool)
        hold_reason(tool)
    return {
        "first sight of a caller, ms": round(first * 1e3, 3),
        "permission and lock check, us": round((time.perf_counter() - began) / ROUNDS * 1e6, 3),
    }


async def sessions(store: MemoryStore) -> None:
    policy = EnabledToolsPolicy(cap=40)
    for number in range(SESSIONS):
        session = EnabledTools().enable([f"s{number % 50}.t{number % 500}"], policy, 0.0)
        await store.update(f"session/{number:032x}", lambda kept, s=session: s.to_json(), ttl=3600)


def measure() -> dict[str, float]:
    """The cost of a check, and the memory of all rules and sessions."""
    gc.collect()
    before = memory()
    policy, tools, store = Policy(rules(), default="deny"), catalog(), MemoryStore()
    figures = check(policy, tools)
    asyncio.run(sessions(store))
    gc.collect()
    figures["rules and sessions, MB"] = round(memory() - before, 1)
    return figures | {"rules": RULES, "sessions": SESSIONS, "kept sessions": len(store)}


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
