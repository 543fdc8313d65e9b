"""A board as one caller sees it: what is permitted of its catalogue, and the doors to the rest."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Protocol

from anyio import to_thread

from pegboard.core.calls import Caller
from pegboard.core.options import Options
from pegboard.core.policy import ALLOW_ALL, Policy
from pegboard.core.tool_registry import Registry
from pegboard.core.tools import Catalog
from pegboard.finding import Finding
from pegboard.modes.mode import View, ViewRequest
from pegboard.pipeline import Parts, build_fan_out, build_resource_reader, build_result_reader
from pegboard.ports import Handler


class Viewed(Protocol):
    """What a board says of itself to be seen."""

    options: Options
    policy: Policy
    server_instructions: Mapping[str, str]

    @property
    def splits_risk(self) -> bool: ...

    @property
    def dispatch(self) -> Handler: ...

    @property
    def parts(self) -> Parts: ...


async def build_view(
    board: Viewed, registry: Registry, finding: Finding, caller: Caller, asked: ViewRequest
) -> View:
    """What the caller may see and do on one request."""
    policy = ALLOW_ALL if asked.get("everything") else board.policy
    notes = await _load(registry, policy, caller, asked)
    options, parts, dispatch = board.options, board.parts, board.dispatch
    seen = policy.visible(registry.snapshot(), caller)
    constant = registry.without_loaded()
    return View(
        catalog=seen,
        options=options,
        index=lambda: finding.index_for(seen),
        dispatch=dispatch,
        fan_out=build_fan_out(options, dispatch, parts),
        read_result=build_result_reader(options, parts),
        read_resource=build_resource_reader(options, parts),
        session=asked.get("session"),
        caller=caller,
        constant=None if constant is None else policy.visible(constant, caller),
        splits_risk=board.splits_risk,
        is_complete=not registry.unloaded,
        observer=parts.observer,
        count=parts.count,
        notes=notes,
        instructions=board.server_instructions,
        structured=asked.get("structured", False) or options.structured,
        params=asked.get("params") or {},
        request=asked.get("request"),
    )


async def _load(
    registry: Registry, policy: Policy, caller: Caller, asked: ViewRequest
) -> tuple[str, ...]:
    """Run the loaders that are needed; why some could not, as far as the caller may know of it."""
    needs = asked.get("needs")

    def seen(whole: Catalog) -> Catalog:
        return policy.visible(whole, caller)

    if needs is None:
        unloaded = registry.unloaded if asked.get("whole", True) else ()
    else:
        unloaded = registry.unloaded_for(needs, seen)
    if not unloaded:
        return ()
    work = registry.load_all if needs is None else partial(registry.load_for, needs, seen)
    failures = await to_thread.run_sync(work)
    grant = policy.grant(caller)
    return tuple(why for name, why in failures.items() if grant.allows_group(name))
