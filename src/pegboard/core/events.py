"""Events: what happened, as records. Logs, traces, metrics and the dashboard read only these.

No field that is logged holds the value of an argument or of a result, unless the operator turned on
arguments. Fields that only the dashboard reads have `repr=False`, and are never logged.
Times (`at`) are seconds since the epoch; durations are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import ClassVar, Literal, TypeAlias

from pegboard.core.circuit_breaker import BreakerState
from pegboard.core.json import Json, JsonObject

EventOutcome: TypeAlias = Literal["ok", "tool_error", "refused", "failed", "cancelled"]
"""How a call ended: with a result, with a result marked `isError`, refused before it ran, with a
failure of the tool's source, or canceled by the caller."""

UpstreamState: TypeAlias = Literal["starting", "ready", "idle", "failed", "stopped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStarted:
    """A call entered the pipeline. `trace` is the client's trace context, as it came."""

    kind: ClassVar[str] = "call.started"

    at: float
    id: str
    tool: str
    upstream: str | None = None
    principal: str = "local"
    client: str | None = None
    mode: str | None = None
    via: str | None = None
    parent: str | None = None
    """The run of the program that made the call."""
    trace: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFinished:
    """A call left the pipeline, with any outcome.

    `tokens_out_before` is the size of the tool's result, `tokens_out` that of what the model gets
    after projection, spilling and encoding; `None` if there was nothing to count.
    `tokens_estimated` is true if not all of them were counted.
    """

    kind: ClassVar[str] = "call.finished"

    at: float
    id: str
    tool: str
    duration: float
    outcome: EventOutcome
    upstream: str | None = None
    principal: str = "local"
    client: str | None = None
    mode: str | None = None
    via: str | None = None
    parent: str | None = None
    error: str | None = None
    attempts: int = 1
    cached: bool = False
    spilled: bool = False
    projected: bool = False
    tokens_in: int | None = None
    tokens_out_before: int | None = None
    tokens_out: int | None = None
    tokens_estimated: bool = False
    arguments: Mapping[str, Json] | None = None
    handle: str | None = field(default=None, repr=False)
    """The handle of the spilled result, for the dashboard of this process; never logged."""
    preview: JsonObject | None = field(default=None, repr=False)
    """The shortened arguments, for the dashboard; never logged."""
    message: str | None = field(default=None, repr=False)
    """The shortened message of a failure, for the dashboard; never logged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRejected:
    """A call was rejected before a tool was found for it: an unknown name, the wrong call tool.

    A tool that the caller may not see is reported like a name that does not exist. `arguments` is
    the digest of the arguments.
    """

    kind: ClassVar[str] = "call.unmade"

    at: float
    name: str
    error: str
    arguments: str
    principal: str = "local"
    client: str | None = None
    session: str | None = None
    mode: str | None = None
    via: str | None = None
    preview: JsonObject | None = field(default=None, repr=False)
    """The shortened arguments, for the dashboard; never logged."""
    message: str | None = field(default=None, repr=False)
    """The shortened message of the error, for the dashboard; never logged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """A program began to run. `program` is the program itself, where the operator stores it."""

    kind: ClassVar[str] = "run.started"

    at: float
    id: str
    digest: str
    principal: str = "local"
    client: str | None = None
    session: str | None = None
    mode: str | None = None
    via: str | None = None
    program: str | None = None
    trace: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    """A program ended, was rejected, or waits for consent.

    `ran` is `nothing`, `finished`, `stopped` or `waiting`. `tokens_inside` is an estimate of the
    results that the program read and the model did not; `tokens_out` is the answer to the model.
    """

    kind: ClassVar[str] = "run.finished"

    at: float
    id: str
    digest: str
    duration: float
    outcome: EventOutcome
    ran: str
    calls: int = 0
    writes: int = 0
    failed: int = 0
    reused: int = 0
    """Calls that were answered from the record of an earlier try."""
    principal: str = "local"
    client: str | None = None
    session: str | None = None
    mode: str | None = None
    via: str | None = None
    error: str | None = None
    tokens_inside: int | None = None
    tokens_out: int | None = None
    program: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestAnswered:
    """A request that is not a tool call was answered: a list, a read, a prompt, a task.

    `target` is its subject, such as a URI or the name of a prompt.
    """

    kind: ClassVar[str] = "request.answered"

    at: float
    method: str
    duration: float
    outcome: EventOutcome
    target: str | None = None
    principal: str = "local"
    client: str | None = None
    session: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorActed:
    """An operator changed something, or tried to: an approval, a disabled tool, a rollout.

    `principal` is the operator; on the command line, the user of the operating system.
    """

    kind: ClassVar[str] = "operator.acted"

    at: float
    action: str
    outcome: EventOutcome
    source: Literal["dashboard", "cli"]
    principal: str
    targets: tuple[str, ...] = ()
    details: Mapping[str, Json] = field(default_factory=dict[str, Json])
    address: str | None = None
    """The IP address that the request came from."""
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInFailed:
    """A key or token was refused. The event does not contain the credential."""

    kind: ClassVar[str] = "sign_in.failed"

    at: float
    path: str
    error: str
    address: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRetried:
    """An attempt failed and another will be made after `delay`."""

    kind: ClassVar[str] = "call.retried"

    at: float
    id: str
    tool: str
    attempt: int
    error: str
    delay: float
    upstream: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListAnswered:
    """A client requested the list. `tokens_full` is the cost of listing everything."""

    kind: ClassVar[str] = "list.answered"

    at: float
    mode: str
    tools: int
    duration: float
    principal: str = "local"
    client: str | None = None
    tokens: int | None = None
    tokens_full: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAnswered:
    """A client searched. `found` are the ids of the best matches."""

    kind: ClassVar[str] = "search.answered"

    at: float
    mode: str
    matches: int
    duration: float
    principal: str = "local"
    client: str | None = None
    query: str | None = None
    found: tuple[str, ...] = ()
    tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeAnswered:
    """A client requested definitions."""

    kind: ClassVar[str] = "describe.answered"

    at: float
    mode: str
    tools: tuple[str, ...]
    duration: float
    missing: int = 0
    principal: str = "local"
    client: str | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSent:
    """A client was sent text for a model. `what` is the method, or the name of the meta-tool."""

    kind: ClassVar[str] = "answer.sent"

    at: float
    mode: str
    what: str
    tokens: int
    principal: str = "local"
    client: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamStateChanged:
    """An upstream was started, became ready, was stopped, or failed."""

    kind: ClassVar[str] = "upstream.changed"

    at: float
    upstream: str
    state: UpstreamState
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerChanged:
    """A breaker opened, let a probe through, or closed."""

    kind: ClassVar[str] = "breaker.changed"

    at: float
    scope: Literal["tool", "upstream"]
    name: str
    state: BreakerState
    failures: int = 0
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStateChanged:
    """The store became unavailable, or available again."""

    kind: ClassVar[str] = "store.changed"

    at: float
    available: bool
    reason: str | None = None


Event: TypeAlias = (
    CallStarted
    | CallFinished
    | CallRejected
    | RunStarted
    | RunFinished
    | RequestAnswered
    | OperatorActed
    | SignInFailed
    | CallRetried
    | ListAnswered
    | SearchAnswered
    | DescribeAnswered
    | AnswerSent
    | UpstreamStateChanged
    | BreakerChanged
    | StoreStateChanged
)


def event_to_json(event: Event) -> JsonObject:
    """The event as an object, its kind first, without unknown values and unlogged fields."""
    record: JsonObject = {"event": event.kind}
    for name in (f.name for f in fields(event) if f.repr):  # `repr=False`: never to be logged
        value = getattr(event, name)
        if value is not None and value != {}:  # zero and false are known values
            record[name] = list(value) if isinstance(value, tuple) else value
    return record
