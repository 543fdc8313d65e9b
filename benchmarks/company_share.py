"""How soon a decision shows in every replica: from its being kept to the first answer that has it.

    python -m benchmarks.company_share

Needs `redis-server`. Two gateways; the slower of them counts, and the question itself is in the time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from tests.replicas.world import Replica

from benchmarks.company_load import world
from benchmarks.runner import percentile
from pegboard.core.mode_rollout import Rollout
from pegboard.core.tool_lock import LockDecision, ServerLock
from pegboard.gateway.lock_storage import SharedLockStorage
from pegboard.gateway.operator_decisions import ToolSwitches
from pegboard.observe import rollouts
from pegboard.ports import Store
from pegboard.store.redis import RedisStore

ROUNDS = 20
LIMIT = 10.0


def measure() -> dict[str, Any]:
    """The median and the worst of each kind of decision, in milliseconds."""
    with world() as made:
        made.settings = '[trust]\nlock = "store"\n'
        made.__post_init__()
        replicas = [made.start(), made.start()]
        return anyio.run(_measured, made.store, replicas)


async def _measured(url: str, replicas: list[Replica]) -> dict[str, Any]:
    store = RedisStore.from_url(url)
    try:
        return {name: await _kind(*kind, replicas) for name, kind in _kinds(store).items()}
    finally:
        await store.aclose()


Change = Callable[[bool], Awaitable[object]]
Shows = Callable[[Replica], bool]


def _kinds(store: Store) -> dict[str, tuple[Change, Shows]]:
    locks, switches = SharedLockStorage(store), ToolSwitches(store)

    def lock(on: bool) -> Awaitable[object]:
        def change(kept: ServerLock) -> ServerLock:
            undecided = kept.tools["wait"].undecided
            digest = undecided[-1].digest if undecided else None
            action = "approve" if on else "revoke"
            return kept.apply(LockDecision(action, "work", "wait", "a benchmark", 1.0, digest))

        return locks.update("work", change)

    return {
        "lock approval": (lock, lambda r: "work_wait" in r.listed()),
        "switched tool": (
            lambda on: switches.switch("work.quick", enabled=on),
            lambda r: "work_quick" in r.listed(),
        ),
        "rollout": (
            lambda on: rollouts.start(store, Rollout(mode="index", percent=100.0 * on)),
            lambda r: "list_available_tools" in str(r.ask("tools/list")),
        ),
    }


async def _kind(change: Change, shows: Shows, replicas: list[Replica]) -> dict[str, float]:
    taken: list[float] = []
    for number in range(ROUNDS):
        wanted = bool(number % 2)
        await change(wanted)
        began = time.perf_counter()
        for replica in replicas:
            while shows(replica) != wanted:
                if time.perf_counter() - began > LIMIT:
                    raise TimeoutError("a replica has not heard of it")
        taken.append((time.perf_counter() - began) * 1e3)
    return {"median ms": round(percentile(taken, 0.5), 1), "worst ms": round(max(taken), 1)}


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
