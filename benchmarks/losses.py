"""Where someone else is better, found in the results by comparison and not by memory."""

from __future__ import annotations

from typing import Any

from benchmarks.runner import busy, median
from benchmarks.start import BARE
from benchmarks.targets import missed


def losses(found: dict[str, dict[str, Any]]) -> str:
    """A list of what a peer does better than our default face, and of the targets missed."""
    lines = [
        *_tokens(found.get("tokens", {})),
        *_retrieval(found.get("retrieval", {})),
        *_start(found.get("start", {})),
        *_calls(found.get("calls", {})),
        *_crowd(found.get("calls", {})),
        *_results(found.get("results", {})),
        *_agent(found.get("agent", {})),
        *missed(found),
    ]
    if not lines:
        return "Nothing that was measured shows a peer ahead."
    said = "Read from the same results: every measure in which a peer is ahead of the `proxy` face."
    return said + "\n\n" + "\n".join(f"- {line}" for line in lines)


def _tokens(figures: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    measures = (("list", "tokens of the list"), ("first_definition", "tokens until callable"))
    for key, what in measures:
        ahead: list[str] = []
        for name, one in figures.get("catalogues", {}).items():
            by = one.get("contestants", {})
            if key not in by.get("pegboard proxy", {}):
                continue
            ours = by["pegboard proxy"][key]
            best = _least({w: f[key] for w, f in by.items() if key in f}, ours)
            if best:
                ahead.append(f"{name} ({best[0]} {best[1]:,}, we {ours:,})")
        if ahead:
            lines.append(f"{what}: {'; '.join(ahead)}")
    return lines


def _least(theirs: dict[str, float], ours: float) -> tuple[str, Any] | None:
    better = {w: v for w, v in theirs.items() if v < ours and not w.startswith("pegboard")}
    return min(better.items(), key=lambda item: item[1]) if better else None


def _retrieval(figures: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    for key in ("recall@1", "recall@5", "ndcg@10"):
        ahead: list[str] = []
        for name, one in figures.get("sets", {}).items():
            by = one.get("rankers", {})
            if key not in by.get("pegboard", {}):
                continue
            ours = by["pegboard"][key]
            better = {
                w: f[key] for w, f in by.items()
                if f.get(key, 0) > ours and not w.startswith("pegboard")
            }  # fmt: skip
            if better:
                who, value = max(better.items(), key=lambda item: item[1])
                ahead.append(f"{name} ({who} {value}, we {ours})")
        if ahead:
            lines.append(f"{key}: {'; '.join(ahead)}")
    return lines


def _start(figures: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    for key, what, unit in (("found_s", "start until the tool is found", "s"),
                            ("search_ms", "one more search or listing", "ms"),
                            ("call_s", "the first call after it", "s"),
                            ("memory_mb", "memory of the gateway itself", "MB")):  # fmt: skip
        ahead: list[str] = []
        for count, one in figures.get("servers", {}).items():
            if key != "memory_mb" and busy(figures):
                continue
            if key not in one.get("pegboard, again", {}):
                continue
            ours = median(one["pegboard, again"][key])
            theirs = {w: median(f[key]) for w, f in one.items() if key in f and w != BARE}
            best = _least(theirs, ours)
            if best:
                ahead.append(f"{count} servers ({best[0]} {best[1]:.3g} {unit}, we {ours:.3g})")
        if ahead:
            lines.append(f"{what}: {'; '.join(ahead)}")
    return lines


def _calls(figures: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    for way, one in ({} if busy(figures) else figures.get("calls", {})).items():
        ours = next((f for w, f in one.items() if w.startswith("pegboard, call_tool")), None)
        if not ours:
            continue
        theirs = {w: median(f["cpu_ms"]) for w, f in one.items() if "cpu_ms" in f and w != "direct"}
        best = _least(theirs, median(ours["cpu_ms"]))
        if best:
            mine = median(ours["cpu_ms"])
            lines.append(f"CPU of a call, {way}: {best[0]} {best[1]:.2g} ms, we {mine:.2g} ms")
    return lines


def _crowd(figures: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    for count, one in ({} if busy(figures) else figures.get("crowd", {})).items():
        rates = {w: f["calls_per_s"] for w, f in one.items() if "calls_per_s" in f}
        ours = next((v for w, v in rates.items() if w.startswith("pegboard")), None)
        theirs = {w: v for w, v in rates.items() if w.startswith("fastmcp")}
        if ours is not None and theirs and max(theirs.values()) > ours:
            who = max(theirs, key=lambda w: theirs[w])
            lines.append(f"calls per second, {count} clients: {who} {theirs[who]}, we {ours}")
    return lines


def _results(figures: dict[str, Any]) -> list[str]:
    """Complete answers against complete ones."""
    ahead: list[str] = []
    for name, one in figures.get("results", {}).items():
        ours = one.get("pegboard, whole", {}).get("tokens")
        full = {w: f["tokens"] for w, f in one.items() if f["kept"] >= 99.9 and w != "as sent"}
        best = _least(full, ours) if ours is not None else None
        if best:
            ahead.append(f"{name} ({best[0]} {best[1]:,}, we {ours:,})")
    return [f"tokens of a whole result: {'; '.join(ahead)}"] if ahead else []


def _agent(figures: dict[str, Any]) -> list[str]:
    ahead: list[str] = []
    for name, one in figures.get("sets", {}).items():
        by = one.get("contestants", {})
        ranked = {w: f["success"] for w, f in by.items() if f.get("first_right") is not None}
        ours = ranked.pop("pegboard proxy", None)
        better = {w: v for w, v in ranked.items() if ours is not None and v > ours}
        if better:
            who, value = max(better.items(), key=lambda item: item[1])
            ahead.append(f"{name} ({who} {value}, we {ours})")
    return [f"tasks solved, of those who search, %: {'; '.join(ahead)}"] if ahead else []
