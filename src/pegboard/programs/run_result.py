"""A run as the result of the meta-tool that started it."""

from __future__ import annotations

from pegboard.core.calls import CallResult
from pegboard.core.code.run_report import RunReport
from pegboard.core.json import Json, JsonObject
from pegboard.core.results.shapes import WRAPPER_KEY, add_meta, add_note

RUN_KEY = "run"
"""Our `_meta` key of what is known about a run."""
_NO_VALUE = "Finished without a value: end the program with the expression that you want to read."


def value_result(report: RunReport) -> CallResult:
    """The value of a program that finished, before it is written as a table or stored."""
    value = report.value
    if isinstance(value, str):
        return CallResult.text(value)
    if value is None:
        return CallResult.text("" if report.printed else _NO_VALUE)
    return CallResult.json(value, structured=isinstance(value, dict))


def finish_result(result: CallResult, report: RunReport) -> CallResult:
    """The result with what the program printed, and with what is known about the run."""
    if report.ran == "finished" and report.printed:
        more = f"\n({report.prints_dropped} more characters)" if report.prints_dropped else ""
        result = add_note(result, f"Printed:\n{report.printed.rstrip()}{more}")
    made = [call for call in report.calls if not call.is_reused]
    known: JsonObject = {
        "id": report.id,
        "ran": report.ran,
        "calls": len(made),
        "writes": sum(call.risk != "read" for call in made),
        "failed": sum(call.state != "done" for call in made),
        "reused": len(report.calls) - len(made),
        "tokens_inside": report.tokens_inside,
    }
    if report.run is not None:  # the handle of a run that waits for consent
        known["run"] = report.run
    return add_meta(result, RUN_KEY, known)


def stopped_result(report: RunReport, *, structured: bool) -> CallResult:
    """The answer for a program that did not finish."""
    return CallResult.text(
        report.to_text(),
        structured=report.to_json() if structured else None,
        is_error=report.ran != "waiting",
    )


def wrap_value(value: Json) -> JsonObject:
    """Structured content must be an object: other values are wrapped, as SDKs do."""
    return value if isinstance(value, dict) else {WRAPPER_KEY: value}
