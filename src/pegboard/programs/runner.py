"""Runs the programs of one board: check, run, and say what became of it.

run_code(program)
│  size, names, risk, types      nothing has run: the answer says what to correct
│  RunningProgram                each call through every layer
│  the record                    what a second try must not repeat
▼
RunReport
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import anyio

from pegboard.core.code.code_options import CodeOptions
from pegboard.core.code.diagnostics import Mistake
from pegboard.core.code.ledger import CallRecord, Ledger
from pegboard.core.code.program_values import to_json
from pegboard.core.code.run_report import (
    PYTHON_ONLY,
    RunReport,
    explain_failure,
    is_other_language,
)
from pegboard.core.code.steps import (
    Completed,
    LimitExceeded,
    ProgramCall,
    ProgramFailed,
    ProgramRejected,
    SandboxFailed,
    Step,
)
from pegboard.core.events import EventOutcome, RunFinished, RunStarted
from pegboard.core.json import Json, compact, digest
from pegboard.core.name_lookup import nearest
from pegboard.errors import PegboardError, StoreError
from pegboard.ports import Observer, Sandbox, SandboxSession, Store, record_event
from pegboard.programs.check import (
    RESEND_NOTE,
    PreparedProgram,
    build_limits,
    describe_mistakes,
    find_refused_tools,
    prepare_program,
)
from pegboard.programs.run_storage import RunStorage
from pegboard.programs.running_program import RunningProgram
from pegboard.programs.scope import RunRequest, RunScope

_MAX_RECORD_BYTES = 4_000_000
_MAX_RESENT = 1_000
"""Programs that are remembered as refused by learned types alone."""
_LIMIT_NAMES = {
    "feed time": "compute_time",
    "memory": "memory_bytes",
    "sleep": "sleep_time",
    "suspension": "max_calls",
    "printed": "print_bytes",
}


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
        """Check and run one program.

        Raises:
            PegboardError: `after` is unknown, or the sandbox is not installed or busy.
        """
        run = _Run(self, scope, request)
        with run.observed():
            await run.execute()
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


class _Run:
    """One run from its start to its report."""

    def __init__(self, runner: ProgramRunner, scope: RunScope, request: RunRequest) -> None:
        self.runner = runner
        self.scope = scope
        self.request = request
        self.id = f"r-{secrets.token_hex(8)}"
        self.ledger = Ledger()
        self.advice: Sequence[Mistake] = ()
        self.program: RunningProgram | None = None
        self.session: SandboxSession | None = None
        self.report = RunReport(id=self.id, ran="nothing", message="It was cancelled.")

    async def execute(self) -> None:
        """Run it; `report` then says what became of it."""
        source, options = self.request.program, self.runner.options
        if (size := len(source.encode(errors="replace"))) > options.program_bytes:
            self._refuse(f"The program has {size} bytes; at most {options.program_bytes}.")
            return
        prepared = prepare_program(self.scope, source)
        refused = find_refused_tools(
            prepared.tools.values(), self.scope, may_write=self.request.may_write
        )
        if refused:
            what = ", ".join(f"{tool.name} [{why}]" for tool, why in refused[:8])
            if self.request.may_write:
                self._refuse(f"Programs do not call destructive tools: {what}.")
            else:
                self._refuse(f"{self.request.via} only reads. Use run_write_code for {what}.")
            return
        if self.request.after is not None:
            self.ledger = await self._load_ledger(self.request.after)
        await self._run(prepared)

    async def _load_ledger(self, handle: str) -> Ledger:
        record = await self.runner.storage.load(self.scope.caller.principal, handle)
        return Ledger(CallRecord.from_json(call) for call in record["calls"])

    async def _run(self, prepared: PreparedProgram) -> None:
        options = self.runner.options
        self.program = program = RunningProgram(
            self.scope,
            options,
            prepared.tools,
            self.ledger,
            run=self.id,
            via=self.request.via,
            is_async=prepared.is_async,
        )
        try:
            with anyio.fail_after(options.total_time):
                async with self.runner.sandbox.open(
                    build_limits(options), prepared.stubs.text
                ) as self.session:
                    step = await self._start(prepared, self.session, program)
                    if step is not None:
                        self._finish(await program.drive(self.session, step))
        except TimeoutError:
            await self._stop(
                f"The limit total_time of {options.total_time:g} s was reached.", kind="limit"
            )
        except LimitExceeded as exc:
            await self._stop(_describe_limit(str(exc), options), kind="limit")
        except SandboxFailed as exc:
            await self._stop(str(exc), kind="sandbox")
        except ProgramFailed as exc:
            await self._stop(self._explain(exc), line=exc.line)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._stop("The client cancelled it.", kind="cancelled")
            raise

    async def _start(
        self, prepared: PreparedProgram, session: SandboxSession, program: RunningProgram
    ) -> Step | None:
        """The first step; `None` where the program was rejected."""
        source, principal = prepared.source, self.scope.caller.principal
        try:
            return await session.start(
                source, prepared.tools, stops=program.stops, is_async=prepared.is_async
            )
        except ProgramRejected as exc:
            findings = exc.findings
        mistakes = prepared.find_mistakes(findings)
        certain = [mistake for mistake in mistakes if mistake.certain]
        proven = [mistake for mistake in certain if not mistake.learned]
        if proven or (certain and not self.runner.is_resent(principal, source)):
            text = describe_mistakes(certain, self.scope)
            if "[invalid-syntax]" in findings and is_other_language(source):
                text = PYTHON_ONLY
            if not proven:
                self.runner.remember_refused(principal, source)
                text = f"{text}\n{RESEND_NOTE}"
            self._refuse(text)
            return None
        self.advice = mistakes
        return await session.start_unchecked(source)

    # What became of it -------------------------------------------------------------------------

    def _refuse(self, message: str) -> None:
        self.report = RunReport(id=self.id, ran="nothing", message=message)

    def _finish(self, ended: Completed | ProgramCall) -> None:
        if isinstance(ended, ProgramCall):
            raise LimitExceeded(f"{ended.name} needs consent")
        try:
            value = to_json(ended.value)
        except ValueError as exc:
            raise ProgramFailed("ValueError", str(exc)) from exc
        limit = self.runner.options.value_bytes
        if (size := len(compact(value))) > limit:
            raise LimitExceeded(f"its value has {size} bytes, and value_bytes is {limit}")
        self.report = replace(self._report("finished", ""), value=value)

    async def _stop(self, message: str, *, line: int | None = None, kind: str = "program") -> None:
        """Report that it did not finish, and store what it did."""
        lines = self.request.program.splitlines()
        source = lines[line - 1] if line is not None and line <= len(lines) else None
        has_run = bool(self.ledger.made)
        report = self._report("stopped" if has_run else "nothing", message)
        self.report = replace(report, line=line, source=source, kind=kind)
        if not self.ledger.calls and not self.ledger.unused:
            return
        record = {"calls": self.ledger.to_json(_MAX_RECORD_BYTES)}
        try:
            await self.runner.storage.save(self.scope.caller.principal, self.id, record)
        except (StoreError, TypeError, ValueError):
            return  # it has no handle then, and the answer still says what was done
        if any(call.risk != "read" for call in self.ledger.calls):
            self.report = replace(self.report, after=self.id)

    def _report(self, ran: str, message: str) -> RunReport:
        session = self.session
        return RunReport(
            id=self.id,
            ran=ran,  # pyright: ignore[reportArgumentType] one of the literals
            message=message,
            calls=tuple(self.ledger.calls),
            printed=session.printed if session else "",
            prints_dropped=session.prints_dropped if session else 0,
            tokens_inside=self.program.tokens_inside if self.program else 0,
        )

    def _explain(self, exc: ProgramFailed) -> str:
        text = explain_failure(exc.error, exc.message, self.request.program)
        advice = [mistake.message for mistake in self.advice if mistake.line == exc.line]
        if not advice and exc.error == "KeyError":
            keys = nearest(exc.message, _keys_of(self.ledger), limit=5)
            advice = [f"similar keys: {', '.join(keys)}"] if keys else []
        return f"{text} ({'; '.join(advice[:3])})" if advice else text

    # Events ------------------------------------------------------------------------------------

    @contextmanager
    def observed(self) -> Generator[None]:
        """Record the start and the end of the run."""
        caller, began = self.scope.caller, time.perf_counter()
        source = self.request.program
        outcome: EventOutcome = "ok"
        error: str | None = None
        shared: dict[str, Any] = {
            "at": time.time(),
            "id": self.id,
            "digest": digest(source),
            "principal": caller.principal,
            "client": caller.client,
            "session": caller.session,
            "mode": caller.mode,
            "via": self.request.via,
            "program": source if self.runner.options.store_programs else None,
        }
        self.runner.record(RunStarted(**shared, trace=self.scope.trace))
        try:
            yield
            if self.report.ran == "nothing":
                outcome, error = "refused", self.report.kind
            elif self.report.ran == "stopped":
                outcome, error = "tool_error", self.report.kind
        except PegboardError as exc:
            outcome, error = "refused", exc.kind
            raise
        except BaseException:
            outcome = "cancelled"
            raise
        finally:
            made = self.ledger.made
            self.runner.record(
                RunFinished(
                    **shared,
                    duration=time.perf_counter() - began,
                    outcome=outcome,
                    ran=self.report.ran,
                    calls=len(made),
                    writes=sum(call.risk != "read" for call in made),
                    failed=sum(call.state != "done" for call in made),
                    reused=len(self.ledger.calls) - len(made),
                    error=error,
                    tokens_inside=self.program.tokens_inside if self.program else 0,
                )
            )


def _describe_limit(reason: str, options: CodeOptions) -> str:
    name = next((name for sign, name in _LIMIT_NAMES.items() if sign in reason), None)
    if name is None:
        return f"A limit was reached: {reason}."
    return f"The limit {name} of {getattr(options, name):g} was reached: {reason}."


def _keys_of(ledger: Ledger) -> set[str]:
    """The keys that results had, near the top: what a program may have meant by another key."""
    found: set[str] = set()
    level: list[Json] = [call.value for call in ledger.calls]
    for _ in range(4):
        below: list[Json] = []
        for value in level[:200]:
            if isinstance(value, Mapping):
                found.update(map(str, value))
                below += value.values()
            elif isinstance(value, list):
                below += value[:3]
        level = below
    return found
