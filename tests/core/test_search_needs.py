"""Several needs in one query."""

from __future__ import annotations

import time

import pytest

from pegboard.core.search import SearchIndex
from pegboard.core.search.queries import split_clauses, split_needs, split_sentences
from pegboard.core.tools import Catalog, Tool, constant_definition

EMPTY = constant_definition({"type": "object"})
CATALOG = Catalog(
    [
        Tool(name, EMPTY, description=description)
        for name, description in {
            "create_document": "Create a document with a title.",
            "copy_document": "Copy a document.",
            "delete_document": "Delete a document.",
            "rename_document": "Rename a document.",
            "share_document": "Share a document.",
            "list_labels": "List all labels.",
            "log_hours": "Log hours worked.",
        }.items()
    ]
)


@pytest.mark.parametrize(
    ("query", "needs"),
    [
        (
            "create document; backlinks to a document",
            ("create document", "backlinks to a document"),
        ),
        ("list projects, labels and milestones", ("list projects", "labels", "milestones")),
        ("episode: start, finish", ("episode start", "episode finish")),
        ("search issues\nlog time", ("search issues", "log time")),
        ("find and merge contacts", ("find contacts", "merge contacts")),
        ("labels and open milestones", ("labels", "open milestones")),
        ("labels, labels", ("labels",)),
        ("log time", ()),
        ("I was wondering, since Tom is away, whether somebody could move my meeting", ()),
        ("a, b, c, d, e, f, g", ()),
        (" ; , ", ()),
        ("", ()),
    ],
)
def test_a_short_list_is_split_and_a_thought_is_not(query: str, needs: tuple[str, ...]) -> None:
    assert split_needs(query) == needs


def test_only_long_queries_are_read_by_sentence() -> None:
    short = "Create a document. Then share it."
    assert split_sentences(short) == ()
    long = f"{short} It is about {'very ' * 20}much. So."
    assert split_sentences(long)[:2] == ("Create a document.", "Then share it.")
    assert "So." not in split_sentences(long)


@pytest.mark.parametrize(
    ("query", "clauses"),
    [
        (
            "Could you book us a room, and let the team know about it",
            ("Could you book us a room", "let the team know about it"),
        ),
        (
            "Thanks, write down the hours I worked and create a document",
            ("Thanks write down the hours I worked", "create a document"),
        ),
        ("write down my hours for today and yesterday", ()),
        ("create a document and log hours", ()),
        ("where are the labels that we made for the old documents", ()),
        (
            "Move the meeting to Monday. And then let the team know",
            ("Move the meeting to Monday", "let the team know"),
        ),
        (", . ; and then so " * 3, ()),
        ("", ()),
    ],
)
def test_speech_is_split_into_clauses_without_fragments(
    query: str, clauses: tuple[str, ...]
) -> None:
    assert split_clauses(query) == clauses


@pytest.mark.parametrize("limit", [1, 2, 5, 10])
def test_the_best_tool_of_a_clause_is_among_the_first_five(limit: int) -> None:
    index = SearchIndex.build(CATALOG)
    query = "please create the document, share the document, then tell me which labels we have"
    names = [m.tool.name for m in index.search(query, limit)]
    assert len(names) == len(set(names)) <= limit
    assert limit < 5 or "list_labels" in names[:5]


def test_every_need_of_a_list_is_covered_before_variants_of_one() -> None:
    index = SearchIndex.build(CATALOG)
    names = [m.tool.name for m in index.search("create document, labels, hours", 3)]
    assert sorted(names) == ["create_document", "list_labels", "log_hours"]


def test_scores_never_rise_along_the_matches() -> None:
    scores = [m.score for m in SearchIndex.build(CATALOG).search("log hours, document, labels", 10)]
    assert scores == sorted(scores, reverse=True)


def test_a_long_request_is_split_into_clauses_in_linear_time() -> None:
    def seconds(fragments: int) -> float:
        began = time.process_time()
        split_clauses("book a room for the whole team today" + ", x" * fragments)
        return time.process_time() - began

    # Sixteen times the length: quadratic time would be 256 times as long.
    assert seconds(320_000) < 64 * max(seconds(20_000), 0.002)


def test_the_tool_of_a_clause_says_which_clause_it_is_for_and_lowers_no_other_score() -> None:
    index = SearchIndex.build(CATALOG)
    query = "please create the document, share the document, then tell me which labels we have"
    matches = index.search(query, 3)
    of_clause = next(m for m in matches if m.tool.name == "list_labels")
    assert of_clause.need is not None
    assert "labels" in of_clause.need
    scores = [m.score for m in matches]
    assert scores == sorted(scores, reverse=True)
