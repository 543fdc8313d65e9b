"""Gather what the models learn from into one file: tool passages, requests, and which belong together.

    python training/corpus.py --bench PATH --loose texts.txt --out corpus.json.gz

Two kinds of sets. `TRAIN` and the written requests: learned from, less a part that is held back to
check models and to choose thresholds (whole servers of the written requests, a share of the queries
elsewhere). `VALIDATE`: never learned from. A passage is made by the same function that search uses, and a
request in another language is translated as search does it, so that training and use agree.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pegboard.core.search.searchable_fields import build_passage, read_searchable_fields
from pegboard.core.search.translation import translate
from pegboard.core.tools import Tool, constant_definition

VALIDATE = ("mcpproxy_golden", "azure_mcp", "dust_mcp", "everyday", "agents")
TRAIN = {"metatool_single": 3000, "bfcl_v3": 2000, "sealtools_dev": 2000, "toollinkos_main": 1600}
HELD_BACK = 0.05
OUR_DATA = Path(__file__).parent / "data"
REQUESTS = OUR_DATA / "requests3.jsonl"
"""The third round of written requests; the first two are with the data sets."""
SERVERS = OUR_DATA / "servers.jsonl"
"""Synthetic servers: tools, and requests for them."""
HELD_OUT_SERVERS = Path(__file__).parents[1] / "benchmarks" / "held_out_servers.jsonl"
"""The same. Only the tools are used in training, never the requests: they are to measure search with."""
SEVERAL_NEEDS = "compound"
"""The register of requests that need other tools of the same server too, which are not named."""
SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


def lines(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def tool_of(entry: dict[str, Any]) -> Tool:
    return Tool(
        entry["name"],
        constant_definition(entry.get("inputSchema") or {}),
        id=entry["id"],
        server=entry.get("server") or None,
        category=entry.get("category") or None,
        description=entry.get("description") or "",
    )


def share(key: str) -> float:
    """A number in [0, 1) that depends on the key alone, so that the split never moves."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:6]) / 2**48


def labelled(bench: Path, name: str, cap: int | None) -> dict[str, Any]:
    """One set: its passages and its queries, each with the numbers of the right tools."""
    tools = lines(bench / "sets" / name / "tools.jsonl")
    number = {t["id"]: i for i, t in enumerate(tools)}
    train: list[Any] = []
    held: list[Any] = []
    for q in lines(bench / "sets" / name / "queries.jsonl"):
        relevant = [number[r] for r in q["relevant"] if r in number]
        if relevant:
            kept = cap is None or share(name + q["id"]) < HELD_BACK
            (held if kept else train).append([q["query"], relevant])
    train.sort(key=lambda q: share(name + q[0]))
    return {
        "name": name,
        "tools": [build_passage(read_searchable_fields(tool_of(t))) for t in tools],
        "train": train[:cap] if cap else [],
        "held": held[:800],
        "spare": [q for q, _ in train[cap:]] if cap else [],
    }


def searched(query: str) -> str:
    """A request as the encoder gets it."""
    translation = translate(query)
    return query if translation is None else translation.text


def written(bench: Path) -> dict[str, Any]:
    """The requests written for the large catalog; whole servers are held back.

    A request with several needs has a third entry: tools that are neither right nor wrong.
    """
    tools = lines(bench / "catalogs" / "toucan_5190.jsonl")
    number = {t["id"]: i for i, t in enumerate(tools)}
    of_server: dict[str, list[int]] = {}
    for i, tool in enumerate(tools):
        of_server.setdefault(tool["server"], []).append(i)
    train: list[Any] = []
    held: list[Any] = []
    for path in (*sorted((bench / "train").glob("*.jsonl")), REQUESTS):
        for row in lines(path):
            at = number[row["id"]]
            server = tools[at]["server"]
            kept = held if share(server) < HELD_BACK else train
            registers = row.get("registers") or [""] * len(row["queries"])
            for query, register in zip(row["queries"], registers, strict=True):
                neither = of_server[server] if register == SEVERAL_NEEDS else []
                kept.append([searched(query), [at], neither])
    return {
        "name": "written",
        "tools": [build_passage(read_searchable_fields(tool_of(t))) for t in tools],
        "train": train,
        "held": held,
    }


