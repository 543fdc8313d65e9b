"""What is left to read of a large result, and what is lost on the way?"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

from benchmarks.contestants import peer
from benchmarks.plots import bars
from benchmarks.results_peers import RESULTS, backend, limited, ours, through
from benchmarks.runner import Missing, Profile, WrongAnswer
from benchmarks.tables import table
from pegboard import count_tokens, project
from pegboard.tokens import DEFAULT_TOKENIZER

FIELDS = {
    "customers": ("name", "balance"),
    "metrics": ("points[].ts", "points[].cpu"),
    "files": ("path", "size"),
    "issues": ("items[].number", "items[].title"),
    "tree": ("name", "size"),
}
LATER = {
    "as sent": "",
    "pegboard": "by `read_result`, checked",
    "pegboard, whole": "",
    "pegboard, two fields": "by asking again",
    "fastmcp limit": "no",
    "mcp-compressor --toonify": "",
    "mcp-compressor --shrinkfit": "by a file or `full=true`",
}
"""How one gets at what an answer left out, by each one's own documentation."""


def measure(profile: Profile) -> dict[str, Any]:
    return {"tokenizer": DEFAULT_TOKENIZER, **asyncio.run(_measure())}


async def _measure() -> dict[str, Any]:
    direct = await through(backend(), "sample", wrap=False)
    readable: dict[str, str] = {}
    texts: dict[str, dict[str, str]] = {
        "as sent": direct,
        "pegboard": await ours(direct, 4_000, readable),
        "pegboard, whole": await ours(direct, None),
        "pegboard, two fields": projected(),
        "fastmcp limit": await limited(direct),
    }
    gone: dict[str, str] = {}
    for option in ("--toonify", "--shrinkfit"):
        try:
            command = [peer("mcp-compressor"), option, "-n", "samples", "--", *backend()]
            name = f"mcp-compressor {option}"
            texts[name] = await through(command, "samples_invoke_tool", wrap=True)
        except Missing as exc:
            gone[f"mcp-compressor {option}"] = str(exc)
    for name, text in readable.items():
        if kept(RESULTS[name], text) < 0.999:
            raise WrongAnswer(f"`read_result` does not give back all of {name}")
    return {"results": _compared(texts), "missing": gone}


def _compared(texts: dict[str, dict[str, str]]) -> dict[str, Any]:
    return {
        name: {who: _figures(value, said[name]) for who, said in texts.items() if name in said}
        for name, value in RESULTS.items()
    }


def ours_alone() -> dict[str, Any]:
    """The same without peers and without a server."""
    given = {n: v if isinstance(v, str) else json.dumps(v, indent=2) for n, v in RESULTS.items()}
    return _compared(
        {
            "as sent": given,
            "pegboard": asyncio.run(ours(given, 4_000)),
            "pegboard, whole": asyncio.run(ours(given, None)),
        }
    )


def projected() -> dict[str, str]:
    """What two chosen fields leave of each result that has fields."""
    found: dict[str, str] = {}
    for name, value in RESULTS.items():
        fields = FIELDS.get(name.split(",")[0])
        if fields:
            kept = project(value, fields)
            found[name] = json.dumps(kept, separators=(",", ":"), ensure_ascii=False)
    return found


def _figures(value: Any, text: str) -> dict[str, Any]:
    if not text:
        raise WrongAnswer("an empty answer")
    return {"tokens": count_tokens(text), "kept": round(100 * kept(value, text), 1)}


def kept(value: Any, text: str) -> float:
    """The part of a result's values that can be read in the text."""
    wanted = [leaf for leaf in leaves(value) if len(leaf) > 3]  # a short one is anywhere by chance
    return sum(leaf in text for leaf in wanted) / len(wanted)


def leaves(value: Any) -> Iterator[str]:
    """Every value of a result as it would be written; a text by its lines."""
    if isinstance(value, dict):
        for one in value.values():
            yield from leaves(one)
    elif isinstance(value, list):
        for one in value:
            yield from leaves(one)
    elif isinstance(value, str):
        yield from value.splitlines()
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield json.dumps(value)


def section(figures: dict[str, Any]) -> str:
    whos = [who for who in LATER if any(who in one for one in figures["results"].values())]
    rows = [
        [name, *(_cell(one.get(who)) for who in whos)] for name, one in figures["results"].items()
    ]
    rest = ["the rest can be had", *(LATER[who] or "nothing is left out" for who in whos)]
    gone = "".join(f"\n\nNot measured: {w} ({why})." for w, why in figures["missing"].items())
    return (
        f"Tokens (`{figures['tokenizer']}`) of results of the shapes that tools give, made up, of"
        " 20 and 400 rows, through each; in brackets the percentage of the result's values that are"
        " in the text where it is not all of them. Pegboard keeps what is over 4,000 tokens and"
        " shows a preview; FastMCP's limit is set to 16,000 bytes, about the same.\n\n"
        f"{table(['result', *whos], [*rows, rest])}{gone}"
    )


def _cell(one: dict[str, Any] | None) -> str | None:
    if one is None:
        return None
    part = "" if one["kept"] >= 99.9 else f" ({one['kept']:.0f} %)"
    return f"{one['tokens']:,}{part}"


def plots(figures: dict[str, Any]) -> dict[str, str]:
    groups = {
        name: {who: f["tokens"] for who, f in one.items()}
        for name, one in figures["results"].items()
        if name.endswith("400")
    }
    return {"results": bars("Tokens of a large result", groups, unit="o200k tokens", log=True)}
