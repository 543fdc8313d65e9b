"""Which risk a call meta-tool may carry: one check for all of them, listed or not.

call_tool, call_write_tool, call_destructive_tool   where calls are split: their own risk and lower
call_tools                                          the risk of the call tool that carries it
everything else that calls a tool by its name       as `dispatch_risk` says, since clients
approve by name and one name carries all
"""

from __future__ import annotations

from pegboard.core.tools import RISKS, Risk, Tool
from pegboard.errors import NotPermitted
from pegboard.faces.face import View

CALL_TOOL_OF: dict[Risk, str] = {
    "read": "call_tool",
    "write": "call_write_tool",
    "destructive": "call_destructive_tool",
}
_DISPATCHED: dict[str, Risk] = {"read-only": "read", "refuse": "write", "allow": "destructive"}


def splits_risk(view: View) -> bool:
    """Whether there is one call tool for each risk: by setting, else as the board decided."""
    if view.options.risk == "auto":
        return view.splits_risk
    return view.options.risk == "split"


def dispatched_risk(view: View) -> Risk:
    """The most that a meta-tool may do which carries every risk under one name."""
    return _DISPATCHED[view.options.dispatch_risk]


def require_split_risk(tool: Tool, allowed: Risk, via: str) -> None:
    """Refuse a tool whose risk is above what its call tool was approved for."""
    if not _is_within(tool, allowed):
        right = CALL_TOOL_OF[tool.risk]
        raise NotPermitted(
            f"{tool.name} is {tool.risk}: call it with {right}, not {via}.",
            tool=tool.name,
            expected=right,
        )


def require_dispatched_risk(view: View, tool: Tool, via: str) -> None:
    """Refuse a tool that the operator does not let a single call tool carry."""
    if _is_within(tool, dispatched_risk(view)):
        return
    is_strict = view.options.dispatch_risk == "read-only"
    what = "not read-only" if is_strict else "destructive"
    which = "calls only read-only tools" if is_strict else "does not call such tools"
    raise NotPermitted(
        f"{tool.name} is {what}, and {via} {which} here: call it directly by its name.",
        tool=tool.name,
    )


def _is_within(tool: Tool, allowed: Risk) -> bool:
    return RISKS.index(tool.risk) <= RISKS.index(allowed)
