"""What one run works with: the catalog as its caller sees it, and how its calls are made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pegboard.core.calls import Caller
from pegboard.core.code.consent import ConsentQuestion
from pegboard.core.json import Json, JsonObject
from pegboard.core.tools import Catalog, Tool
from pegboard.ports import Handler

ResultSchemas: TypeAlias = Callable[[Tool], tuple[JsonObject | None, bool]]
"""The schema of a tool's results, if it is known, and whether it was learned from earlier calls."""

Progress: TypeAlias = Callable[[int, str], Awaitable[None]]
"""Reports that so many calls are done, and which was the last."""


async def no_progress(done: int, tool: str) -> None:
    """For a caller who does not listen."""


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
    """Whether a tool whose risk is only inferred from its name is no read-only tool."""
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
    """Asks somebody at once; without it, the run is suspended in front of a destructive call."""
    channel: ConsentChannel = "tool"
    """How somebody will be asked about a run that is suspended."""
    resume: str | None = None
    """The handle of a suspended run to go on with, instead of `program`."""
    has_consent: bool = False
    """What somebody decided about the run to go on with."""
