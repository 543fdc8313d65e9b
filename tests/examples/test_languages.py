"""Requests in other languages over the tools of both example servers, judged by hand."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest

from examples import memory, tracker
from pegboard.core.search import SearchIndex
from pegboard.core.search.translation import translate
from pegboard.core.tools import Catalog
from pegboard.embed.live_index import LiveIndex
from pegboard.embed.vectorizer import LocalVectorizer

HERE = Path(__file__).parent
LANGUAGES = {"de", "fr", "es", "it", "pt", "nl", "ru", "pl", "zh", "ja"}


class Request(NamedTuple):
    language: str
    query: str
    relevant: list[str]


REQUESTS = [
    Request(**json.loads(line))
    for line in (HERE / "requests_in_other_languages.jsonl").read_text("utf-8").splitlines()
]


@pytest.fixture(scope="module")
def index() -> SearchIndex:
    boards = (tracker.build_board(seeded=False), memory.build_board(seeded=False))
    catalog = Catalog([tool for board in boards for tool in board.tools()])
    live = LiveIndex(LocalVectorizer())
    live.prepare(catalog)
    return live.index(catalog)


def test_requests_name_tools_that_exist(index: SearchIndex) -> None:
    names = {tool.name for tool in index.catalog}
    assert all(names.issuperset(request.relevant) for request in REQUESTS)
    assert {request.language for request in REQUESTS} == LANGUAGES


def test_requests_in_other_languages_find_their_tools(index: SearchIndex) -> None:
    hits: dict[str, list[bool]] = defaultdict(list)
    for language, query, relevant in REQUESTS:
        found = [match.tool.name for match in index.search(query, 5)]
        hits[language].append(not set(relevant).isdisjoint(found))
    rates = {language: sum(found) / len(found) for language, found in hits.items()}
    assert min(rates.values()) >= 0.8, rates
    assert sum(rates.values()) / len(rates) >= 0.9, rates


def test_each_request_is_recognized_as_its_language() -> None:
    recognized = [
        (translation.language == request.language)
        for request in REQUESTS
        if (translation := translate(request.query)) is not None
    ]
    assert len(recognized) >= 0.97 * len(REQUESTS)
    assert sum(recognized) >= 0.95 * len(REQUESTS)


def test_requests_in_english_stay_as_they_are() -> None:
    lines = (HERE / "tracker" / "requests.jsonl").read_text("utf-8").splitlines()
    queries = [json.loads(line)["query"] for line in lines]
    assert [query for query in queries if translate(query) is not None] == []
