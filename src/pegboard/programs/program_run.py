"""One run, from its check to its report.

    size, names, risk, types         nothing has run: the answer says what to correct
      │
    segment ──> finished, stopped, or in front of a destructive call
      ^            │  a copy runs on: which calls would follow      (`preview`)
      │            │  somebody is asked: yes or no
      └────────────┘  nobody can be asked now: stored, and resumed when somebody has decided

Every outcome says which calls were made. Their record is stored, so that a retry does not repeat
them.
"""

from __future__ import annotations

import inspect
import secrets
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import anyio

from pegboard.core.code.consent import ConsentQuestion
from pegboard.core.code.diagnostics import Mistake
from pegboard.core.code.ledger import Ledger, start_record
from pegboard.core.code.run_report import (
    Ran,
    RunReport,
    explain_failure,
)
from pegboard.core.code.steps import (
    LimitExceeded,
    ProgramCall,
    ProgramFailed,
    ProgramRejected,
    SandboxFailed,
    Step,
    ValueTooLarge,
    to_json,
)
from pegboard.core.events import EventOutcome, RunFinished, RunStarted
from pegboard.core.json import Json, JsonObject, compact, digest
from pegboard.core.similar_names import nearest
from pegboard.core.tools import Tool
from pegboard.errors import Busy, PegboardError, StoreError
from pegboard.ports import SandboxSession
from pegboard.programs.check import (
    RESEND_NOTE,
    PreparedProgram,
    build_sandbox_limits,
    describe_mistakes,
    prepare_program,
)
from pegboard.programs.preview import preview_program
from pegboard.programs.run_storage import SuspendedRun, identify_tools
from pegboard.programs.running_program import RunningProgram
from pegboard.programs.scope import RunRequest, RunScope

if TYPE_CHECKING:
    from pegboard.programs.runner import ProgramRunner

_MAX_RECORD_BYTES = 4_000_000
_MAX_SUSPENDED_BYTES = 16_000_000
_LIMIT_NAMES = {
    "feed time": "compute_time",
    "memory": "memory_bytes",
    "sleep": "sleep_time",
    "suspension": "max_calls",
    "printed": "print_bytes",
}

Opening = Callable[[SandboxSession], Awaitable[Step | None]]
"""Starts or continues a program in a fresh session."""


