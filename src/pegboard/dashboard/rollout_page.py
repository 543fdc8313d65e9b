"""The rollout page: the mode under trial, a comparison of both arms, and the share."""

from __future__ import annotations

from pegboard.core.mode_rollout import ARMS, Comparison, Rollout
from pegboard.core.options import MODES
from pegboard.dashboard.interface import Form, Section, Viewer
from pegboard.dashboard.markup import Html, tag
from pegboard.errors import ConfigError
from pegboard.observe import rollouts
from pegboard.ports import Store

_FIGURES = {
    "calls": "Calls",
    "sessions": "Sessions",
    "errors": "Error rate",
    "mean_ms": "Mean time (ms)",
    "calls_per_session": "Calls per session",
    "searches_per_session": "Searches per session",
    "tokens_per_session": "Tokens per session",
}


def rollout_section(store: Store) -> Section:
    """The section for the rollout that this store holds."""

    async def body(viewer: Viewer, csrf_field: Html) -> Html:
        rollout, figures = await rollouts.show(store)
        stop = tag("button", "Stop the rollout", type="submit")
        stop_form = tag("form", csrf_field, stop, method="post", action="/ui/rollout/stop")
        return tag("div", _comparison(rollout, figures), _share_form(rollout, csrf_field),
                   stop_form if rollout else None)  # fmt: skip

    async def start(viewer: Viewer, form: Form) -> None:
        try:
            percent = float(form.get("percent", ""))
        except ValueError as exc:
            raise ConfigError("The share must be a percentage, such as 10.") from exc
        by = "client" if form.get("by") == "client" else "principal"
        await rollouts.start(store, Rollout(mode=form.get("mode", ""), percent=percent, by=by))

    async def stop(viewer: Viewer, form: Form) -> None:
        await rollouts.stop(store)

    return Section(
        name="rollout", title="Rollout", body=body, actions={"start": start, "stop": stop}
    )


def _comparison(rollout: Rollout | None, figures: Comparison) -> Html:
    if rollout is None:
        return tag("p", "No rollout is active: all callers get the configured mode.")
    summary = f"{rollout.percent:g}% of callers, by {rollout.by}, get the {rollout.mode} mode."
    arms = {arm: figures[arm].summary() for arm in ARMS}
    names = [tag("th", arm, scope="col", class_="number") for arm in ARMS]
    head = tag("tr", tag("td", ""), *names)
    rows: list[Html] = []
    for key, title in _FIGURES.items():
        values = [arms[arm][key] for arm in ARMS]  # `None` before there was a call
        cells = ["–" if value is None else f"{value:,g}" for value in values]
        numbers = [tag("td", cell, class_="number") for cell in cells]
        rows.append(tag("tr", tag("th", title, scope="row"), *numbers))
    table = tag("table", tag("thead", head), tag("tbody", *rows))
    return tag("div", tag("p", summary), tag("div", table, class_="wide", tabindex="0"))


def _share_form(rollout: Rollout | None, csrf_field: Html) -> Html:
    chosen = rollout.mode if rollout else "proxy"
    modes = [tag("option", f, value=f, selected=f == chosen) for f in MODES]
    by = rollout.by if rollout else "principal"
    keys = [tag("option", k, value=k, selected=k == by) for k in ("principal", "client")]
    percent = f"{rollout.percent:g}" if rollout else "10"
    return tag(
        "form",
        csrf_field,
        tag("div", tag("label", "Mode", for_="mode"),
            tag("select", *modes, id="mode", name="mode")),
        tag("div", tag("label", "Percent", for_="percent"),
            tag("input", id="percent", name="percent", type="number", min=0, max=100, step="any",
                value=percent, required=True)),
        tag("div", tag("label", "By", for_="by"), tag("select", *keys, id="by", name="by")),
        tag("button", "Apply", type="submit", class_="primary"),
        method="post",
        action="/ui/rollout/start",
        class_="fields",
    )  # fmt: skip