def synthetic_servers() -> dict[str, Any]:
    """The synthetic servers, as one catalog."""
    passages: list[str] = []
    parts: dict[Path, list[Any]] = {SERVERS: [], HELD_OUT_SERVERS: []}
    for path, requests in parts.items():
        for server in lines(path):
            number = {tool["name"]: len(passages) + i for i, tool in enumerate(server["tools"])}
            for tool in server["tools"]:
                fields = read_searchable_fields(synthetic_tool(server["server"], tool))
                passages.append(build_passage(fields))
                requests += [[searched(q), [number[tool["name"]]]] for q in tool["requests"]]
            for request in server["compound"]:
                right = [number[tool] for tool in request["tools"]]
                requests.append([searched(request["query"]), right])
    train, held = parts.values()
    return {"name": "synthetic", "tools": passages, "train": train, "held": held}


def synthetic_tool(server: str, entry: dict[str, Any]) -> Tool:
    properties = {
        name: {"type": "string", "description": text} if text else {"type": "string"}
        for name, text in entry["parameters"].items()
    }
    return tool_of(
        {
            "id": f"{server}::{entry['name']}",
            "name": entry["name"],
            "server": server,
            "description": entry["description"],
            "inputSchema": {"type": "object", "properties": properties},
        }
    )


def sentences(bench: Path) -> Iterator[str]:
    """Sentences of descriptions in the catalogs learned from: texts without a label."""
    paths = [bench / "sets" / name / "tools.jsonl" for name in TRAIN]
    for path in (*paths, bench / "catalogs" / "toucan_5190.jsonl"):
        for entry in lines(path):
            texts = [entry.get("description") or ""]
            properties = (entry.get("inputSchema") or {}).get("properties") or {}
            texts += [
                p.get("description") or "" for p in properties.values() if isinstance(p, dict)
            ]
            for text in texts:
                if isinstance(text, str):
                    yield from (s.strip()[:200] for s in SENTENCE.split(text) if len(s) > 20)


def bare_passages(bench: Path) -> Iterator[str]:
    """Tools as other catalogs describe theirs: without server and parameters, or with nothing but a name
    and parameters."""
    tools = [tool_of(entry) for entry in lines(bench / "catalogs" / "toucan_5190.jsonl")]
    for server in lines(SERVERS):
        tools += [synthetic_tool(server["server"], entry) for entry in server["tools"]]
    for tool in tools:
        fields = read_searchable_fields(tool)
        yield build_passage(replace(fields, server="", signature=""))
        yield build_passage(replace(fields, description=""))


def worn(query: str) -> Iterator[str]:
    """The query as somebody else might type it: words missing, or only a stretch of it."""
    words = query.split()
    rng = random.Random(query)
    if len(words) > 4:
        yield " ".join(w for w in words if rng.random() > 0.3)
        start = rng.randrange(len(words) // 2)
        yield " ".join(words[start : start + max(3, len(words) // 2)])


def unlabelled(bench: Path, sets: list[dict[str, Any]], loose: Path | None) -> list[str]:
    """Texts for distillation, without what is held back and without the sets never learned from."""
    found = dict.fromkeys((*sentences(bench), *bare_passages(bench)))
    for s in sets:
        found.update(dict.fromkeys(s.get("spare", ())))
        found.update(dict.fromkeys(w for q, *_ in s["train"] for w in worn(q)))
    if loose is not None:
        found.update(dict.fromkeys(loose.read_text(encoding="utf-8").splitlines()))
    return [t for t in found if t]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", type=Path, default=Path("../shared/bench"))
    parser.add_argument("--loose", type=Path, help="more texts without labels, one per line")
    parser.add_argument("--out", type=Path, default=Path("corpus.json.gz"))
    options = parser.parse_args()
    if not options.bench.is_dir():
        parser.exit(3, f"No data at {options.bench}: give --bench.\n")
    sets = [written(options.bench), synthetic_servers()]
    sets += [labelled(options.bench, name, cap) for name, cap in TRAIN.items()]
    sets += [labelled(options.bench, name, None) for name in VALIDATE]
    loose = unlabelled(options.bench, sets, options.loose)
    with gzip.open(options.out, "wt", encoding="utf-8") as file:
        json.dump({"sets": sets, "sentences": loose}, file, ensure_ascii=False)
    for s in sets:
        print(
            f"{s['name']:18} {len(s['tools']):6} tools {len(s['train']):6} learned {len(s['held']):5} held"
        )
    print(f"{len(loose)} sentences")


if __name__ == "__main__":
    main()
