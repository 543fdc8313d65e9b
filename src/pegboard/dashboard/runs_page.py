"""Programs that models ran: the outcome of each, its calls, and the tokens that stayed inside.

A viewer sees their own runs, an operator everybody's. The program itself is shown only where the
operator stores programs; otherwise its digest tells whether two runs were of the same program.
"""

from __future__ import annotations

from urllib.parse import quote

from pegboard.core.calls import LOCAL_CALLER
from pegboard.core.events import RunFinished
from pegboard.dashboard.calls_page import render_finished_calls
from pegboard.dashboard.markup import (
    Html,
    Row,
    badge,
    format_milliseconds,
    format_number,
    join,
    pluralize,
    render_table,
    tag,
    time_tag,
)
from pegboard.dashboard.visibility import Visibility
from pegboard.errors import InvalidArguments

_BADGES = {"finished": "good", "stopped": "bad", "nothing": "warn", "waiting": "busy"}
_WORDS = {
    "finished": "finished",
    "stopped": "stopped",
    "nothing": "nothing ran",
    "waiting": "waits for consent",
}
_NUMBERS = ("Calls", "Writes", "Failed", "Tokens not sent", "Duration")
_COLUMNS = ("Time", "Run", "Outcome", *_NUMBERS, "Client")
_RUN_COLUMN = 1
_DIGEST_LENGTH = 12


def render_runs(visible: Visibility) -> Html:
    """A table of runs, newest first."""
    rows = [_row(run) for run in visible.runs()]
    if not rows:
        return tag("p", "No program has been run yet.", class_="quiet")
    return render_table(
        _COLUMNS, rows, labelled_by="runs-title", numbers=_NUMBERS, header=_RUN_COLUMN
    )


def render_run(visible: Visibility, wanted: str) -> Html:
    """One run with its calls, and its program if that is stored.

    Raises:
        InvalidArguments: The viewer has no such run.
    """
    run = next((run for run in visible.runs() if run.id == wanted), None)
    if run is None:
        raise InvalidArguments("There is no such run, or it was too long ago.")
    calls = visible.dashboard.live.calls_of_run(run.id)
    more = run.calls - len(calls)
    # What the program is for: these tokens stayed inside it.
    saved = f"{pluralize(run.tokens_inside or 0, 'token')} of results not sent to the model"
    if run.reused:
        saved += f", {pluralize(run.reused, 'call')} from an earlier run"
    if run.program is not None:
        code = tag("code", run.program)
        program = tag("pre", code, tabindex="0", aria_label="The program")
    else:
        digest = tag("code", run.digest[:_DIGEST_LENGTH])
        setting = tag("code", "code.store_programs")
        program = tag("p", "Programs are not stored (", setting, "). The digest of this one is ",
                      digest, ".", class_="quiet")  # fmt: skip
    return join(
        [
            tag("h1", "Run ", tag("code", run.id)),
            tag("p", _outcome(run), " ", time_tag(run.at), ", ", saved, class_="quiet"),
            tag("h2", "Program"),
            program,
            tag("h2", "Calls", id="calls-title"),
            render_finished_calls(visible, calls)
            if calls
            else tag("p", "It made no call.", class_="quiet"),
            tag("p", f"{pluralize(more, 'more call')}.", class_="quiet") if more > 0 else None,
        ]
    )


def _row(run: RunFinished) -> Row:
    who = None if run.principal == LOCAL_CALLER.principal else run.principal
    numbers = (run.calls, run.writes, run.failed, run.tokens_inside or 0)
    return Row(
        [
            time_tag(run.at),
            tag("a", run.id, href=run_url(run), class_="id"),
            _outcome(run),
            *map(format_number, numbers),
            format_milliseconds(run.duration * 1000),
            " · ".join(filter(None, [run.client, who])) or "–",
        ]
    )


def run_url(run: RunFinished) -> str:
    """The URL of the page of one run."""
    return f"/ui/run?id={quote(run.id)}"


def _outcome(run: RunFinished) -> Html:
    reason = f": {run.error}" if run.error and run.ran != "finished" else ""
    return badge(f"{_WORDS.get(run.ran, run.ran)}{reason}", _BADGES.get(run.ran, ""))
