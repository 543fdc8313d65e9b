"""Writes BENCHMARKS.md, the plots, and the numbers in README.md, from the result files alone."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from benchmarks import targets
from benchmarks.losses import losses
from benchmarks.runner import QUESTIONS, RESULTS, ROOT, busy, median, read
from benchmarks.start import in_words
from benchmarks.tables import table

TITLES = {
    "tokens": "Tokens",
    "retrieval": "Retrieval",
    "scale": "Search at scale",
    "start": "Start and memory",
    "calls": "Calls",
    "soak": "Many calls",
    "results": "Results",
    "agent": "A simulated agent",
    "parts": "Parts of a call",
    "company_gateway": "One gateway for a company",
    "code_mode": "Code mode",
    "trial": "Trials with a model as the agent",
}
BEGIN, END = "<!-- numbers: make bench -->", "<!-- /numbers -->"
HEAD = """# Benchmarks

These benchmarks compare Pegboard with similar projects, on the same tasks in the same run. `make bench` writes this page from
`benchmarks/results/*.json`; no figure is typed by hand.

```console
$ make bench            # everything; installs the peers into .venv-peers first
$ make bench-smoke      # only Pegboard, in under a minute; part of CI
$ python -m benchmarks --only tokens,agent --profile quick
```

Catalogs and queries from other projects are not part of this repository. `PEGBOARD_BENCH` names the folder that contains them; without
it, the example servers are measured. Contestants take turns within each round. A figure is the median of the rounds, with the minimum
and maximum in brackets. Every response is checked, and a contestant that returns a wrong one fails the run. Measurements that do not
depend on time (tokens, retrieval, results, the agent, memory over many calls) run two at a time, all others run alone. Compare times
only within one table.
"""
BUSY = (
    "**The machine was too busy during this run: times and rates below are meaningless, and are not part of any summary."
    " Figures that do not depend on time are valid.**"
)


def write_all() -> None:
    found = {name: figures for name in QUESTIONS if (figures := read(name))}
    (ROOT / "BENCHMARKS.md").write_text(page(found), encoding="utf-8")
    for name, figures in found.items():
        for plot, svg in _question(name).plots(figures).items():
            if svg:
                (RESULTS / f"{plot}.svg").write_text(svg, encoding="utf-8")
    readme = ROOT / "README.md"
    readme.write_text(with_numbers(readme.read_text(encoding="utf-8"), found), encoding="utf-8")


def _question(name: str) -> Any:
    return import_module(f"benchmarks.{name}")


def page(found: dict[str, dict[str, Any]]) -> str:
    parts = [
        HEAD,
        *("## Contestants", contestants(found)),
        *("## Where we lose", losses(found)),
        *("## Targets", targets.section(found)),
    ]
    for number, name in enumerate(QUESTIONS, 1):
        parts.append(f"## {number}. {TITLES[name]}")
        if name not in found:
            parts.append("Not measured yet.")
            continue
        question, figures = _question(name), found[name]
        about = figures["machine"]
        parts += [
            f"*{question.__doc__.splitlines()[0]}*",
            *([BUSY] if busy(figures) else []),
            question.section(figures),
            *(
                f"![{p}](benchmarks/results/{p}.svg)"
                for p, s in question.plots(figures).items()
                if s
            ),
            f"`python -m benchmarks --only {name} --profile {figures['profile']}`:"
            f" {figures['seconds']:.0f} s on {about['day']}, {about['cores']} cores,"
            f" {about['cpu']}, Python {about['python']}, load {about['load_average']}.",
        ]
    return "\n\n".join(parts) + "\n"


def contestants(found: dict[str, dict[str, Any]]) -> str:
    versions: dict[str, str] = {}
    for figures in found.values():
        versions |= figures["versions"]
    what = {
        "pegboard": "the gateway, `pegboard serve`, one contestant per mode",
        "fastmcp": "`BM25SearchTransform`, `RegexSearchTransform`; for start and calls over"
        " `create_proxy` of an `mcpServers` file, elsewhere over its own tools, which is"
        " faster and gives the same results; `CodeMode` over `create_proxy`",
        "mcp-compressor": "`--config`, default compression; `--toonify`, `--shrinkfit` for results",
        "lazy-mcp": "the same servers in its own file",
        "mcpproxy-go": "its published figures, marked as such; not run",
    }
    rows = [[name, versions.get(name, "not run"), text] for name, text in what.items()]
    return table(["contestant", "version", "as"], rows, words=3)


def with_numbers(text: str, found: dict[str, dict[str, Any]]) -> str:
    """The text with its block of numbers written anew; as it is where it has no such block."""
    if BEGIN not in text:
        return text
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{numbers(found)}\n{END}{after}"


def numbers(found: dict[str, dict[str, Any]]) -> str:
    """The few figures that README shows, each from a result file."""
    rows = [
        row
        for make in (_token_rows, _search_row, _scale_row, _start_row, _call_row)
        for row in make(found)
    ]
    if not rows:
        return "No benchmark has been run yet."
    return table(["measurement", "Pegboard", "others"], rows, words=3)


Rows = list[list[str]]
_Row = Callable[[dict[str, dict[str, Any]]], Rows]


def _token_rows(found: dict[str, dict[str, Any]]) -> Rows:
    rows: Rows = []
    for name, one in found.get("tokens", {}).get("catalogs", {}).items():
        if name not in ("mcpproxy_golden", "dust_mcp", "tracker") or "contestants" not in one:
            continue
        by = {who: f for who, f in one["contestants"].items() if f.get("first_definition")}
        beside = ", ".join(
            f"{_short(who)} {f['first_definition']:,}"
            for who, f in by.items()
            if who.split()[0] in ("fastmcp", "mcp-compressor", "lazy-mcp")
            or who == "pegboard eager"
        )
        servers = f"{one['servers']} server{'s' if one['servers'] > 1 else ''}"
        title = f"tokens until a tool can be called, {one['tools']} tools, {servers}"
        rows.append([title, f"{by['pegboard proxy']['first_definition']:,}", beside])
    return rows


def _short(who: str) -> str:
    return "all tools listed" if who == "pegboard eager" else who


def _search_row(found: dict[str, dict[str, Any]]) -> Rows:
    rows: Rows = []
    for name, one in found.get("retrieval", {}).get("sets", {}).items():
        if name not in ("mcpproxy_golden", "everyday") or "rankers" not in one:
            continue
        theirs = one["rankers"].get("FastMCP BM25", {}).get("recall@5")
        title = f"right tool among the first five, {one['queries']} queries of `{name}`, %"
        beside = f"fastmcp bm25 {theirs}" if theirs is not None else "-"
        rows.append([title, str(one["rankers"]["pegboard"]["recall@5"]), beside])
    return rows


def _scale_row(found: dict[str, dict[str, Any]]) -> Rows:
    sizes = found.get("scale", {}).get("sizes", {})
    rows: Rows = []
    for count in ("5000", "100000") if sizes and not busy(found["scale"]) else ():
        by = {
            w: median(f["search_ms"]) for w, f in sizes.get(count, {}).items() if "search_ms" in f
        }
        if "pegboard" in by:
            ours = by.pop("pegboard")
            beside = ", ".join(f"{who} {ms:.3g}" for who, ms in by.items())
            rows.append([f"one search among {int(count):,} tools, ms", f"{ours:.3g}", beside])
    return rows


def _start_row(found: dict[str, dict[str, Any]]) -> Rows:
    sizes = found.get("start", {}).get("servers", {})
    if not sizes or busy(found["start"]):
        return []
    count, one = list(sizes.items())[-1]
    again = one["pegboard, again"]
    beside = ", ".join(
        f"{who} {median(f['found_s']):.1f} and {median(f['processes']):.0f}"
        for who, f in one.items()
        if not who.startswith("pegboard") and "found_s" in f
    )
    title = f"second start, {in_words(count)}: seconds to the first search result, server processes"
    ours = f"{median(again['found_s']):.1f} and {median(again['processes']):.0f}"
    return [[title, ours, beside or "-"]]


def _call_row(found: dict[str, dict[str, Any]]) -> Rows:
    rows: Rows = []
    if busy(found.get("calls", {})):
        return rows
    for way, shown in (
        ("stdio, modern", "stdio, MCP 2026-07-28"),
        ("http, modern", "HTTP, MCP 2026-07-28"),
    ):
        one = found.get("calls", {}).get("calls", {}).get(way, {})
        ours = next((f for who, f in one.items() if who.startswith("pegboard, call_tool")), None)
        if not ours:
            continue
        beside = ", ".join(
            f"{who.split(',')[0]} {median(f['cpu_ms']):.1f}"
            for who, f in one.items()
            if not who.startswith("pegboard") and "cpu_ms" in f and "by name" not in who
        )
        title = f"CPU time of one call, between client and server, {shown}, ms"
        rows.append([title, f"{median(ours['cpu_ms']):.1f}", beside])
    return rows
