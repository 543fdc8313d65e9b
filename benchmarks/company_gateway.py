"""Can one gateway serve a company: many clients, replicas, workers, rules, decisions?"""

from __future__ import annotations

from typing import Any

from benchmarks import company_checks, company_load, company_share
from benchmarks.runner import Missing, Profile, WrongAnswer, say
from benchmarks.tables import table


def measure(profile: Profile) -> dict[str, Any]:
    clients, requests = max(profile.clients), 4
    found: dict[str, Any] = {"checks": company_checks.measure()}
    for name, part in (
        ("replicas", lambda: company_load.replicas(clients, requests)),
        ("workers", lambda: company_load.workers(clients, requests)),
        ("share", company_share.measure),
    ):
        say(f"  {name}")
        try:
            found[name] = part()
        except Missing as exc:
            found[name] = {"missing": str(exc)}
    if found["replicas"].get("errors"):
        raise WrongAnswer(f"clients met with errors: {found['replicas']['first error']}")
    return {**found, "targets": targets(found)}


def targets(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Every figure that has a target."""
    checks, load = found["checks"], found["replicas"]
    rows: list[tuple[str, Any, float]]
    rows = [
        ("permission and lock check, µs", checks["permission and lock check, us"], 30),
        ("10,000 rules and 100,000 sessions, MB", checks["rules and sessions, MB"], 200),
    ]
    if "missing" not in load:
        rows += [
            (f"errors of {load['clients']} clients over two replicas", load["errors"], 0),
            ("p99 of a search, of its p50", load["p99 / p50"], 50),
        ]
    if "missing" not in found["share"]:
        rows += [
            (f"{kind} shown by both replicas, median ms", one["median ms"], 100)
            for kind, one in found["share"].items()
        ]
    if "2" in found["workers"]:
        share = found["workers"]["2"]["largest share"]
        rows.append(("largest share of two workers (1 / 1.6)", share, 0.625))
    if "ratio" in found["workers"]:
        rows.append(("throughput of one worker, of two", 1 / found["workers"]["ratio"], 0.625))
    return [
        {"what": what, "found": round(value, 3), "at_most": limit, "met": value <= limit}
        for what, value, limit in rows
    ]


def section(figures: dict[str, Any]) -> str:
    rows = [
        [one["what"], one["at_most"], one["found"], "yes" if one["met"] else "**missed**"]
        for one in figures["targets"]
    ]
    gone = [figures[part]["missing"] for part in ("replicas", "workers", "share")
            if "missing" in figures[part]]  # fmt: skip
    return table(["what", "at most", "measured", "met"], rows) + "".join(
        f"\n\nNot measured: {reason}." for reason in gone
    )


def plots(figures: dict[str, Any]) -> dict[str, str]:
    return {}
