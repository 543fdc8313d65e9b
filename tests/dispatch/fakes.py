"""Stand-ins that the tests of the layers share: a clock, a source that does as told, a recorder."""

from __future__ import annotations

from typing import Any

from pegboard.core.calls import CallResult, ToolCall
from pegboard.core.events import Event
from pegboard.core.tools import Tool, constant_definition
from pegboard.ports import Handler

OK = CallResult.text("done")


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


class Source:
    """A handler that answers each call with what it was told to, and remembers the calls."""

    def __init__(self) -> None:
        self.calls: list[ToolCall] = []
        self.answers: dict[str, CallResult | BaseException] = {}
        self.queue: list[CallResult | BaseException] = []

    async def __call__(self, call: ToolCall) -> CallResult:
        self.calls.append(call)
        answer = self.queue.pop(0) if self.queue else self.answers.get(call.tool.id, OK)
        if isinstance(answer, BaseException):
            raise answer
        return answer


class Recorder:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def record(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: type[Any]) -> list[Any]:
        return [e for e in self.events if isinstance(e, kind)]


async def run(handler: Handler, call: ToolCall) -> None:
    """Make one call in a task of its own."""
    await handler(call)


def make_call(name: str = "search", *, arguments: Any = None, **about: Any) -> ToolCall:
    """A call of a tool that belongs to the server `github` unless told otherwise."""
    about.setdefault("server", "github")
    extras = {k: about.pop(k) for k in ("caller", "params", "via") if k in about}
    tool = Tool(name=name, definition=constant_definition({"type": "object"}), **about)
    return ToolCall(tool, arguments or {}, **extras)
