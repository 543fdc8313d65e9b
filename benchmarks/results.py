"""How many tokens of a large result does a model read, and is anything lost?"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.contestants import (
    FASTMCP,
    peer,
    pegboard_command,
    pegboard_env,
    wait_until_known,
    written,
)
from benchmarks.plots import bars
from benchmarks.results_server import MADE, REAL, ROWS, SAMPLES, text_of
from benchmarks.runner import ROOT, Missing, Profile, WrongAnswer, say
from benchmarks.tables import missing, table
from benchmarks.wire import Process
from benchmarks.wire import text_of as read_by_model
from pegboard import count_tokens
from pegboard.tokens import DEFAULT_TOKENIZER

LIMIT = 16_000
"""FastMCP's limit in bytes: about our 4,000 tokens."""
FIELDS = {
    "issues of the tracker": ("issues[].key", "issues[].title"),
    "activity of the tracker": ("events[].at", "events[].summary"),
    "episodes of the memory": ("episodes[].id", "episodes[].task_description"),
    "one episode": ("id", "task_description", "outcome_type"),
    "tools of the tracker": ("tools[].name", "tools[].title"),
    "customers": ("[].name", "[].balance"),
    "metrics": ("points[].ts", "points[].cpu"),
    "files": ("[].path", "[].size"),
    "issues": ("items[].number", "items[].title"),
    "tree": ("name", "size"),
}
REST = {
    "as sent": None,
    "pegboard": "by `read_result`, checked",
    "pegboard, whole": None,
    "pegboard, fields": "by calling again",
    "fastmcp limit": "no",
    "mcp-compressor --toonify": None,
    "mcp-compressor --shrinkfit": "by a file or `full=true`",
}
"""How one gets at what an answer left out, by each one's own documentation; none: all is there."""


@dataclass(frozen=True, slots=True)
class Way:
    """How a contestant is started in front of the samples, and called for one."""

    command: Callable[[Path], list[str]]
    wrap: Callable[[str], tuple[str, dict[str, Any]]]
    fields: bool = False


SERVER = ["-m", "benchmarks.results_server"]
PATHS = f"{ROOT / 'src'}{os.pathsep}{ROOT}"


def _config(folder: Path) -> str:
    server = {"command": sys.executable, "args": SERVER, "env": {"PYTHONPATH": PATHS}}
    return written(folder, "samples.json", {"mcpServers": {"samples": server}})


def _pegboard(folder: Path) -> list[str]:
    return pegboard_command("--config", _config(folder), "--mode", "proxy")


def _keeping_nothing(folder: Path) -> list[str]:
    path = folder / "pegboard.toml"
    server = f"command = {json.dumps(sys.executable)}\nargs = {json.dumps(SERVER)}"
    path.write_text(
        f"[results]\nspill_tokens = 0\n\n[servers.samples]\n{server}\n"
        f"env = {{ PYTHONPATH = {json.dumps(PATHS)} }}\n",
        encoding="utf-8",
    )
    return pegboard_command("--config", str(path), "--mode", "proxy")


def _through_call_tool(name: str) -> tuple[str, dict[str, Any]]:
    inner: dict[str, Any] = {"name": "samples_sample", "arguments": {"name": name}}
    return "call_destructive_tool", inner


def _fields(name: str) -> tuple[str, dict[str, Any]]:
    tool, inner = _through_call_tool(name)
    return tool, {**inner, "include_fields": list(FIELDS[name.split(",")[0]])}


def _compressor(option: str) -> Way:
    return Way(
        lambda folder: [peer("mcp-compressor"), option, "--config", _config(folder)],
        lambda name: ("invoke_tool", {"tool_name": "sample", "tool_input": {"name": name}}),
    )


def ways() -> dict[str, Way]:
    limited = ["limit", str(LIMIT)]
    return {
        "as sent": Way(
            lambda folder: [sys.executable, *SERVER],
            lambda name: ("sample", {"name": name}),
        ),
        "pegboard": Way(_pegboard, _through_call_tool),
        "pegboard, whole": Way(_keeping_nothing, _through_call_tool),
        "pegboard, fields": Way(_pegboard, _fields, fields=True),
        "fastmcp limit": Way(
            lambda f: [peer("python"), str(FASTMCP), limited[0], _config(f), limited[1]],
            lambda name: ("sample", {"name": name}),
        ),
        "mcp-compressor --toonify": _compressor("--toonify"),
        "mcp-compressor --shrinkfit": _compressor("--shrinkfit"),
    }


def measure(profile: Profile) -> dict[str, Any]:
    return {"tokenizer": DEFAULT_TOKENIZER, "limit": LIMIT, **compared(ways())}


