"""A measurement as one HTML file: no script, nothing loaded, light and dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from pegboard.measure.charts import charts_of
from pegboard.measure.measuring import Measurement, percent
from pegboard.measure.svg import STYLE as CHART_STYLE
from pegboard.measure.svg import figure

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 760px; margin: 2rem auto; padding: 0 1rem;
  color: #1f2328; background: #fff; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0;
  font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #d1d9e0; }
td.n, th.n { text-align: right; } .wide { overflow-x: auto; } svg { width: 100%; height: auto; }
figure { margin: 1.5rem 0; }
.note { color: #59636e; }
@media (prefers-color-scheme: dark) {
  body { color: #e6edf3; background: #0d1117; } th, td { border-color: #3d444d; }
  .note { color: #9198a1; }
}
"""


def report(measured: Measurement) -> str:
    """The whole page."""
    charts = "".join(f"<figure>{figure(chart)}</figure>" for chart in charts_of(measured))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>What these tools cost</title><style>{_STYLE}{CHART_STYLE}</style></head><body>"
        f"<h1>What these tools cost</h1><p>{_summary(measured)}</p>{_faces(measured)}{charts}"
        f"{_servers(measured)}{_dearest(measured)}{_results(measured)}{_model(measured)}"
        "</body></html>\n"
    )


def _summary(measured: Measurement) -> str:
    proxy, saved = measured.faces["proxy"].list, percent(measured.saved("proxy"))
    return (
        f"{len(measured.tools):,} tools of {len(measured.servers):,} servers cost "
        f"<strong>{measured.everything:,}</strong> tokens before anything is asked. Through "
        f"Pegboard the list costs <strong>{proxy:,}</strong>, {saved} less."
    )


def _faces(measured: Measurement) -> str:
    rows = [
        [
            face,
            f"{cost.list:,}",
            percent(measured.saved(face)),
            f"{cost.first_definition:,}",
            f"{measured.sessions[face].plain:,.0f}",
            f"{measured.sessions[face].cached:,.0f}",
            f"{measured.sessions[face].requests:,}",
        ]
        for face, cost in measured.faces.items()
    ]
    head = ["face", "list", "saved", "first definition", "session", "with cache", "requests"]
    return _section("Faces", head, rows)


def _servers(measured: Measurement) -> str:
    rows = [[s.name, f"{s.tools:,}", f"{s.tokens:,}"] for s in measured.servers]
    rows += [[name, "-", reason] for name, reason in measured.failures.items()]
    return _section("Servers", ["server", "tools", "tokens"], rows)


def _dearest(measured: Measurement) -> str:
    rows = [
        [dear.id, f"{dear.tokens:,}", "; ".join(f"{r.kind} ({r.tokens}): {r.advice}" for r in why)]
        for dear in measured.dearest
        for why in [dear.reasons]
    ]
    return _section("The dearest tools", ["tool", "tokens", "why, and what to do"], rows, words=2)


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
    title: str, head: Sequence[str], rows: Iterable[Sequence[str]], *, words: int | None = None
) -> str:
    def cells(tag: str, values: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{'' if i in (0, words) else ' class=n'}>{escape(value)}</{tag}>"
            for i, value in enumerate(values)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return (
        f'<h2>{escape(title)}</h2><div class="wide"><table><thead><tr>{cells("th", head)}</tr>'
        f"</thead><tbody>{body}</tbody></table></div>"
    )
