"""Where someone else is better, found in the results by comparison and not by memory."""

from __future__ import annotations

from typing import Any

from benchmarks.runner import busy, median


def losses(found: dict[str, dict[str, Any]]) -> str:
    """A list of what a peer does better than our default face, and of the targets missed."""
    lines = [
        *_tokens(found.get("tokens", {})),
        *_retrieval(found.get("retrieval", {})),
        *_start(found.get("start", {})),
        *_calls(found.get("calls", {})),
        *_agent(found.get("agent", {})),
        *_targets(found.get("parts", {})),
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
            better = {w: f[key] for w, f in by.items() if f.get(key, 0) > ours}
            if better:
                who, value = max(better.items(), key=lambda item: item[1])
                ahead.append(f"{name} ({who} {value}, we {ours})")
        if ahead:
            lines.append(f"{key}: {'; '.join(ahead)}")
    return lines


def _start(figures: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    for key, what, unit in (("found_s", "start until the tool is found", "s"),
                            ("call_s", "the first call after it", "s"),
                            ("memory_mb", "memory of the gateway itself", "MB")):  # fmt: skip
        ahead: list[str] = []
        for count, one in figures.get("servers", {}).items():
            if key.endswith("_s") and busy(figures):
                continue
            ours = median(one["pegboard, again"][key])
            best = _least({w: median(f[key]) for w, f in one.items() if key in f}, ours)
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


def _targets(figures: dict[str, Any]) -> list[str]:
    return [
        f"target missed: {one['what']}: {one['found']} instead of {one['at_most']}"
        for one in figures.get("targets", ())
        if not one["met"]
    ]
