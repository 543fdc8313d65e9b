"""What happened, as records: logs, traces, metrics and the page all read these and nothing else.

No record holds the value of an argument or of a result, unless the operator asked for arguments.
Times (`at`) are seconds since the epoch; durations are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import ClassVar, Literal, TypeAlias

from pegboard.core.breaker import BreakerState
from pegboard.core.json import Json, JsonObject

EventOutcome: TypeAlias = Literal["ok", "tool_error", "refused", "failed", "cancelled"]
"""How a call ended: with a result, with a result that says `isError`, turned away by us before it
ran, by a failure of what stands behind the tool, or given up by the caller."""

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
    trace: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFinished:
    """A call left the pipeline, whatever became of it.

    `tokens_out_before` is what the tool answered, `tokens_out` what the model gets after
    projection, spilling and encoding; `None` where there was nothing to count. `tokens_estimated`
    says that not all of them were counted.
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
    """What opens the kept result, for the page of this process; no log gets it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRejected:
    """A call was turned away before there was one: no such tool for this caller, the wrong way in.

    A tool that the caller may not see is told of as it is to them: as a name that nobody has.
    `arguments` is their digest.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestAnswered:
    """A request that is not a tool call was answered: a list, a read, a prompt, a task.

    `target` is what it was about, such as a URI or the name of a prompt.
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
    """Somebody decided something over the gateway, or tried to: an approval, a switch, a rollout.

    `principal` is who did, or on the command line the user of the operating system.
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
    """Somebody came with a key or token that was refused. What they came with is not in here."""

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
    """A client asked for the list. `tokens_full` is what listing everything would have cost."""

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
    """A client asked for definitions."""

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
    """A client was sent what a model reads. `what` is the method, or the name of the meta-tool."""

    kind: ClassVar[str] = "answer.sent"

    at: float
    mode: str
    what: str
    tokens: int
    principal: str = "local"
    client: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsEnabled:
    """A session's list changed."""

    kind: ClassVar[str] = "session.changed"

    at: float
    session: str
    enabled: tuple[str, ...]
    evicted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamStateChanged:
    """A server behind the board was started, became ready, was stopped, or failed."""

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
    """The shared state went away or came back."""

    kind: ClassVar[str] = "store.changed"

    at: float
    available: bool
    reason: str | None = None


Event: TypeAlias = (
    CallStarted
    | CallFinished
    | CallRejected
    | RequestAnswered
    | OperatorActed
    | SignInFailed
    | CallRetried
    | ListAnswered
    | SearchAnswered
    | DescribeAnswered
    | AnswerSent
    | ToolsEnabled
    | UpstreamStateChanged
    | BreakerChanged
    | StoreStateChanged
)


def event_to_json(event: Event) -> JsonObject:
    """The record as an object, its kind first, without what is not known or not to be written."""
    record: JsonObject = {"event": event.kind}
    for name in (f.name for f in fields(event) if f.repr):
        value = getattr(event, name)
        if value is not None and value != {}:
            record[name] = list(value) if isinstance(value, tuple) else value
    return record
