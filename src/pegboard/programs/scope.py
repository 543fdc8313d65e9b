"""What one run works with: the catalog as its caller sees it, and how its calls are made.

`build_scope` derives it from the view of the request that started the program.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from pegboard.core.calls import Caller
from pegboard.core.code.consent import ConsentQuestion
from pegboard.core.json import Json, JsonObject
from pegboard.core.tools import Catalog, Tool
from pegboard.dispatch.spill import ValueStorage
from pegboard.ports import Handler

if TYPE_CHECKING:
    from pegboard.upstream.downstream import Downstream


ResultSchemas: TypeAlias = Callable[[Tool], tuple[JsonObject | None, bool]]
"""The schema of a tool's results, if it is known, and whether it was learned from earlier calls."""

Progress: TypeAlias = Callable[[int, str], Awaitable[None]]
"""Reports how many calls are done, and which was the last."""


async def no_progress(done: int, tool: str) -> None:
    """For a caller who does not want progress."""


AskConsent: TypeAlias = Callable[[ConsentQuestion], bool | Awaitable[bool]]

ConsentChannel: TypeAlias = Literal["client", "tool"]
"""Who gives the consent: the person through the client, or by approving `run_destructive_code`."""


@dataclass(frozen=True, kw_only=True)
class RunScope:
    """What a run may see and do, on behalf of one caller."""

    catalog: Catalog
    caller: Caller
    dispatch: Handler
    """Carries out one call through every layer."""
    request: object | None = None
    notes: tuple[str, ...] = ()
    """What the model should know about this catalog, such as servers that are still starting."""
    strict: bool = False
    """Whether a read-only name alone is not enough for a tool to count as read-only."""
    trace: Mapping[str, str] = field(default_factory=dict[str, str])
    """The trace context of the client, as MCP carries it."""
    result_schemas: ResultSchemas = lambda tool: (tool.output_schema, False)
    progress: Progress = no_progress
    store_value: Callable[[Json], Awaitable[str]]
    """Stores a value for later programs of this caller, and gives its handle."""
    load_value: Callable[[str], Awaitable[Json]]
    """A value, or a large result, that is stored under a handle."""


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """One program to run."""

    program: str = ""
    via: str = "run_code"
    """The meta-tool that it came through."""
    may_write: bool = False
    after: str | None = None
    """The handle of a run that stopped: its completed calls are not made again."""
    consent: AskConsent | None = None
    """Asks somebody at once; without it, the run is suspended before a destructive call."""
    channel: ConsentChannel = "tool"
    """How somebody will be asked about a run that is suspended."""
    resume: str | None = None
    """The handle of a suspended run to continue, instead of `program`."""
    has_consent: bool = False
    """What somebody decided about the run to continue."""


_TRACE_KEYS = ("traceparent", "tracestate", "baggage")


class RunView(Protocol):
    """The parts of a view that a run needs."""

    catalog: Catalog
    caller: Caller
    params: Mapping[str, Json]
    request: object | None
    notes: tuple[str, ...]

    def result_schema(self, tool: Tool) -> tuple[JsonObject | None, bool]:
        """What results of a tool look like, and whether that was learned from earlier ones."""
        ...


def build_scope(
    view: RunView, dispatch: Handler, *, strict: bool, storage: ValueStorage
) -> RunScope:
    """The scope of a program that the caller of a view runs."""
    meta = view.params.get("_meta")
    meta = meta if isinstance(meta, dict) else {}
    return RunScope(
        catalog=view.catalog,
        caller=view.caller,
        dispatch=dispatch,
        request=view.request,
        notes=view.notes,
        strict=strict,
        store_value=partial(storage.save, view.caller),
        load_value=partial(storage.load, view.caller),
        result_schemas=view.result_schema,
        trace={key: meta[key] for key in _TRACE_KEYS if isinstance(meta.get(key), str)},
        progress=_build_progress(view) if "progressToken" in meta else no_progress,
    )


def get_downstream(view: RunView) -> Downstream:
    """The client behind a request."""
    # Imported here: it needs the SDK, which a board in a script may never load.
    from pegboard.upstream.downstream import build_downstream

    return build_downstream(view.caller, view.request, view.params)


def _build_progress(view: RunView) -> Progress:
    downstream = get_downstream(view)

    async def report(done: int, tool: str) -> None:
        params = {"progressToken": downstream.progress_token, "progress": done, "message": tool}
        await downstream.notify("notifications/progress", params)

    return report
