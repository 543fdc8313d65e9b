"""A board as one caller sees it: what is permitted of its catalogue, and the doors to the rest."""

from __future__ import annotations

from typing import Protocol

from anyio import to_thread

from pegboard.core.calls import Caller
from pegboard.core.options import Options
from pegboard.core.policy import EVERYTHING, Policy
from pegboard.core.registry import Registry
from pegboard.faces.face import Asked, View
from pegboard.finding import Finding
from pegboard.ports import Handler
from pegboard.wiring import Parts, fan_out, resource_reader, result_reader


class Viewed(Protocol):
    """What a board says of itself to be seen."""

    options: Options
    policy: Policy

    @property
    def dispatch(self) -> Handler: ...

    @property
    def parts(self) -> Parts: ...


async def view_of(
    board: Viewed, registry: Registry, finding: Finding, caller: Caller, asked: Asked
) -> View:
    """What the caller may see and do on one request."""
    is_whole = asked.get("whole", True)
    policy = EVERYTHING if asked.get("everything") else board.policy
    notes = await _load(registry, policy, caller) if is_whole and registry.unloaded else ()
    options, parts, dispatch = board.options, board.parts, board.dispatch
    seen = policy.visible(registry.snapshot(), caller)
    constant = registry.without_loaded()
    return View(
        catalog=seen,
        options=options,
        index=lambda: finding.index_for(seen),
        dispatch=dispatch,
        fan_out=fan_out(options, dispatch),
        read_result=result_reader(options, parts),
        read_resource=resource_reader(options, parts),
        session=asked.get("session"),
        caller=caller,
        constant=None if constant is None else policy.visible(constant, caller),
        is_complete=not registry.unloaded,
        observer=parts.observer,
        count=parts.count,
        notes=notes,
        structured=asked.get("structured", False) or options.structured,
        params=asked.get("params") or {},
        request=asked.get("request"),
    )


async def _load(registry: Registry, policy: Policy, caller: Caller) -> tuple[str, ...]:
    """Run the loaders; why some could not, as far as the caller may know of what they load."""
    failures = await to_thread.run_sync(registry.load_all)
    grant = policy.grant(caller)
    return tuple(why for name, why in failures.items() if grant.allows_group(name))
