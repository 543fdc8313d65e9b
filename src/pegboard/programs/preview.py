"""Finds out what a suspended program would do, by running a copy of it.

A read is made if the tool is annotated as read-only, or if the operator declares it so. Every other
call is only recorded, and answered with a stand-in: a meaningless value of the right shape. A
stand-in can lead the copy to other calls than the program will make; the person is then asked
again, because consent covers exactly what was shown. The program repeats the reads of the copy: by
then its own writes have happened.
"""

from __future__ import annotations

from collections.abc import Mapping

import anyio

from pegboard.core.code.consent import MAX_LISTED, ConsentQuestion
from pegboard.core.code.ledger import CallRecord, Ledger, start_record
from pegboard.core.code.steps import (
    KEEP,
    SLEEP,
    Answer,
    Completed,
    LimitExceeded,
    ProgramCall,
    ProgramFailed,
    Returned,
    SandboxFailed,
)
from pegboard.core.code.stubs import unwrap_result_schema
from pegboard.core.json import Json, JsonObject
from pegboard.core.options import CodeOptions
from pegboard.core.schemas.schema_view import SchemaView, merge_branches
from pegboard.core.schemas.signatures import allowed_values, value_types
from pegboard.core.tools import Tool
from pegboard.ports import Sandbox
from pegboard.programs.check import build_sandbox_limits
from pegboard.programs.running_program import RunningProgram

_MAX_SECONDS = 60.0


async def preview_program(
    sandbox: Sandbox, options: CodeOptions, blob: bytes, original: RunningProgram
) -> ConsentQuestion:
    """Run a copy of a suspended program to its end, as far as that is possible."""
    copy = _CopiedProgram(original, options)
    is_complete = False
    try:
        with anyio.fail_after(min(_MAX_SECONDS, options.total_time)):
            async with sandbox.open(build_sandbox_limits(options)) as session:
                step = await session.load(
                    blob, copy.tools, stops=copy.stops, is_async=copy.is_async
                )
                is_complete = isinstance(await copy.drive(session, step), Completed)
    except (ProgramFailed, LimitExceeded, SandboxFailed, TimeoutError):
        pass  # what was seen until then is what can be asked about
    destructive = tuple(call for call in copy.noted if call.risk == "destructive")
    writes = tuple(call for call in copy.noted if call.risk == "write")
    is_complete = is_complete and len(destructive) <= MAX_LISTED
    return ConsentQuestion(destructive[:MAX_LISTED], writes, is_complete)


class _CopiedProgram(RunningProgram):
    """A program whose writes are noted and not made."""

    def __init__(self, original: RunningProgram, options: CodeOptions) -> None:
        super().__init__(
            original.scope,
            options,
            original.tools,
            Ledger(original.ledger.unused),
            run=original.run,
            via=original.via,
            is_async=original.is_async,
        )
        self.settled = dict(original.settled)
        self.noted: list[CallRecord] = []

    def take_consent(self, call: ProgramCall) -> bool | None:
        return True

    async def answer(self, call: ProgramCall) -> Answer:
        tool = self.tools.get(call.name)
        if call.name == SLEEP:
            return Returned(None)
        if call.name == KEEP:
            return Returned("preview")  # nothing is stored for a copy
        if tool is None or call.positional or is_vouched_for(tool):
            return await super().answer(call)
        try:
            arguments = self.read_arguments(call)
        except ValueError:
            return await super().answer(call)  # raises inside the program, and calls nothing
        record = start_record(tool, call.name, arguments)
        if self.ledger.has_earlier(record):
            return await super().answer(call)
        if len(self.noted) >= self.options.max_calls:
            raise LimitExceeded("more calls than a run may make")
        if tool.risk != "read":
            self.noted.append(record)
        schema, _ = self.scope.result_schemas(tool)
        return Returned(make_stand_in(schema, arguments))


def is_vouched_for(tool: Tool) -> bool:
    """Whether a tool may be called without anybody's consent: it is declared to only read."""
    return tool.risk == "read" and tool.risk_source in ("annotated", "operator")


_MAX_DEPTH = 6
_EMPTY: Mapping[str, Json] = {
    "string": "",
    "integer": 0,
    "number": 0.0,
    "boolean": True,
    "null": None,
}


def make_stand_in(schema: JsonObject | None, arguments: Mapping[str, Json]) -> Json:
    """A value of a result's shape; what the call itself named is repeated under the same name."""
    unwrapped = unwrap_result_schema(schema)
    if unwrapped is None:
        return dict(arguments)
    return _make(SchemaView.of(unwrapped), arguments, None, _MAX_DEPTH)


def _make(view: SchemaView, arguments: Mapping[str, Json], name: str | None, depth: int) -> Json:
    if name is not None and name in arguments:
        return arguments[name]
    if depth <= 0 or view.cut:
        return None
    if values := allowed_values(view):
        return next(iter(values))
    if view.alternatives:
        return _make(view.alternatives[0], arguments, name, depth - 1)
    kind = next(iter(value_types(view)), "object")
    if kind == "array":
        return []
    if kind != "object":
        return _EMPTY.get(kind)
    whole = merge_branches(view)
    return {
        member: _make(whole.at(schema), arguments, member, depth - 1)
        for member, schema in whole.members.items()
    }
