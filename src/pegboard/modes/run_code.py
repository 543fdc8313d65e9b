"""The meta-tools that run programs, one per risk, because clients approve by name.

run_code               the program may call read-only tools
run_write_code         and those that write; suspended in front of destructive ones
run_destructive_code   goes on with a suspended run, where the client cannot ask its user
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pegboard.core.calls import CallResult
from pegboard.core.json import JsonObject
from pegboard.errors import InvalidArguments
from pegboard.modes.mode import MetaTool, MetaToolBuilder, View, object_schema

if TYPE_CHECKING:
    from pegboard.programs.scope import RunRequest

RUN_CODE = "run_code"
RUN_WRITE_CODE = "run_write_code"
RUN_DESTRUCTIVE_CODE = "run_destructive_code"

_CODE: JsonObject = {"type": "string"}


def build_run_code(view: View) -> MetaTool:
    """Runs a program that only reads."""

    async def answer(view: View, arguments: JsonObject) -> CallResult:
        return await _run(view, arguments, via=RUN_CODE, may_write=False)

    return MetaTool(
        RUN_CODE,
        "Run Python that awaits read-only tools by name: (await list_x(a=1))['f']; "
        "returns its last value",
        object_schema({"code": _CODE}, ["code"]),
        answer,
        {"readOnlyHint": True},
        accepts=object_schema({"code": _CODE, "after": {"type": "string"}}, ["code"]),
    )


def build_run_write_code(view: View) -> MetaTool:
    """Runs a program that may write."""

    async def answer(view: View, arguments: JsonObject) -> CallResult:
        from pegboard.programs.client_consent import read_decision
        from pegboard.programs.scope import RunRequest

        state = view.params.get("requestState")
        if not isinstance(state, str):
            return await _run(view, arguments, via=RUN_WRITE_CODE, may_write=True)
        # The client has asked its user, and comes back with the answer.
        decision = read_decision(view.params.get("inputResponses"))
        request = RunRequest(
            via=RUN_WRITE_CODE,
            may_write=True,
            resume=state,
            has_consent=decision,
            channel="client",
        )
        return await _run_request(view, request)

    return MetaTool(
        RUN_WRITE_CODE,
        "Same with [write] tools; pauses for consent at [destructive]",
        object_schema({"code": _CODE, "after": {"type": "string"}}, ["code"]),
        answer,
        {"readOnlyHint": False, "destructiveHint": False},
    )


def build_run_destructive_code(view: View) -> MetaTool:
    """Goes on with a run that waits for consent; clients ask their user about this tool."""

    async def answer(view: View, arguments: JsonObject) -> CallResult:
        from pegboard.programs.scope import RunRequest

        request = RunRequest(
            via=RUN_DESTRUCTIVE_CODE, may_write=True, resume=arguments["run"], has_consent=True
        )
        return await _run_request(view, request)

    return MetaTool(
        RUN_DESTRUCTIVE_CODE,
        "Continue a paused run",
        object_schema({"run": {"type": "string"}}, ["run"]),
        answer,
        {"readOnlyHint": False, "destructiveHint": True},
    )


RUN_TOOLS: dict[str, MetaToolBuilder] = {
    RUN_CODE: build_run_code,
    RUN_WRITE_CODE: build_run_write_code,
    RUN_DESTRUCTIVE_CODE: build_run_destructive_code,
}


async def _run(view: View, arguments: JsonObject, *, via: str, may_write: bool) -> CallResult:
    from pegboard.programs.scope import RunRequest

    request = RunRequest(
        program=arguments["code"], via=via, may_write=may_write, after=arguments.get("after")
    )
    return await _run_request(view, request)


async def _run_request(view: View, request: RunRequest) -> CallResult:
    if view.run_program is None:
        raise InvalidArguments("Programs cannot be run here.")
    return await view.run_program(view, request)
