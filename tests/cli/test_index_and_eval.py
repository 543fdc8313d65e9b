"""`pegboard index` and `pegboard eval`: their output for people and for programs."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters
from tests.cli.terminal import ROOT, Ran, pegboard, process

JUDGED = [
    {"query": "file a bug report", "relevant": ["create_issue"]},
    {"query": "throw this text away", "relevant": ["delete_document"]},
    {"query": "is there room left on the disk", "relevant": ["disk_usage"]},
    {"query": "when is everybody free", "relevant": ["find_slot"]},
]
FIGURES = {
    "queries", "recall@1", "recall@3", "recall@5", "recall@10", "hit@5", "ndcg@10", "mrr",
    "p50_ms", "p95_ms", "unanswerable", "refused",
}  # fmt: skip
RANKERS = ["pegboard", "plain BM25"]


def contents(home: Path) -> dict[str, bytes]:
    cache = home / "cache"
    return {str(p): p.read_bytes() for p in cache.rglob("*") if p.suffix in (".npy", ".index")}


# --- index ----------------------------------------------------------------------------------------


def test_index_reads_a_catalog_once(catalog: Path, tmp_path: Path) -> None:
    def index() -> Ran:
        return pegboard("index", "--catalog", str(catalog), home=tmp_path)

    first = index()
    assert first.code == 0
    assert "Indexed 29 of 29 tools in" in first.out
    assert str(tmp_path / "cache") in first.out
    made = contents(tmp_path)
    assert len(made) == 2
    second = index()
    assert (second.code, second.out) == (0, "Nothing to do: all 29 tools are indexed.\n")
    assert contents(tmp_path) == made


def test_index_reads_again_what_has_changed(catalog: Path, tmp_path: Path) -> None:
    words = ("index", "--catalog", str(catalog), "--json")
    assert pegboard(*words, home=tmp_path).json["made"] == 29
    listed = json.loads(catalog.read_text())
    listed["tools"][3]["description"] = "Does something else now."
    catalog.write_text(json.dumps(listed))
    changed = pegboard(*words, home=tmp_path).json
    assert (changed["made"], changed["tools"]) == (1, 29)
    assert Path(changed["folder"]) == tmp_path / "cache"


def test_index_lists_the_servers_of_a_configuration_and_a_search_starts_from_it(
    config: Path, tmp_path: Path
) -> None:
    first = process("index", "--config", str(config), home=tmp_path)
    assert first.code == 0, first.err
    assert "Indexed " in first.out
    shutil.rmtree(tmp_path / "cache" / "vectors")
    made = contents(tmp_path)
    words = ("--config", str(config))
    assert "Nothing to do" in process("index", *words, home=tmp_path).out
    assert "create_issue" in process("search", "file a bug", *words, home=tmp_path).out
    assert contents(tmp_path) == made


def test_a_gateway_that_is_started_serves_from_what_was_indexed(
    config: Path, tmp_path: Path
) -> None:
    process("index", "--config", str(config), home=tmp_path)
    shutil.rmtree(tmp_path / "cache" / "vectors")
    made = contents(tmp_path)
    (kept,) = (tmp_path / "cache" / "indexes").iterdir()
    os.utime(kept, (1, 1))
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "pegboard", "serve", "--config", str(config), "--mode", "proxy"],
        env={**os.environ, "PEGBOARD_HOME": str(tmp_path / "cache")},
        cwd=ROOT,
    )

    async def use() -> str:
        async with Client(server) as client:
            await client.list_tools()
            return str((await client.call_tool("search_tools", {"query": "file a bug"})).content)

    assert "create_issue" in anyio.run(use)
    assert kept.stat().st_mtime > 1  # it is touched when it is taken
    assert contents(tmp_path) == made


def test_index_shows_a_bar_on_a_terminal_and_none_elsewhere(catalog: Path, tmp_path: Path) -> None:
    shown = process("index", "--catalog", str(catalog), home=tmp_path, FORCE_COLOR="1")
    assert "Indexing tools" in shown.err
    assert "29/29" in shown.err
    shutil.rmtree(tmp_path / "cache")
    assert process("index", "--catalog", str(catalog), home=tmp_path).err == ""


def test_index_fails_where_nothing_can_be_saved(catalog: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file, not a folder")
    ran = pegboard("index", "--catalog", str(catalog), home=tmp_path)
    assert (ran.code, ran.out) == (1, "")
    assert "cannot be saved in" in ran.err
    assert "PEGBOARD_HOME" in ran.err


def test_index_says_which_servers_are_missing(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"gone": {"command": "/no/such/program"}}}))
    ran = pegboard("index", "--config", str(path), home=tmp_path)
    assert ran.code == 1
    assert "gone cannot be started" in ran.err


# --- eval -----------------------------------------------------------------------------------------


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    path = tmp_path / "queries.jsonl"
    path.write_text("\n".join(json.dumps(one) for one in JUDGED))
    return path


def evaluated(catalog: Path, queries: Path, *words: str, home: Path) -> Ran:
    named = ("--catalog", str(catalog), "--queries", str(queries))
    return pegboard("eval", *named, *words, home=home)


def test_eval_prints_every_ranker_beside_ours(catalog: Path, queries: Path, tmp_path: Path) -> None:
    value = evaluated(catalog, queries, "--json", home=tmp_path).json
    assert list(value["rankers"]) == RANKERS
    assert (value["queries"], value["tools"]) == (4, 29)
    for figures in value["rankers"].values():
        assert set(figures) == FIGURES
        assert figures["recall@1"] <= figures["recall@3"] <= figures["recall@10"] <= 1
        assert 0 < figures["p50_ms"] <= figures["p95_ms"]
    ours, theirs = value["rankers"]["pegboard"], value["rankers"]["plain BM25"]
    assert ours["recall@5"] == 1
    assert ours["ndcg@10"] > theirs["ndcg@10"]


def test_eval_asks_a_sample_that_is_always_the_same(
    catalog: Path, queries: Path, tmp_path: Path
) -> None:
    once, again = (
        evaluated(catalog, queries, "--sample", "2", "--misses", "9", "--json", home=tmp_path).json
        for _ in range(2)
    )
    assert once["queries"] == 2
    assert once["rankers"]["plain BM25"]["mrr"] == again["rankers"]["plain BM25"]["mrr"]
    assert evaluated(catalog, queries, "--sample", "0", home=tmp_path).code == 2


def test_eval_shows_what_it_does_not_find(catalog: Path, queries: Path, tmp_path: Path) -> None:
    known = json.loads(queries.read_text().splitlines()[0])
    wrong = {"query": "who won the football match", "relevant": known["relevant"]}
    queries.write_text(f"{json.dumps(known)}\n{json.dumps(wrong)}\n")
    shown = evaluated(catalog, queries, "--misses", "5", home=tmp_path).out
    assert "who won the football match" in shown
    assert "expected: issues.create_issue\n  found:    nothing" in shown
    [miss] = evaluated(catalog, queries, "--misses", "5", "--json", home=tmp_path).json["misses"]
    assert (miss["line"], miss["query"]) == (2, wrong["query"])
    assert "wanted" not in evaluated(catalog, queries, home=tmp_path).out


def test_eval_explains_why_a_tool_is_missed(catalog: Path, queries: Path, tmp_path: Path) -> None:
    wrong = {"query": "delete the document", "relevant": ["create_issue"]}
    queries.write_text(json.dumps(wrong))
    shown = evaluated(catalog, queries, "--explain", home=tmp_path).out
    assert "place" in shown
    assert "delete_document" in shown
    assert "left out" in shown
    [miss] = evaluated(catalog, queries, "--explain", "--json", home=tmp_path).json["misses"]
    first, *_, wanted = miss["explained"]
    assert first["tool"].endswith("delete_document")
    assert (first["rank"], first["is_relevant"]) == (1, True)
    assert "name: delete, document" in first["why"]
    assert wanted["tool"].endswith("create_issue")
    assert wanted["rank"] > 1
    assert wanted["score"] < first["score"]
    assert wanted["meaning"] < first["meaning"]


def test_eval_shows_a_table(catalog: Path, queries: Path, tmp_path: Path) -> None:
    ran = evaluated(catalog, queries, home=tmp_path)
    assert ran.code == 0
    head, *rows, foot = ran.out.rstrip().splitlines()
    assert head.split()[:7] == [
        "ranker", "recall@1", "recall@3", "recall@5", "recall@10", "nDCG@10", "MRR",
    ]  # fmt: skip
    assert [row.strip().rsplit(maxsplit=8)[0] for row in rows] == RANKERS
    assert foot == "4 queries over 29 tools. Quality in percent."
    assert ran.err == ""


def test_eval_fits_a_narrow_terminal(catalog: Path, queries: Path, tmp_path: Path) -> None:
    named = ("--catalog", str(catalog), "--queries", str(queries))
    ran = process("eval", *named, home=tmp_path, COLUMNS="60", FORCE_COLOR="1")
    assert "recall@5" in ran.out
    assert "recall@3" not in ran.out
    assert "Indexing tools" in ran.err
    assert "Evaluating queries" in ran.err
    assert "8/8" in ran.err


def test_eval_warns_about_queries_about_other_tools(
    catalog: Path, queries: Path, tmp_path: Path
) -> None:
    lost = json.dumps({"query": "fly to the moon", "relevant": ["launch_rocket"]})
    queries.write_text(f"{queries.read_text()}\n\n{lost}\n")
    ran = evaluated(catalog, queries, home=tmp_path)
    assert ran.code == 0
    assert (
        f"1 of 5 queries expect only tools that are not in the catalog, for example {queries}:6"
        in (ran.err)
    )


def test_eval_counts_queries_that_no_tool_answers_apart(
    catalog: Path, queries: Path, tmp_path: Path
) -> None:
    before = evaluated(catalog, queries, "--json", home=tmp_path).json["rankers"]["pegboard"]
    nothing = [{"query": "xyzzy plugh quux", "relevant": []}, {"query": "issue", "relevant": []}]
    lines = [queries.read_text(), *map(json.dumps, nothing)]
    queries.write_text("\n".join(lines))
    value = evaluated(catalog, queries, "--json", "--misses", "9", home=tmp_path).json
    ours = value["rankers"]["pegboard"]
    assert (value["queries"], ours["queries"]) == (6, 4)
    assert (ours["unanswerable"], ours["refused"]) == (2, 1)
    for figure in FIGURES - {"p50_ms", "p95_ms", "unanswerable", "refused"}:
        assert ours[figure] == before[figure], figure
    (miss,) = [one for one in value["misses"] if one["query"] == "issue"]
    assert (miss["relevant"], bool(miss["found"])) == ([], True)
    shown = evaluated(catalog, queries, "--misses", "9", home=tmp_path).out
    assert "refused" in shown
    assert "1/2" in shown
    assert "expected: nothing" in shown
    assert "refused: queries for which nothing was found, of 2 that no tool answers" in " ".join(
        shown.split()
    )
    drawn = evaluated(catalog, queries, "--sample", "1", "--json", home=tmp_path)
    assert (drawn.code, drawn.json["rankers"]["pegboard"]["queries"]) == (0, 1)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no queries in {queries}"),
        ('{"query": "x", "relevant": ["create_issue"]}\nnot json\n', "{queries}:2 is not a judged"),
        ('{"query": "x"}', "{queries}:1 is not a judged query"),
        ('["query"]', "{queries}:1 is not a judged query"),
        ('{"query": "x", "relevant": []}', "has an empty `relevant`: add one that a tool answers"),
        ('{"query": "x", "relevant": "create_issue"}', "{queries}:1: `query` must be text"),
        ('{"query": "x", "relevant": [1]}', "{queries}:1: `query` must be text"),
        ('{"query": 1, "relevant": ["create_issue"]}', "{queries}:1: `query` must be text"),
        ('{"query": "x", "relevant": ["other"]}', "No query names a tool of this catalog"),
    ],
)
def test_eval_names_the_file_and_the_line_that_is_wrong(
    text: str, reason: str, catalog: Path, queries: Path, tmp_path: Path
) -> None:
    queries.write_text(text)
    ran = evaluated(catalog, queries, home=tmp_path)
    assert (ran.code, ran.out) == (3, "")
    assert reason.format(queries=queries) in ran.err
    assert ran.err.startswith("error: ")


def test_eval_names_the_line_of_a_wrong_catalog(queries: Path, tmp_path: Path) -> None:
    catalog = tmp_path / "tools.jsonl"
    catalog.write_text('{"name": "create_issue"}\n{"title": "nameless"}\n')
    ran = evaluated(catalog, queries, home=tmp_path)
    assert ran.code == 3
    assert f"{catalog}, line 2: a tool is an object with a `name`" in ran.err


def test_eval_needs_queries_that_can_be_read(catalog: Path, tmp_path: Path) -> None:
    assert pegboard("eval", "--catalog", str(catalog), home=tmp_path).code == 2
    gone = evaluated(catalog, tmp_path / "gone.jsonl", home=tmp_path)
    assert gone.code == 3
    assert "gone.jsonl cannot be read" in gone.err
    (tmp_path / "binary.jsonl").write_bytes(b"\xff\xfe\x00")
    assert evaluated(catalog, tmp_path / "binary.jsonl", home=tmp_path).code == 3