def compared(some: Mapping[str, Way]) -> dict[str, Any]:
    """Tokens and what they keep, of every sample through every way."""
    found: dict[str, dict[str, Any]] = {name: {} for name in SAMPLES}
    gone: dict[str, Any] = {}
    sent = {name: text_of(name) for name in SAMPLES}
    for who, way in some.items():
        say(f"  {who}")
        try:
            for name, text in through(who, way, sent).items():
                found[name][who] = _figures(sent[name], text)
        except Missing as exc:
            gone[who] = {"missing": str(exc)}
    return {"results": found, "missing": gone}


def through(who: str, way: Way, sent: Mapping[str, str]) -> dict[str, str]:
    """The text of every sample, as a model would read it, from a process of the contestant."""
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Process(way.command(folder), pegboard_env(folder)) as process:
            process.tools()
            if who.startswith("pegboard"):
                wait_until_known(process, 1)
            for sample in sent:
                if way.fields and sample.split(",")[0] not in FIELDS:
                    continue
                found[sample] = _answer(who, process, way.wrap(sample))
                if who == "pegboard":
                    _nothing_lost(process, sent[sample], found[sample], sample)
    if who == "as sent" and found != sent:
        raise WrongAnswer("the server does not send the samples")
    return found


def _answer(who: str, process: Process, call: tuple[str, dict[str, Any]]) -> str:
    result = process.call(*call)
    text = read_by_model(result)
    if not text or result.get("isError"):
        raise WrongAnswer(f"{who} answered {call}: {text[:300]}")
    return text


def _nothing_lost(process: Process, sent: str, text: str, name: str) -> None:
    whole = text + (read_all(process, text) if text.startswith('{"handle"') else "")
    if kept(sent, whole) < 0.999:
        raise WrongAnswer(f"`read_result` does not give back all of {name}")


def read_all(process: Process, said: str, path: str | None = None) -> str:
    """Every page of a kept result, as `read_result` gives them, and of what a page shortened."""
    text, offset = "", 0
    handle = json.loads(said)["handle"]
    while True:
        asked = {"handle": handle, "offset": offset, **({"path": path} if path else {})}
        answer = _answer("read_result", process, ("read_result", asked))
        text += answer
        page = json.loads(answer)
        for inner in page.get("shortened", ()):
            text += read_all(process, said, inner)
        if "next" not in page:
            return text
        offset = page["next"]["offset"]


def _figures(sent: str, text: str) -> dict[str, Any]:
    return {"tokens": count_tokens(text), "kept": round(100 * kept(sent, text), 1)}


def kept(sent: str, text: str) -> float:
    """The part of a result's values that can be read in the text."""
    try:
        value: Any = json.loads(sent)
    except ValueError:
        value = sent
    wanted = [leaf for leaf in leaves(value) if len(leaf) > 3]  # a short one is anywhere by chance
    unescaped = text.replace('\\"', '"').replace("\\\\", "\\")
    said = (text, unescaped)
    return sum(
        any(form in one for one in said for form in (leaf, leaf.removesuffix(".0")))
        for leaf in wanted
    ) / len(wanted)


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
    whos = [who for who in REST if any(who in one for one in figures["results"].values())]
    rows = [
        [name, *(_cell(one.get(who)) for who in whos)] for name, one in figures["results"].items()
    ]
    rest = ["how to get the rest", *(REST[who] or "nothing is left out" for who in whos)]
    return (
        f"Tokens (`{figures['tokenizer']}`) of the same results of a server through each contestant, all as separate processes."
        " Brackets show the percentage of the result's values that are in the text, if not all are. The first"
        f" {len(REAL)} results come from tools of our example servers and files of this project; the others are synthetic, in"
        f" typical shapes, with {ROWS[0]} and {ROWS[1]} rows. Pegboard stores results over 4,000 tokens and shows a preview, and"
        " every value was read back; *whole* stores nothing; *fields* requests two or three fields. FastMCP's limit is"
        f" {figures['limit']:,} bytes, about the same.\n\n"
        f"{table(['result', *whos], [*rows, rest])}{missing(figures['missing'])}"
    )


def _cell(one: dict[str, Any] | None) -> str | None:
    if one is None:
        return None
    part = "" if one["kept"] >= 99.9 else f" ({one['kept']:.0f}%)"
    return f"{one['tokens']:,}{part}"


def plots(figures: dict[str, Any]) -> dict[str, str]:
    large = [*REAL, *(name for name in MADE if name.endswith(str(ROWS[1])))]
    groups = {
        name: {who: f["tokens"] for who, f in figures["results"][name].items()}
        for name in large
        if figures["results"].get(name)
    }
    return {"results": bars("Tokens of a result", groups, unit="o200k tokens", log=True)}