class ProgramRun:
    """One run; `report` has its outcome."""

    def __init__(
        self, runner: ProgramRunner, scope: RunScope, request: RunRequest, *, run: str = ""
    ) -> None:
        self.runner = runner
        self.scope = scope
        self.request = request
        self.id = run or f"r-{secrets.token_hex(8)}"
        self.ledger = Ledger()
        self.advice: Sequence[Mistake] = ()
        self.program: RunningProgram | None = None
        self.printed = ""
        self.prints_dropped = 0
        self.now: float | None = None
        """The fixed time that the program sees in a replay."""
        self.started_at = time.time()
        self.report = RunReport(id=self.id, ran="nothing", message="It was canceled.")

    @classmethod
    def from_stored(
        cls, runner: ProgramRunner, scope: RunScope, request: RunRequest, stored: SuspendedRun
    ) -> Self:
        """A run that is continued."""
        run = cls(runner, scope, replace(request, program=stored.program), run=stored.id)
        run.ledger, run.printed = stored.ledger, stored.printed
        return run

    async def start(self) -> None:
        """Check the program and run it."""
        source, options = self.request.program, self.runner.options
        if (size := len(source.encode(errors="replace"))) > options.program_bytes:
            self._refuse(f"The program has {size} bytes; at most {options.program_bytes}.")
            return
        prepared = prepare_program(self.scope, source, may_write=self.request.may_write)
        if prepared.refused:
            what = ", ".join(f"{name} [{why}]" for name, why in list(prepared.refused.items())[:8])
            self._refuse(f"{self.request.via} only reads. Use run_write_code for {what}.")
            return
        program = self._make_program(prepared.tools, is_async=prepared.is_async)

        async def start(session: SandboxSession) -> Step | None:
            return await self._start(prepared, session, program)

        with_types = prepared.stubs.text
        await self._run(program, start, with_types)

    async def resume(self, stored: SuspendedRun, *, has_consent: bool) -> None:
        """Continue a suspended program."""
        tools = stored.find_tools(self.scope.catalog)
        is_same = stored.version == self.runner.sandbox.version
        if tools is None or not is_same:
            what = "Its tools have changed" if is_same else "The sandbox was updated"
            await self._stop(f"{what} since it was suspended, so it cannot go on.", kind="changed")
            return
        program = self._make_program(tools, is_async=stored.is_async)
        program.settled = dict(stored.settled)
        self._decide(program, stored.question, has_consent=has_consent)
        await self._run(program, self._loading(program, stored.blob))

    def _make_program(self, tools: Mapping[str, Tool], *, is_async: bool) -> RunningProgram:
        self.program = RunningProgram(
            self.scope,
            self.runner.options,
            tools,
            self.ledger,
            run=self.id,
            via=self.request.via,
            is_async=is_async,
        )
        return self.program

    # Running -----------------------------------------------------------------------------------

    async def _run(
        self, program: RunningProgram, opening: Opening, stubs: str | None = None
    ) -> None:
        """Run it to its end, asking for consent as needed."""
        options, calls = self.runner.options, len(self.ledger.calls)
        try:
            stopped = await self._run_segment(program, opening, stubs)
            while stopped is not None:
                call, blob = stopped
                # Before each question, because the last decision may have changed what the
                # program does.
                question = await self._preview(program, call, blob)
                if self.request.consent is None:  # there is nobody who can be asked at once
                    await self._suspend(program, question, blob)
                    return
                answer = self.request.consent(question)
                has_consent = await answer if inspect.isawaitable(answer) else answer
                self._decide(program, question, has_consent=bool(has_consent))
                stopped = await self._run_segment(program, self._loading(program, blob))
        except TimeoutError:
            await self._stop(
                f"The limit total_time of {options.total_time:g} s was reached.", kind="limit"
            )
        except LimitExceeded as exc:
            reason = str(exc)
            name = next((name for sign, name in _LIMIT_NAMES.items() if sign in reason), None)
            limit = "A limit" if name is None else f"The limit {name} of {getattr(options, name):,}"
            await self._stop(f"{limit} was reached: {reason}.", kind="limit")
        except SandboxFailed as exc:
            await self._stop(str(exc), kind="sandbox")
        except Busy as exc:
            if len(self.ledger.calls) == calls:
                raise  # it can simply be sent again
            await self._stop(exc.message, kind="busy")
        except ProgramFailed as exc:
            await self._stop(self._explain(exc), line=exc.line)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._stop("The client canceled it.", kind="cancelled")
            raise

    async def _run_segment(
        self, program: RunningProgram, opening: Opening, stubs: str | None = None
    ) -> tuple[ProgramCall, bytes] | None:
        """Run until it ends or stops before a call; in that case, returns the call and the program.

        The worker is released before anybody is asked, because people take their time.
        """
        settled, decisions = dict(program.settled), deepcopy(program.decisions)
        calls, printed = len(self.ledger.calls), (self.printed, self.prints_dropped)
        began = time.monotonic()
        try:
            return await self._run_in_session(program, opening, stubs)
        except SandboxFailed:
            # A worker can die while it is idle, before any of this program has run. A program that
            # ran for a long time and then crashed its worker would only crash it again.
            is_late = time.monotonic() - began > self.runner.options.compute_time / 2
            if len(self.ledger.calls) > calls or is_late:
                raise
            self.printed, self.prints_dropped = printed
            program.settled, program.decisions = settled, decisions
            return await self._run_in_session(program, opening, stubs)

    async def _run_in_session(
        self, program: RunningProgram, opening: Opening, stubs: str | None
    ) -> tuple[ProgramCall, bytes] | None:
        options = self.runner.options
        with anyio.fail_after(options.total_time):
            # The id is the seed, so that a replay draws the same random numbers.
            limits = build_sandbox_limits(options, seed=self.id, now=self.now)
            async with self.runner.sandbox.open(limits, stubs) as session:
                try:
                    step = await opening(session)
                    if step is None:
                        return None
                    ended = await program.drive(session, step)
                    if isinstance(ended, ProgramCall):
                        return ended, session.dump()
                finally:
                    self.printed += session.printed
                    self.prints_dropped += session.prints_dropped
        try:
            value = to_json(ended.value, options.value_bytes)
        except ValueTooLarge as exc:
            raise LimitExceeded(f"its value is {exc}") from exc
        except ValueError as exc:
            raise ProgramFailed("ValueError", str(exc)) from exc
        if (size := len(compact(value))) > options.value_bytes:
            limit = options.value_bytes
            raise LimitExceeded(f"its value has {size} bytes, and value_bytes is {limit}")
        self.report = replace(self._report("finished", ""), value=value)
        if options.store_programs:
            await self._save_record()
        return None

    async def _start(
        self, prepared: PreparedProgram, session: SandboxSession, program: RunningProgram
    ) -> Step | None:
        """The first step; `None` if the program was rejected."""
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
            if not proven:
                self.runner.remember_refused(principal, source)
                text = f"{text}\n{RESEND_NOTE}"
            self._refuse(text)
            return None
        self.advice = mistakes
        return await session.start_unchecked(source)

    def _loading(self, program: RunningProgram, blob: bytes) -> Opening:
        """Takes up a paused program."""

        async def load(session: SandboxSession) -> Step:
            return await session.load(
                blob, program.tools, stops=program.stops, is_async=program.is_async
            )

        return load

    # Consent -----------------------------------------------------------------------------------

    async def _preview(
        self, program: RunningProgram, call: ProgramCall, blob: bytes
    ) -> ConsentQuestion:
        question = await preview_program(self.runner.sandbox, self.runner.options, blob, program)
        if question.records:
            return question
        tool = program.tools[call.name]
        record = start_record(tool, call.name, program.read_arguments(call))
        return replace(question, records=(record,), is_complete=False)

    def _decide(
        self, program: RunningProgram, question: ConsentQuestion, *, has_consent: bool
    ) -> None:
        """Let exactly these calls pass, or refuse them; earlier decisions no longer count."""
        program.decisions = {}
        # A list for each key: the same call may have been shown several times.
        for record in question.records:
            program.decisions.setdefault(record.key, []).append(has_consent)

    async def _suspend(
        self, program: RunningProgram, question: ConsentQuestion, blob: bytes
    ) -> None:
        stored = SuspendedRun(
            id=self.id,
            program=self.request.program,
            blob=blob,
            version=self.runner.sandbox.version,
            names=identify_tools(program.tools),
            is_async=program.is_async,
            settled=program.settled,
            ledger=self.ledger,
            question=question,
            channel=self.request.channel,
            printed=self.printed,
        ).to_json()
        # Not the id of the run, which is in logs and on the dashboard: this handle gives consent.
        handle = f"w-{secrets.token_hex(12)}"
        if len(compact(stored)) > _MAX_SUSPENDED_BYTES:
            await self._stop("It needs consent, but has too much data to be saved while it waits.")
            return
        try:
            await self.runner.storage.save(self.scope.caller.principal, handle, stored)
        except StoreError as exc:
            await self._stop(
                f"It needs consent, but cannot be saved while it waits: {exc.message}", kind="store"
            )
            return
        report = self._report("waiting", question.text)
        self.report = replace(report, run=handle, question=question)

    # The outcome -------------------------------------------------------------------------------

    def _refuse(self, message: str) -> None:
        self.report = RunReport(id=self.id, ran="nothing", message=message)

    async def _stop(self, message: str, *, line: int | None = None, kind: str = "program") -> None:
        """Report that it did not finish, and store what it did."""
        lines = self.request.program.splitlines()
        source = lines[line - 1] if line is not None and line <= len(lines) else None
        # A replay makes no calls: it stopped after the recorded ones.
        done = self.ledger.made if self.now is None else self.ledger.calls
        report = self._report("stopped" if done else "nothing", message)
        self.report = replace(report, line=line, source=source, kind=kind)
        is_empty = not self.ledger.calls and not self.ledger.unused
        if is_empty and not self.runner.options.store_programs:
            return
        if await self._save_record() and any(c.risk != "read" for c in self.ledger.calls):
            self.report = replace(self.report, after=self.id)

    async def _save_record(self) -> bool:
        """Store what was done; without a record there is no handle to continue with."""
        if self.now is not None:
            return False  # a replay does not change the record
        record: JsonObject = {"calls": self.ledger.to_json(_MAX_RECORD_BYTES)}
        if self.runner.options.store_programs:
            record |= {"program": self.request.program, "started_at": self.started_at}
        try:
            await self.runner.storage.save(self.scope.caller.principal, self.id, record)
        except (StoreError, TypeError, ValueError):
            return False
        return True

    def _report(self, ran: Ran, message: str) -> RunReport:
        return RunReport(
            id=self.id,
            ran=ran,
            message=message,
            calls=tuple(self.ledger.calls),
            printed=self.printed,
            prints_dropped=self.prints_dropped,
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
            elif self.report.ran == "waiting":
                error = "consent"
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


def _keys_of(ledger: Ledger) -> set[str]:
    """The keys near the top of results: one of them may be what a program meant by a wrong key."""
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
