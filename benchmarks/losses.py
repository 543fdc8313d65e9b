"""Where someone else is better, found in the results by comparison and not by memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from benchmarks.plots import short
from benchmarks.runner import busy, median
from benchmarks.start import AGAIN, BARE, in_words
from benchmarks.targets import missed

Case: TypeAlias = tuple[str, float | None, Mapping[str, float]]
"""Where it was measured, what we have, and what each of the others has."""
OURS = "pegboard proxy"
WHY_LIST = (
    "on purpose: we list three call tools, because clients approve tools by name, and allowing"
    " reads should not also allow deletions"
)


def losses(found: dict[str, dict[str, Any]]) -> str:
    """A list of what a peer does better than our default mode, and of the targets missed."""
    lines = [
        *_tokens(found.get("tokens", {})),
        *_retrieval(found.get("retrieval", {})),
        *_scale(found.get("scale", {})),
        *_start(found.get("start", {})),
        *_calls(found.get("calls", {})),
        *_results(found.get("results", {})),
        *_agent(found.get("agent", {})),
        *missed(found),
    ]
    if not lines:
        return "Nothing that was measured shows a peer ahead."
    said = "This list has every measurement in which another project is ahead of `proxy` mode."
    return said + "\n\n" + "\n".join(f"- {line}" for line in lines)


def behind(what: str, cases: Iterable[Case], *, more: bool = False) -> Iterator[str]:
    """One line for a measure, with every case in which the best of the others is ahead."""
    said: list[str] = []
    for where, ours, theirs in cases:
        if ours is None or not theirs:
            continue
        who, best = (max if more else min)(theirs.items(), key=lambda item: item[1])
        if best > ours if more else best < ours:
            said.append(f"{where} ({who} {short(best)}, we {short(ours)})")
    if said:
        yield f"{what}: {'; '.join(said)}"


def others(by: Mapping[str, Any], key: str) -> dict[str, float]:
    """The figure of everyone but us and what is no gateway."""
    return {
        who: median(f[key])
        for who, f in by.items()
        if f.get(key) is not None and not who.startswith("pegboard") and who not in ("direct", BARE)
    }


def own(by: Mapping[str, Any], who: str, key: str) -> float | None:
    figure = by.get(who, {}).get(key)
    return None if figure is None else median(figure)


def _named(figures: Mapping[str, Any], group: str, inner: str) -> list[tuple[str, Any]]:
    return [(name, one[inner]) for name, one in figures.get(group, {}).items() if inner in one]


def _tokens(figures: Mapping[str, Any]) -> Iterator[str]:
    catalogs = _named(figures, "catalogs", "contestants")
    for key, what in (
        ("list", f"the list ({WHY_LIST})"),
        ("first_definition", "all until callable"),
    ):
        cases = [(name, own(by, OURS, key), others(by, key)) for name, by in catalogs]
        yield from behind(f"tokens of {what}", cases)
    for price in ("plain", "cached"):
        for k in ("1", "3", "10"):
            cases = [
                (name, _session(by.get(OURS, {}), k, price), _sessions(by, k, price))
                for name, by in catalogs
            ]
            yield from behind(f"tokens of a session, k={k}, {price}", cases)


def _session(f: Mapping[str, Any], k: str, price: str) -> float | None:
    return f.get("sessions", {}).get(k, {}).get(price)


def _sessions(by: Mapping[str, Any], k: str, price: str) -> dict[str, float]:
    found = {who: _session(f, k, price) for who, f in by.items() if not who.startswith("pegboard")}
    return {who: value for who, value in found.items() if value is not None}


def _retrieval(figures: Mapping[str, Any]) -> Iterator[str]:
    sets = _named(figures, "sets", "rankers")
    for key in ("recall@1", "recall@5", "recall@10", "ndcg@10"):
        cases = [(name, own(by, "pegboard", key), others(by, key)) for name, by in sets]
        yield from behind(key, cases, more=True)


def _scale(figures: Mapping[str, Any]) -> Iterator[str]:
    sizes = figures.get("sizes", {}).items()
    for key, what in (("search_ms", "one search, ms"), ("ready_s", "first answer, s"),
                      ("memory_mb", "memory of search, MB")):  # fmt: skip
        if key == "memory_mb" or not busy(figures):
            cases = [(f"{int(n):,} tools", own(by, "pegboard", key), others(by, key))
                     for n, by in sizes]  # fmt: skip
            yield from behind(what, cases)


def _start(figures: Mapping[str, Any]) -> Iterator[str]:
    sizes = figures.get("servers", {}).items()
    for key, what in (("found_s", "start until the tool is found, s"),
                      ("search_ms", "one more search or listing, ms"),
                      ("call_s", "the first call after it, s"),
                      ("memory_mb", "memory of the gateway itself, MB")):  # fmt: skip
        if key == "memory_mb" or not busy(figures):
            cases = [(in_words(n), own(by, AGAIN, key), others(by, key)) for n, by in sizes]
            yield from behind(what, cases)


def _calls(figures: Mapping[str, Any]) -> Iterator[str]:
    if busy(figures):
        return
    ours = "pegboard, call_tool, 50 tools"
    ways = figures.get("calls", {}).items()
    for key, what in (("cpu_ms", "CPU of a call, ms"), ("p50_ms", "p50 of a call, ms"),
                      ("p99_ms", "p99 of a call, ms")):  # fmt: skip
        yield from behind(what, [(way, own(by, ours, key), others(by, key)) for way, by in ways])
    crowds = figures.get("crowd", {}).items()
    key, name = "calls_per_s", "pegboard, by name"
    cases = [(f"{n} clients", own(by, name, key), others(by, key)) for n, by in crowds]
    yield from behind("calls per second", cases, more=True)


def _results(figures: Mapping[str, Any]) -> Iterator[str]:
    """Complete answers against complete ones."""
    cases: list[Case] = []
    for name, one in figures.get("results", {}).items():
        whole = {w: f for w, f in one.items() if f["kept"] >= 99.9 and w != "as sent"}
        cases.append((name, own(one, "pegboard, whole", "tokens"), others(whole, "tokens")))
    yield from behind("tokens of a whole result", cases)


def _agent(figures: Mapping[str, Any]) -> Iterator[str]:
    """Only those who search: who is shown everything succeeds always here."""
    cases: list[Case] = []
    for name, by in _named(figures, "sets", "contestants"):
        ranked = {w: f for w, f in by.items() if f.get("first_right") is not None}
        cases.append((name, own(ranked, OURS, "success"), others(ranked, "success")))
    yield from behind("tasks solved, of those who search, %", cases, more=True)
