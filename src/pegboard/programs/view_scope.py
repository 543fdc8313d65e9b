"""From what a request may see and do to what its program may."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol

from pegboard.core.calls import Caller
from pegboard.core.json import Json, JsonObject
from pegboard.core.tools import Catalog, Tool
from pegboard.dispatch.spill import ValueStorage
from pegboard.ports import Handler
from pegboard.programs.scope import Progress, RunScope, no_progress

if TYPE_CHECKING:
    from pegboard.upstream.downstream import Downstream

_TRACE_KEYS = ("traceparent", "tracestate", "baggage")


class Viewer(Protocol):
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
    view: Viewer, dispatch: Handler, *, strict: bool, storage: ValueStorage
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


def get_downstream(view: Viewer) -> Downstream:
    """The client behind a request."""
    # Imported here: it needs the SDK, which a board in a script may never load.
    from pegboard.upstream.downstream import build_downstream

    return build_downstream(view.caller, view.request, view.params)


def _build_progress(view: Viewer) -> Progress:
    downstream = get_downstream(view)

    async def report(done: int, tool: str) -> None:
        params = {"progressToken": downstream.progress_token, "progress": done, "message": tool}
        await downstream.notify("notifications/progress", params)

    return report
