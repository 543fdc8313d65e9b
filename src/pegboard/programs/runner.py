"""Runs the programs of one board, and continues those that were suspended.

The functions at the end write a run as the result of the meta-tool that started it.
"""

from __future__ import annotations

from dataclasses import replace

from pegboard.core.caches import BoundedCache
from pegboard.core.calls import CallResult, ToolCall
from pegboard.core.code.ledger import CallRecord, Ledger
from pegboard.core.code.run_report import RunReport
from pegboard.core.events import RunFinished, RunStarted
from pegboard.core.json import Json, JsonObject, digest
from pegboard.core.options import CodeOptions
from pegboard.core.results.shapes import WRAPPER_KEY, add_meta, add_note
from pegboard.errors import Busy, InvalidArguments, NotPermitted
from pegboard.ports import Observer, Records, Sandbox, record_event
from pegboard.programs.program_run import ProgramRun
from pegboard.programs.run_storage import RunStorage, SuspendedRun
from pegboard.programs.scope import RunRequest, RunScope

_MAX_RESENT = 1_000
"""How many programs that only learned types rejected are remembered."""


class ProgramRunner:
    """Runs programs in a sandbox, with the calls, limits and records of one board."""

    def __init__(
        self,
        options: CodeOptions,
        sandbox: Sandbox,
        store: Records,
        observer: Observer | None = None,
    ) -> None:
        self.options = options
        self.sandbox = sandbox
        self.storage = RunStorage(store, options.record_ttl)
        self._observer = observer
        self._refused_once: BoundedCache[str, None] = BoundedCache(_MAX_RESENT)

    async def run(self, scope: RunScope, request: RunRequest) -> RunReport:
        """Check and run one program, or continue one that was suspended.

        Raises:
            PegboardError: The run to continue, or `after`, is unknown; or the sandbox is not
                installed or busy.
        """
        if request.resume is not None:
            return await self._resume(scope, request, request.resume)
        run = ProgramRun(self, scope, request)
        if request.after is not None:
            record = await self.storage.load(scope.caller.principal, request.after)
            if "calls" not in record:
                raise self.storage.unknown()  # it waits for consent
            run.ledger = Ledger(CallRecord.from_json(call) for call in record["calls"])
        with run.observed():
            await run.start()
        return run.report

    async def _resume(self, scope: RunScope, request: RunRequest, handle: str) -> RunReport:
        """Continue a run that waits for consent, now that somebody has decided.

        A run can be resumed once, by the principal that started it, through the channel over which
        consent was asked for.
        """
        principal = scope.caller.principal
        # Checked first: a run that must be resumed through another channel stays stored.
        if (await self.storage.load(principal, handle)).get("channel") != request.channel:
            raise self.storage.unknown()
        stored = SuspendedRun.from_json(await self.storage.take(principal, handle))
        run = ProgramRun.from_stored(self, scope, request, stored)
        with run.observed():
            try:
                await run.resume(stored, has_consent=request.has_consent)
            except Busy:  # none of it ran, so it stays suspended
                await self.storage.save(principal, handle, stored.to_json())
                raise
        return run.report

    async def replay(self, scope: RunScope, handle: str) -> RunReport:
        """Repeat a recorded run: its calls are answered from the record, and none is made.

        Raises:
            InvalidArguments: The run is unknown, or its program was not stored.
        """
        record = await self.storage.load(scope.caller.principal, handle)
        if "program" not in record:
            raise InvalidArguments(
                "The program of this run was not stored: set `store_programs` in [code]."
            )

        async def refuse(call: ToolCall) -> CallResult:
            raise NotPermitted(f"This call of {call.tool.name} is not in the record.")

        scope = replace(scope, dispatch=refuse)
        # A destructive call that is not in the record was declined.
        request = RunRequest(
            program=record["program"], via="replay", may_write=True, consent=lambda question: False
        )
        run = ProgramRun(self, scope, request, run=handle)
        calls = (CallRecord.from_json(call) for call in record["calls"])
        run.ledger = Ledger(calls, is_replay=True)
        run.now = record["started_at"]
        await run.start()
        return run.report

    def is_resent(self, principal: str, program: str) -> bool:
        """Whether this principal's program was refused before, by learned types alone."""
        return digest([principal, program]) in self._refused_once

    def remember_refused(self, principal: str, program: str) -> None:
        """Let the same program pass the next time."""
        self._refused_once.put(digest([principal, program]), None)

    def record(self, event: RunStarted | RunFinished) -> None:
        """Pass an event to the observer."""
        record_event(self._observer, event)


RUN_KEY = "run"
"""Our `_meta` key for information about a run."""
_NO_VALUE = "Finished; its value is None. End a program with the expression that you want to read."


def value_result(report: RunReport) -> CallResult:
    """The value of a program that finished, before it is written as a table or stored."""
    value = report.value
    if value is None:
        # What it printed follows. An empty text block would be refused by the APIs of some models.
        return CallResult({"content": []}) if report.printed else CallResult.text(_NO_VALUE)
    if isinstance(value, str) and value:
        return CallResult.text(value)
    return CallResult.json(value, structured=isinstance(value, dict))


def finish_result(result: CallResult, report: RunReport) -> CallResult:
    """The result with what the program printed, and with what is known about the run."""
    if report.ran == "finished" and report.printed:
        more = f"\n({report.prints_dropped} more characters)" if report.prints_dropped else ""
        result = add_note(result, f"Printed:\n{report.printed.rstrip()}{more}")
    made = [call for call in report.calls if not call.is_reused]
    known: JsonObject = {
        "id": report.id,
        "ran": report.ran,
        "calls": len(made),
        "writes": sum(call.risk != "read" for call in made),
        "failed": sum(call.state != "done" for call in made),
        "reused": len(report.calls) - len(made),
        "tokens_inside": report.tokens_inside,
    }
    if report.run is not None:  # the handle of a run that waits for consent
        known["run"] = report.run
    return add_meta(result, RUN_KEY, known)


def stopped_result(report: RunReport, *, structured: bool) -> CallResult:
    """The answer for a program that did not finish."""
    return CallResult.text(
        report.to_text(),
        structured=report.to_json() if structured else None,
        is_error=report.ran != "waiting",
    )


def wrap_value(value: Json) -> JsonObject:
    """Structured content must be an object: other values are wrapped, as SDKs do."""
    return value if isinstance(value, dict) else {WRAPPER_KEY: value}
