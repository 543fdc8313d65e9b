"""A program that runs: its calls go through the pipeline, and their answers back to it.

    sandbox ──Paused(calls)──> one task for each call ──> dispatch (every layer)
       ^                                                      │
       └───────────── resume(answers) <───────────────────────┘

When the program ends, for any reason, none of its calls is left running. Reads are canceled; writes
may finish first, because nobody could tell whether a canceled write has happened.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

import anyio
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint

from pegboard.core.calls import CallResult, ResultShape, ToolCall
from pegboard.core.code.ledger import CallState, Ledger, start_record
from pegboard.core.code.program_tools import original_arguments
from pegboard.core.code.steps import (
    KEEP,
    KEPT,
    SLEEP,
    Answer,
    Completed,
    ErrorType,
    Later,
    LimitExceeded,
    Paused,
    ProgramCall,
    ProgramFailed,
    Raised,
    Returned,
    SandboxFailed,
    Step,
    to_json,
)
from pegboard.core.json import Json, JsonObject, compact
from pegboard.core.options import CodeOptions
from pegboard.core.results.shapes import (
    META_PREFIX,
    WRAPPER_KEY,
    extract_fields,
    find_payload,
    is_text,
)
from pegboard.core.token_budget import BYTES_PER_TOKEN
from pegboard.core.tools import Tool
from pegboard.errors import (
    InvalidArguments,
    InvalidField,
    NotPermitted,
    PegboardError,
    ToolDisabled,
    ToolNotFound,
    UpstreamError,
    UpstreamTimeout,
)
from pegboard.ports import SandboxSession
from pegboard.programs.scope import RunScope

logger = logging.getLogger(__name__)

_WHOLE: Final = ResultShape(raw=True, max_tokens=0)
"""The program gets the value itself: no table, no preview."""
_WRITES_GRACE: Final = 30.0
"""Seconds that the writes of a program that ended have to finish."""
_ERROR_TYPES: Final[tuple[tuple[type[PegboardError], ErrorType], ...]] = (
    (InvalidArguments, "ValueError"),
    (InvalidField, "ValueError"),
    (NotPermitted, "PermissionError"),
    (ToolDisabled, "PermissionError"),
    (ToolNotFound, "NameError"),
    (UpstreamTimeout, "TimeoutError"),
)


class RunningProgram:
    """The calls of one program on behalf of one caller."""

    def __init__(
        self,
        scope: RunScope,
        options: CodeOptions,
        tools: Mapping[str, Tool],
        ledger: Ledger,
        *,
        run: str,
        via: str,
        is_async: bool,
    ) -> None:
        self.scope = scope
        self.options = options
        self.tools = tools
        self.ledger = ledger
        self.run = run
        self.via = via
        self.is_async = is_async
        self.settled: dict[int, Answer] = {}
        """Answers that have not been passed to the program yet."""
        self.tokens_inside = 0
        """An estimate of the tokens of all results, which the model did not read."""
        self.decisions: dict[str, list[bool]] = {}
        """Consents and refusals by the key of a call, each good for one call."""
        self._changed = anyio.Event()
        self._slots = anyio.Semaphore(options.max_parallel, fast_acquire=True)
        self._limit: LimitExceeded | None = None
        self._open: set[int] = set()
        self._writing = 0
        self._written = 0
        """Bytes in the arguments and results of writes so far."""
        self._stored = 0
        self._stored_bytes = 0
        self._done = 0

    def stops(self, name: str) -> bool:
        """Whether a program stops before this call: for consent, or for an immediate answer."""
        if name in (KEEP, KEPT):
            return True
        tool = self.tools.get(name)
        return tool is not None and tool.risk == "destructive"

    async def drive(self, session: SandboxSession, step: Step) -> Completed | ProgramCall:
        """Run a program until it ends, or until it stops before a call that needs consent.

        Raises:
            ProgramFailed, LimitExceeded, SandboxFailed: It ended without a value.
        """
        ended: Completed | ProgramCall | Exception = SandboxFailed("It was canceled.")
        async with anyio.create_task_group() as tasks:
            try:
                ended = await self._drive(session, step, tasks)
            except (ProgramFailed, LimitExceeded, SandboxFailed) as exc:
                ended = exc  # raised outside, where no task group wraps it
            with anyio.move_on_after(_WRITES_GRACE):
                await self._wait_while(lambda: self._writing)
            tasks.cancel_scope.cancel()
        if isinstance(ended, Exception):
            raise ended
        return ended

    async def _drive(
        self, session: SandboxSession, step: Step, tasks: TaskGroup
    ) -> Completed | ProgramCall:
        while isinstance(step, Paused):
            if (only := self._find_only_call(step)) is not None:
                step = await session.resume({only.id: await self.answer(only)})
                continue
            self._start(step.calls, tasks)
            call = step.stopped_at
            if call is None:
                await self._wait_for(partial(self.settled.keys().isdisjoint, step.waits_for))
                answers = {i: self.settled.pop(i) for i in step.waits_for if i in self.settled}
                step = await session.resume(answers)
            elif call.name in (KEEP, KEPT):
                step = await session.resume({call.id: await self.answer(call)})
            elif (consent := self.take_consent(call)) is None:
                # Calls in progress finish first: their answers are stored with the program.
                await self._wait_for(lambda: self._open)
                return call
            elif not consent:
                declined = Raised("PermissionError", f"{call.name} was declined by the user.")
                step = await session.resume({call.id: declined})
            elif self.is_async:
                self._start([call], tasks)
                step = await session.resume({call.id: Later()})
            else:
                step = await session.resume({call.id: await self.answer(call)})
        if step.calls:
            names = ", ".join(dict.fromkeys(call.name for call in step.calls))
            raise ProgramFailed("RuntimeError", f"`await` is missing in front of {names}")
        return step

    def _find_only_call(self, step: Paused) -> ProgramCall | None:
        """The call that a program waits for, if no other call is running: it needs no task."""
        if self._open or step.stopped_at is not None or len(step.calls) != 1:
            return None
        [call] = step.calls
        return call if step.waits_for == (call.id,) else None

    def take_consent(self, call: ProgramCall) -> bool | None:
        """Whether a call may be made; `None` if somebody has to be asked first."""
        if not self.stops(call.name):
            return True
        try:
            arguments = self.read_arguments(call)
        except ValueError:
            return True  # it will raise inside the program, and nothing is called
        record = start_record(self.tools[call.name], call.name, arguments)
        if self.ledger.has_earlier(record):
            return True
        decisions = self.decisions.get(record.key)
        return decisions.pop(0) if decisions else None

    def read_arguments(self, call: ProgramCall) -> JsonObject:
        """The arguments of a call as its tool takes them.

        Raises:
            ValueError: They cannot be written as JSON, or are too large.
        """
        arguments: JsonObject = to_json(call.arguments, self.options.value_bytes)
        return original_arguments(self.tools[call.name], arguments)

    # Waiting -----------------------------------------------------------------------------------

    def _start(self, calls: Iterable[ProgramCall], tasks: TaskGroup) -> None:
        for call in calls:
            self._open.add(call.id)
            tasks.start_soon(self._settle, call)

    async def _settle(self, call: ProgramCall) -> None:
        try:
            self.settled[call.id] = await self.answer(call)
        except LimitExceeded as exc:
            self._limit = exc
        finally:
            self._open.discard(call.id)
            self._changed.set()

    async def _wait_while(self, holds: Callable[[], object]) -> None:
        """Wait for calls to end, as long as a condition holds."""
        while holds():
            self._changed = anyio.Event()
            await self._changed.wait()
            # Calls that end together are answered together: each step costs a thread switch.
            await checkpoint()

    async def _wait_for(self, is_missing: Callable[[], object]) -> None:
        """The same, until one of the calls exceeds a limit of the run. Raises `LimitExceeded`."""
        await self._wait_while(lambda: self._limit is None and is_missing())
        if self._limit is not None:
            raise self._limit

    # One call ----------------------------------------------------------------------------------

    async def answer(self, call: ProgramCall) -> Answer:
        if call.name == SLEEP:
            # Here and not in the worker, so that other calls continue.
            await anyio.sleep(min(call.arguments["seconds"], self.options.sleep_time))
            return Returned(None)
        if call.name in (KEEP, KEPT):
            return await self.use_storage(call)
        tool = self.tools.get(call.name)
        if tool is None:
            return Raised("NameError", f"There is no tool {call.name}.")
        if call.positional:
            return Raised("TypeError", f"{call.name} takes keyword arguments: {tool.signature}")
        try:
            arguments = self.read_arguments(call)
            size = len(compact(arguments))
            self._check_size("The arguments have", size)
        except ValueError as exc:
            return Raised("ValueError", f"{call.name}: {exc}")
        if len(self.ledger.calls) >= self.options.max_calls:
            raise LimitExceeded(f"more than {self.options.max_calls} calls")
        is_write = tool.risk != "read"
        self._written += size if is_write else 0
        if self._written > self.options.memory_bytes:
            # Records of writes are kept in memory until the run ends, so that no write is repeated.
            raise LimitExceeded("the arguments and results of its writes exceed memory_bytes")
        record = start_record(tool, call.name, arguments)
        number, earlier = self.ledger.begin(record)
        if earlier is not None:
            return earlier.answer
        self._writing += is_write
        try:
            async with self._slots:
                return await self._make(call.name, tool, arguments, number)
        finally:
            self._writing -= is_write
            if self.ledger.calls[number].state == "running":  # canceled
                self.ledger.finish(number, "unknown")

    async def use_storage(self, call: ProgramCall) -> Answer:
        """Store a value for a later program, or return one that was stored."""
        given = [*call.positional, *call.arguments.values()]
        if len(given) != 1:
            return Raised("TypeError", f"{call.name} takes one argument.")
        self._stored += 1
        if self._stored > self.options.max_calls:
            raise LimitExceeded(f"more than {self.options.max_calls} uses of keep and kept")
        try:
            value = to_json(given[0], self.options.value_bytes)
            if call.name == KEPT:
                return Returned(await self.scope.load_value(str(value)))
            size = len(compact(value))
            self._check_size("The value has", size)
            self._stored_bytes += size
            if self._stored_bytes > self.options.memory_bytes:
                raise LimitExceeded("it stores more values than fit into its memory")
            return Returned(await self.scope.store_value(value))
        except ValueError as exc:
            return Raised("ValueError", f"{call.name}: {exc}")
        except PegboardError as exc:
            return Raised(_error_type(exc), f"{call.name}: {exc.message}")

    async def _make(self, name: str, tool: Tool, arguments: JsonObject, number: int) -> Answer:
        # A program may also pass `include_fields`, and then gets only these fields.
        own, shape = extract_fields(tool, arguments, _WHOLE)
        made = ToolCall(
            tool,
            own,
            shape=shape,
            caller=self.scope.caller,
            via=self.via,
            parent=self.run,
            # Nothing of the client's own request: its progress token and its answers to questions
            # belong to the run. The span of the run is the parent of this call.
            params={"_meta": {f"{META_PREFIX}run": self.run}},
            request=self.scope.request,
        )
        state: CallState = "failed"
        answer: Answer
        try:
            result = await self.scope.dispatch(made)
            value = self._read_value(name, result)
            size = _count_bytes(result)
            self._written += size if tool.risk != "read" else 0
            state, answer = "done", Returned(value)
            if size > (limit := self.options.value_bytes):
                message = f"{name}: The result has {size} bytes, and value_bytes is {limit}."
                answer = Raised("ValueError", message)
        except PegboardError as exc:
            # A server that did not answer may still have carried out the call.
            if isinstance(exc, UpstreamError) and "code" not in exc.details:
                state = "unknown"
            is_named = exc.message.startswith((f"{name}:", f"{tool.name}:", f"{tool.name} "))
            message = exc.message if is_named else f"{name}: {exc.message}"
            answer = Raised(_error_type(exc), message)
        except Exception:
            logger.exception("A program's call to %s failed.", tool.id)
            state, answer = "unknown", Raised("RuntimeError", f"{name}: internal error")
        self.ledger.finish(number, state, answer)
        self._done += 1
        await self.scope.progress(self._done, name)
        return answer

    def _check_size(self, what: str, size: int) -> None:
        if size > (limit := self.options.value_bytes):
            raise ValueError(f"{what} {size} bytes, and value_bytes is {limit}.")

    def _read_value(self, name: str, result: CallResult) -> Json:
        """What a program gets for a result.

        Raises:
            PegboardError: The tool says that it failed, or it needs the user.
        """
        # A question of the server's own could be relayed only by suspending the program for it.
        if not result.is_complete:
            raise PegboardError("it needs input from the user: call it directly, not in a program.")
        value = result_value(result)
        self.tokens_inside += round(_count_bytes(result) / BYTES_PER_TOKEN)
        if result.is_error:
            raise PegboardError(value if isinstance(value, str) else compact(value))
        return value


def _count_bytes(result: CallResult) -> int:
    """The approximate size of a result, whose text usually repeats its structured content."""
    texts = [len(block["text"]) for block in result.content if is_text(block)]
    if texts or result.structured is None:
        return sum(texts)
    return len(compact(result.structured))


def result_value(result: CallResult) -> Json:
    """The value of a result for a program: its data, else its text, else links to its files."""
    payload = find_payload(result)
    if payload is not None:
        value = payload.value
        is_wrapped = isinstance(value, dict) and list(value) == [WRAPPER_KEY]
        return value[WRAPPER_KEY] if is_wrapped else value
    texts = [block["text"] for block in result.content if is_text(block)]
    if texts or not result.content:
        return "\n".join(texts)
    # Large files are links by now; the bytes of small ones are of no use to a program.
    return [
        {k: v for k, v in block.items() if k not in ("data", "_meta")} for block in result.content
    ]


def _error_type(exc: PegboardError) -> ErrorType:
    for kind, name in _ERROR_TYPES:
        if isinstance(exc, kind):
            return name
    return "RuntimeError"
