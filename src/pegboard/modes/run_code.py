"""The meta-tools that run programs, one per risk, because clients approve by name.

run_code               the program may call read-only tools
run_write_code         and those that write
"""

from __future__ import annotations

from pegboard.core.calls import CallResult
from pegboard.core.json import JsonObject
from pegboard.errors import InvalidArguments
from pegboard.modes.mode import MetaTool, MetaToolBuilder, View, object_schema

RUN_CODE = "run_code"
RUN_WRITE_CODE = "run_write_code"

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
        return await _run(view, arguments, via=RUN_WRITE_CODE, may_write=True)

    return MetaTool(
        RUN_WRITE_CODE,
        "Same with [write] tools",
        object_schema({"code": _CODE, "after": {"type": "string"}}, ["code"]),
        answer,
        {"readOnlyHint": False, "destructiveHint": False},
    )


RUN_TOOLS: dict[str, MetaToolBuilder] = {
    RUN_CODE: build_run_code,
    RUN_WRITE_CODE: build_run_write_code,
}


async def _run(view: View, arguments: JsonObject, *, via: str, may_write: bool) -> CallResult:
    from pegboard.programs.scope import RunRequest

    if view.run_program is None:
        raise InvalidArguments("Programs cannot be run here.")
    request = RunRequest(
        program=arguments["code"], via=via, may_write=may_write, after=arguments.get("after")
    )
    return await view.run_program(view, request)
