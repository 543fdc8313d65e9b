"""A measurement as one HTML file: no script, nothing loaded, light and dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from pegboard.measure.charts import MOST_SERVERS, NARROW, WIDE, Chart, build_charts, figure
from pegboard.measure.charts import STYLE as CHART_STYLE
from pegboard.measure.measuring import Measurement, difference, percent

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 760px; margin: 2rem auto; padding: 0 1rem;
  color: #1f2328; background: #fff; }
h2 { margin: 2.5rem 0 .5rem; } h1 { line-height: 1.2; }
table { border-collapse: collapse; width: 100%; margin: 0 0 1rem;
  font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #d1d9e0; }
td.n, th.n { text-align: right; } .wide { overflow-x: auto; } svg { width: 100%; height: auto; }
th, td { vertical-align: top; overflow-wrap: anywhere; } .n { white-space: nowrap; }
figure { margin: 2rem 0; } figcaption { font-weight: 600; } .narrow { display: none; }
.note { color: #59636e; font-size: .875rem; font-weight: 400; display: block; }
summary { cursor: pointer; padding: .5rem 0; }
@media (max-width: 40rem) {
  body { margin: 1rem auto; } .narrow { display: block; } .broad { display: none; }
  th, td { padding: .3rem .4rem; } .stacked thead { display: none; }
  .stacked tr { display: block; border-bottom: 1px solid #d1d9e0; padding: .5rem 0; }
  .stacked td { display: inline; border: 0; padding: 0 .4rem 0 0; }
  .stacked td:first-child { display: block; font-weight: 600; }
  .stacked td.n::after { content: " tokens: "; }
  .modes :is(th, td):is(:nth-child(3), :nth-child(4), :nth-child(7)) { display: none; }
}
@media (prefers-color-scheme: dark) {
  body { color: #e6edf3; background: #0d1117; } th, td { border-color: #3d444d; }
  .note { color: #9198a1; } .stacked tr { border-color: #3d444d; }
}
"""


def render_report(measured: Measurement) -> str:
    """The whole page."""
    charts = "".join(map(_figure, build_charts(measured)))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>What these tools cost</title><style>{_STYLE}{CHART_STYLE}</style></head><body>"
        f"<h1>What these tools cost</h1><p>{_summary(measured)}</p>{_modes(measured)}{charts}"
        f"{_servers(measured)}{_dearest(measured)}{_results(measured)}{_model(measured)}"
        "</body></html>\n"
    )


def _figure(chart: Chart) -> str:
    """A chart for wide screens and one for narrow ones, of which one is shown and read."""
    return (
        f'<figure><figcaption>{escape(chart.title)}<span class="note">{escape(chart.about)}</span>'
        f'</figcaption><div class="broad">{figure(chart, WIDE)}</div>'
        f'<div class="narrow">{figure(chart, NARROW)}</div></figure>'
    )


def _summary(measured: Measurement) -> str:
    proxy, saved = measured.modes["proxy"].list, difference(measured.saved("proxy"))
    return (
        f"{len(measured.tools):,} tools of {_counted(measured)} cost "
        f"<strong>{measured.everything:,}</strong> tokens before anything is asked. Through "
        f"Pegboard the list costs <strong>{proxy:,}</strong>, {saved}."
    )


def _modes(measured: Measurement) -> str:
    rows = [
        [
            mode,
            f"{cost.list:,}",
            percent(measured.saved(mode)),
            f"{cost.first_definition:,}",
            f"{measured.sessions[mode].plain:,.0f}",
            f"{measured.sessions[mode].cached:,.0f}",
            f"{measured.sessions[mode].requests:,}",
        ]
        for mode, cost in measured.modes.items()
    ]
    head = ["mode", "list", "saved", "first definition", "session", "with cache", "requests"]
    return _section("Modes", head, rows, kind="modes")


def _counted(measured: Measurement) -> str:
    """How many servers there are, of which some may be missing: the same wherever it is said."""
    present, missing = len(measured.servers), len(measured.failures)
    said = f"{present:,} server{'' if present == 1 else 's'}"
    return f"{said} ({missing:,} more could not be listed)" if missing else said


def _servers(measured: Measurement) -> str:
    rows = [[s.name, f"{s.tools:,}", f"{s.tokens:,}"] for s in measured.servers]
    rows += [[name, "-", reason] for name, reason in measured.failures.items()]
    listed = _section("Servers", ["server", "tools", "tokens"], rows)
    if len(rows) <= MOST_SERVERS:
        return listed
    title, _, table = listed.partition("</h2>")  # the chart above has the dearest already
    return f"{title}</h2><details><summary>{_counted(measured)}</summary>{table}</details>"


def _dearest(measured: Measurement) -> str:
    rows = [
        [dear.id, f"{dear.tokens:,}", "; ".join(f"{r.kind} ({r.tokens}): {r.advice}" for r in why)]
        for dear in measured.dearest
        for why in [dear.reasons]
    ]
    return _section(
        "The dearest tools",
        ["tool", "tokens", "why, and what to do"],
        rows,
        words=2,
        kind="stacked",
    )


def _results(measured: Measurement) -> str:
    if not measured.results:
        return ""
    rows = [[r.tool, f"{r.whole:,}", f"{r.given:,}"] for r in measured.results]
    return _section("Recorded results", ["tool", "whole", "as given"], rows)


def _model(measured: Measurement) -> str:
    use, prices = measured.use, measured.prices
    return (
        f'<p class="note">Counted with {escape(measured.tokenizer)}: what a model reads of the '
        f"list (name, description, inputSchema) and of each answer. A session uses {use.tools} "
        f"tools in {use.turns} turns that add {use.conversation} tokens each. Prices of a token: "
        f"{prices.base:g} plain, {prices.write:g} into the cache, {prices.read:g} out of it. Every "
        "request sends list, findings and, where it exists only to find a tool, the conversation; "
        "a changed list voids the cache.</p>"
    )


def _section(
    title: str,
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    words: int | None = None,
    kind: str = "",
) -> str:
    def cells(tag: str, values: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{'' if i in (0, words) else ' class=n'}>{escape(value)}</{tag}>"
            for i, value in enumerate(values)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return (
        f'<h2>{escape(title)}</h2><div class="wide" tabindex="0" role="region" '
        f'aria-label="{escape(title)}"><table class="{kind}"><thead><tr>{cells("th", head)}</tr>'
        f"</thead><tbody>{body}</tbody></table></div>"
    )
