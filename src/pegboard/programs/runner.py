"""Runs the programs of one board, and goes on with those that were suspended."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

from pegboard.core.calls import CallResult, ToolCall
from pegboard.core.code.code_options import CodeOptions
from pegboard.core.code.ledger import CallRecord, Ledger
from pegboard.core.code.run_report import RunReport
from pegboard.core.events import RunFinished, RunStarted
from pegboard.core.json import digest
from pegboard.errors import InvalidArguments, NotPermitted
from pegboard.ports import Observer, Sandbox, Store, record_event
from pegboard.programs.program_run import ProgramRun
from pegboard.programs.run_storage import RunStorage
from pegboard.programs.scope import RunRequest, RunScope
from pegboard.programs.suspended_run import SuspendedRun

_MAX_RESENT = 1_000
"""Programs that are remembered as refused by learned types alone."""


async def _refuse_call(call: ToolCall) -> CallResult:
    raise NotPermitted(f"This call of {call.tool.name} is not in the record.")


class ProgramRunner:
    """Runs programs in a sandbox, with the calls, limits and records of one board."""

    def __init__(
        self,
        options: CodeOptions,
        sandbox: Sandbox,
        store: Store,
        observer: Observer | None = None,
    ) -> None:
        self.options = options
        self.sandbox = sandbox
        self.storage = RunStorage(store, options.record_ttl)
        self._observer = observer
        self._refused_once: OrderedDict[str, None] = OrderedDict()

    async def run(self, scope: RunScope, request: RunRequest) -> RunReport:
        """Check and run one program, or go on with one that was suspended.

        Raises:
            PegboardError: The run to go on with, or `after`, is unknown; or the sandbox is not
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
        """Go on with a run that waits for consent, now that somebody has decided.

        A run can be resumed once, by the principal that started it, through the channel over which
        consent was asked for.
        """
        principal = scope.caller.principal
        # Looked at first: a run that another channel must resume stays where it is.
        if (await self.storage.load(principal, handle)).get("channel") != request.channel:
            raise self.storage.unknown()
        stored = SuspendedRun.from_json(await self.storage.take(principal, handle))
        run = ProgramRun.from_stored(self, scope, request, stored)
        with run.observed():
            await run.resume(stored, has_consent=request.has_consent)
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
        scope = replace(scope, dispatch=_refuse_call)
        # Consent changes nothing here: a call that is not in the record is refused anyway.
        request = RunRequest(
            program=record["program"], via="replay", may_write=True, consent=lambda question: True
        )
        run = ProgramRun(self, scope, request, run=handle)
        run.ledger = Ledger(CallRecord.from_json(call) for call in record["calls"])
        run.now = record["started_at"]
        await run.start()
        return run.report

    def is_resent(self, principal: str, program: str) -> bool:
        """Whether this principal's program was refused before, by learned types alone."""
        return digest([principal, program]) in self._refused_once

    def remember_refused(self, principal: str, program: str) -> None:
        """Let the same program pass the next time."""
        self._refused_once[digest([principal, program])] = None
        if len(self._refused_once) > _MAX_RESENT:
            self._refused_once.popitem(last=False)

    def record(self, event: RunStarted | RunFinished) -> None:
        """Pass an event to the observer."""
        record_event(self._observer, event)
